// SPDX-License-Identifier: Apache-2.0
// Real programs with one field of one instruction changed: negative controls for whatever executes or checks programs.
//
// Fields that order units, say where data is, or say how often something is done are changed to another value that the
// field can hold. Left out are values that mean nothing by construction, which is decided from the instruction alone:
// fields of waits and signals that are not enabled, a wait's increment and a buffer's level where there is one pass,
// the side of a ring instruction's waits (it has one nest), strides of dimensions that make one step, another level
// whose passes are as long, addresses of nests that address nothing (partial sums that cells keep, units that go
// straight to the host, a base that a register replaces), clips and double buffers that are not in use, instructions
// for no tile, a length that a clip always replaces, and operands that the driver overwrites; and what follows from
// the program (program_use.h): waits that the value to which their counter was set already fulfils, signals and resets
// of counters that nobody waits for, fences for units that have nothing to do, and what more a fence could wait for.
// `used`, `clip_deficit`, `sequence` and fields of unknown
// purpose have no known effect and are left alone. Everything else is a target, whether or not a program has slack
// there.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "base/status.h"
#include "formats/darwinn/package.h"
#include "isa/field.h"
#include "isa/instruction.h"
#include "program_use.h"

namespace reef::testing {

enum class Touches : std::uint8_t { kSync, kAddress, kLoopCount };
inline constexpr Touches kAllTouches[] = {Touches::kSync, Touches::kAddress, Touches::kLoopCount};
std::string_view name_of(Touches touches);

// A field of an instruction of a package.
struct Target {
  std::size_t executable = 0, chunk = 0, instruction = 0;
  std::int32_t row = 0;
  isa::Field field;
  Touches touches = Touches::kSync;
  std::vector<std::int64_t> values;  // to choose from; empty: any number
  std::uint32_t mask_bits = 0;       // a mask of which some of these bits change
  int watcher = -1;                  // whose field it is; -1: no wait's
  std::size_t index = 0;             // of the instruction in its program, all chunks counted
};

// How the new value is chosen: any that the field can hold, all alike; or one near the old value (one more or less, the
// double, nothing, up to 65 more or less; one bit of a mask), which programs with slack tolerate more often.
enum class Change : std::uint8_t { kAny, kNear };

struct Corruption {
  Target target;
  std::int64_t old_value = 0, new_value = 0;
  std::string description;  // "execution row 12 multiply_add: wait_0.threshold 3 -> 4"
};

class CorruptiblePackage {
 public:
  static Result<CorruptiblePackage> create(darwinn::Package package);

  const std::vector<Target>& targets(Touches touches) const { return targets_[static_cast<std::size_t>(touches)]; }
  // One of the three kinds, then one of its fields, then a value. Fails where the package has no field of any kind.
  Result<Corruption> pick(std::mt19937& random, Change change) const;
  // The package with nothing else changed.
  Result<darwinn::Package> with(const Corruption& corruption) const;

 private:
  const isa::Instruction& at(const Target& target) const {
    return programs_[target.executable][target.chunk][target.instruction];
  }
  Status collect(std::size_t executable);
  bool means_nothing(const Target& target, const isa::Instruction& changed) const;
  std::int64_t another_value(const Target& target, std::mt19937& random, Change change) const;

  darwinn::Package package_;
  std::vector<std::vector<std::vector<isa::Instruction>>> programs_;  // by executable and chunk
  std::vector<ProgramUse> uses_;                                      // by executable
  std::vector<Target> targets_[3];
};

}  // namespace reef::testing
