// SPDX-License-Identifier: Apache-2.0
#include "execute/device/stop_at.h"

#include <charconv>

#include "execute/device/diagnosis.h"

namespace reef::device {
namespace {

std::optional<std::int64_t> number_in(std::string_view text) {
  std::int32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

std::vector<NestProgress> progress_of(const Running& run) {
  const std::int64_t a = run.first.position(), b = run.second.position();
  const isa::OperationCode& code = run.operation->code;
  if (const auto* op = std::get_if<isa::TensorOperation>(&code)) return {{"loops", a, op->loops.size()}};
  if (const auto* op = std::get_if<isa::RingSend>(&code)) return {{"in", a, op->in.size()}};
  if (const auto* op = std::get_if<isa::RingReceive>(&code)) return {{"out", a, op->out.size()}};
  if (const auto* op = std::get_if<isa::NarrowToWide>(&code)) {
    return {{"in", a, op->in.size()}, {"out", b, op->out.size()}};
  }
  if (const auto* op = std::get_if<isa::WideToNarrow>(&code)) {
    return {{"in", a, op->in.size()}, {"out", b, op->out.size()}};
  }
  if (const auto* op = std::get_if<isa::Infeed>(&code)) return {{"out", a, op->out.size()}};
  if (const auto* op = std::get_if<isa::Pop>(&code)) return {{"in", a, op->in.size()}};
  if (const auto* op = std::get_if<isa::Outfeed>(&code)) return {{"out", a, op->out.size()}};
  std::vector<NestProgress> progress;
  if (const auto* op = std::get_if<isa::Mesh>(&code)) {
    if (op->sends) progress.push_back({"in", a, op->in.size()});
    if (op->receives) progress.push_back({"out", b, op->out.size()});
  }
  return progress;
}

UnitSnapshot unit_snapshot(const Tile& tile, int number, const Running* just_finished) {
  const Unit& unit = tile.units[reef::at(number)];
  UnitSnapshot snapshot;
  snapshot.name = isa::unit_name(static_cast<isa::Unit>(number));
  for (const Issued& issued : unit.queue) snapshot.queue.push_back(issued.index);
  if (!unit.running || &*unit.running == just_finished) return snapshot;
  snapshot.running = unit.running->index;
  snapshot.progress = progress_of(*unit.running);
  snapshot.waits_for = unmet_waits(*unit.running, tile.counters);
  return snapshot;
}

void copy_memories(const Tile& tile, TileSnapshot& snapshot) {
  snapshot.narrow.assign(tile.narrow.bytes(), tile.narrow.bytes() + chip::kNarrowBytes);
  snapshot.narrow_known.assign(tile.narrow.known(), tile.narrow.known() + chip::kNarrowBytes);
  for (std::int64_t i = 0; i < chip::kWideLines; ++i) {
    const Line& line = tile.wide.line(i);
    snapshot.wide.insert(snapshot.wide.end(), line.bytes.begin(), line.bytes.end());
    const Line::Flags known = line.known();
    snapshot.wide_known.insert(snapshot.wide_known.end(), known.begin(), known.end());
  }
  for (int word = 0; word < 2 * ScalingMemory::kSteps; ++word) {
    const std::uint32_t value = tile.scaling.word(word);
    for (int byte = 0; byte < 4; ++byte) {
      snapshot.scaling.push_back(static_cast<std::uint8_t>(value >> (8 * byte)));
      snapshot.scaling_known.push_back(tile.scaling.is_known(word) ? 1 : 0);
    }
  }
}

TileSnapshot tile_snapshot(const Tile& tile, bool with_memories, const Running* just_finished) {
  TileSnapshot snapshot;
  snapshot.number = tile.number;
  snapshot.counters = tile.counters;
  for (int u = 0; u < chip::kTileUnits; ++u) snapshot.units.push_back(unit_snapshot(tile, u, just_finished));
  for (const Issued& issued : tile.dispatch) snapshot.dispatch.push_back(issued.index);
  for (std::size_t i = 0; i < tile.ring.size(); ++i) snapshot.ring_lines[i] = tile.ring[i].size();
  for (std::size_t i = 0; i < tile.links.size(); ++i) snapshot.mesh_words[i] = tile.links[i].size();
  if (with_memories) copy_memories(tile, snapshot);
  return snapshot;
}

// The instruction whose rows include this one; nothing if the chunk is shorter.
std::optional<std::size_t> around_row(const Program& program, const StopPoint& point) {
  for (std::size_t i = program.chunk_starts[point.chunk]; i < program.chunk_starts[point.chunk + 1]; ++i) {
    if (point.row < program.row_of[i] + program.instructions[i].rows()) return i;
  }
  return std::nullopt;
}

Result<std::size_t> find_instruction(const Program& program, const StopPoint& point) {
  const std::size_t chunks = program.chunk_starts.size() - 1;
  REEF_REQUIRE(point.chunk < chunks, "there is no chunk {}: the program has {}", point.chunk, chunks);
  if (const auto index = program.at_row(point.chunk, point.row)) return *index;
  const auto around = around_row(program, point);
  if (around) {
    return invalid_input("no instruction begins at row {}: it belongs to {}", point.row, program.describe(*around));
  }
  const std::size_t end = program.chunk_starts[point.chunk + 1];
  REEF_REQUIRE(end > program.chunk_starts[point.chunk], "chunk {} of the program is empty", point.chunk);
  return invalid_input("there is no row {}: the last instruction{} is {}", point.row,
                       chunks > 1 ? fmt::format(" of chunk {}", point.chunk) : "", program.describe(end - 1));
}

}  // namespace

Result<StopPoint> parse_stop_point(std::string_view text) {
  StopPoint point;
  std::string_view rest = text;
  std::optional<std::int64_t> chunk = 0, occurrence = 1;
  if (const std::size_t at = rest.find('@'); at != std::string_view::npos) {
    occurrence = number_in(rest.substr(at + 1));
    rest = rest.substr(0, at);
  }
  if (const std::size_t colon = rest.find(':'); colon != std::string_view::npos) {
    chunk = number_in(rest.substr(0, colon));
    rest = rest.substr(colon + 1);
  }
  const std::optional<std::int64_t> row = number_in(rest);
  REEF_REQUIRE(row && chunk && occurrence && *occurrence > 0,
               "'{}' is no place in a program: give a row as 'reef disasm' numbers them (228), with the chunk if there "
               "are several (1:228), with the number of the time it is reached if it is in a loop (228@3)",
               text);
  point.row = *row;
  point.chunk = static_cast<std::size_t>(*chunk);
  point.occurrence = *occurrence;
  return point;
}

StopAt::StopAt(const Chip& chip, StopPoint point, std::uint32_t memories_of)
    : chip_(chip), point_(point), memories_of_(memories_of) {}

Status StopAt::status() const {
  if (!error_.ok() || snapshot_) return error_;
  REEF_REQUIRE(program_ != nullptr, "no program was run");
  if (reached_ < point_.occurrence) {
    return invalid_input("{} is reached {} times, not {}: the program ran to its end", describe(index_), reached_,
                         point_.occurrence);
  }
  return invalid_input("{} is reached but never finished", describe(index_));
}

void StopAt::begins(const Program& program, const Chip& /*chip*/) {
  is_watching_ = false;
  if (program.type == darwinn::ExecutableType::kParameterCaching || (program_ != nullptr && program_ != &program)) {
    return;
  }
  is_watching_ = true;
  if (program_ != nullptr) return;  // it runs again
  program_ = &program;
  auto index = find_instruction(program, point_);
  if (index.ok()) {
    index_ = *index;
  } else {
    error_ = index.status();
    is_watching_ = false;
  }
}

void StopAt::executed(std::size_t index, const std::optional<HostRequest>& /*request*/, std::size_t /*pushed*/) {
  if (is_awaited(index) && reached()) take(nullptr);
}

void StopAt::passed_fence(std::size_t index, const isa::ScalarFence& /*fence*/) {
  if (is_awaited(index) && reached()) take(nullptr);
}

void StopAt::handed_out(std::size_t index, std::uint32_t tiles) {
  if (!is_awaited(index)) return;
  const bool is_the_one = reached();
  for (std::size_t t = 0; t < handed_count_.size(); ++t) {
    if ((tiles >> t & 1) == 0) continue;
    ++handed_count_[t];
    if (is_the_one) needed_[t] = handed_count_[t];
  }
  if (!is_the_one) return;
  is_handed_out_ = true;
  handed_to_ = waiting_for_ = tiles & ((1u << chip::kTiles) - 1);
  if (waiting_for_ == 0) take(nullptr);  // a mask from a register may be empty
}

void StopAt::handed_to_host_unit(std::size_t index, HostUnitId /*unit*/) {
  if (!is_awaited(index)) return;
  ++host_handed_;
  if (reached()) host_needed_ = host_handed_;
}

void StopAt::passed_tile_fence(const Tile& tile, std::size_t index, const isa::TileFence& /*fence*/) {
  if (is_awaited(index)) finished_by(tile.number, nullptr);
}

void StopAt::finished(const Tile* tile, int /*unit*/, const Running& run) {
  if (!is_awaited(run.index)) return;
  if (tile != nullptr) return finished_by(tile->number, &run);
  if (++host_finished_ == host_needed_) take(&run);
}

void StopAt::finished_by(int tile, const Running* run) {
  const auto t = static_cast<std::size_t>(tile);
  ++finished_count_[t];
  if (!is_handed_out_ || finished_count_[t] != needed_[t]) return;
  waiting_for_ &= ~(1u << tile);
  if (waiting_for_ == 0) take(run);
}

void StopAt::take(const Running* just_finished) {
  Snapshot& snapshot = snapshot_.emplace();
  snapshot.index = index_;
  snapshot.tiles = handed_to_;
  snapshot.occurrence = point_.occurrence;
  snapshot.steps = chip_.steps();
  snapshot.next = chip_.core().next;
  snapshot.counters = chip_.scalar_counters();
  for (std::size_t i = 0; i < kHostUnits; ++i) {
    const HostUnit& unit = chip_.host_units()[i];
    UnitSnapshot& state = snapshot.host_units.emplace_back();
    state.name = host_unit_name(static_cast<int>(i));
    state.queue.assign(unit.queue.begin(), unit.queue.end());
    if (!unit.running || &*unit.running == just_finished) continue;
    state.running = unit.running->index;
    state.progress = progress_of(*unit.running);
  }
  for (int t = 0; t < chip::kTiles; ++t) {
    snapshot.tiles_state.push_back(tile_snapshot(chip_.tile(t), (memories_of_ >> t & 1) != 0, just_finished));
  }
}

}  // namespace reef::device
