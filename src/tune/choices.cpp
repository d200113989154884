// SPDX-License-Identifier: Apache-2.0
#include "tune/choices.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace reef::tune {
namespace {

using quantize::Choice;
using quantize::QuantizeOptions;
using quantize::RangeMethod;

void ranges_by(QuantizeOptions& options, RangeMethod method) {
  options.automatic_ranges = false;
  options.method = method;
}

constexpr QuantizerChoice kQuantizers[] = {
    {"default", "as `reef compile --data` quantizes", [](QuantizeOptions&) {}},
    {"mse", "ranges of the smallest mean square error", [](QuantizeOptions& o) { ranges_by(o, RangeMethod::kMse); }},
    {"percentile", "ranges without the outermost values",
     [](QuantizeOptions& o) { ranges_by(o, RangeMethod::kPercentile); }},
    {"minmax", "ranges of everything that was seen", [](QuantizeOptions& o) { ranges_by(o, RangeMethod::kMinMax); }},
    {"rounding", "weights rounded by their effect on outputs",
     [](QuantizeOptions& o) { o.adaptive_rounding = Choice::kOn; }},
    {"nofloat", "no operator is left in float for accuracy's sake",
     [](QuantizeOptions& o) { o.keep_sensitive_float = Choice::kOff; }},
    {"split", "outputs that join parts are split", [](QuantizeOptions& o) { o.split_outputs = Choice::kOn; }},
    {"join", "outputs that join parts stay joined", [](QuantizeOptions& o) { o.split_outputs = Choice::kOff; }},
};
constexpr std::string_view kRewrites[] = {"best", "all", "none"};
constexpr int kMostSegments = 1024;

template <typename Number>
bool read(std::string_view text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

bool read_size(std::string_view text, Choices& choices) {
  if (text == "given") return true;
  const std::size_t by = text.find('x');
  return by != std::string_view::npos && read(text.substr(0, by), choices.height) &&
         read(text.substr(by + 1), choices.width) && choices.height > 0 && choices.width > 0;
}

bool read_field(std::string_view name, std::string_view value, Choices& choices) {
  if (name == "size") return read_size(value, choices);
  if (name == "cut") return read(value, choices.cut) && choices.cut >= 0 && choices.cut < 1;
  if (name == "quantizer") {
    choices.quantizer = value;
    return value == kFloatModel || find_quantizer(value) != nullptr;
  }
  if (name == "rewrites") {
    choices.rewrites = value;
    return std::find(std::begin(kRewrites), std::end(kRewrites), value) != std::end(kRewrites);
  }
  if (name == "segments")
    return read(value, choices.segments) && choices.segments >= 1 && choices.segments <= kMostSegments;
  if (name == "level") return read(value, choices.level) && choices.level >= 0 && choices.level <= 2;
  return false;
}

}  // namespace

const QuantizerChoice* find_quantizer(std::string_view name) {
  const auto found =
      std::find_if(std::begin(kQuantizers), std::end(kQuantizers), [&](const auto& one) { return one.name == name; });
  return found == std::end(kQuantizers) ? nullptr : found;
}

std::string to_text(const Choices& choices) {
  const std::string size =
      choices.height > 0 ? fmt::format("{}x{}", choices.height, choices.width) : std::string("given");
  return fmt::format("size={} cut={} quantizer={} rewrites={} segments={} level={}", size, choices.cut,
                     choices.quantizer, choices.rewrites, choices.segments, choices.level);
}

Result<Choices> parse_choices(std::string_view text) {
  Choices choices;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    const std::size_t equals = word.find('=');
    REEF_REQUIRE(
        equals != std::string_view::npos && read_field(word.substr(0, equals), word.substr(equals + 1), choices),
        "'{}' is no choice of reef tune; they look like size=24x24 cut=0.45 quantizer=mse rewrites=best "
        "segments=1 level=2",
        word);
  }
  return choices;
}

std::string tag_of(const Choices& choices) {
  const Choices usual;
  std::string tag;
  const auto add = [&](const std::string& part) { tag += tag.empty() ? part : "_" + part; };
  if (choices.height > 0) add(fmt::format("{}x{}", choices.height, choices.width));
  if (choices.cut > 0) add(fmt::format("cut{:.0f}", 100 * choices.cut));
  if (choices.quantizer != usual.quantizer) add(choices.quantizer);
  if (choices.rewrites != usual.rewrites) add(choices.rewrites + "-rewrites");
  if (choices.segments != usual.segments) add(fmt::format("n{}", choices.segments));
  if (choices.level != usual.level) add(fmt::format("O{}", choices.level));
  return tag.empty() ? "default" : tag;
}

Choices body_of(const Choices& choices) {
  Choices body;
  body.height = choices.height;
  body.width = choices.width;
  body.cut = choices.cut;
  return body;
}

Choices quantized_of(const Choices& choices) {
  Choices quantized = body_of(choices);
  quantized.quantizer = choices.quantizer;
  return quantized;
}

}  // namespace reef::tune
