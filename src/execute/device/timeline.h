// SPDX-License-Identifier: Apache-2.0
// Simulated time of a run, and what in it is not ordered by the program.
//
// The chip's execution decides what happens; this follows it and works out when. Every agent (units, dispatchers, the
// scalar core) has a clock. A pass may begin when its agent is done with what came before, when each counter it waits
// for has reached its value, and when its data has arrived: all three are known, because signals and messages carry the
// time at which they were sent (counter_history.h). So time does not depend on the order in which the emulator lets
// units run, and units overlap exactly as far as waits allow.
//
// Shared things are taken in the order of execution: the ring, and the link, which carries instructions, inputs and
// parameters in the order in which the program asks.
//
// The same walk follows knowledge instead of time (ordering.h), to find accesses that are not ordered.
//
// Simulated, not measured: the costs are fits to what others published (timing_model.h).
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "execute/device/counter_history.h"
#include "execute/device/observer.h"
#include "execute/device/timing_model.h"
#include "isa/nest_shape.h"

namespace reef::device {

std::string agent_name(int agent);

struct TimelineOptions {
  TimingOptions timing;
  bool find_races = false;   // slow: every access is looked at
  bool keep_slices = false;  // for a trace
};

// An instruction at work on a unit.
struct Slice {
  int agent = 0;
  std::uint32_t index = 0;              // of the instruction
  double begin = 0, end = 0, busy = 0;  // cycles
};

// Bytes on the link.
struct LinkSlice {
  Spent kind = Spent::kInput;
  double begin = 0, end = 0;  // cycles
  std::uint64_t bytes = 0;
};

struct UnitTime {
  std::string name;   // "tensor", ...
  double busy = 0;    // cycles, of all tiles together
  int instances = 1;  // that share the name: 16, or 1
};

struct TimeReport {
  double clock_hz = 0;
  double cycles = 0;                                // from the host's call to its return
  std::array<double, kSpentKinds> critical_path{};  // cycles, by kind
  std::vector<UnitTime> units;
  std::uint64_t instruction_bytes = 0, input_bytes = 0, parameter_bytes = 0, output_bytes = 0;
  double ms() const { return cycles / clock_hz * 1e3; }
};

// One program that ran.
struct ProgramRecord {
  const Program* program = nullptr;
  TimeReport time;
  std::vector<Slice> slices;           // if asked for
  std::vector<LinkSlice> link_slices;  // the same
  std::vector<Race> races;

  // "wide memory, line 4: row 12 (ring_receive_a of tile 2) overwrites what ...".
  std::string describe(const Race& race) const;
};

class Timeline : public Observer {
 public:
  explicit Timeline(const TimelineOptions& options);
  ~Timeline() override;

  // The programs that ran since the last call, in order. Programs must still exist.
  std::vector<ProgramRecord> take_records();

  void begins(const Program& program, const Chip& chip) override;
  void executed(std::size_t index, const std::optional<HostRequest>& request, std::size_t pushed) override;
  void passed_fence(std::size_t index, const isa::ScalarFence& fence) override;
  void handed_out(std::size_t index, std::uint32_t tiles) override;
  void handed_to_host_unit(std::size_t index, HostUnitId unit) override;
  void passed_tile_fence(const Tile& tile, std::size_t index, const isa::TileFence& fence) override;
  void dispatched(const Tile& tile, int unit, std::size_t index) override;
  void started(const Tile* tile, int unit, const Running& run) override;
  void finished(const Tile* tile, int unit, const Running& run) override;
  void loaded_table(const Tile& tile, const Running& run) override;
  void moved(const Move& move) override;
  void computed(const TensorMove& move) override;

 private:
  TimeReport report() const;
  void close_record();
  // Waits of a nest: which pass of each has been waited for.
  struct Gate {
    std::array<std::int64_t, 8> passed{};
  };
  struct Agent {
    Moment moment;
    Knowledge knowledge;
    double busy = 0;
    std::deque<Stamp> instructions;  // handed to it and not taken up
    Gate source, target;
    Slice slice;
    // Tensor units, when order is followed.
    isa::NestCursor in, param, psum, out, loops;
    std::int64_t scaling_phase = 0;
  };
  struct TileState {
    std::array<CounterHistory, chip::kTileCounters> counters;
    std::array<std::deque<Stamp>, 2> ring;
    std::array<Moment, 2> accepted;  // when the last line was stored
    std::array<Stamp, 2> last_sender;
    std::array<std::uint32_t, 2> last_sender_index{};
    std::array<std::deque<Stamp>, 4> links;
    Moment port;                      // of the wide memory: when it is free
    std::deque<Stamp> issued;         // by the core, not dispatched
    std::deque<Stamp> notifications;  // to the core
    std::deque<Moment> dispatches;    // of the last instructions
    std::int64_t issued_count = 0, dispatched_count = 0;
    std::unique_ptr<AccessLog> narrow, wide, scaling;
  };
  struct Incoming {  // a transfer to the chip
    Spent kind = Spent::kInput;
    std::uint64_t left = 0;
    Stamp asked;
    std::uint64_t after_outputs = 0;
  };

  Agent& agent(int tile, int unit) { return agents_[at(agent_of(tile, unit))]; }
  struct Place {
    TileState& tile;
    Agent& agent;
  };
  Place place_of(const Move& move);
  Agent& host_agent(int unit) { return agents_[at(kFirstHostAgent + unit)]; }
  Agent& core() { return agents_[kCoreAgent]; }
  int number_of(const Agent& agent) const { return static_cast<int>(&agent - agents_.data()); }
  Stamp stamp_of(Agent& agent);
  void receive(Agent& agent, const Stamp& stamp);
  void work(Agent& agent, Spent kind, double cycles);
  // Waits for whatever the pass that begins at (or lies around) a position waits for.
  void pass_gate(Agent& agent, Gate& gate, const isa::NestShape& nest, std::span<const isa::Wait> waits,
                 std::span<CounterHistory> counters, std::int64_t position);
  void wait_for_counter(Agent& agent, CounterHistory& counter, std::uint32_t needed);
  // A counter that is set must not be in use any more, and not be used before.
  void note_use(Agent& agent, CounterHistory& counter, bool signals, std::uint32_t needed);
  void report_counter(Race::Kind kind, const CounterHistory& counter, const CounterHistory::User& first,
                      const CounterHistory::User& second);
  void set_counter(Agent& agent, CounterHistory& counter, std::uint16_t value);
  std::string name_of(const CounterHistory& counter) const;
  int tile_of(const CounterHistory& counter) const;
  void signal(Agent& agent, CounterHistory& history, std::int64_t count, Spent kind);
  void signal_ring_producer(Agent& agent, int channel, std::int64_t count, Spent kind);
  void send(Agent& agent, std::uint16_t tiles, int channel, bool to_scalar, int line_bytes);
  void wait_for_receivers(Agent& sender, std::uint16_t tiles, int channel);
  void enter_chunk_of(std::size_t index);
  void begin_instruction_chunk(std::size_t chunk);
  void put(Agent& agent, std::uint64_t bytes);

  void line_sent(const Move& move);
  void line_received(const Move& move);
  void word_packed(const Move& move);
  void line_stored(const Move& move);
  void unpacked(const Move& move);
  void word_sent(const Move& move);
  void word_received(const Move& move);
  void infed(const Move& move);
  void popped(const Move& move);
  void outfed(const Move& move);

  void compute_block(const TensorMove& move, std::int64_t from, std::int64_t to);
  void read_scaling(TileState& tile, Agent& tensor, const isa::TensorOperation& op);
  void walk_tensor_steps(const TensorMove& move, const isa::TensorOperation& op);

  // An access by whatever instruction the agent is at. `log` may be null.
  void touch(AccessLog* log, bool writes, std::int64_t place, Agent& agent);
  void note_dispatch(TileState& tile, const Agent& dispatcher);

  TimelineOptions options_;
  double cycles_per_in_byte_ = 0, cycles_per_out_byte_ = 0;
  const Program* program_ = nullptr;
  std::vector<Agent> agents_;
  std::vector<TileState> tiles_;
  std::array<CounterHistory, chip::kScalarCounters> scalar_counters_;
  std::deque<Stamp> to_scalar_;
  std::array<Stamp, 2> ring_sender_;
  std::array<std::uint32_t, 2> ring_sender_index_{};
  Stamp last_to_scalar_;
  std::uint32_t last_to_scalar_index_ = 0;
  std::int64_t to_scalar_byte_ = 0;
  Moment ring_;  // when it is free
  // The link.
  std::deque<Incoming> inputs_, parameters_;
  Moment link_in_, link_out_;
  std::deque<std::pair<std::uint64_t, Moment>> taken_;  // bytes taken by the chip in all, and when
  std::uint64_t sent_in_ = 0;
  std::deque<std::uint64_t> outputs_;  // bytes still to come
  std::uint64_t output_bytes_unclaimed_ = 0, outputs_asked_ = 0;
  std::vector<Moment> outputs_complete_;
  std::size_t chunk_ = 0;
  std::array<std::unique_ptr<AccessLog>, 3> fifos_;
  Races races_;
  TimeReport totals_;
  std::vector<Slice> slices_;
  std::vector<LinkSlice> link_slices_;
  std::vector<ProgramRecord> records_;
};

}  // namespace reef::device
