// SPDX-License-Identifier: Apache-2.0
// Whether a model, as it stands in a file, runs on a microcontroller with TFLite Micro, and what it needs there.
//
// Two targets: kMicro is Coral's Dev Board Micro with Coral's SDK, where parts of the model run on the Edge TPU behind
// a custom operator that the SDK registers; kTflm is any board with the current TFLite Micro, where all of it runs
// there. A model is accepted for kMicro only if both Coral's release of TFLite Micro and the current one run it:
// programs outlive their SDK, and the current one is what can be tried on a PC.
//
// Nothing is run. Sizes are predicted (arena.h), times are estimated, and nothing was measured on a board.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ir/model.h"
#include "micro/arena.h"
#include "micro/operators.h"

namespace reef::micro {

enum class Target : std::uint8_t { kMicro, kTflm };
std::string_view target_name(Target target);  // "Dev Board Micro (Coral's SDK)"

// The releases that must run what is accepted.
Releases releases_of(Target target);

// Why the model does not run there.
struct Refusal {
  std::int32_t subgraph = 0;
  std::int32_t op = -1;  // -1: the whole model
  std::string rule;      // "operator", "types", "memory" or a rule's name (rules.h, edge_tpu_rules.h)
  std::string reason;    // whole sentences
  std::string remedy;    // a whole sentence; may be empty
};

// A demand and what there is.
struct MemoryUse {
  std::string_view what;   // "tensor arena"
  std::string_view where;  // "static SDRAM"
  std::int64_t bytes = 0, limit = 0;
  bool is_exact = true;  // else an estimate
};

struct ResolverLine {
  std::string op;    // "CONV_2D"
  std::string code;  // "AddConv2D()", "AddCustom(kCustomOp, RegisterCustomOp())"
};

// An operator whose kernel runs and gives other last bits than the current TFLite (rounding.h).
struct RoundedOp {
  std::int32_t subgraph = 0, op = 0;
  std::string as;  // "2.9": the release of TFLite with these bits; "own": none
};

struct Assessment {
  Target target = Target::kTflm;
  std::vector<Refusal> refusals;
  std::vector<ResolverLine> resolver;  // one for each kind of operator, by name
  std::optional<ArenaSize> arena_32, arena_64, arena_coral;
  std::vector<MemoryUse> memory;
  double cpu_us = 0;  // of one inference on the Cortex-M7, without the Edge TPU; estimated
  std::vector<RoundedOp> rounding;
  std::vector<std::string> notes;

  bool is_accepted() const { return refusals.empty(); }
  // For the constant in the program; nothing where it could not be predicted.
  std::optional<std::int64_t> arena_bytes() const;
};

struct AssessOptions {
  Target target = Target::kTflm;
  std::int64_t file_bytes = 0;
  bool file_bytes_are_exact = true;
  // kTflm: what the board has for the arena and for the model; nothing is checked where nothing is known.
  std::optional<std::int64_t> ram_bytes = {}, flash_bytes = {};
  // kMicro: the program holds the model as a C array instead of reading a file.
  bool embeds_model = false;
  // Tensors of which the file declares another shape than its operators give: "op 3 CONV_2D gives ...".
  std::vector<std::string> wrong_shapes = {};
};

// `model` must be verified; shapes are those that the file declares.
Assessment assess(const ir::Model& model, const AssessOptions& options);

// For each operator of subgraph 0, whether TFLite Micro runs it. Operators of the Edge TPU count as run for kMicro.
std::vector<bool> runs_on_micro(const ir::Model& model, Target target);

}  // namespace reef::micro
