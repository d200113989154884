// SPDX-License-Identifier: Apache-2.0
// Chips that are not as we believe, in one respect each: ways to explain a device that computes something else, and
// ways to make a virtual one that does. Some understand an instruction differently (isa/misreadings.def); for others
// the alternative of a belief holds (beliefs.def).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "execute/device/beliefs.h"
#include "execute/device/device.h"
#include "formats/darwinn/package.h"
#include "isa/misreading.h"

namespace reef::device {

struct OtherChip {
  std::string name;        // "no-bias"; of a belief kHalfToEven: "not-half-to-even"
  std::string deed;        // what it does, behind "a chip that"
  std::string assumption;  // of ours that is then refuted: where it stands, and in words
  std::optional<isa::Misreading> misreading;
  Belief doubted = Belief::kNone;  // with a misreading: none
};

// Misreadings first, then beliefs, in the order of their lists.
std::span<const OtherChip> other_chips();
// Null: there is none of this name.
const OtherChip* find_other_chip(std::string_view name);

// A package as such a chip runs it. Its device needs Options::doubted, too.
Result<std::shared_ptr<const LoadedPackage>> load_for(const OtherChip& chip, darwinn::Package package);

// take_otherwise() for the operations from `first` on: the others were changed before.
Result<bool> take_otherwise_from(Belief belief, Program& program, std::size_t first);

}  // namespace reef::device
