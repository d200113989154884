// SPDX-License-Identifier: Apache-2.0
// The tensor unit's work on one instruction. Private to the device.
//
// An instruction makes its steps in order. A step adds the products of a few input elements with the parameters of each
// cell; a group of steps makes one result of `cells` elements. Which steps form a group: see TensorOperation.
// Regular instructions are computed as matrix products (tensor_plan.h, tensor_matrices.cpp), the others step by step
// (tensor_steps.cpp). Both follow which results depend on memory that nothing wrote: a product is unknown unless both
// operands are known or one is known to be zero.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "execute/device/cell_products.h"
#include "execute/device/chip.h"

namespace reef::device {

struct TensorRun {
  isa::NestCursor in, param, psum, out;            // the loops are Running::first
  isa::NestCursor in_runs, param_runs, slot_runs;  // of a regular instruction
  bool are_stale = false;                          // `in`, `param` and `psum` do not stand where the loops do
  int width = 0;                                   // cells, padded
  // Slots x width: sums of results under way, and of which of them something is unknown (not 0; empty: of none).
  std::vector<std::int32_t> sums, unknown;
  std::int64_t results = 0;  // finished
  // Weights of a batch, one of three: lines as they are, if there are four operands of a cell side by side; or packed
  // operands of 16 or 32 bits.
  std::vector<const std::uint8_t*> lines;
  std::array<std::int32_t, chip::kCells> zeros;
  std::vector<std::int16_t> weights, inputs;
  std::vector<std::int32_t> wide_weights, wide_inputs;
  std::int64_t weights_from = -1;            // run from which on `weights` are valid; -1: they are not
  bool weights_are_known = true;             // all of them
  std::vector<std::uint8_t> row_is_unknown;  // inputs of this row are not all known
  // Where something is unknown: 1 for weights that are (unknown_weights), or are known and not 0 (known_weights); for
  // inputs that are not known to be 0 (live_inputs), or are unknown (unknown_inputs).
  std::vector<std::int16_t> unknown_weights, known_weights, live_inputs, unknown_inputs;
};

// One instruction at work on one tile.
struct TensorUnit {
  static constexpr int kMaxCells = chip::kCells;
  static constexpr std::int64_t kMaxBatch = 64;  // rows of a matrix at once
  using CellNumbers = std::array<std::int32_t, kMaxCells>;

  Chip& chip;
  Tile& tile;
  Unit& unit;
  Running& run;
  TensorRun& work;
  const isa::TensorOperation& op;
  const TensorPlan& plan;
  isa::Opcode opcode;
  TensorEffects& effects;

  // tensor_unit.cpp. Units of other tiles work at the same time: nothing but the tile and the effects may be changed.
  bool fail(std::string message) const;  // always false
  void note_unknown() const;
  const Line* load_line(std::int64_t address) const;
  bool doubts(Belief belief) const { return chip.doubts(belief); }
  void start();
  // Makes all steps before a position.
  bool advance(std::int64_t end);
  void finish();
  int scaling_buffer(std::int64_t position) const {
    return static_cast<int>((position / op.loops.pass_length(op.scaling_level) + unit.phases.scaling) & 1);
  }

  // tensor_steps.cpp
  bool advance_by_steps(std::int64_t end);
  bool step(std::int64_t slot);
  bool load_input(struct StepOperands& operands) const;
  bool load_parameters(struct StepOperands& operands) const;

  // tensor_matrices.cpp. Returns how many runs were done; less than there are if the next one is to be made step by
  // step, or has failed.
  std::int64_t advance_by_runs(std::int64_t end);
  std::int64_t run_batch(std::int64_t first, std::int64_t batch);
  bool uses_lines() const { return op.products == 4 && !plan.is_wide; }
  bool load_zeros(std::int64_t position);
  bool pack_weights(std::int64_t position);
  void pack_step(const std::uint8_t* line, int lane, std::int64_t k);
  void pack_flags();
  std::int64_t gather(std::int64_t rows);
  void gather_flags(std::int64_t rows, std::int64_t base);
  void add_products(std::int64_t first_row, std::int64_t rows, std::int32_t* sums);
  void add_unknown(std::int64_t first_row, std::int64_t rows, std::int32_t* unknown);
  bool has_unknown(std::int64_t rows) const;
  std::int64_t accumulate(std::int64_t first, std::int64_t rows);

  // tensor_results.cpp
  // The result of a slot, which is then empty.
  bool emit(std::int64_t slot, std::int64_t position);
  // Results [rows][width] one after the other; `unknown` may be null. Sums have room for one more row, which is
  // overwritten. Results begin `distance` steps apart, the first at `position`. Returns how many were stored.
  std::int64_t emit_rows(std::int32_t* sums, const std::int32_t* unknown, std::int64_t rows, std::int64_t position,
                         std::int64_t distance);
  bool emit_same_scaling(std::int32_t* sums, const std::int32_t* unknown, std::int64_t rows, int buffer);
  void put_known(const std::int32_t* unknown, std::uint64_t missing, std::uint8_t* known) const;
  bool store_sums(const std::int32_t* sums, const std::int32_t* unknown, std::int64_t line);
  bool store(const std::uint8_t* bytes, const std::uint8_t* known);
  bool resample();
};

}  // namespace reef::device
