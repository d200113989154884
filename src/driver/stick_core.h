// SPDX-License-Identifier: Apache-2.0
// The chip of a virtual stick behind the FIFOs of a real one: bytes come in by tag, outputs, events and interrupts go
// out.
//
// A byte is taken only if there is room for it, and bytes for one tag wait behind those for another: with nobody who
// consumes them, a stick takes 49,152 bytes of parameters, 32,768 of input and 28,672 of instructions (measured by
// others). One chunk of instructions is in the core's own memory; the next can only wait in its FIFO until the core is
// done with it. Whatever the virtual chip has to say against a program ends in a fatal-error interrupt, as a chip's
// own check would.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "driver/core_runner.h"
#include "execute/device/scalar_core.h"

namespace reef::driver {

class StickCore final : public device::Host {
 public:
  // Not strict: FIFOs have no end.
  StickCore(bool is_strict, int threads, const device::OtherChip* other = nullptr)
      : is_strict_(is_strict), runner_(threads, other) {}

  // ---- As the link sees it ----

  // Forgets everything, also what is in the chip's memories.
  void power_cycle();
  // Whether the core executes what it has; 4c148: which tags are reported.
  void set_running(bool is_running) { is_running_ = is_running; }
  void set_reported_tags(std::uint64_t mask) { reported_tags_ = mask; }
  void set_output_chunk(std::size_t bytes) { output_chunk_ = bytes; }
  // A piece of so many bytes for a tag begins. Only instructions care where one ends.
  void begin_piece(std::uint8_t tag, std::size_t bytes);
  // Takes as many bytes of the piece as there is room for now.
  std::size_t accept(std::uint8_t tag, std::span<const std::uint8_t> bytes);
  // Lets the chip work as far as it can.
  void advance();
  // Fills a buffer with output: whole, or with the rest of an output. Nothing yet: nothing. The link moves packets of
  // `packet` bytes at most; one that does not fit into the buffer is lost, and its bytes are returned.
  std::optional<std::size_t> read_output(std::span<std::uint8_t> to, std::size_t packet);
  std::optional<std::array<std::uint8_t, 16>> next_event();
  // Why the chip has stopped for good; empty: it has not.
  const std::string& diagnosis() const { return diagnosis_; }
  bool take_failure() { return std::exchange(has_new_failure_, false); }

  // ---- As the chip sees it ----

  Status issue(std::uint64_t address, std::uint64_t bytes, std::uint32_t tag) override;
  std::size_t available(device::Purpose stream) override;
  void take(device::Purpose stream, std::uint8_t* to, std::uint8_t* known, std::size_t bytes) override;
  bool put(const std::uint8_t* data, const std::uint8_t* known, std::size_t bytes) override;
  std::uint64_t pushed() const override { return pushed_; }
  std::string left_over() const override;

 private:
  struct Fifo {
    std::vector<std::uint8_t> bytes;
    std::size_t from = 0;
    std::size_t size() const { return bytes.size() - from; }
    void append(std::span<const std::uint8_t> more);
    void take(std::uint8_t* to, std::size_t count);
    void drop(std::size_t count) { from += count; }
  };
  struct Chunk {
    std::vector<std::uint8_t> bytes;
    std::size_t length = 0;
  };
  struct Output {
    std::uint64_t missing = 0;  // bytes that the chip has not sent yet
    Fifo bytes;
  };

  bool core_is_free() const;
  std::size_t instruction_room() const;
  bool start_chunk();
  void fail(const Status& status);
  void claim();

  bool is_strict_;
  CoreRunner runner_;
  bool is_running_ = false;
  std::uint64_t reported_tags_ = 0;
  std::size_t output_chunk_ = 1024;
  std::deque<Chunk> chunks_;              // the first is on its way into the core's memory if the core is free
  std::array<Fifo, 3> fifos_;             // by tag; instructions have their own
  std::array<std::uint64_t, 3> asked_{};  // bytes that the program wants, by tag
  std::deque<Output> outputs_;
  std::vector<std::uint8_t> unclaimed_;
  std::uint64_t pushed_ = 0;
  std::deque<std::array<std::uint8_t, 16>> events_;
  std::string diagnosis_;
  bool has_new_failure_ = false;
};

}  // namespace reef::driver
