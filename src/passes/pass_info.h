// SPDX-License-Identifier: Apache-2.0
// What users are told about a pass, and all passes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "graph/graph.h"

namespace reef::passes {

using graph::Graph;
using graph::kNone;
using graph::OpId;
using graph::TensorId;

enum class Stage : std::uint8_t {
  kShape,  // first in both of the others: what is known of sizes and constants, which all other passes build on
  kFloat,  // when a model is imported, and before it is quantized
  kChip,   // before a quantized model is divided between the chip and the CPU
};

enum class Safety : std::uint8_t {
  kExact,      // the same bytes for every input
  kRounding,   // differs by rounding only; on the chip each change says by how many steps of the output's scale at most
  kInterface,  // changes types or numbers of the model's inputs or outputs
};

struct PassInfo {
  Stage stage = Stage::kFloat;
  std::string_view name;     // "hard-swish"
  std::string_view summary;  // one sentence, for --help and documents
  Safety safety = Safety::kExact;
  bool on_by_default = true;
};
// The passes that run in a stage, in that order: those of kShape begin the other two.
std::span<const PassInfo> passes_of(Stage stage);

bool contains(const std::vector<std::string>& names, std::string_view name);
// Whether each is the name of a pass of the stage. The refusal calls a pass `kind` and lists those that there are.
Status check_names(Stage stage, const std::vector<std::string>& names, std::string_view kind);

}  // namespace reef::passes
