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
#include "execute/device/tensor_walk.h"
#include "runtime/layer_rules.h"

namespace reef::runtime {

// The values that were seen of a tensor. They are the chip's, unsigned.
struct SeenTensor {
  static constexpr std::int16_t kNotSeen = -1, kVaries = -2;
  std::vector<std::int16_t> values;
  std::int64_t seen = 0;  // elements
  // The value of results that are made of nothing but constants. Which of them is which element is not known; if all
  // are the same, it does not matter.
  std::int16_t constant = kNotSeen;
  std::string problem;   // why its values are not to be trusted, a sentence; empty: they are
  std::string left_out;  // why a result that may have been one of its elements was left out; empty: none was
};

class LayerFollower : public device::TagFollower {
 public:
  // `rules` must outlive this. Observes a device from its first run on; see TagFollower.
  explicit LayerFollower(const Rules& rules);

  // By tensor of the source model.
  const std::map<std::int32_t, SeenTensor>& tensors() const { return tensors_; }

  // Inputs and outputs of the run, by layer, as TFLite holds them.
  const std::vector<std::vector<std::uint8_t>>& inputs() const { return inputs_; }
  const std::vector<std::vector<std::uint8_t>>& outputs() const { return outputs_; }

  void begins(const device::Program& program, const device::Chip& chip) override;
  void given(const std::vector<std::span<const std::uint8_t>>& inputs) override;
  void returned(const std::vector<std::vector<std::uint8_t>>& outputs) override { outputs_ = outputs; }
  void started(const device::Tile* tile, int unit, const device::Running& run) override;
  void computed(const device::TensorMove& move) override;

 private:
  // The state of one cell of a result that is being computed.
  struct CellState {
    std::int64_t result = Rule::kOutside;
    std::int64_t if_constant = Rule::kOutside;     // the result, if all inputs are constants
    bool has_constant = false, has_other = false;  // inputs of element-wise results: constants, anything else
    Tag copied = device::kNoTag;
    bool has_copied = false;
    WindowSpan span;
  };
  // A result of a layer that is under way. Cell 0 stands for all cells: what it reads is checked in every step.
  struct SlotState {
    std::uint64_t missing = 0;  // cells whose result is not known yet
    bool is_wrong = false;
    std::vector<std::int32_t> of_constants;  // weights of cell 0 that were multiplied with a constant
  };
  struct Work : device::TensorWalk {
    const Rule* rule = nullptr;
    std::vector<CellState> cells;  // slots x cells
    std::vector<SlotState> slots;
  };
  struct Stored {
    std::int64_t address = 0;
    Tag tag = 0;
  };

  Tag tag_of_host_byte(const device::Program& program, std::size_t buffer, std::uint64_t offset) const override;
  void step(const device::Tile& tile, Work& work, CellState* cells, SlotState& slot, bool ends);
  void step_layer(const device::Tile& tile, Work& work, CellState* cells, SlotState& slot, bool ends);
  void locate_cells(const Work& work, CellState* cells, SlotState& slot, std::uint64_t asked, Tag input,
                    const Tag* weights) const;
  void check_first_cell(const Work& work, const CellState& cell, SlotState& slot, Tag input, Tag weight) const;
  void finish_layer(const Work& work, CellState* cells, const SlotState& slot);
  void step_by_cell(const device::Tile& tile, Work& work, CellState* cells);
  void use(const Work& work, CellState& cell, Tag input, Tag parameter, bool is_zero);
  void emit(const device::Tile& tile, Work& work, CellState* cells);
  Tag tag_of_result(const Work& work, CellState& cell);
  void keep(const device::Tile& tile, const Work& work);
  void leave_out(const Work& work, std::string_view why);

  const Rules& rules_;
  bool is_execution_ = false;
  std::array<Work, chip::kTiles> works_;
  std::vector<Stored> stored_;  // results of this call
  std::map<std::int32_t, SeenTensor> tensors_;
  std::vector<std::vector<std::uint8_t>> inputs_, outputs_;
};

}  // namespace reef::runtime
