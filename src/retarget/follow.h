// SPDX-License-Identifier: Apache-2.0
// Follows the bytes of a compiled package through its programs.
//
// Runs the parameter-caching program and then the other one on a model of the chip that moves tags (machine.h), and
// returns for each tensor op what it read. Nothing is assumed about the network.
//
// How it is known that the model is right: with the same rules and real arithmetic, whole compiled networks give the
// outputs of their source models; here, all programs of the collection run to their end and every tensor op reads what
// the source model says (tests/zoo_retarget_test.cpp). No chip was used.
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

// More than the largest known network takes.
inline constexpr std::int64_t kMaxFollowedSteps = std::int64_t{1} << 32;

// `caching` may be null. Fails where the programs do not run to their end, with the instruction they stop at.
Result<Trace> follow(const DecodedExecutable* caching, const DecodedExecutable& execution,
                     std::int64_t max_steps = kMaxFollowedSteps, const Budget& budget = {});

}  // namespace reef::retarget
