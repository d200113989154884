// SPDX-License-Identifier: Apache-2.0
// Things that break no rule but hurt: said as notes, with the place, the numbers and what to do.
#pragma once

#include <string>
#include <vector>

#include "ir/model.h"
#include "partition/cost.h"
#include "partition/partition.h"

namespace reef::partition {

// Whole sentences, in the order of the graph. `model` must be verified and is the one that was partitioned.
std::vector<std::string> advise(const ir::Model& model, const Costs& costs, const Partition& partition);

// The last operators of the one part on the chip cost more there than on the CPU, which advise() says in a sentence.
bool ends_too_late(const ir::Model& model, const Costs& costs, const Partition& partition);

}  // namespace reef::partition
