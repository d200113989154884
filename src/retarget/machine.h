// SPDX-License-Identifier: Apache-2.0
// The chip as far as following bytes needs it: memories of tags instead of bytes, and units that move them.
//
// Sixteen tiles execute their instructions in ten queues each; the scalar core hands them out and runs the host queues.
// A unit takes the next step of its loop nest when its waits are fulfilled, exactly as on the chip (the rules are in
// docs/hardware/isa.md; they were found by emulating compiled programs). Arithmetic is left out: a tensor op records
// which tags it read and stores its own tag as result.
//
// The scalar core moves on only when nothing else can. On the chip it runs ahead; a program whose result depends on how
// far would be a race, and taking the slowest one keeps the order that the programs of all generations assume.
//
// Bounds: a program that would take more steps or memory than any compiled program does ends with an error.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/budget.h"
#include "base/status.h"
#include "chip/machine.h"
#include "isa/operation.h"
#include "retarget/provenance.h"

namespace reef::retarget {

using chip::kTiles;
using chip::kTileUnits;
inline constexpr int kLineBytes = chip::kWideLineBytes;
inline constexpr int kLineWords = kLineBytes / chip::kNarrowWordBytes;
inline constexpr std::int64_t kNarrowBytes = std::int64_t{1} << 18;  // what 18-bit addresses reach
inline constexpr std::int64_t kWideLines = 4096;                     // what 12-bit line numbers reach
inline constexpr int kScalingBytes = 2048;

using Line = std::array<Tag, kLineBytes>;
using SharedLine = std::shared_ptr<const Line>;
using Word = std::array<Tag, 4>;

// An instruction that a unit is executing.
struct Running {
  std::uint32_t instruction = 0;
  const isa::Operation* code = nullptr;
  bool started = false;
  isa::NestCursor a, b;              // the unit's nests: source and destination
  isa::NestCursor param, psum, out;  // tensor unit only; a: loops, b: in
  std::int64_t line_word = 0;        // words of the current wide line that have been passed (movers)
  bool header_done = false;
  std::int64_t results = 0;
  bool line_is_full = false;  // narrow to wide: the line waits to be stored
  Line line{};
  // Wide to narrow: lines left behind since the line level's pass began, and lines still to be left before the next
  // word, once that has been worked out.
  std::int64_t lines_of_pass = 0, lines_to_leave = 0;
  bool position_known = false;
  std::int32_t trace = -1;                         // tensor unit: index of the op's trace
  std::int64_t first_address = 0;                  // input address of the first result
  std::vector<Tag> cell_tags;                      // plain copies: which input byte each cell takes
  std::int64_t recorded_pass = -1, last_pass = 0;  // of the scaling level
};

struct BufferPhase {
  std::uint32_t a = 0, b = 0, out = 0, scaling = 0;
};

struct Unit {
  std::deque<std::uint32_t> queue;
  std::unique_ptr<Running> running;
  BufferPhase phase;
  bool idle() const { return queue.empty() && !running; }
};

struct Tile {
  // Memories exist from the first instruction on that may touch them.
  void allocate();
  int number = 0;
  std::vector<Tag> narrow;  // kNarrowBytes
  std::vector<Tag> wide;    // kWideLines * kLineBytes
  std::vector<std::uint32_t> line_version;
  // By quarter of a wide line: which version of the line has last been recorded, and for which run of an instruction.
  std::vector<std::uint32_t> recorded_version, recorded_run;
  std::uint32_t run = 0;
  std::array<Tag, kScalingBytes> scaling{};
  std::array<std::uint16_t, isa::kTileCounterCount> counters{};
  std::array<Unit, kTileUnits> units;
  std::deque<std::uint32_t> dispatch;
  std::array<std::deque<SharedLine>, 2> ring;
  std::array<std::deque<Word>, 4> links;  // words on their way to this tile, by mesh opcode
  std::uint32_t table = 0;
  bool has_table = false;
};

// A transfer between host and chip, in the order of the package's hints.
struct HostTransfer {
  enum class Kind { kInput, kScratchRead, kScratchWrite, kOutput } kind = Kind::kInput;
  std::int64_t offset = 0, bytes = 0;
  std::uint32_t layer = 0;  // input or output layer
};

class Machine {
 public:
  // Limits the sum of the steps of all units.
  explicit Machine(std::int64_t max_steps, Budget budget = {})
      : steps_left_(max_steps), next_look_(max_steps), budget_(std::move(budget)) {}

  struct Job {
    std::vector<isa::Operation> program;
    Origin parameters = Origin::kCached;
    std::int64_t parameter_bytes = 0;
    std::vector<HostTransfer> transfers;
    bool transfers_are_complete = true;
    std::int64_t scratch_bytes = 0;
  };
  // Runs a program to its end. Memories and counters keep what an earlier program left.
  Status run(const Job& job);

  // Of the last program.
  std::vector<TensorOpTrace> take_traces();
  struct Output {
    std::uint32_t layer = 0;
    std::int64_t offset = 0;
    std::vector<Tag> bytes;
  };
  std::vector<Output> take_outputs() { return std::move(outputs_); }

 private:
  enum HostUnit { kInfeedUnit, kPopUnit, kOutfeedUnit };
  struct HostRunning {
    std::uint32_t instruction = 0;
    const isa::Operation* code = nullptr;
    isa::NestCursor walk;
    std::vector<Tag> buffer;  // pop: bytes of an unfinished line
  };
  struct HostQueue {
    std::deque<std::uint32_t> queue;
    std::unique_ptr<HostRunning> running;
    bool idle() const { return queue.empty() && !running; }
  };

  // machine.cpp
  bool scalar_core_step();
  bool fence_passes(const isa::ScalarFence& fence);
  bool dispatch(Tile& tile);
  bool tile_is_idle(const Tile& tile, std::uint32_t units) const;
  Result<bool> run_unit(Tile& tile, int unit);
  Result<bool> sweep();
  std::string stuck_message() const;
  // False: steps or time are used up.
  bool spend(std::int64_t steps) {
    steps_left_ -= steps;
    return steps_left_ >= 0 && (steps_left_ >= next_look_ || look_at_budget());
  }
  bool look_at_budget();
  Status place(Status status, std::uint32_t instruction) const;
  static bool may_step(const std::vector<isa::Wait>& waits, const isa::NestCursor& walk,
                       std::span<const std::uint16_t> counters);
  void count(Tile& tile, const isa::Signal& signal, const isa::NestCursor& walk);
  void count_ring(int channel, std::int64_t passes);
  void count_host(const isa::Signal& signal, const isa::NestCursor& walk);

  // machine_host.cpp
  Result<bool> run_infeed();
  Result<bool> run_pop();
  Result<bool> run_outfeed();
  void feed_host();
  void attribute_outputs();
  Tag next_host_byte(bool activations);
  bool start_host(HostUnit unit);

  // machine_movers.cpp
  Result<bool> run_ring_send(Tile& tile, Unit& unit);
  Result<bool> run_ring_receive(Tile& tile, Unit& unit);
  Result<bool> run_to_wide(Tile& tile, Unit& unit);
  Result<bool> run_to_narrow(Tile& tile, Unit& unit);
  Result<bool> run_to_scaling(Tile& tile, Unit& unit);
  Result<bool> run_mesh(Tile& tile, Unit& unit, int direction);
  Result<bool> mesh_send(Tile& tile, Running& running, int direction);
  Result<bool> mesh_receive(Tile& tile, Running& running, int direction);
  // Fails where too many lines are on their way: keeps foreign programs from filling the memory.
  Result<std::shared_ptr<Line>> new_line();
  void send_line(std::uint16_t tiles, int channel, bool to_scalar, SharedLine line);
  Status store_line(Tile& tile, std::int64_t line, std::span<const Tag> tags);

  // machine_tensor.cpp
  Result<bool> run_tensor(Tile& tile, Unit& unit);
  void start_tensor(Tile& tile, Unit& unit, Running& running);
  Status record_step(Tile& tile, Running& running);
  Status record_samples(Tile& tile, Running& running, const isa::TensorOperation& code);
  Status record_parameters(Tile& tile, Running& running, const isa::TensorOperation& code);
  void record_first(Tile& tile, Running& running, const isa::TensorOperation& code);
  Status finish_result(Tile& tile, const Unit& unit, Running& running);
  Status store_result(Tile& tile, Running& running, const isa::TensorOperation& code);
  void record_copy(const Tile& tile, Running& running, const isa::TensorOperation& code) const;
  int result_number(const Running& running) const;

  std::int64_t steps_left_, next_look_;
  Budget budget_;
  Status out_of_time_;  // ok: not yet
  std::vector<std::unique_ptr<Tile>> tiles_;
  const Job* job_ = nullptr;
  std::size_t next_ = 0;  // instruction of the scalar core
  std::array<std::uint16_t, isa::kScalarCounterCount> scalar_counters_{};
  std::array<int, kTiles> notifications_{};
  std::array<HostQueue, 3> host_;
  // Buffers of the scalar core: parameters, activations, loop-back.
  std::array<std::vector<Tag>, 3> buffers_;
  std::deque<SharedLine> outgoing_;
  std::vector<Tag> outgoing_bytes_;
  std::size_t outgoing_at_ = 0;
  std::int64_t parameters_fed_ = 0;
  std::deque<Tag> activations_;
  std::size_t next_transfer_ = 0;
  std::int64_t transfer_at_ = 0;
  std::vector<Tag> sent_;                // to the host, in order
  std::vector<std::size_t> sent_marks_;  // where the outfeeds start
  std::size_t sent_at_ = 0;
  Tag last_sent_ = 0;
  std::vector<Tag> scratch_;
  std::shared_ptr<std::int64_t> lines_alive_ = std::make_shared<std::int64_t>(0);
  std::int64_t words_in_flight_ = 0;
  std::vector<TensorOpTrace> traces_;
  std::vector<std::int32_t> trace_of_;  // by instruction; -1: none yet
  std::vector<Output> outputs_;
};

}  // namespace reef::retarget
