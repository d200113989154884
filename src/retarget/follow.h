// SPDX-License-Identifier: Apache-2.0
// Follows the bytes of a compiled package through its programs.
//
// The virtual device (execute/device) runs the parameter-caching program and then the other one, with zeros as inputs;
// a recorder follows where every byte comes from (trace_recorder.h). The result says for each tensor op what it read.
// Nothing is assumed about the network.
//
// How it is known that this is right: the device gives the outputs of the source models (docs/device.md), and every
// tensor op of every compiled file of the collection reads what the source model says (tests/zoo_retarget_test.cpp). No
// chip was used.
#pragma once

#include <cstdint>

#include "base/budget.h"
#include "base/status.h"
#include "formats/darwinn/package.h"
#include "isa/program.h"
#include "retarget/provenance.h"

namespace reef::retarget {

// The programs of a package, decoded. Instructions of all chunks in one list.
struct DecodedExecutable {
  const darwinn::Executable* executable = nullptr;
  isa::Program program;
  std::vector<std::size_t> chunk_starts;  // index of the first instruction of each chunk
};
Result<DecodedExecutable> decode_executable(const darwinn::Executable& executable);

// Sixteen times what the largest known network takes.
inline constexpr std::int64_t kMaxFollowedSteps = std::int64_t{1} << 31;

// Fails where the device cannot run the package, with the instruction it stops at.
Result<Trace> follow(const darwinn::Package& package, std::int64_t max_steps = kMaxFollowedSteps,
                     const Budget& budget = {});

}  // namespace reef::retarget
