// SPDX-License-Identifier: Apache-2.0
// The virtual Edge TPU: sixteen tiles, the scalar core and the host link, executing programs by the chip's own rules.
//
// Every unit is a queue that works in order and takes a step only when its waits are fulfilled; there is no other
// ordering, and nothing but the program's bytes is known. A unit executes as many steps at once as its waits permit:
// what they permit may happen at any moment, so this is one of the orders the chip could take. Programs whose result
// depends on the order are races (see Options::order).
//
// Faults that silicon would not forgive are errors that name instruction, tile and unit: addresses outside a memory,
// memory that nothing wrote, a standstill, bytes left over at the end.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/budget.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "execute/device/beliefs.h"
#include "execute/device/memory.h"
#include "execute/device/message_queue.h"
#include "execute/device/observer.h"
#include "execute/device/program.h"
#include "execute/device/scalar_core.h"
#include "execute/device/waits.h"
#include "isa/counters.h"
#include "isa/opcode.h"
#include "numeric/chip_tensor.h"

namespace reef::device {

// More than any compiled program has waiting; beyond it a run ends with an error.
inline constexpr std::size_t kMaxQueuedInstructions = 1 << 12;

// Lines on one ring channel and words on one mesh link that a sender may be ahead of the receiver. Their real number is
// not known. Every compiled program seen runs with 1, so a chip that has only that would run them; with more, units
// take more steps at once, which is faster.
struct QueueDepths {
  std::size_t ring_lines = 4096;
  std::size_t mesh_words = 1 << 16;
};
// Another order of the units, to see whether it matters. Everything that waits permit is permitted in it.
struct Schedule {
  std::uint32_t seed = 0;       // 0: the usual order
  std::uint32_t reluctant = 0;  // mask of a tile's units (isa::Unit) that move only when nothing else can
};
// Instructions by which the scalar core may be ahead of a tile in another order.
inline constexpr std::size_t kScheduleAhead = 8;

inline constexpr QueueDepths kShallowQueues = {chip::kRingLinesNeeded, chip::kMeshWordsNeeded};

struct Options {
  // That tiles are computed on, 16 at most; results are the same for any number. 0: as many as the host has.
  int threads = 0;
  std::int64_t max_cycles = std::int64_t{1} << 34;  // of all units together; then the run ends with an error
  Budget budget = {};                               // looked at every kStepsBetweenLooks steps
  Belief doubted = Belief::kNone;                   // its alternative is taken; for tools/doubt_device and tests
  // Between two lines of the ring a tile's other units do all they can, as they would in the 16 cycles that a line
  // takes. For a chip that waits for its host with instructions queued behind: what came in at once would otherwise be
  // received at once, over lines that movers have yet to read (Google's programs rest on their being faster).
  bool takes_line_by_line = false;
};

// Passes of double buffers that instructions of a unit have made since the last restart.
struct BufferPhases {
  std::int64_t first = 0, second = 0, out = 0, scaling = 0;
  std::int64_t header = 0;  // 0 unless Belief::kHeaderRestarts is doubted
};

// An instruction on its way to a unit.
struct Issued {
  std::uint32_t index = 0;
  std::uint32_t register_base = 0;  // what the scalar register that some instructions name held when it was issued
};

// An instruction that a unit is executing. `first` and `second` are its nests: source and destination, or for the
// tensor unit loops and none.
struct Running {
  std::uint32_t index = 0;  // of the instruction
  std::uint32_t register_base = 0;
  const isa::Operation* operation = nullptr;
  isa::NestCursor first, second;
  bool started = false;          // the cursors are set
  bool header_done = false;      // ring receive: the header of this pass has arrived
  std::int64_t header_line = 0;  // of it, the next to arrive
  std::int64_t line_word = 0;    // wide to narrow: words of the line that are behind
  std::int64_t lines_to_leave = 0;
  std::int64_t skipped_at = -1;  // position before which words have been skipped
};

struct TensorRun;  // tensor_unit.h

// Effects of a tensor unit outside of its tile. Units of several tiles work at the same time; their effects are looked
// at when all are done, in the order of tiles.
struct TensorEffects {
  bool moved = false;
  std::int64_t steps = 0;
  std::int64_t most_steps = 0;                 // that may be made before someone looks
  std::uint32_t index = 0;                     // the last instruction that was looked at
  std::optional<std::uint32_t> first_unknown;  // the first instruction that computed with unknown memory
  Status failure;                              // of the instruction `index`
};

struct Unit {
  std::deque<Issued> queue;
  std::optional<Running> running;
  std::shared_ptr<TensorRun> tensor;
  BufferPhases phases;
  std::uint64_t blocked_at = ~std::uint64_t{0};  // version of the tile when it could not move
  bool idle() const { return queue.empty() && !running; }
};

struct Tile {
  int number = 0;
  NarrowMemory narrow;
  WideMemory wide;
  ScalingMemory scaling;
  std::array<std::uint16_t, chip::kTileCounters> counters{};
  // The value that a counter was last set to, and how often it was signalled since: it has 16 bits and wraps.
  std::array<std::uint16_t, chip::kTileCounters> set_to{};
  std::array<std::int64_t, chip::kTileCounters> signals{};
  std::array<Unit, chip::kTileUnits> units;
  std::deque<Issued> dispatch;
  std::array<MessageQueue<RingLine*>, 2> ring;  // lines on their way to this tile, by channel
  std::array<MessageQueue<Word>, 4> links;      // words on their way to this tile, by mesh instruction
  std::optional<numeric::ChipTable> table;
  std::uint64_t version = 0;                     // changes with everything that could let a unit move
  std::uint64_t settled_at = ~std::uint64_t{0};  // version at which no unit could move
  int notifications = 0;
};

// A unit of the scalar core that moves data.
struct HostUnit {
  std::deque<std::uint32_t> queue;
  std::optional<Running> running;
  std::vector<std::uint8_t> pending, pending_known;  // pop: bytes of an unfinished line
  bool idle() const { return queue.empty() && !running; }
};

// A buffer between host and ring. Units are addressed, not queued: the program decides what is overwritten and when.
// A unit that is taken before it is filled, or filled again before it was taken, is a mistake. (A unit that two pops
// share, because their parts meet inside of it, is taken by both in a row.)
struct HostBuffer {
  std::int64_t unit_bytes = 4;
  std::vector<std::uint8_t> bytes, known;
  enum State : std::uint8_t { kEmpty, kFull, kTaken };
  std::vector<State> states;
  std::int64_t last_taken = -1;

  std::int64_t units() const { return static_cast<std::int64_t>(states.size()); }
  // Addresses wrap.
  std::int64_t unit_at(std::int64_t address) const { return (address % units() + units()) % units(); }
  bool take(std::int64_t unit) {
    State& state = states[at(unit)];
    if (state != kFull && unit != last_taken) return false;
    state = kTaken;
    last_taken = unit;
    return true;
  }
  void restart() {
    std::fill(states.begin(), states.end(), kEmpty);
    last_taken = -1;
  }
};

class Chip {
 public:
  explicit Chip(const Options& options = {});

  // Runs a program to its end. Memories keep what earlier programs left; counters are the programs' own business.
  Status run(const Program& program, Host& host);

  // The same in steps, for a host that brings data and instructions while the program runs: begin(), advance() whenever
  // the host has something new, finish() when the program is at its end or must be given up. Program and host stay
  // where they are until then.
  void begin(const Program& program, Host& host);
  // Until nothing can move any more. An error: of an instruction; finish() is next.
  Status advance();
  // The program has got another chunk at its end (append_chunk) since advance().
  void program_grew();
  // Every instruction is done and every unit is idle.
  bool is_at_end() const;
  // How it ended: an error also where it is not at its end, or left something behind. The queues are then cleared.
  Status finish();
  // As after power-on: memories, registers and counters hold nothing.
  void power_cycle();

  // Is told everything that following runs do; null: nobody is.
  void set_observer(Observer* observer) { observer_ = observer; }
  void set_queue_depths(const QueueDepths& depths) { depths_ = depths; }
  void set_schedule(const Schedule& schedule) { schedule_ = schedule; }
  // The observer ended the last run early. Nothing of the chip's state but memories is of use then.
  bool was_stopped() const { return was_stopped_; }

  const Tile& tile(int number) const { return *tiles_[at(number)]; }
  const ScalarCore& core() const { return core_; }
  const std::array<std::uint16_t, chip::kScalarCounters>& scalar_counters() const { return scalar_counters_; }
  const std::array<HostUnit, kHostUnits>& host_units() const { return host_units_; }
  std::int64_t steps() const { return steps_; }
  // Where the last program first computed with memory that nothing wrote; empty: nowhere.
  const std::string& first_unknown() const { return first_unknown_; }

 private:
  friend struct TensorUnit;

  // chip.cpp
  bool sweep();
  bool sweep_in_another_order();                     // schedule.cpp
  bool run_units_of(std::uint32_t units, int odds);  // the same
  bool scalar_core_moves();
  bool dispatch(Tile& tile);
  bool fence_passes(const isa::ScalarFence& fence);
  // Units whose double buffers a fence restarts.
  std::uint32_t restarted_by(const isa::TileFence& fence) const;
  bool doubts(Belief belief) const { return options_.doubted == belief; }
  Belief doubted() const { return options_.doubted; }
  void take_up(Tile& tile, Unit& unit);
  // All but the tensor unit.
  bool run_tile_unit(Tile& tile, int unit);
  // Sets the cursors of an instruction when it is looked at for the first time.
  static void start(Unit& unit, const isa::NestShape& in, const isa::NestShape& out);
  // Forgets what a program that did not end left behind.
  void clear_queues();
  Status how_it_ended() const;
  void finish(Tile& tile, Unit& unit, const isa::NestShape* first, const isa::NestShape* second);
  void count(Tile& tile, const isa::Signal& signal, std::int64_t passes);
  void count_ring(const Tile* sender, int channel, std::int64_t passes);  // null: the scalar core sends
  void touch_all() {
    for (auto& tile : tiles_) ++tile->version;
  }
  bool spend(std::int64_t steps) {
    steps_ += steps;
    return steps_ <= next_look_ || look_at_limits();
  }
  // Whether neither the number of steps nor the budget of time is used up; else failure_ says which.
  bool look_at_limits();
  static constexpr std::int64_t kStepsBetweenLooks = 1 << 14;
  // Without a time limit a unit goes as far as it can, which is faster.
  std::int64_t most_steps_at_once() const {
    const std::int64_t left = options_.max_cycles - steps_;
    return has_time_limit_ ? std::min<std::int64_t>(left, std::int64_t{1} << 20) : left;
  }
  // At most so far may a unit go at once: long instructions are not to exceed the limit by much before it is looked at.
  std::int64_t affordable(std::int64_t from, std::int64_t end) const {
    return std::min(end, from + std::max<std::int64_t>(most_steps_at_once(), 0) + 1);
  }
  bool fail(std::string message);  // always false
  std::string place(std::uint32_t index) const;
  std::string standstill() const;
  std::vector<std::string> unmet_fence(const isa::ScalarFence& fence) const;
  static std::vector<std::string> overflows(const Tile& tile, const Running& run);
  std::string left_over() const;

  // ring_units.cpp
  bool ring_send(Tile& tile, Unit& unit, const isa::RingSend& op);
  bool ring_receive(Tile& tile, Unit& unit, const isa::RingReceive& op);
  // Takes the next line from the ring.
  bool receive_line(Tile& tile, MessageQueue<RingLine*>& lines, std::int64_t address);
  // For how many lines everyone who is to receive them has room; a sender waits until there is some.
  std::size_t ring_room(std::uint16_t tiles, int channel, bool to_scalar) const;
  // A line on its way; the caller writes what is in it.
  Line& new_ring_line(std::uint16_t tiles, int channel, bool to_scalar);

  // movers.cpp
  struct Packing {
    int words = 0;
    bool is_held = false;  // waits do not permit all of the line
  };
  Packing pack_line(const Tile& tile, const isa::NarrowToWide& op, std::int64_t base, std::int64_t readable,
                    isa::NestCursor& words, Line& line);
  void tell_packed(const Tile& tile, const Running& run, std::int64_t base, std::int64_t end);
  bool narrow_to_wide(Tile& tile, Unit& unit, const isa::NarrowToWide& op);
  bool wide_to_narrow(Tile& tile, Unit& unit, const isa::WideToNarrow& op);
  bool wide_to_scaling(Tile& tile, Unit& unit, const isa::WideToNarrow& op);
  bool store_line(Tile& tile, std::int64_t address, const Line& line);
  const Line* load_line(Tile& tile, std::int64_t address);

  // mesh_units.cpp
  bool mesh(Tile& tile, Unit& unit, const isa::Mesh& op, chip::Direction direction);
  bool mesh_send(Tile& tile, Running& run, const isa::Mesh& op, chip::Direction direction);
  bool mesh_receive(Tile& tile, Running& run, const isa::Mesh& op, chip::Direction direction);

  // host_units.cpp
  bool run_infeed();
  bool run_pop();
  std::int64_t send_pending(HostUnit& unit, const isa::Pop& op, bool is_end);
  bool run_outfeed();
  bool start_host_unit(HostUnitId id);
  HostUnit& host_unit(HostUnitId id) { return host_units_[at(id)]; }
  void finish_host_unit(HostUnitId id);

  // tensor_unit.cpp
  bool run_tensor_units(std::uint32_t tiles = ~0u);  // mask
  // How much there is to do at once, in about nanoseconds; 0: nothing.
  std::int64_t tensor_work(Tile& tile) const;
  void run_tensor_unit(Tile& tile, TensorEffects& effects);
  bool tensor(Tile& tile, Unit& unit, TensorEffects& effects);

  Options options_;
  Observer* observer_ = nullptr;
  QueueDepths depths_;
  Comparison comparison_ = Comparison::kDifference;
  Schedule schedule_;
  std::mt19937 order_;
  bool was_stopped_ = false;
  std::vector<std::unique_ptr<Tile>> tiles_;
  ScalarCore core_;
  std::array<std::uint16_t, chip::kScalarCounters> scalar_counters_{};
  std::array<HostUnit, kHostUnits> host_units_;
  std::array<HostBuffer, 3> buffers_;  // parameters, activations, loop-back
  RingLinePool ring_lines_;
  Line unreceived_line_;               // sent to nobody
  MessageQueue<RingLine*> to_scalar_;  // lines that the ring brought to the scalar core
  std::size_t to_scalar_byte_ = 0;     // of the first of them
  std::array<TensorEffects, chip::kTiles> effects_;
  int threads_ = 1;
  std::unique_ptr<ThreadPool> pool_;  // made when it is needed
  const Program* program_ = nullptr;
  Host* host_ = nullptr;
  std::int64_t steps_ = 0, next_look_ = 0;
  bool has_time_limit_ = false;
  std::string first_unknown_;
  int failing_tile_ = -1;
  std::uint32_t failing_index_ = 0;
  Status failure_;
};

}  // namespace reef::device
