// SPDX-License-Identifier: Apache-2.0
// Which operators become Edge TPU custom ops, and for every other one why not.
//
// A part is a set of operators that can run as one op: none of them needs, directly or through others, something that
// is computed outside of the part from something computed inside. By default there is one part, as Google's compiler
// makes it: beginning at the inputs (behind leading operators that only the CPU can run), everything that does not
// depend on an operator that does not fit. With several parts, a further one is made only where it is predicted to save
// time, its transfers included, so that several are never predicted slower than one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "ir/model.h"
#include "partition/check.h"
#include "partition/cost.h"

namespace reef::partition {

struct Part {
  std::vector<std::int32_t> ops;              // ascending
  std::vector<std::int32_t> inputs, outputs;  // of the custom op, see ops::Dependencies::border
  PartCost cost;
};

enum class Place : std::uint8_t {
  kChip,
  kRule,        // breaks a rule itself
  kCascade,     // could run, but depends on `blocker`, which cannot, and only one part is made
  kNotChosen,   // could run, but stands before the part that was chosen
  kAfterCut,    // follows a tensor named with -i, or does not lead to one
  kNotWorthIt,  // could run, but as a part of its own it is predicted to be slower than on the CPU
};

struct Placement {
  Place place = Place::kChip;
  std::int32_t part = -1;     // where place is kChip
  std::int32_t blocker = -1;  // kCascade, kNotWorthIt: the first operator that breaks a rule and that it depends on
  // kRule: what the model would save, predicted, if this operator alone could run on the chip: itself, those that it
  // keeps on the CPU, and transfers. Can be negative: nothing is gained.
  double gain_us = 0;
  int strands = 0;  // kRule: how many operators that could run on the chip would do so if this one could
};

struct PartitionOptions {
  bool several_parts = false;  // -a
  // Of a single part. Google takes the first; the best is the one that takes most work off the CPU, if that is much
  // more than the first does.
  enum class Choice : std::uint8_t { kFirst, kBest };
  Choice choice = Choice::kBest;
  std::vector<std::string> intermediate_tensors;  // -i: names of tensors; they end the part, and nothing else is in it
  int max_ops = -1;     // at most so many operators in the (first) part: the first ones; -1: no limit. For -d
  bool explain = true;  // fill in Placement::gain_us and strands, which takes a partitioning per broken operator
};

struct Partition {
  std::vector<Placement> ops;      // by operator of subgraph 0
  std::vector<Part> parts;         // in execution order
  double predicted_us = 0;         // one inference of the whole model; all such figures are estimates
  double all_cpu_us = 0;           // the same without a chip
  std::vector<std::string> notes;  // whole sentences

  std::int32_t chip_op_count() const;
};

// The same with parts that were chosen elsewhere: `sets` of ascending operators, in execution order, each of which can
// run as one. `options` say what the others would have been chosen by.
Partition partition_as(const ir::Model& model, const Assessment& assessment, const Costs& costs,
                       const PartitionOptions& options, const std::vector<std::vector<std::int32_t>>& sets);

// Fails only if a name in `intermediate_tensors` is not that of a computed tensor.
Result<Partition> partition(const ir::Model& model, const Assessment& assessment, const Costs& costs,
                            const PartitionOptions& options);

}  // namespace reef::partition
