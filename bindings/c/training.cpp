// SPDX-License-Identifier: Apache-2.0
// reef.h: what quantization-aware training needs.
#include "compiler/training_graph.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "formats/tflite/writer.h"
#include "guard.h"
#include "handles.h"
#include "numeric/chip_tables.h"
#include "options.h"

using namespace reef;
using namespace reef::c_api;

namespace {

using Json = nlohmann::ordered_json;

Json attributes_json(const ir::Attributes& attributes) {
  Json result = Json::object();
  for (const ir::Attribute& attribute : attributes) {
    std::visit(
        [&](const auto& value) {
          if constexpr (std::is_same_v<std::decay_t<decltype(value)>, ir::EnumName>) {
            result[attribute.name] = value.name;
          } else {
            result[attribute.name] = value;
          }
        },
        attribute.value);
  }
  return result;
}

Json graph_json(const compiler::TrainingGraph& graph) {
  Json ops = Json::array();
  const std::vector<ir::Operator>& operators = graph.model->subgraphs[0].operators;
  for (std::size_t i = 0; i < operators.size(); ++i) {
    ops.push_back({{"type", operators[i].type},
                   {"attributes", attributes_json(operators[i].attributes)},
                   {"on_cpu", graph.ops[i].on_cpu},
                   {"is_rewritten", graph.ops[i].is_rewritten}});
  }
  return {{"ops", ops}, {"rewrites", graph.rewrites}};
}

Status check_affine(const reef_chip_affine& affine) {
  REEF_REQUIRE(std::isfinite(affine.scale) && affine.scale > 0, "a scale of {}", affine.scale);
  REEF_REQUIRE(affine.zero_point >= 0 && affine.zero_point <= 255, "a zero point of {}; the chip's are 0 to 255",
               affine.zero_point);
  return ok_status();
}

Result<compiler::TensorEdit> edit_of(const reef_tensor_edit& given) {
  compiler::TensorEdit edit;
  edit.tensor = given.tensor;
  if (given.data != nullptr) edit.data = {static_cast<const std::uint8_t*>(given.data), given.bytes};
  if (given.scales == nullptr) return edit;
  REEF_RETURN_IF_ERROR(require(given.zero_points, "zero_points"));
  edit.scales.assign(given.scales, given.scales + given.scale_count);
  edit.zero_points.assign(given.zero_points, given.zero_points + given.scale_count);
  return edit;
}

reef_status describe_graph(const reef_model* model, const reef_compile_options* options, compiler::GraphUse use,
                           reef_model** rewritten, char** json) {
  return guarded({{model, "model"}, {rewritten, "rewritten"}, {json, "json"}}, [&]() -> Status {
    REEF_ASSIGN_OR_RETURN(const compiler::PlanOptions plan,
                          plan_options(known_options(options, reef_compile_options_init)));
    const auto graph = compiler::make_training_graph(model->model, plan, use);
    if (!graph.ok()) return graph.status().in(model->name);
    auto handle = std::make_unique<reef_model>();
    handle->name = model->name;
    handle->model = graph->model;
    *json = give_away(text_of(graph_json(*graph)));
    *rewritten = handle.release();
    return ok_status();
  });
}

}  // namespace

reef_status reef_model_for_training(const reef_model* model, const reef_compile_options* options,
                                    reef_model** rewritten, char** json) {
  return describe_graph(model, options, compiler::GraphUse::kTraining, rewritten, json);
}

reef_status reef_model_as_compiled(const reef_model* model, const reef_compile_options* options, reef_model** rewritten,
                                   char** json) {
  return describe_graph(model, options, compiler::GraphUse::kChecking, rewritten, json);
}

reef_status reef_chip_function(const reef_model* model, size_t op, reef_chip_affine in, reef_chip_affine out,
                               int32_t codes[256]) {
  return guarded({{model, "model"}, {codes, "codes"}}, [&]() -> Status {
    REEF_RETURN_IF_ERROR(check_affine(in));
    REEF_RETURN_IF_ERROR(check_affine(out));
    const std::vector<ir::Operator>& operators = model->main().operators;
    REEF_REQUIRE(op < operators.size(), "there is no operator {}; the model has {}", op, operators.size());
    REEF_ASSIGN_OR_RETURN(
        const compiler::FunctionCodes table,
        compiler::chip_function_codes(operators[op], {in.scale, in.zero_point}, {out.scale, out.zero_point}));
    std::copy(table.begin(), table.end(), codes);
    return ok_status();
  });
}

reef_status reef_chip_exponentials(float scale, int32_t codes[256]) {
  return guarded({{codes, "codes"}}, [&]() -> Status {
    constexpr std::int32_t kMost = 65535;
    const numeric::ChipFunction exp = numeric::chip_exp();
    for (int i = 0; i < 256; ++i) codes[i] = numeric::chip_round(exp.at(static_cast<float>(-i) * scale), 0, kMost);
    return ok_status();
  });
}

reef_status reef_chip_inverse_root(float one, float coefficients[8][5], float breaks[7]) {
  return guarded({{coefficients, "coefficients"}, {breaks, "breaks"}}, [&]() -> Status {
    // SOFTMAX's own units are those in which Google's compilers hold the table; nothing is scaled.
    const bool is_base = one == numeric::kChipRootOne;
    const numeric::ChipTable table = is_base ? numeric::chip_root_table() : numeric::chip_inverse_root(one).table;
    for (std::size_t i = 0; i < table.segments.size(); ++i) {
      std::copy(table.segments[i].begin(), table.segments[i].end(), coefficients[i]);
    }
    std::copy(table.breaks.begin(), table.breaks.end(), breaks);
    return ok_status();
  });
}

reef_status reef_model_save(const reef_model* model, const reef_tensor_edit* edits, size_t count, const char* path) {
  return guarded({{model, "model"}, {path, "path"}}, [&]() -> Status {
    if (count > 0) REEF_RETURN_IF_ERROR(require(edits, "edits"));
    std::vector<compiler::TensorEdit> list;
    for (std::size_t i = 0; i < count; ++i) {
      REEF_ASSIGN_OR_RETURN(compiler::TensorEdit edit, edit_of(edits[i]));
      list.push_back(std::move(edit));
    }
    REEF_ASSIGN_OR_RETURN(const ir::Model changed, compiler::with_edits(*model->model, list));
    REEF_ASSIGN_OR_RETURN(const std::vector<std::uint8_t> file, tflite::write_model(changed));
    return write_file(path, file);
  });
}
