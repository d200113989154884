// SPDX-License-Identifier: Apache-2.0
// Watches a run and keeps every computed element of every tensor for which there is a rule (layer_rules.h).
//
// Bytes carry tags that say which element they are; a tensor instruction's results get theirs from what it reads. An
// element that is computed several times (tiles compute rims of their neighbours' parts) must have one value.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "execute/device/tag_follower.h"
#include "runtime/layer_rules.h"

namespace reef::runtime {

// What has been seen of a tensor. Values are the chip's, unsigned.
struct SeenTensor {
  static constexpr std::int16_t kNotSeen = -1;
  std::vector<std::int16_t> values;
  std::int64_t seen = 0;  // elements
  std::string problem;    // the first contradiction, a sentence; empty: none
};

class LayerFollower : public device::TagFollower {
 public:
  // `rules` must outlive this. Observes a device from its first run on; see TagFollower.
  explicit LayerFollower(const Rules& rules);

  // By tensor of the source model.
  const std::map<std::int32_t, SeenTensor>& tensors() const { return tensors_; }

  void begins(const device::Program& program) override;
  void started(const device::Tile* tile, int unit, const device::Running& run) override;
  void computed(const device::TensorMove& move) override;

 private:
  // What is known of one cell of a result that is under way.
  struct CellState {
    std::int64_t result = Rule::kOutside;
    Tag copied = device::kNoTag;
    bool has_copied = false;
    WindowSpan span;
  };
  struct Work {
    const Rule* rule = nullptr;
    const isa::TensorOperation* op = nullptr;
    isa::Opcode opcode = isa::Opcode::kMultiplyAdd;
    std::uint32_t index = 0;
    isa::NestCursor loops, in, param, psum, out;
    std::int64_t results = 0;
    std::int64_t scaling_phase = 0;
    std::vector<CellState> cells;        // slots x cells
    std::vector<std::uint64_t> missing;  // by slot: cells of layers whose result is not known yet
  };
  struct Stored {
    std::int64_t address = 0;
    Tag tag = 0;
  };

  Tag tag_of_host_byte(const device::Program& program, std::size_t buffer, std::uint64_t offset) const override;
  void step(const device::Tile& tile, Work& work, CellState* cells, std::uint64_t& missing, bool ends);
  void step_layer(const device::Tile& tile, Work& work, CellState* cells, std::uint64_t& missing, bool ends);
  void step_by_cell(const device::Tile& tile, Work& work, CellState* cells);
  void use(const Work& work, CellState& cell, Tag input, Tag parameter, bool is_zero);
  void emit(const device::Tile& tile, Work& work, CellState* cells);
  Tag tag_of_result(const Work& work, CellState& cell);
  void keep(const device::Tile& tile, const Work& work);
  void object(const Work& work, std::string_view problem);

  const Rules& rules_;
  bool is_execution_ = false;
  std::array<Work, chip::kTiles> works_;
  std::vector<Stored> stored_;  // results of this call
  std::map<std::int32_t, SeenTensor> tensors_;
};

}  // namespace reef::runtime
