// SPDX-License-Identifier: Apache-2.0
#include "options.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>

#include <nlohmann/json.hpp>

namespace reef::c_api {

std::vector<std::string> split(const char* text, char separator) {
  std::vector<std::string> parts;
  for (std::string_view rest = text != nullptr ? text : ""; !rest.empty();) {
    const std::size_t end = std::min(rest.find(separator), rest.size());
    if (end > 0) parts.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return parts;
}

namespace {

// "name:1,2,3;other:4"; names may hold colons themselves.
template <typename Number>
Result<std::map<std::string, std::vector<Number>>> named_numbers(const char* text, std::string_view what) {
  std::map<std::string, std::vector<Number>> result;
  for (const std::string& entry : split(text, ';')) {
    const std::size_t colon = entry.rfind(':');
    REEF_REQUIRE(colon != std::string::npos && colon > 0, "{} '{}': give it as name:1,2,3", what, entry);
    std::vector<Number>& numbers = result[entry.substr(0, colon)];
    for (const std::string& word : split(entry.c_str() + colon + 1, ',')) {
      const char* const end = word.data() + word.size();
      Number number{};
      const auto [next, error] = std::from_chars(word.data(), end, number);
      REEF_REQUIRE(error == std::errc() && next == end, "{} '{}': '{}' is no number", what, entry, word);
      numbers.push_back(number);
    }
  }
  return result;
}

// The value that a name stands for.
template <typename Value>
Result<Value> named(const char* name, std::string_view what, const std::map<std::string_view, Value>& values) {
  const auto found = values.find(name != nullptr ? name : "");
  if (found != values.end()) return found->second;
  std::string known;
  for (const auto& [key, value] : values) known += (known.empty() ? "" : ", ") + std::string(key);
  return invalid_input("there is no {} '{}'; there are {}", what, name != nullptr ? name : "", known);
}

}  // namespace

Result<quantize::IoType> io_type(const char* name) {
  using quantize::IoType;
  return named<IoType>(name, "type of inputs and outputs",
                       {{"int8", IoType::kInt8}, {"uint8", IoType::kUInt8}, {"float32", IoType::kFloat32}});
}

Result<compiler::FrontEndOptions> front_end_options(const reef_convert_options& options) {
  compiler::FrontEndOptions result;
  REEF_ASSIGN_OR_RETURN(result.input_shapes, named_numbers<std::int64_t>(options.input_shapes, "input shape"));
  REEF_ASSIGN_OR_RETURN(result.input_values, named_numbers<double>(options.input_values, "input value"));
  result.pad_selections = options.pad_nms != 0;
  result.keep_nchw = split(options.keep_nchw, ',');
  result.simplify = options.simplify != 0;
  return result;
}

Result<compiler::QuantizeRequest> quantize_request(const reef_quantize_options& options) {
  using quantize::Mode, quantize::RangeMethod, quantize::Choice;
  compiler::QuantizeRequest request;
  request.data.use = data::Use::kCalibration;
  request.data.path = options.data != nullptr ? options.data : "";
  request.data.arrays = options.arrays != nullptr ? options.arrays : "";
  request.data.preprocess = options.preprocess != nullptr ? options.preprocess : "";
  request.data.limit = options.limit;
  quantize::QuantizeOptions& how = request.how;
  REEF_ASSIGN_OR_RETURN(how.mode, named<Mode>(options.mode, "mode",
                                              {{"int8", Mode::kInt8},
                                               {"int16x8", Mode::kInt16x8},
                                               {"dynamic", Mode::kDynamic},
                                               {"float16", Mode::kFloat16}}));
  REEF_ASSIGN_OR_RETURN(how.input_type, io_type(options.io));
  how.output_type = how.input_type;
  const std::string_view calibration = options.calibration != nullptr ? options.calibration : "";
  how.automatic_ranges = calibration == "auto";
  if (!how.automatic_ranges) {
    REEF_ASSIGN_OR_RETURN(how.method, named<RangeMethod>(options.calibration, "calibration",
                                                         {{"minmax", RangeMethod::kMinMax},
                                                          {"moving-average", RangeMethod::kMovingAverage},
                                                          {"percentile", RangeMethod::kPercentile},
                                                          {"entropy", RangeMethod::kEntropy},
                                                          {"mse", RangeMethod::kMse}}));
  }
  how.keep_float = split(options.keep_float, ',');
  how.full_integer = options.full_integer != 0;
  how.held_back = options.held_back;
  how.threads = std::clamp(options.threads, 1, 256);
  if (options.recover == 0) how.equalize = how.correct_biases = how.keep_sensitive_float = Choice::kOff;
  if (options.progress != nullptr) {
    how.progress = [options](std::string_view phase, std::int64_t done, std::int64_t total) {
      const double share = total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 0;
      options.progress(options.progress_user, std::string(phase).c_str(), "", share);
    };
  }
  return request;
}

std::string text_of(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace reef::c_api
