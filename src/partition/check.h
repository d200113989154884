// SPDX-License-Identifier: Apache-2.0
// Which operators of a model the Edge TPU could run, each taken by itself, and if not, exactly why.
//
// The rules of an op stand in its own file (ops/<op>.cpp); those that hold for every op (types, shapes, constants)
// stand in model_rules.cpp. Whether an operator that could run on the chip ends up there is the partitioner's question.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ir/model.h"
#include "ops/chip_support.h"

namespace reef::partition {

struct CheckOptions {
  int runtime = ops::kNewestRuntime;  // 10 to 14
};

// One rule that an operator breaks.
struct Finding {
  const ops::ChipRule* rule = nullptr;  // never null
  std::string particulars;              // what about this operator breaks it, a clause: "input is 1x40x40x64, ..."
  // The rule's own or, where the rule is general, what fits this operator better.
  std::string_view suggestion = {};  // a whole sentence
  std::string_view rewrite = {};     // the rewrite that may mend it; empty: none
};

struct OpVerdict {
  std::vector<Finding> findings;  // empty: the chip can run it. The first is the one to name if only one is named
  bool fits() const { return findings.empty(); }
  ops::GoogleStatus google_status() const {
    return fits() ? ops::GoogleStatus::kMapped : findings.front().rule->status;
  }
};

struct Assessment {
  CheckOptions options;
  std::vector<OpVerdict> ops;  // of subgraph 0
  // For the whole model:
  bool is_quantized = false;                  // some operator computes on 8-bit tensors
  std::vector<std::int32_t> float_tensors;    // of subgraph 0, computed or constant, in order
  std::vector<std::int32_t> dynamic_tensors;  // whose size is not known before the model runs

  // Whether it must be quantized first. A model of other integers is nothing for the chip either, nor is one without
  // operators, but there is nothing to quantize.
  bool is_float() const { return !is_quantized && !float_tensors.empty(); }
};

// `model` must be verified. Subgraph 0 is judged; others belong to control flow, which the chip does not have.
Assessment assess(const ir::Model& model, const CheckOptions& options);

// The chip can run it, but Reef's code generator cannot make it do so (yet): it stays on the CPU. `reason`: a clause.
void leave_without_code(Assessment& assessment, std::int32_t op, const std::string& reason);

// All rules that hold for every op, for documents.
std::span<const ops::ChipRule> model_rules();

}  // namespace reef::partition
