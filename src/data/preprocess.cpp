// SPDX-License-Identifier: Apache-2.0
#include "data/preprocess.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/ranges.h>

#include "data/scaling_in_model.h"
#include "ir/op.h"

namespace reef::data {
namespace {

struct Preset {
  std::string_view name, fields, meaning;
};
constexpr Preset kPresets[] = {
    {"none", "", "pixels 0 to 255"},
    {"unit", "scale=1/255", "0 to 1"},
    {"tf", "mean=127.5,std=127.5", "-1 to 1: TensorFlow's MobileNets"},
    {"imagenet", "scale=1/255,mean=0.485:0.456:0.406,std=0.229:0.224:0.225,crop=0.875", "torchvision's classifiers"},
    {"caffe", "mean=103.939:116.779:123.68,order=bgr", "Keras' VGG and ResNet"},
    {"yolo", "scale=1/255,letterbox", "Ultralytics' detectors"},
    {"codes", "codes", "the pixel is the 8-bit number that the input stores"},
};
constexpr std::string_view kFields =
    "scale, mean, std (one number or one for each channel with ':' between them), stretch, crop=SHARE, letterbox, "
    "pad=PIXEL, order=rgb|bgr, grey, layout=nhwc|nchw, codes";

// "0.5" or "1/255".
Result<double> number(std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto plain = [](std::string_view digits) -> std::optional<double> {
    double value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size() || !std::isfinite(value)) return std::nullopt;
    return value;
  };
  const auto above = plain(text.substr(0, slash));
  const auto below = slash == std::string_view::npos ? std::optional<double>(1) : plain(text.substr(slash + 1));
  REEF_REQUIRE(above && below && *below != 0, "'{}' is not a number", text);
  return *above / *below;
}

Result<std::vector<double>> numbers(std::string_view text) {
  std::vector<double> values;
  while (true) {
    const std::size_t colon = text.find(':');
    REEF_ASSIGN_OR_RETURN(const double value, number(text.substr(0, colon)));
    values.push_back(value);
    if (colon == std::string_view::npos) break;
    text.remove_prefix(colon + 1);
  }
  REEF_REQUIRE(values.size() == 1 || values.size() == 3 || values.size() == 4,
               "{} numbers are given; one, or one for each of 3 or 4 channels", values.size());
  return values;
}

Status check(const Preprocess& p) {
  REEF_REQUIRE(p.scale != 0, "scale must not be 0");
  REEF_REQUIRE(std::none_of(p.std.begin(), p.std.end(), [](double v) { return v == 0; }), "std must not be 0");
  REEF_REQUIRE(p.crop > 0 && p.crop <= 1, "crop is the share of the picture that is kept: more than 0, at most 1");
  REEF_REQUIRE(p.pad >= 0 && p.pad <= 255, "pad is a pixel, 0 to 255");
  REEF_REQUIRE(p.mean.size() == 1 || p.std.size() == 1 || p.mean.size() == p.std.size(),
               "mean is given for {} channels, std for {}", p.mean.size(), p.std.size());
  return ok_status();
}

Status apply_field(std::string_view name, std::string_view value, Preprocess& p);

Status apply_fields(std::string_view text, Preprocess& p) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t comma = text.find(',', begin);
    const std::size_t end = comma == std::string_view::npos ? text.size() : comma;
    const std::size_t equals = std::min(text.substr(begin, end - begin).find('='), end - begin) + begin;
    const std::string_view value = equals < end ? text.substr(equals + 1, end - equals - 1) : std::string_view();
    REEF_RETURN_IF_ERROR(apply_field(text.substr(begin, equals - begin), value, p));
    begin = end + 1;
  }
  return check(p);
}

Status apply_number(std::string_view name, std::string_view value, Preprocess& p) {
  if (name == "mean" || name == "std") {
    auto list = numbers(value);
    if (!list.ok()) return list.status().in(name);
    (name == "mean" ? p.mean : p.std) = std::move(*list);
    return ok_status();
  }
  const auto one = number(value);
  if (!one.ok()) return one.status().in(name);
  if (name == "scale") p.scale = *one;
  if (name == "pad") p.pad = *one;
  if (name == "crop") {
    p.crop = *one;
    p.fit = Fit::kCrop;
  }
  return ok_status();
}

Status apply_field(std::string_view name, std::string_view value, Preprocess& p) {
  if (name == "mean" || name == "std" || name == "scale" || name == "pad" || (name == "crop" && !value.empty()))
    return apply_number(name, value, p);
  const auto is = [&](std::string_view n, std::string_view v) { return name == n && value == v; };
  if (is("stretch", "") || is("resize", "stretch")) {
    p.fit = Fit::kStretch;
  } else if (is("crop", "") || is("resize", "crop")) {
    p.fit = Fit::kCrop;
  } else if (is("letterbox", "") || is("resize", "letterbox")) {
    p.fit = Fit::kLetterbox;
  } else if (is("order", "rgb") || is("rgb", "")) {
    p.colours = Colours::kRgb;
  } else if (is("order", "bgr") || is("bgr", "")) {
    p.colours = Colours::kBgr;
  } else if (is("grey", "") || is("gray", "") || is("order", "grey")) {
    p.colours = Colours::kGrey;
  } else if (is("layout", "nhwc")) {
    p.layout = Layout::kNhwc;
  } else if (is("layout", "nchw")) {
    p.layout = Layout::kNchw;
  } else if (is("codes", "")) {
    p.pixels_are_codes = true;
  } else {
    const auto preset =
        std::find_if(std::begin(kPresets), std::end(kPresets), [&](const Preset& known) { return known.name == name; });
    REEF_REQUIRE(preset != std::end(kPresets) && value.empty(), "'{}{}{}' is not known. Fields: {}. Presets: {}", name,
                 value.empty() ? "" : "=", value, kFields, describe_presets());
    REEF_REQUIRE(p == Preprocess(), "the preset '{}' must come first", name);
    return apply_fields(preset->fields, p);
  }
  return ok_status();
}

// A multiple of 1/255 of this form is what people write.
std::string number_text(double value) { return value == 1.0 / 255 ? "1/255" : fmt::format("{}", value); }

// Low and high end of what an 8- or 16-bit tensor can represent.
struct Range {
  double low = 0, high = 0;
};
std::optional<Range> range_of(ir::DataType type, const ir::Quantization& q) {
  if (q.scale.size() != 1 || !ir::is_integer_8(type)) return std::nullopt;
  const double zero = q.zero_point.empty() ? 0 : static_cast<double>(q.zero_point[0]);
  const double least = type == ir::DataType::kInt8 ? -128 : 0;
  return Range{(least - zero) * q.scale[0], (least + 255 - zero) * q.scale[0]};
}

// The range of a float input that is quantized right away.
std::optional<Range> quantized_range(const ir::Subgraph& graph, std::int32_t tensor) {
  for (const ir::Operator& op : graph.operators) {
    if (op.type != Op::QUANTIZE || op.inputs.size() != 1 || op.inputs[0] != tensor || op.outputs.size() != 1) continue;
    const ir::Tensor& result = graph.tensors[reef::at(op.outputs[0])];
    if (auto range = range_of(result.type, result.quantization)) return range;
  }
  return std::nullopt;
}

// The usual recipe that fills this range; nullopt: none does.
std::optional<ChosenPreprocess> usual_for(const Range& range, std::string_view why) {
  const auto near = [&](double low, double high) {
    const double slack = (high - low) * 0.05;
    return std::abs(range.low - low) < slack && std::abs(range.high - high) < slack;
  };
  if (near(0, 255)) return ChosenPreprocess{{}, fmt::format("none: {} 0 to 255", why), true};
  if (near(-1, 1)) return ChosenPreprocess{{.mean = {127.5}, .std = {127.5}}, fmt::format("tf: {} -1 to 1", why), true};
  if (near(0, 1)) return ChosenPreprocess{{.scale = 1.0 / 255}, fmt::format("unit: {} 0 to 1", why), true};
  return std::nullopt;
}

ChosenPreprocess guess(const ir::Model& model, int index) {
  const ir::Subgraph& graph = model.subgraphs[0];
  const std::int32_t number = graph.inputs[reef::at(index)];
  const ir::Tensor& tensor = graph.tensors[reef::at(number)];
  if (ir::is_integer_8(tensor.type))
    return {{.pixels_are_codes = true}, "codes: pixels go in as they are, as usual for 8-bit inputs", true};
  if (const auto range = quantized_range(graph, number)) {
    if (auto usual = usual_for(*range, "the model quantizes its input for")) return *usual;
  }
  if (auto expected = preprocess_of_scaling(model, index)) return *expected;
  return {{.scale = 1.0 / 255}, "unit (0 to 1), a guess: nothing is said and nothing is stored in the model", true};
}

}  // namespace

std::optional<ChosenPreprocess> preprocess_of_scaling(const ir::Model& model, int index) {
  const auto expected = pixels_expected(model, index);
  if (!expected) return std::nullopt;
  if (*expected == ExpectedPixels::kUnit)
    return ChosenPreprocess{{.scale = 1.0 / 255}, "0 to 1: the model scales its input itself, from there", false};
  return ChosenPreprocess{{}, "pixels as they are: the model scales its input itself, from 0 to 255", false};
}

Result<Preprocess> parse_preprocess(std::string_view text) {
  Preprocess result;
  REEF_RETURN_IF_ERROR(apply_fields(text, result).in(fmt::format("preprocessing '{}'", text)));
  return result;
}

std::string to_string(const Preprocess& p) {
  std::vector<std::string> fields;
  const auto list = [](const std::vector<double>& values) {
    std::vector<std::string> texts;
    for (const double value : values) texts.push_back(number_text(value));
    return fmt::format("{}", fmt::join(texts, ":"));
  };
  if (p.pixels_are_codes) fields.push_back("codes");
  if (p.scale != 1) fields.push_back("scale=" + number_text(p.scale));
  if (p.mean != std::vector<double>{0}) fields.push_back("mean=" + list(p.mean));
  if (p.std != std::vector<double>{1}) fields.push_back("std=" + list(p.std));
  if (p.crop != 1) fields.push_back("crop=" + number_text(p.crop));
  if (p.crop == 1 && p.fit == Fit::kCrop) fields.push_back("crop");
  if (p.crop != 1 && p.fit == Fit::kStretch) fields.push_back("stretch");
  if (p.fit == Fit::kLetterbox) fields.push_back("letterbox");
  if (p.pad != 114) fields.push_back("pad=" + number_text(p.pad));
  if (p.colours == Colours::kBgr) fields.push_back("order=bgr");
  if (p.colours == Colours::kGrey) fields.push_back("grey");
  if (p.layout == Layout::kNhwc) fields.push_back("layout=nhwc");
  if (p.layout == Layout::kNchw) fields.push_back("layout=nchw");
  return fields.empty() ? "none" : fmt::format("{}", fmt::join(fields, ","));
}

std::string describe_presets() {
  std::vector<std::string> texts;
  for (const Preset& preset : kPresets) texts.push_back(fmt::format("{} ({})", preset.name, preset.meaning));
  return fmt::format("{}", fmt::join(texts, ", "));
}

Result<ChosenPreprocess> choose_preprocess(std::string_view text, const ir::Model& model, int index) {
  if (!text.empty()) {
    REEF_ASSIGN_OR_RETURN(Preprocess given, parse_preprocess(text));
    return ChosenPreprocess{std::move(given), "as given", false};
  }
  REEF_ASSIGN_OR_RETURN(const auto stored, stored_preprocess(model));
  if (stored) return ChosenPreprocess{*stored, "stored in the model", false};
  return guess(model, index);
}

std::optional<ChosenPreprocess> preprocess_of_codes(const ir::Model& quantized, int index) {
  const InputSpec input = input_spec(quantized, index);
  const auto range = range_of(input.type, input.quantization);
  if (!range || !(range->high > range->low)) return std::nullopt;
  if (auto usual = usual_for(*range, "the quantized model's input is for")) return usual;
  const double step = (range->high - range->low) / 255;
  return ChosenPreprocess{{.mean = {-range->low / step}, .std = {1 / step}},
                          fmt::format("the quantized model's input is for {:.4g} to {:.4g}", range->low, range->high),
                          true};
}

PixelMap pixel_map(const Preprocess& p, const InputSpec& input, int channel) {
  const auto at = [&](const std::vector<double>& list) {
    return list[list.size() == 1 ? 0 : std::min(static_cast<std::size_t>(channel), list.size() - 1)];
  };
  if (p.pixels_are_codes) {
    const auto range = range_of(input.type, input.quantization);
    return range ? PixelMap{(range->high - range->low) / 255, range->low} : PixelMap{};
  }
  return {p.scale / at(p.std), -at(p.mean) / at(p.std)};
}

}  // namespace reef::data
