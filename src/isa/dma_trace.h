// SPDX-License-Identifier: Apache-2.0
// Follows constants through scalar bundles to say what a DMA descriptor asks for. Only straight code is followed;
// whatever is not certain is left out. Addresses are not shown: the host writes them into the program.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "isa/instruction.h"

namespace reef::isa {

class DmaTrace {
 public:
  // Takes the next instruction of the program. Gives words for a bundle that issues a descriptor, else nothing.
  std::string follow(const Instruction& instruction);
  struct Descriptor {
    std::optional<std::uint32_t> bytes, tag;  // nothing: not known
  };
  // The descriptor that the last instruction given to follow() issued; nothing if it issued none.
  const std::optional<Descriptor>& issued() const { return issued_; }
  // Control may arrive from elsewhere: nothing is known any more.
  void forget();

 private:
  std::string describe() const;

  std::array<std::optional<std::uint32_t>, 32> registers_;
  std::array<std::optional<std::uint32_t>, 4> descriptor_;
  std::optional<Descriptor> issued_;
};

}  // namespace reef::isa
