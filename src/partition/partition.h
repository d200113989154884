// SPDX-License-Identifier: Apache-2.0
// Which operators become Edge TPU custom ops, and for every other one why not.
//
// A part is a set of operators that can run as one op: none of them needs, directly or through others, something that
// is computed outside of the part from something computed inside. By default there is one part, as Google's compiler
// makes it: beginning at the inputs (behind leading operators that only the CPU can run), everything that does not
// depend on an operator that does not fit. With several parts, a further one is made only where it is predicted to save
// time, its transfers included.
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
  std::vector<std::int32_t> inputs, outputs;  // computed tensors that cross its border, in the order of their first use
                                              // or definition; constants are not among them
  PartCost cost;
};

enum class Place : std::uint8_t {
  kChip,
  kRule,        // breaks a rule itself
  kCascade,     // could run, but depends on `blocker`, which does not, and the single part has begun before it
  kAfterCut,    // follows a tensor named with -i, or was given up by -d
  kNotWorthIt,  // could run, but a part with it is predicted slower than the CPU
  kNotChosen,   // could run, as a part of its own, but another part was chosen
};

struct Placement {
  Place place = Place::kChip;
  std::int32_t part = -1;     // where place is kChip
  std::int32_t blocker = -1;  // kCascade: the operator that breaks a rule and which this one depends on; the first
  double lost_us = 0;         // predicted: what running it on the CPU costs more than running it on the chip
};

struct PartitionOptions {
  bool several_parts = false;  // -a
  enum class Choice : std::uint8_t {
    kFirst,
    kBest
  } choice = Choice::kBest;                       // of a single part: Google takes the first
  std::vector<std::string> intermediate_tensors;  // -i: names; they end the part
  bool only_if_faster = false;                    // a single part, too, is made only where it is predicted to save time
};

struct Partition {
  std::vector<Placement> ops;  // by operator of subgraph 0
  std::vector<Part> parts;     // in execution order
  double predicted_us = 0;     // the whole model, one inference after the other
  double all_cpu_us = 0;       // the same without a chip
  std::vector<std::string> notes;
};

// Fails only if a name in `intermediate_tensors` is not a computed tensor of the model.
Result<Partition> partition(const ir::Model& model, const Assessment& assessment, const CostModel& costs,
                            const PartitionOptions& options);

}  // namespace reef::partition
