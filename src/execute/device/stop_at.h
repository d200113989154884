// SPDX-License-Identifier: Apache-2.0
// Stops a run when an instruction has been finished, and keeps what the chip looked like at that moment.
//
// Finished means: by the scalar core, the host unit or every tile that it was handed to. Other units may have gone on
// meanwhile: what is kept is one of the states that the chip could be in (chip.h), and the same one in every run.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "execute/device/chip.h"

namespace reef::device {

// An instruction by the row at which it begins, as listings number them.
struct StopPoint {
  std::size_t chunk = 0;
  std::int64_t row = 0;
  std::int64_t occurrence = 1;  // of those that the scalar core reaches it
};

// "228", "1:228" (chunk and row), "228@3" (the third time).
Result<StopPoint> parse_stop_point(std::string_view text);

// How far a unit is in one of the nests of its instruction.
struct NestProgress {
  std::string_view nest;
  std::int64_t position = 0, size = 0;
};

struct UnitSnapshot {
  std::string_view name;
  std::optional<std::uint32_t> running;  // index of an instruction
  std::vector<NestProgress> progress;
  std::vector<std::string> waits_for;
  std::vector<std::uint32_t> queue;
};

struct TileSnapshot {
  int number = 0;
  std::array<std::uint16_t, chip::kTileCounters> counters{};
  std::vector<UnitSnapshot> units;
  std::vector<std::uint32_t> dispatch;  // instructions that no unit has got yet
  std::array<std::size_t, 2> ring_lines{};
  std::array<std::size_t, 4> mesh_words{};
  // Bytes, and beside each whether it is known. Empty unless the tile is to be dumped.
  std::vector<std::uint8_t> narrow, narrow_known, wide, wide_known, scaling, scaling_known;
};

struct Snapshot {
  std::size_t index = 0;  // the instruction that was finished
  std::uint32_t tiles = 0;
  std::int64_t occurrence = 1;
  std::int64_t steps = 0;
  std::size_t next = 0;  // instruction at which the scalar core stands
  std::array<std::uint16_t, chip::kScalarCounters> counters{};
  std::vector<UnitSnapshot> host_units;
  std::vector<TileSnapshot> tiles_state;
};

class StopAt : public Observer {
 public:
  // `chip` is the one that is observed. `memories_of`: mask of tiles whose memories are kept.
  StopAt(const Chip& chip, StopPoint point, std::uint32_t memories_of);

  // Absent: it has not come to that.
  const std::optional<Snapshot>& snapshot() const { return snapshot_; }
  // Says why the run that has ended left no snapshot; ok if it left one.
  Status status() const;
  // The program that ran has such an instruction.
  bool was_found() const { return program_ != nullptr && error_.ok(); }
  // Names an instruction of the snapshot's program: "row 228 (multiply_add)".
  std::string describe(std::size_t index) const { return program_->describe(index); }
  const Program& program() const { return *program_; }

  void begins(const Program& program, const Chip& chip) override;
  void executed(std::size_t index, const std::optional<HostRequest>& request, std::size_t pushed) override;
  void passed_fence(std::size_t index, const isa::ScalarFence& fence) override;
  void handed_out(std::size_t index, std::uint32_t tiles) override;
  void handed_to_host_unit(std::size_t index, HostUnitId unit) override;
  void passed_tile_fence(const Tile& tile, std::size_t index, const isa::TileFence& fence) override;
  void finished(const Tile* tile, int unit, const Running& run) override;
  bool wants_to_stop() override { return snapshot_.has_value() || !error_.ok(); }

 private:
  bool is_awaited(std::size_t index) const { return is_watching_ && index == index_ && !snapshot_; }
  // The scalar core has reached the instruction once more.
  bool reached() { return ++reached_ == point_.occurrence; }
  void finished_by(int tile, const Running* run);
  void take(const Running* just_finished);

  const Chip& chip_;
  StopPoint point_;
  std::uint32_t memories_of_;
  const Program* program_ = nullptr;
  bool is_watching_ = false;  // the program that runs is the one
  std::size_t index_ = 0;
  std::int64_t reached_ = 0;
  // Who is still to finish the occurrence that counts. Units work in order, so a tile's k-th finish is that of the k-th
  // instance it was handed.
  bool is_handed_out_ = false;
  std::uint32_t handed_to_ = 0, waiting_for_ = 0;
  std::array<std::int64_t, chip::kTiles> handed_count_{}, finished_count_{}, needed_{};
  std::int64_t host_handed_ = 0, host_finished_ = 0, host_needed_ = 0;
  Status error_;
  std::optional<Snapshot> snapshot_;
};

}  // namespace reef::device
