// SPDX-License-Identifier: Apache-2.0
// reef.h: converting and quantizing.
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "compiler/convert_driver.h"
#include "compiler/output_check.h"
#include "compiler/quantize_driver.h"
#include "compiler/quantize_json.h"
#include "formats/tflite/writer.h"
#include "guard.h"
#include "options.h"

using namespace reef;
using namespace reef::c_api;

namespace {

using Json = nlohmann::ordered_json;

Json border_json(const ir::Subgraph& graph, const std::vector<std::int32_t>& tensors) {
  Json list = Json::array();
  for (const std::int32_t index : tensors) {
    const ir::Tensor& tensor = graph.tensors[at(index)];
    const auto& sizes = tensor.shape_signature.empty() ? tensor.shape.dims() : tensor.shape_signature;
    list.push_back({{"name", tensor.name}, {"type", ir::type_name(tensor.type)}, {"shape", sizes}});
  }
  return list;
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
    REEF_RETURN_IF_ERROR(compiler::check_ending(output, compiler::Content::kModel));
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
    *json = give_away(text_of(report));
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
    REEF_ASSIGN_OR_RETURN(compiler::QuantizeRequest request, quantize_request(known));
    request.model = model;
    request.output = output;
    const Result<compiler::QuantizeOutcome> outcome = compiler::quantize_file(request);
    if (!outcome.ok()) return outcome.status().in(model);
    if (json != nullptr) *json = give_away(text_of(compiler::quantize_json(request, *outcome)));
    return ok_status();
  });
}
