// SPDX-License-Identifier: Apache-2.0
// The programs of a package that a host runs, and the addresses that it writes into their instructions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "formats/darwinn/package.h"

namespace reef::host {

struct Programs {
  const darwinn::Executable* execution = nullptr;
  const darwinn::Executable* caching = nullptr;  // null: the program brings its own parameters, or has none
};

// Both point into the package. An error if there is no code, or nothing to run.
Result<Programs> find_programs(const darwinn::Package& package);

// The host buffers of a program have numbers: parameters, scratch memory, inputs, outputs, in that order.
class BufferIndex {
 public:
  static constexpr std::size_t kParameters = 0, kScratch = 1, kFirstLayer = 2;

  // The executable must outlive this.
  explicit BufferIndex(const darwinn::Executable& executable);
  std::size_t count() const { return count_; }
  Result<std::size_t> find(const darwinn::AddressUse& use) const;

 private:
  std::map<std::string_view, std::size_t> inputs_, outputs_;  // foreign packages may have many layers
  std::size_t count_ = kFirstLayer;
};

// The instruction chunks with the addresses of buffers written where the package says, one address for each number of
// a BufferIndex. An error if the package names a buffer or a bit that is not there.
Result<std::vector<std::vector<std::uint8_t>>> relocated(const darwinn::Executable& executable,
                                                         std::span<const std::uint64_t> addresses);

}  // namespace reef::host
