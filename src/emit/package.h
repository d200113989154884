// SPDX-License-Identifier: Apache-2.0
// A scheduled program as a package: both programs' instructions, parameters, layers, transfers in order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "formats/darwinn/package.h"
#include "ir/model.h"
#include "tiled/program.h"

namespace reef::emit {

struct PackageOptions {
  int min_runtime_version = 14;
  std::uint64_t caching_token = 0;  // not 0
  std::string compiler_version;     // who made it
};

struct EmittedPackage {
  darwinn::Package package;
  // By step: the number of its first instruction in the execution program, as if that were in one piece (it begins with
  // instruction 0, its start); then the first of the epilogue.
  std::vector<std::int32_t> step_begins;
  std::vector<std::int64_t> step_rows;  // the same in rows of instructions, from the first behind the start
};

// `model` is the one that was lowered.
Result<EmittedPackage> package(const ir::Model& model, const tiled::TiledProgram& program,
                               const PackageOptions& options);

}  // namespace reef::emit
