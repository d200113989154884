// SPDX-License-Identifier: Apache-2.0
// The walk through a program that audit.h describes. Private to the audit.
//
// Actors are whoever can move by itself: ten units and the dispatcher of each tile, and the three units of the scalar
// core. An actor goes on until something holds it; what holds it wakes it. When nobody can move the scalar core hands
// out its next instruction, so that queues are as short as any machine could have them.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "audit/clocks.h"
#include "audit/counter_log.h"
#include "audit/findings.h"
#include "audit/footprint.h"
#include "audit/listing.h"
#include "audit/place_log.h"
#include "audit/queue.h"
#include "audit/scalar_state.h"
#include "isa/counters.h"
#include "isa/opcode.h"

namespace reef::audit {

inline constexpr std::int64_t kNarrowWords = chip::kNarrowBytes / chip::kNarrowWordBytes;
inline constexpr int kLineWords = chip::kWideLineBytes / 4;
inline constexpr std::int64_t kScalingSteps = 128;  // of 8 bytes: two buffers of scales, two of biases
inline constexpr std::size_t kTensorReader = 0;     // the tensor unit, in the logs of all memories
inline constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

// Actors: units 0 to 9 and the dispatcher of tile t are 11 * t + number; then infeed, pop, outfeed.
inline constexpr int kActorsPerTile = chip::kTileUnits + 1;
inline constexpr int kInfeedActor = chip::kTiles * kActorsPerTile, kPopActor = kInfeedActor + 1,
                     kOutfeedActor = kInfeedActor + 2, kActors = kInfeedActor + 3;

// Waits of one nest of an instruction that is being carried out.
struct Gate {
  const isa::NestShape* nest = nullptr;
  std::span<const isa::Wait> waits;
  std::array<std::int64_t, 8> next{};  // positions at which they are asked next
  std::int64_t next_any = kNever;
  void open(const isa::NestShape& shape, std::span<const isa::Wait> list);
};

// Counts the passes that end.
struct PassCount {
  const isa::NestShape* nest = nullptr;
  const isa::Signal* signal = nullptr;
  std::int64_t done = 0, next = kNever;  // passes; the position at which there are more
  void open(const isa::NestShape& shape, const isa::Signal& counted);
  // Since the last call, if everything before the position is done.
  std::int64_t up_to(std::int64_t position) { return position < next ? 0 : more_up_to(position); }

 private:
  std::int64_t more_up_to(std::int64_t position);
};

struct Job {
  std::uint32_t index = 0;
  std::uint32_t base = 0;  // what the base register of some instructions held
  Stamp issued;
};

struct BufferPhases {
  std::int64_t first = 0, second = 0, out = 0, scaling = 0;
};

// A unit at work.
struct Worker {
  int actor = 0, tile = -1;
  Agent* agent = nullptr;
  Agent* receiver = nullptr;  // mesh units: the receiving half
  Queue<Job> queue;
  bool is_running = false;
  Job job;
  const isa::Operation* operation = nullptr;
  isa::NestCursor first, second;  // source and destination; loops of a tensor instruction
  isa::NestCursor in, param, psum, out;
  // The nests that `in`, `param` and `out` walk: those of the instruction, with dimensions joined.
  isa::NestShape in_shape, param_shape, out_shape;
  // For a tensor instruction: positions before which steps are made singly, or in rows at most.
  std::int64_t single_steps_until = 0, no_blocks_until = 0;
  Gate first_gate, second_gate;
  PassCount first_passes, second_passes;
  BufferPhases phases;
  bool phases_are_old = true;  // from before the program: no fence has restarted them
  bool uses_old_phases = false;
  BufferPhases initial_phases;
  std::int64_t results = 0;           // of a tensor instruction
  std::int64_t steps_of_nothing = 0;  // that computed with memory which nothing wrote, and are not noted yet
  // Ring receive, wide to narrow.
  bool header_done = false;
  std::int64_t header_line = 0, line_word = 0, lines_to_leave = 0, skipped_at = -1;
  std::uint64_t line_written = 0;  // movers: words of the line under way that something wrote
  bool has_read = false;           // wide to narrow: the next step's read is made, its write is not
  // Pop: bytes of an unfinished line; whether something of it was never written.
  std::int64_t pending_bytes = 0;
  bool is_idle() const { return queue.empty() && !is_running; }
};

struct Message {
  Stamp sent;
  std::uint64_t written = 0;  // words of the line that something wrote; bit 0 for a word of the mesh
};

struct TileState {
  int number = 0;
  std::array<CounterLog, chip::kTileCounters> counters;
  std::array<Worker, chip::kTileUnits> workers;
  Queue<Job> dispatch;
  std::unique_ptr<PlaceLog> narrow, wide, scaling;
  std::vector<std::uint8_t> narrow_written, scaling_written;  // by this or an earlier program
  std::vector<std::uint64_t> wide_written;                    // words of each line
  std::vector<std::uint8_t> wide_relied_on;                   // lines of an earlier program that this one reads
  std::array<Queue<Message>, 2> ring;
  std::array<Queue<Message>, 4> links;  // by direction of the words
  std::array<Stamp, 2> last_line;       // sent to this tile, by channel
  Queue<Stamp> notifications;
};

// A FIFO of the scalar core; addressed, not queued.
struct Fifo {
  enum State : std::uint8_t { kEmpty, kFull, kTaken };
  std::unique_ptr<PlaceLog> log;
  std::vector<State> states;
  std::vector<std::uint8_t> written;  // loop-back only: something wrote what is there
  std::int64_t unit_bytes = 4, last_taken = -1;
  std::int64_t unit_at(std::int64_t address) const {
    const auto units = static_cast<std::int64_t>(states.size());
    return (address % units + units) % units;
  }
};

// The reads of a tensor instruction, beside inputs and parameters, each time it finishes a result.
struct ScalingReads {
  std::int64_t first = 0, steps = 0;  // first place of a buffer of scales; places of each buffer that are read
  bool has_scales = false, has_bias = false;
  bool has_zero_line = false;  // of parameter zero points, in wide memory
  std::int64_t zero_line = 0;

  // First places of what is read of scaling memory.
  template <typename Do>
  void for_each(const Do& act) const {
    if (has_scales) act(first);
    if (has_bias) act(first + kScalingSteps / 2);
  }
};

// Words of a line of parameters that an instruction uses.
inline std::uint64_t cell_mask(const isa::TensorOperation& op) {
  return op.cells >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << op.cells) - 1;
}

struct StepGroup;  // walk_rows.cpp
struct StepRows;

// A block of steps of a tensor instruction, and what they touch (walk_blocks.cpp).
struct StepBlock {
  std::int64_t steps = 0, results = 0;
  std::int64_t input_bytes = 0;  // of a step; 0: it reads no input
  bool is_written = true;        // all inputs and parameters
  Footprint in, param, out;
  ScalingReads scaling;
};

class Walk {
 public:
  Walk(Findings& findings, Statistics& statistics, const AuditOptions& options);
  // Behind whatever was walked before. False: it did not come to its end, which `not_covered` or a finding tells.
  bool run(const Listing& listing);
  // Reports state that this run leaves behind and with which a second run would begin differently.
  void check_repetition();
  const std::vector<std::string>& not_covered() const { return not_covered_; }

 private:
  // walk.cpp
  void begin(const Listing& listing);
  bool is_stopped() const { return !not_covered_.empty() || is_broken_; }
  void stop(std::string_view why) { not_covered_.emplace_back(why); }
  void wake(int actor);
  void let_everybody_move();
  void run_actor(int actor);
  void run_worker(Worker& worker);
  bool carry_out(Worker& worker);  // true: the instruction is done
  void take_up(Worker& worker);
  void finish(Worker& worker);
  bool spend(std::int64_t steps) {
    steps_ += steps;
    return steps_ <= next_look_ || look_at_limits();
  }
  // Whether neither the number of steps nor the budget of time is used up; else the walk stops.
  bool look_at_limits();
  void dispatch(TileState& tile);
  bool fence_passes(TileState& tile, const Job& job, const isa::TileFence& fence);
  Agent& agent(int number) { return agents_[at(number)]; }
  Agent& agent(int tile, int unit) { return agent(agent_of(tile, unit)); }

  // walk_core.cpp
  bool core_moves();
  bool core_branches(std::size_t index, std::size_t& next);
  bool core_repeats(std::size_t index, std::size_t& next);
  bool core_executes(std::size_t index);
  void core_issues(const BundleEffects& effects);
  bool core_hands_out(std::size_t index);
  bool core_passes(const isa::ScalarFence& fence);

  // walk_order.cpp: counters, memories, reports
  bool pass(Agent& agent, Worker& worker, Gate& gate, std::span<CounterLog> counters, std::int64_t position);
  // False: the counter has not got there.
  bool await(Agent& agent, CounterLog& counter, std::uint32_t needed);
  void sleep(CounterLog& counter, int actor, std::uint32_t needed);
  void signal(Agent& agent, CounterLog& counter, std::int64_t count);
  void signal_ring(Agent& agent, int channel, std::int64_t count);
  void set_counter(Agent& agent, CounterLog& counter, std::uint16_t value);
  void read(PlaceLog& log, std::int64_t place, const Agent& agent, std::size_t reader);
  // False: there is no such place.
  bool write(PlaceLog& log, std::int64_t place, const Agent& agent);
  void report(FindingKind kind, int first_agent, Clock first_clock, const Agent& second, std::string_view memory,
              int tile, std::int64_t address = -1);
  void report_here(FindingKind kind, const Agent& agent, std::string_view detail, std::string_view memory = {},
                   std::int64_t address = -1);
  void note_steps_of_nothing(Worker& worker);
  std::uint32_t instruction_of(const Agent& agent) const { return agent.instruction_at(agent.now() + 1); }
  std::string_view name_of(const CounterLog& counter) const;
  int tile_of_counter(const CounterLog& counter) const;

  // walk_moves.cpp
  bool ring_send(Worker& worker, const isa::RingSend& op);
  bool ring_receive(Worker& worker, const isa::RingReceive& op);
  bool has_room(std::uint16_t tiles, int channel, bool to_scalar) const;
  void send_line(Agent& agent, std::uint16_t tiles, int channel, bool to_scalar, std::uint64_t written);
  void took_line(int channel);
  bool narrow_to_wide(Worker& worker, const isa::NarrowToWide& op);
  bool wide_to_narrow(Worker& worker, const isa::WideToNarrow& op);
  bool wide_to_scaling(Worker& worker, const isa::WideToNarrow& op);
  bool read_ahead(Worker& worker);
  bool mesh(Worker& worker, const isa::Mesh& op);
  std::int64_t mesh_words(Worker& sender, const isa::Mesh& op, int to, int direction);
  bool mesh_row(TileState& from, Worker& sender, Worker& receiver, std::int64_t words, int direction);
  bool mesh_send(Worker& worker, const isa::Mesh& op, int direction);
  bool mesh_receive(Worker& worker, const isa::Mesh& op, int direction);
  // Words of a line that is being packed or unpacked which lie side by side, and are neither held nor signalled.
  static std::int64_t words_together(const isa::NestShape& nest, const isa::NestCursor& cursor, const Gate& gate,
                                     std::int64_t line_word);
  bool unpack_words(TileState& tile, Worker& worker, std::int64_t words);
  std::uint64_t read_line(TileState& tile, std::int64_t line, const Agent& agent, std::size_t reader);
  void write_line(TileState& tile, std::int64_t line, const Agent& agent, std::uint64_t written);
  void write_word(TileState& tile, std::int64_t word, const Agent& agent, bool is_written);

  // walk_host.cpp
  bool infeed(Worker& worker, const isa::Infeed& op);
  bool pop(Worker& worker, const isa::Pop& op);
  bool outfeed(Worker& worker, const isa::Outfeed& op);
  void give_host(std::int64_t bytes);
  void report_standstill();
  void report_left_over();
  std::string held_by(Worker& worker);

  // walk_rows.cpp
  StepGroup group_of(const Worker& worker, const isa::TensorOperation& op) const;
  // Carries out steps that can be looked at together and moves the nest of results on; 0: there are none.
  std::int64_t tensor_steps(TileState& tile, Worker& worker, const isa::TensorOperation& op);
  bool are_in_order(const TileState& tile, const Worker& worker, const StepRows& rows) const;
  void note_rows(TileState& tile, Worker& worker, const isa::TensorOperation& op, const StepRows& rows);
  // Steps before others of the double buffers for results are read.
  static std::int64_t steps_of_scaling(const Worker& worker, const isa::TensorOperation& op);
  ScalingReads scaling_reads(const Worker& worker, const isa::TensorOperation& op) const;
  void note_scaling_reads(TileState& tile, const ScalingReads& scaling, std::int64_t results, const Agent& agent);
  void note_lines_read(TileState& tile, std::int64_t first, std::int64_t count, const Agent& agent);

  // walk_blocks.cpp
  // The same for blocks of steps that are longer than a row.
  std::int64_t tensor_block(TileState& tile, Worker& worker, const isa::TensorOperation& op);
  std::int64_t longest_block(const Worker& worker, const isa::TensorOperation& op) const;
  std::int64_t block_of_all(const Worker& worker, const isa::TensorOperation& op, std::int64_t steps) const;
  bool find_block(const Worker& worker, const isa::TensorOperation& op, StepBlock& block) const;
  bool find_places(const Worker& worker, const isa::TensorOperation& op, StepBlock& block) const;
  bool is_block_in_order(const TileState& tile, const Worker& worker, const StepBlock& block) const;
  std::int64_t block_steps_of_nothing(const TileState& tile, const Worker& worker, const isa::TensorOperation& op,
                                      const StepBlock& block) const;
  void note_block(TileState& tile, Worker& worker, const isa::TensorOperation& op, const StepBlock& block);

  // walk_tensor.cpp
  bool tensor(Worker& worker, const isa::TensorOperation& op);
  bool tensor_goes_on(TileState& tile, Worker& worker, const isa::TensorOperation& op);
  bool tensor_step(TileState& tile, Worker& worker, const isa::TensorOperation& op);
  bool store_result(TileState& tile, Worker& worker, const isa::TensorOperation& op);
  void read_resampled(TileState& tile, Worker& worker, const isa::TensorOperation& op);
  bool read_bytes(TileState& tile, std::int64_t byte, std::int64_t bytes, const Agent& agent);
  bool read_scaling(TileState& tile, Worker& worker, const isa::TensorOperation& op);

  TileState& tile_of_worker(const Worker& worker) { return *tiles_[at(worker.tile)]; }

  Findings& findings_;
  Statistics& statistics_;
  AuditOptions options_;
  const Listing* listing_ = nullptr;
  std::vector<std::string> not_covered_;
  bool is_broken_ = false;  // nothing that follows would mean anything; a finding says why
  std::vector<Agent> agents_;
  std::vector<std::unique_ptr<TileState>> tiles_;
  std::array<CounterLog, chip::kScalarCounters> scalar_counters_;
  std::array<Worker, 3> host_workers_;
  std::array<Fifo, 3> fifos_;  // parameters, activations, loop-back
  std::unique_ptr<PlaceLog> scalar_memory_;
  Queue<Message> to_scalar_;
  std::int64_t to_scalar_byte_ = 0;
  Stamp last_to_scalar_;
  std::array<Stamp, 2> ring_turn_;  // who sent last, by channel
  std::array<std::vector<int>, 2> ring_sleepers_;
  Queue<int> ready_;
  std::array<bool, kActors> is_ready_{};
  std::int64_t steps_ = 0, next_look_ = 0;
  StepBlock block_;  // the one that is being looked at; its lists keep their memory
  // Scalar core.
  ScalarState scalar_;
  std::size_t next_ = 0;  // instruction
  std::uint32_t repeats_left_ = 0;
  std::size_t body_begin_ = 0, body_end_ = 0;
  // Transfers that were asked for: bytes not yet taken. A transfer begins when outputs asked for before it have ended.
  struct Transfer {
    std::int64_t bytes = 0;
    std::int64_t after_outputs = 0;
    Stamp asked;
  };
  std::array<Queue<Transfer>, 2> incoming_;  // parameters, activations
  Queue<std::int64_t> outputs_;
  std::int64_t outputs_asked_ = 0, outputs_done_ = 0, unclaimed_bytes_ = 0;
};

}  // namespace reef::audit
