// SPDX-License-Identifier: Apache-2.0
// The programs inside a model's Edge TPU ops as a listing, and a listing put back into the model.
//
// Each program of the listing says where it belongs with the attributes subgraph, op, executable and chunk (numbers,
// counted from 0); `type` and the name are for the reader.
#pragma once

#include "base/status.h"
#include "ir/model.h"
#include "isa/program.h"

namespace reef::darwinn {

// In order of appearance; empty where the model has no Edge TPU op.
Result<isa::Listing> list_programs(const ir::Model& model);

// Replaces the programs named by the listing's attributes; those that it does not name stay. Fails, changing nothing,
// where a program has no place in the model, appears twice, or where the driver would then write an address (see
// FieldOffset) into something other than a scalar instruction's immediate.
Status replace_programs(ir::Model& model, const isa::Listing& listing);

}  // namespace reef::darwinn
