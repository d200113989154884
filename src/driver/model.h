// SPDX-License-Identifier: Apache-2.0
// A package made ready for a device on USB: which bytes go over the link, in which order.
//
// The order is the package's own list of transfers ("DMA hints"). It is not a matter of taste: the stick takes a byte
// only if somebody wants it, and the bytes behind it wait (docs/driver.md). Buffers have made-up addresses: over USB
// the chip does nothing with an address but report it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/status.h"
#include "driver/session.h"
#include "formats/darwinn/package.h"

namespace reef::driver {

// The purpose of a transfer, as headers and events name it. Interrupts 0..3 have the tags 4..7.
enum class Tag : std::uint8_t { kInstructions = 0, kInput = 1, kParameters = 2, kOutput = 3, kInterrupt0 = 4 };
inline constexpr int kInterrupts = 4;

struct Step {
  enum class Kind : std::uint8_t {
    kSend,       // bytes to the device
    kReceive,    // bytes from it
    kInterrupt,  // it reports that it is there
    kFence,      // everything before is over before anything after begins
  };
  Kind kind = Kind::kSend;
  Tag tag = Tag::kInstructions;
  std::size_t buffer = 0;  // number of a host::BufferIndex; for instructions, the chunk
  std::size_t offset = 0, bytes = 0;
  int interrupt = 0;
};

// Part of a buffer.
struct Place {
  std::size_t buffer = 0, offset = 0;
};

// One program. `executable` must outlive it.
class ProgramPlan {
 public:
  static Result<ProgramPlan> create(const darwinn::Executable& executable);

  const darwinn::Executable& executable() const { return *executable_; }
  const std::vector<std::vector<std::uint8_t>>& chunks() const { return chunks_; }
  const std::vector<Step>& steps() const { return steps_; }
  // False: the list of transfers lacks some, and the device has to report each.
  bool is_complete() const { return is_complete_; }
  std::size_t buffer_bytes(std::size_t buffer) const { return buffer_bytes_[buffer]; }
  std::size_t buffers() const { return buffer_bytes_.size(); }
  // Scratch memory and outputs; parameters and inputs are only read.
  bool may_be_written(std::size_t buffer) const;
  // Where `bytes` at an address lie; nothing if they do not lie in one buffer.
  std::optional<Place> place_of(std::uint64_t address, std::uint64_t bytes) const;

 private:
  Status add_hint(const darwinn::DmaHint& hint);

  const darwinn::Executable* executable_ = nullptr;
  std::vector<std::vector<std::uint8_t>> chunks_;
  std::vector<Step> steps_;
  std::vector<std::size_t> buffer_bytes_;
  bool is_complete_ = false;
};

class Model final : public LoadedModel {
 public:
  // Refuses what cannot be run on USB, with the reason.
  static Result<std::shared_ptr<const Model>> load(darwinn::Package package);

  const ProgramPlan& execution() const { return *execution_; }
  const ProgramPlan* caching() const { return caching_ ? &*caching_ : nullptr; }
  // True: the device has to report every transfer.
  bool needs_reports() const { return !execution_->is_complete() || (caching_ && !caching_->is_complete()); }

 private:
  Model() = default;
  darwinn::Package package_;
  std::optional<ProgramPlan> execution_, caching_;
};

}  // namespace reef::driver
