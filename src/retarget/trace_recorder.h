// SPDX-License-Identifier: Apache-2.0
// Watches the virtual device run a package, and records what each tensor op of the execution program reads.
//
// The device moves and computes bytes; the recorder moves their tags (device::TagFollower) and gives each result the
// tag of the instruction that made it. Results of plain copies keep the tags of what was copied.
//
// Where the scalar core loops over instructions (recurrent networks), only the first pass is recorded: all time steps
// of a tensor are one tensor, and later passes would add the states that they hand on to each other.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <vector>

#include "execute/device/tag_follower.h"
#include "execute/device/tensor_walk.h"
#include "formats/darwinn/package.h"
#include "retarget/provenance.h"

namespace reef::retarget {

class TraceRecorder : public device::TagFollower {
 public:
  TraceRecorder();

  // Takes the trace of a run that has ended without an error.
  Trace take_trace(const darwinn::Executable& execution);

  void begins(const device::Program& program, const device::Chip& chip) override;
  void handed_out(std::size_t index, std::uint32_t tiles) override;
  void started(const device::Tile* tile, int unit, const device::Running& run) override;
  void loaded_table(const device::Tile& tile, const device::Running& run) override;
  void moved(const device::Move& move) override;
  void computed(const device::TensorMove& move) override;

 private:
  static constexpr Tag kNoFamily = ~Tag{0};
  // A tensor op at work on a tile.
  struct Work : device::TensorWalk {
    std::uint32_t run = 0;  // number of this work, from 1 on
    bool is_copy = false;
    bool is_lowest = false;           // no tile with a lower number executes the op
    TensorOpTrace* trace = nullptr;   // null: it is not recorded
    std::int64_t first_address = 0;   // input address of the first result
    std::int64_t recorded_pass = -1;  // of the scaling level
    Tag last_input = kNoFamily;       // family of the input byte that was recorded last
    std::vector<Tag> copied = {};     // plain copies: which input byte each cell takes
    std::vector<Tag> result = {};     // of the bytes of a result, padding included
  };
  // The tiles that the first pass of an instruction is handed to, and those of them that have yet to begin with it.
  struct FirstPass {
    std::uint32_t tiles = 0, waiting = 0;
  };

  Tag tag_of_host_byte(const device::Program& program, std::size_t buffer, std::uint64_t offset) const override;
  Tag tag_of_fill(const device::Running& run) const override { return make_tag(Origin::kFill, run.index); }
  void taken_by_core(std::span<const Tag> word) override;
  std::vector<Tag> tags_from_core(std::size_t bytes) override;

  Work& work_of(const device::Tile& tile) { return works_[at(tile.number)]; }
  std::uint32_t* recorded_by(const device::Tile& tile, std::int64_t line) {
    return recorded_by_[at(tile.number)].data() + 4 * line;
  }
  void step(const device::Tile& tile, Work& work);
  void record_input(const device::Tile& tile, Work& work);
  void record_parameters(const device::Tile& tile, const Work& work);
  void record_zero_points(const device::Tile& tile, const Work& work);
  void record_first(const device::Tile& tile, Work& work);
  void record_samples(const device::Tile& tile, const Work& work);
  void record_scaling(const device::Tile& tile, Work& work);
  void take_copies(const device::Tile& tile, Work& work);
  static void tag_result(Work& work);
  void store_result(const device::Tile& tile, Work& work);

  bool is_execution_ = false;
  std::array<Work, chip::kTiles> works_;
  std::array<std::uint32_t, chip::kTiles> tables_{};  // the instruction that loaded each tile's activation table
  std::uint32_t runs_ = 0;
  // By quarter of a wide line: the run that has recorded it since it was last written; 0: none has.
  std::array<std::vector<std::uint32_t>, chip::kTiles> recorded_by_;
  std::vector<FirstPass> first_passes_;            // by instruction
  std::map<std::uint32_t, TensorOpTrace> traces_;  // the same
  std::deque<Tag> in_core_;                        // bytes that the scalar core took and has not sent on
};

}  // namespace reef::retarget
