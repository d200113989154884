// SPDX-License-Identifier: Apache-2.0
// reef.h: converting and quantizing.
#include <algorithm>
#include <charconv>
#include <map>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "compiler/convert_driver.h"
#include "compiler/output_check.h"
#include "compiler/quantize_driver.h"
#include "compiler/quantize_json.h"
#include "formats/tflite/writer.h"
#include "guard.h"

using namespace reef;
using namespace reef::c_api;

namespace {

using Json = nlohmann::ordered_json;

template <typename Options>
Options known_options(const Options* given, void (*init)(Options*)) {
  Options options;
  init(&options);
  if (given != nullptr) {
    std::memcpy(static_cast<void*>(&options), given, std::min(given->struct_size, sizeof(options)));
  }
  return options;
}

std::vector<std::string> split(const char* text, char separator) {
  std::vector<std::string> parts;
  for (std::string_view rest = text != nullptr ? text : ""; !rest.empty();) {
    const std::size_t end = std::min(rest.find(separator), rest.size());
    if (end > 0) parts.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return parts;
}

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

Result<compiler::FrontEndOptions> front_end_options(const reef_convert_options& options) {
  compiler::FrontEndOptions result;
  REEF_ASSIGN_OR_RETURN(result.input_shapes, named_numbers<std::int64_t>(options.input_shapes, "input shape"));
  REEF_ASSIGN_OR_RETURN(result.input_values, named_numbers<double>(options.input_values, "input value"));
  result.pad_selections = options.pad_nms != 0;
  result.keep_nchw = split(options.keep_nchw, ',');
  result.simplify = options.simplify != 0;
  return result;
}

Json border_json(const ir::Subgraph& graph, const std::vector<std::int32_t>& tensors) {
  Json list = Json::array();
  for (const std::int32_t index : tensors) {
    const ir::Tensor& tensor = graph.tensors[static_cast<std::size_t>(index)];
    const auto& sizes = tensor.shape_signature.empty() ? tensor.shape.dims() : tensor.shape_signature;
    list.push_back({{"name", tensor.name}, {"type", ir::type_name(tensor.type)}, {"shape", sizes}});
  }
  return list;
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

Result<quantize::IoType> io_type(const char* name) {
  using quantize::IoType;
  return named<IoType>(name, "type of inputs and outputs",
                       {{"int8", IoType::kInt8}, {"uint8", IoType::kUInt8}, {"float32", IoType::kFloat32}});
}

Result<compiler::QuantizeRequest> quantize_request(const char* model, const char* output,
                                                   const reef_quantize_options& options) {
  using quantize::Mode, quantize::RangeMethod, quantize::Choice;
  compiler::QuantizeRequest request;
  request.model = model;
  request.output = output;
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

}  // namespace

void reef_convert_options_init(reef_convert_options* options) {
  if (options == nullptr) return;
  *options = {};
  options->struct_size = sizeof(reef_convert_options);
  options->simplify = 1;
  options->io = "int8";
}

reef_status reef_convert(const char* model, const char* output, const reef_convert_options* options, char** json) {
  return guarded([&]() -> Status {
    if (json != nullptr) *json = nullptr;
    REEF_RETURN_IF_ERROR(require(model, "model"));
    REEF_RETURN_IF_ERROR(require(output, "output"));
    REEF_RETURN_IF_ERROR(compiler::check_files({{output}, {model}, {}, {}}));
    const reef_convert_options known = known_options(options, reef_convert_options_init);
    compiler::ConvertRequest request;
    request.model = model;
    REEF_ASSIGN_OR_RETURN(request.front_end, front_end_options(known));
    request.keep_qdq = known.keep_qdq != 0;
    REEF_ASSIGN_OR_RETURN(request.io, io_type(known.io));
    REEF_ASSIGN_OR_RETURN(const compiler::FrontEndResult result, compiler::convert_model(request));
    REEF_ASSIGN_OR_RETURN(const std::vector<std::uint8_t> file, tflite::write_model(result.model));
    REEF_RETURN_IF_ERROR(write_file(output, file));
    if (json == nullptr) return ok_status();
    const ir::Subgraph& graph = result.model.subgraphs[0];
    const Json report = {{"model", model},
                         {"output", output},
                         {"output_bytes", file.size()},
                         {"inputs", border_json(graph, graph.inputs)},
                         {"outputs", border_json(graph, graph.outputs)},
                         {"notes", result.notes}};
    *json = give_away(report.dump(2, ' ', false, Json::error_handler_t::replace));
    return ok_status();
  });
}

void reef_quantize_options_init(reef_quantize_options* options) {
  if (options == nullptr) return;
  *options = {};
  options->struct_size = sizeof(reef_quantize_options);
  options->calibration = "auto";
  options->mode = "int8";
  options->io = "int8";
  options->held_back = -1;
  options->threads = 1;
  options->recover = 1;
}

reef_status reef_quantize(const char* model, const char* output, const reef_quantize_options* options, char** json) {
  return guarded([&]() -> Status {
    if (json != nullptr) *json = nullptr;
    REEF_RETURN_IF_ERROR(require(model, "model"));
    REEF_RETURN_IF_ERROR(require(output, "output"));
    const reef_quantize_options known = known_options(options, reef_quantize_options_init);
    REEF_ASSIGN_OR_RETURN(const compiler::QuantizeRequest request, quantize_request(model, output, known));
    const Result<compiler::QuantizeOutcome> outcome = compiler::quantize_file(request);
    if (!outcome.ok()) return outcome.status().in(model);
    if (json != nullptr) *json = give_away(compiler::quantize_json(request, *outcome));
    return ok_status();
  });
}
