// SPDX-License-Identifier: Apache-2.0
// Code that Reef generates, for tests: compiled, compared with Google's, run on the virtual device.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "chip_reference.h"
#include "compiler/code_generator.h"
#include "execute/device/device.h"
#include "formats/darwinn/package.h"
#include "ir/model.h"
#include "isa/program.h"

namespace reef::testing {

// The whole of the model's first graph as one part.
struct WholeModel {
  explicit WholeModel(const ir::Model& model);
  compiler::PartProgram part(std::uint64_t token) const;
  // The final file around the package.
  Result<std::vector<std::uint8_t>> file(const darwinn::Package& package) const;

  const ir::Model& model;
  std::vector<std::int32_t> ops, inputs, outputs;
};

Result<isa::Program> program_of(const darwinn::Package& package, darwinn::ExecutableType type);

// Where a parameter-caching program puts its chunks: one list of pieces for each run of receives and pops.
std::vector<std::vector<tiled::ParameterPiece>> parameter_places(const isa::Program& caching);

// Rows (128 bits) of two programs, instruction by instruction as long as opcodes agree.
struct ProgramComparison {
  int rows = 0;                  // of theirs
  int compared = 0;              // until the opcodes part
  int equal = 0;                 // of those compared
  std::string first_difference;  // empty: none
};
ProgramComparison compare_programs(const isa::Program& ours, const isa::Program& theirs);

// The outputs of the package on a virtual device and those of the chip reference for the same pseudo-random input.
// The status says where they differ first.
Status runs_as_chip_reference(const ir::Model& model, const darwinn::Package& package, unsigned seed,
                              const device::Schedule* schedule = nullptr);
// The same on a device that others use too. It keeps parameters of a package that was loaded before.
Status runs_as_chip_reference_on(device::Device& device, const ir::Model& model,
                                 const std::shared_ptr<const device::LoadedPackage>& loaded, unsigned seed);

// The race finder of the virtual device, on both programs: nothing may depend on the order in which units happen to
// run.
Status has_no_races(const darwinn::Package& package);

// The soundness checker (audit/audit.h) finds nothing.
Status passes_audit(const darwinn::Package& package);

}  // namespace reef::testing
