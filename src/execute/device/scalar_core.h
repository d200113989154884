// SPDX-License-Identifier: Apache-2.0
// The scalar core's registers and memory, and the host's side of the link.
//
// The core computes addresses and asks the host for transfers: four words (address, size, purpose) and "issue". Old
// compilers also let it compute softmax and push results to the host word by word.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "execute/device/beliefs.h"
#include "isa/instruction.h"

namespace reef::device {

// The purpose of a transfer; numbers as in the descriptor's tag (libedgetpu names them).
enum class Purpose : std::uint8_t { kInput = 1, kParameters = 2, kOutput = 3, kInterrupt = 4 };

// A scalar instruction's request to the host.
struct HostRequest {
  Purpose purpose = Purpose::kInput;
  std::uint64_t bytes = 0;
  std::uint64_t address = 0;
};

// The host as a chip sees it: it is asked for transfers, brings bytes and takes bytes.
class Host {
 public:
  virtual ~Host() = default;

  // The program asks for a transfer. `tag` is a Purpose, or any other number that a program may hold.
  virtual Status issue(std::uint64_t address, std::uint64_t bytes, std::uint32_t tag) = 0;

  // Bytes that requested transfers have ready for the chip.
  virtual std::size_t available(Purpose stream) = 0;
  // At most available() bytes. `known` is 1 where a byte's value is known.
  virtual void take(Purpose stream, std::uint8_t* to, std::uint8_t* known, std::size_t bytes) = 0;
  // Bytes for the host, claimed by output transfers in the order of both. False: far more is waiting than was asked
  // for.
  virtual bool put(const std::uint8_t* data, const std::uint8_t* known, std::size_t bytes) = 0;

  // Bytes that were put, ever.
  virtual std::uint64_t pushed() const = 0;
  // Describes what was asked for and not used, or sent and not asked for; empty if there is nothing.
  virtual std::string left_over() const = 0;
};

// A host whose memory has addresses: transfers are done in the order in which they were asked for.
class AddressedHost : public Host {
 public:
  Status issue(std::uint64_t address, std::uint64_t bytes, std::uint32_t tag) final;
  // A transfer from memory waits for all transfers to it that were asked for earlier.
  std::size_t available(Purpose stream) final;
  void take(Purpose stream, std::uint8_t* to, std::uint8_t* known, std::size_t bytes) final;
  bool put(const std::uint8_t* data, const std::uint8_t* known, std::size_t bytes) final;
  std::uint64_t pushed() const final { return pushed_; }
  std::string left_over() const final;

  int interrupts() const { return interrupts_; }
  void forget_transfers();

 protected:
  // An error: there is no such memory. Everything below was checked before.
  virtual Status check(std::uint64_t address, std::uint64_t bytes) const = 0;
  virtual void load(std::uint64_t address, std::uint8_t* to, std::uint8_t* known, std::size_t bytes) const = 0;
  virtual void store(std::uint64_t address, const std::uint8_t* data, const std::uint8_t* known, std::size_t bytes) = 0;
  virtual void interrupted() {}

 private:
  struct Transfer {
    std::uint64_t address = 0, bytes = 0, done = 0;
    std::uint64_t after_outputs = 0;  // output transfers that must be complete first
  };
  std::deque<Transfer>& stream(Purpose purpose) { return purpose == Purpose::kParameters ? parameters_ : inputs_; }
  void claim();

  std::deque<Transfer> inputs_, parameters_, outputs_;
  std::uint64_t outputs_issued_ = 0, outputs_complete_ = 0;
  std::vector<std::uint8_t> sent_, sent_known_;
  std::uint64_t pushed_ = 0;
  int interrupts_ = 0;
};

// Buffers of the host under made-up addresses.
class HostMemory final : public AddressedHost {
 public:
  struct Buffer {
    std::string name;
    std::uint64_t address = 0;
    std::vector<std::uint8_t> bytes;
    std::vector<std::uint8_t> known;  // 1 where a byte's value is known; empty: all are
  };

  // Returns the address it got. Buffers lie far apart, so that an address belongs to one of them or to none.
  std::uint64_t add(std::string name, std::vector<std::uint8_t> bytes, bool is_known = true);
  Buffer& buffer(std::size_t index) { return buffers_[index]; }
  // Which buffer an address is in, and where. Of use for addresses that issue() has accepted.
  struct Place {
    std::size_t buffer = 0;
    std::uint64_t offset = 0;
  };
  static Place place_of(std::uint64_t address);

 private:
  Status check(std::uint64_t address, std::uint64_t bytes) const override;
  void load(std::uint64_t address, std::uint8_t* to, std::uint8_t* known, std::size_t bytes) const override;
  void store(std::uint64_t address, const std::uint8_t* data, const std::uint8_t* known, std::size_t bytes) override;

  std::vector<Buffer> buffers_;
};

class ScalarCore {
 public:
  static constexpr std::size_t kMemoryWords = 4096;

  // Where the core stands.
  std::size_t chunk = 0, next = 0;
  // The running repeat: its instructions [body_begin, body_end) and how often they are still to be run.
  std::size_t body_begin = 0, body_end = 0;
  std::uint32_t repeats_left = 0;

  void restart() {
    chunk = next = body_begin = body_end = 0;
    repeats_left = 0;
  }
  // `request`: what it asked of the host, if anything.
  Status execute(const isa::Instruction& bundle, Host& host, std::optional<HostRequest>& request);
  bool predicate(unsigned number) const { return predicates_[number & 31] != 0; }
  std::uint32_t reg(unsigned number) const { return registers_[number & 31]; }
  // Whether an instruction's predicate lets it act.
  bool acts(const isa::Instruction& instruction) const;
  std::vector<std::uint32_t>& memory() { return memory_; }
  // Takes the alternative of this belief from now on.
  void doubt(Belief belief) { doubted_ = belief; }

 private:
  // `registers`: as they will be after the bundle.
  Status store(const isa::Instruction& bundle, Host& host, std::optional<HostRequest>& request,
               std::array<std::uint32_t, 32>& registers);
  void compute(const isa::Instruction& bundle, std::array<std::uint32_t, 32>& registers,
               std::array<std::uint8_t, 32>& predicates) const;

  Belief doubted_ = Belief::kNone;
  std::array<std::uint32_t, 32> registers_{};
  std::array<std::uint8_t, 32> predicates_{};
  std::array<std::uint32_t, 4> descriptor_{};
  std::vector<std::uint32_t> memory_ = std::vector<std::uint32_t>(kMemoryWords);
};

}  // namespace reef::device
