// SPDX-License-Identifier: Apache-2.0
// Sets of operators that can run as one: the material that the partitioner chooses from.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/dependencies.h"

namespace reef::partition {

using OpSet = std::vector<std::int32_t>;  // ascending

// What Google's compiler takes: it has TFLite cut the graph into runs of operators of one kind, each as long as
// dependencies allow, beginning with the kind of the very first operator, and compiles the first run that fits.
OpSet first_part(const ops::Dependencies& graph, const std::vector<bool>& fits);

// All operators that fit, in layers: as few as possible, such that each layer can be one part and they run in this
// order with the CPU's operators between them. kEarly puts every operator into the first layer that can hold it, kLate
// into the last. Empty layers are left out.
enum class Layering : std::uint8_t { kEarly, kLate };
std::vector<OpSet> layers(const ops::Dependencies& graph, const std::vector<bool>& fits, Layering layering);

// Without operators that fit but only show their operand in another shape to operators of the CPU: on the chip such a
// RESHAPE (of a mask that is computed from tokens) parts what comes before it from all that follows.
std::vector<bool> without_views_for_cpu(const ops::Dependencies& graph, const std::vector<bool>& fits);

// The same of what fits beside `taken`, a part that is made already (it can run as one). In execution order; `before`
// is how many of them run before it.
struct LayersAround {
  std::vector<OpSet> sets;
  std::size_t before = 0;
};
LayersAround layers_around(const ops::Dependencies& graph, const std::vector<bool>& fits, const OpSet& taken);

// The members of `ops` that the tensors need, directly or through others.
OpSet leading_to(const ops::Dependencies& graph, const OpSet& ops, const std::vector<std::int32_t>& tensors);

}  // namespace reef::partition
