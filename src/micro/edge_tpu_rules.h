// SPDX-License-Identifier: Apache-2.0
// What the driver in Coral's SDK for the Dev Board Micro does not do that the one for other computers does.
//
// It is a small program (libs/tpu/edgetpu_executable.cc of google-coral/coralmicro): it walks a package's transfer
// hints in order and sends or fetches each. What follows from that is checked here; all of it would go wrong without a
// message.
#pragma once

#include <vector>

#include "ir/model.h"
#include "micro/rules.h"

namespace reef::micro {

// `op`: an Edge TPU operator of subgraph 0. Without custom options (a model that is not compiled yet) its package is
// not looked at.
std::vector<Finding> check_edge_tpu_op(const ir::Model& model, std::size_t op);

// Memory that the driver takes from the heap for what the chip sends: one buffer for each result.
std::int64_t driver_buffer_bytes(const ir::Operator& op);

}  // namespace reef::micro
