// SPDX-License-Identifier: Apache-2.0
// Multiply-add, maximum, sum and resample: the arithmetic of a tile.
//
// An instruction makes its steps in order. A step adds the products of a few input elements with the parameters of each
// cell; a group of steps makes one result of `cells` elements. Which steps form a group: see TensorOperation.
// Regular instructions are computed as matrix products (tensor_plan.h) as long as all their operands are known; the
// others step by step, following which results depend on memory that nothing wrote.
#include "execute/device/tensor_unit.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "execute/device/cell_products.h"
#include "execute/device/waits.h"
#include "numeric/chip_tensor.h"

namespace reef::device {
namespace {

using isa::TensorOperation;

constexpr int kMaxCells = chip::kCells;
using ResultBytes = std::array<std::uint8_t, 2 * kMaxCells + 4>;
constexpr std::int64_t kMaxBatch = 64;  // rows of a matrix at once

std::int64_t slot_at(const TensorOperation& op, const isa::NestCursor& loops) {
  std::int64_t slot = 0, size = 1;
  for (int d = 0; d < op.loops.dims; ++d) {
    if ((op.reduce_dims >> d & 1) != 0) continue;
    slot += size * loops.index(d);
    size *= op.loops.count[static_cast<std::size_t>(d)];
  }
  return slot;
}

bool all_at_last(const isa::NestCursor& cursor, std::uint32_t dims) {
  for (int d = 0; dims != 0; ++d, dims >>= 1) {
    if ((dims & 1) != 0 && !cursor.at_last(d)) return false;
  }
  return true;
}

std::int32_t element(const std::uint8_t* bytes, bool is_16, int index) {
  return is_16 ? bytes[2 * index] | bytes[2 * index + 1] << 8 : bytes[index];
}

// Where in a cell's word product `j` finds its parameter: a byte or a half, beginning at the lane.
int parameter_index(const TensorOperation& op, int lane, int j) {
  if (op.param_16) return op.products == 1 ? lane >> 1 : j;
  return op.products == 4 ? j : (lane + j) & 3;
}

struct Operands {
  std::array<std::int32_t, 4> x{};  // input elements minus their zero point
  std::array<bool, 4> x_known{};
  const Line* line = nullptr;
  int lane = 0;
  const Line* zero_line = nullptr;
};

bool element_is_known(const std::uint8_t* known, bool is_16, int index) {
  return is_16 ? known[2 * index] != 0 && known[2 * index + 1] != 0 : known[index] != 0;
}

// A product is unknown unless both operands are known or one is known to be zero.
bool multiply_add(const TensorOperation& op, const Operands& in, std::int32_t* sums, std::uint8_t* unknown) {
  bool all_known = true;
  for (int c = 0; c < op.cells; ++c) {
    std::int32_t zero = op.param_zero;
    if (in.zero_line != nullptr) std::memcpy(&zero, in.zero_line->bytes.data() + 4 * c, 4);
    auto sum = static_cast<std::uint32_t>(sums[c]);
    for (int j = 0; j < op.products; ++j) {
      const auto k = static_cast<std::size_t>(j);
      const int index = parameter_index(op, in.lane, j);
      const auto w = static_cast<std::int32_t>(
          static_cast<std::uint32_t>(element(in.line->bytes.data() + 4 * c, op.param_16, index)) -
          static_cast<std::uint32_t>(zero));
      const bool w_known = element_is_known(in.line->known.data() + 4 * c, op.param_16, index);
      sum += static_cast<std::uint32_t>(in.x[k]) * static_cast<std::uint32_t>(w);
      const bool is_known = (w_known && in.x_known[k]) || (w_known && w == 0) || (in.x_known[k] && in.x[k] == 0);
      if (!is_known) {
        unknown[c] = 1;
        all_known = false;
      }
    }
    sums[c] = static_cast<std::int32_t>(sum);
  }
  return all_known;
}

bool reduce(const TensorOperation& op, isa::Opcode opcode, const Operands& in, std::int32_t* sums,
            std::uint8_t* unknown) {
  bool all_known = true;
  const auto use = [&](int c, int index) {
    if (!element_is_known(in.line->known.data() + 4 * c, op.param_16, index)) {
      unknown[c] = 1;
      all_known = false;
    }
    return element(in.line->bytes.data() + 4 * c, op.param_16, index);
  };
  for (int c = 0; c < op.cells; ++c) {
    if (opcode == isa::Opcode::kMaximum) {
      sums[c] = std::max(sums[c], use(c, op.param_16 ? in.lane >> 1 : in.lane));
    } else {
      auto sum = static_cast<std::uint32_t>(sums[c]);  // wraps, like products
      for (int j = 0; j < op.products; ++j) sum += static_cast<std::uint32_t>(use(c, parameter_index(op, in.lane, j)));
      sums[c] = static_cast<std::int32_t>(sum);
    }
  }
  return all_known;
}

// Both without branches, so that compilers make vectors of them.
// a + b, saturated.
std::int32_t saturating_sum(std::int32_t a, std::int32_t b) {
  const auto sum = static_cast<std::int32_t>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
  const std::int32_t overflows = (a ^ sum) & (b ^ sum);
  return overflows < 0 ? (a < 0 ? std::numeric_limits<std::int32_t>::min() : std::numeric_limits<std::int32_t>::max())
                       : sum;
}

// From scaled sums to stored numbers, where no table is involved. Values beyond +-2^20 saturate whatever they are, and
// adding 1.5 * 2^23 rounds to the nearest integer, half to even.
void round_plain(const TensorOperation& op, const float* scaled, std::int32_t* values) {
  constexpr float kLimit = 1 << 20, kMagic = 12582912.0f;
  const float low = std::max(op.min, -kLimit), high = std::min(op.max, kLimit);
  const std::int32_t limit = op.out_16 ? 65535 : 255, zero = op.out_zero;
  for (int c = 0; c < op.cells; ++c) {
    const float clamped = std::min(std::max(scaled[c], low), high);
    const auto rounded = static_cast<std::int32_t>((clamped + kMagic) - kMagic);
    values[c] = std::min(std::max(rounded + zero, 0), limit);
  }
}

std::int32_t through_table(const TensorOperation& op, float scaled, const numeric::ChipTable& table) {
  float value = scaled;
  if (op.reciprocal_root) {
    value = numeric::chip_reciprocal_root(table, value);
  } else {
    value = std::min(std::max(value, op.min), op.max);
    if (!op.odd_symmetry) {
      value = table.at(value);
    } else {
      value = value == 0 ? 0.0f : std::copysign(1.0f, value) * table.at(std::fabs(value));
    }
  }
  return numeric::chip_round(value, op.out_zero, op.out_16 ? 65535 : 255);
}

}  // namespace

// One instruction at work on one tile.
struct TensorUnit {
  Chip& chip;
  Tile& tile;
  Unit& unit;
  Running& run;
  TensorRun& work;
  const TensorOperation& op;
  const TensorPlan& plan;
  isa::Opcode opcode;

  void start() {
    run.first = isa::NestCursor(op.loops, 0);
    work.in = isa::NestCursor(op.in, unit.phases.first);
    work.param = isa::NestCursor(op.param, unit.phases.second);
    work.psum = isa::NestCursor(op.psum, 0);
    work.out = isa::NestCursor(op.out, unit.phases.out);
    if (plan.is_regular) {
      work.in_runs = isa::NestCursor(plan.in_runs, unit.phases.first);
      work.param_runs = isa::NestCursor(plan.param_runs, unit.phases.second);
      if (plan.outer_reduced != 0) work.slot_runs = isa::NestCursor(plan.slot_runs, 0);
      step_offsets(op.in, plan.run_steps, work.in_offsets);
      step_offsets(op.param, plan.run_steps, work.param_offsets);
    }
    work.are_stale = false;
    work.width = padded_cells(op.cells);
    work.weights.clear();
    work.sums.assign(static_cast<std::size_t>(slots_of(op, opcode) * work.width), 0);
    work.unknown.clear();
    work.results = 0;
    run.started = true;
  }

  int scaling_buffer(std::int64_t position) const {
    return static_cast<int>((position / op.loops.pass_length(op.scaling_level) + unit.phases.scaling) & 1);
  }

  // ---- Step by step ----

  bool load_input(Operands& operands) const {
    const int bytes = op.products * (op.in_16 ? 2 : 1);
    const std::int64_t address = work.in.address();
    if (!NarrowMemory::holds_bytes(address, bytes))
      return chip.fail(fmt::format("reads byte {} of narrow memory", address));
    for (int j = 0; j < op.products; ++j) {
      const auto k = static_cast<std::size_t>(j);
      operands.x[k] = element(tile.narrow.bytes() + address, op.in_16, j) - op.in_zero;
      operands.x_known[k] = element_is_known(tile.narrow.known() + address, op.in_16, j);
    }
    return true;
  }

  bool load_parameters(Operands& operands) const {
    const std::int64_t address = work.param.address();
    operands.line = chip.load_line(tile, address >> 2);
    operands.lane = static_cast<int>(address & 3);
    if (operands.line == nullptr) return false;
    if (!op.has_zero_line) return true;
    operands.zero_line = chip.load_line(tile, op.zero_line + op.zero_line_step * scaling_buffer(run.first.position()));
    return operands.zero_line != nullptr;
  }

  bool step(std::int64_t slot) {
    if (opcode == isa::Opcode::kResample) return true;
    Operands operands;
    if (opcode == isa::Opcode::kMultiplyAdd && !load_input(operands)) return false;
    if (!load_parameters(operands)) return false;
    if (work.unknown.empty()) work.unknown.resize(work.sums.size());
    std::int32_t* sums = work.sums.data() + slot * work.width;
    std::uint8_t* unknown = work.unknown.data() + slot * work.width;
    const bool all_known = opcode == isa::Opcode::kMultiplyAdd ? multiply_add(op, operands, sums, unknown)
                                                               : reduce(op, opcode, operands, sums, unknown);
    if (!all_known) chip.note_unknown();
    return true;
  }

  bool advance_by_steps(std::int64_t end) {
    if (work.are_stale) {
      work.in.seek(run.first.position());
      work.param.seek(run.first.position());
      work.psum.seek(run.first.position());
      work.are_stale = false;
    }
    while (!run.first.done() && run.first.position() < end) {
      const std::int64_t slot = work.sums.size() > static_cast<std::size_t>(work.width) ? slot_at(op, run.first) : 0;
      if (!step(slot)) return false;
      if (isa::ends_result(op, opcode, run.first, work.psum) && !emit(slot, run.first.position())) return false;
      run.first.advance();
      if (opcode == isa::Opcode::kMultiplyAdd || opcode == isa::Opcode::kResample) work.in.advance();
      if (opcode != isa::Opcode::kResample) work.param.advance();
      work.psum.advance();
    }
    return true;
  }

  // ---- By matrices ----

  // Zero points of the cells' parameters. False: some are not known, or no bytes.
  bool load_zeros(std::int64_t position, std::array<std::int32_t, kMaxCells>& zeros) const {
    zeros.fill(op.param_zero);
    if (!op.has_zero_line) return true;
    const std::int64_t line = op.zero_line + op.zero_line_step * scaling_buffer(position);
    if (!WideMemory::holds(line) || tile.wide.known_bytes(line) < 4 * op.cells) return false;
    std::memcpy(zeros.data(), tile.wide.line(line).bytes.data(), static_cast<std::size_t>(4 * op.cells));
    return std::all_of(zeros.begin(), zeros.begin() + op.cells, [](std::int32_t z) { return z >= 0 && z <= 255; });
  }

  // Operand `index` of a run for all cells: byte `lane` of each word.
  void pack_operand(const std::uint8_t* line, int lane, const std::int32_t* zeros, std::size_t index) const {
    std::int16_t* to = work.weights.data() + index / 2 * 2 * static_cast<std::size_t>(work.width) + index % 2;
    for (int c = 0; c < op.cells; ++c) to[2 * c] = static_cast<std::int16_t>(line[4 * c + lane] - zeros[c]);
  }

  // The usual case, two operands at once.
  void pack_word(const std::uint8_t* line, const std::int32_t* zeros, std::size_t step) const {
    std::int16_t* low = work.weights.data() + step * 4 * static_cast<std::size_t>(work.width);
    std::int16_t* high = low + 2 * work.width;
    for (int c = 0; c < op.cells; ++c) {
      low[2 * c] = static_cast<std::int16_t>(line[4 * c] - zeros[c]);
      low[2 * c + 1] = static_cast<std::int16_t>(line[4 * c + 1] - zeros[c]);
      high[2 * c] = static_cast<std::int16_t>(line[4 * c + 2] - zeros[c]);
      high[2 * c + 1] = static_cast<std::int16_t>(line[4 * c + 3] - zeros[c]);
    }
  }

  // False: some parameter is not known (or out of range), and the slow way is to be taken.
  bool pack_weights(std::int64_t position) {
    const auto size = static_cast<std::size_t>(plan.operands * work.width);
    if (work.weights.size() != size) work.weights.assign(size, 0);
    std::array<std::int32_t, kMaxCells> zeros;
    if (!load_zeros(position, zeros)) return false;
    const std::int64_t base = work.param_runs.address();
    for (std::size_t s = 0; s < work.param_offsets.size(); ++s) {
      const std::int64_t address = base + work.param_offsets[s];
      const std::int64_t line = address >> 2;
      if (!WideMemory::holds(line) || tile.wide.known_bytes(line) < 4 * op.cells) return false;
      const std::uint8_t* bytes = tile.wide.line(line).bytes.data();
      if (op.products == 4) {
        pack_word(bytes, zeros.data(), s);
        continue;
      }
      for (int j = 0; j < op.products; ++j) {
        const int lane = parameter_index(op, static_cast<int>(address & 3), j);
        pack_operand(bytes, lane, zeros.data(),
                     s * static_cast<std::size_t>(op.products) + static_cast<std::size_t>(j));
      }
    }
    return true;
  }

  // The inputs of one run. False: some are not known.
  bool gather(std::int64_t base, std::int16_t* to) const {
    const std::uint8_t* bytes = tile.narrow.bytes();
    const std::uint8_t* known = tile.narrow.known();
    const auto zero = static_cast<std::int16_t>(op.in_zero);
    if (op.products == 4) {
      std::uint32_t all = kAllKnown;
      for (const std::int32_t offset : work.in_offsets) {
        const std::int64_t address = base + offset;
        if (!NarrowMemory::holds_bytes(address, 4)) return false;
        std::uint32_t flags;
        std::memcpy(&flags, known + address, 4);
        all &= flags;
        for (int j = 0; j < 4; ++j) *to++ = static_cast<std::int16_t>(bytes[address + j] - zero);
      }
      return all == kAllKnown;
    }
    std::uint8_t all = 1;
    for (const std::int32_t offset : work.in_offsets) {
      const std::int64_t address = base + offset;
      if (!NarrowMemory::holds_bytes(address, op.products)) return false;
      for (int j = 0; j < op.products; ++j) {
        all &= known[address + j];
        *to++ = static_cast<std::int16_t>(bytes[address + j] - zero);
      }
    }
    if (plan.run_steps * op.products < plan.operands) *to = 0;
    return all == 1;
  }

  // As many whole runs as can be done this way before `end`; returns how many.
  std::int64_t advance_by_runs(std::int64_t end) {
    const std::int64_t first = run.first.position() / plan.run_steps, last = end / plan.run_steps;
    std::int64_t done = first;
    work.in_runs.seek(first);
    while (done < last && chip.failure_.ok()) {
      const std::int64_t batch = std::min({last - done, plan.shared_runs - done % plan.shared_runs, kMaxBatch});
      const bool is_new = done == first || done % plan.shared_runs == 0;
      if (is_new) work.param_runs.seek(done);
      if (is_new && !pack_weights(done * plan.run_steps)) break;
      const std::int64_t rows = run_batch(done, batch);
      done += rows;
      if (rows < batch) break;
    }
    return done - first;
  }

  // Returns how many runs of the batch were done.
  std::int64_t run_batch(std::int64_t first, std::int64_t batch) {
    const auto columns = static_cast<std::size_t>(plan.operands);
    work.inputs.resize(columns * static_cast<std::size_t>(batch));
    std::int64_t rows = 0;
    for (; rows < batch; ++rows) {
      if (!gather(work.in_runs.address(), work.inputs.data() + columns * static_cast<std::size_t>(rows))) break;
      work.in_runs.advance();
    }
    if (plan.outer_reduced != 0) return accumulate(first, rows);
    std::array<std::int32_t, kMaxBatch * kMaxCells> sums;
    std::fill_n(sums.begin(), rows * work.width, 0);
    add_cell_products(work.weights.data(), work.inputs.data(), rows, plan.operands / 2, op.cells, sums.data());
    for (std::int64_t r = 0; r < rows; ++r) {
      if (!emit_sums(sums.data() + r * work.width, nullptr, (first + r) * plan.run_steps, -1)) return r;
    }
    return rows;
  }

  // Partial sums: results under way lie side by side, and are finished in the last pass.
  std::int64_t accumulate(std::int64_t first, std::int64_t rows) {
    const auto columns = static_cast<std::ptrdiff_t>(plan.operands);
    work.slot_runs.seek(first);
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::int64_t slot = work.slot_runs.address();
      add_cell_products(work.weights.data(), work.inputs.data() + r * columns, 1, plan.operands / 2, op.cells,
                        work.sums.data() + slot * work.width);
      if (all_at_last(work.slot_runs, plan.outer_reduced) && !emit(slot, (first + r) * plan.run_steps)) return r;
      work.slot_runs.advance();
    }
    return rows;
  }

  // ---- Results ----

  bool emit(std::int64_t slot, std::int64_t position) {
    std::int32_t* sums = work.sums.data() + slot * work.width;
    std::uint8_t* unknown = work.unknown.empty() ? nullptr : work.unknown.data() + slot * work.width;
    if (!emit_sums(sums, unknown, position, work.psum.address())) return false;
    std::fill_n(sums, work.width, 0);
    if (unknown != nullptr) std::fill_n(unknown, work.width, std::uint8_t{0});
    return true;
  }

  // `psum`: address of the partial sums, where these are results themselves.
  bool emit_sums(const std::int32_t* sums, const std::uint8_t* unknown, std::int64_t position, std::int64_t psum) {
    ResultBytes bytes, known;
    if (opcode == isa::Opcode::kResample) {
      std::fill_n(known.begin(), 4, std::uint8_t{1});
      return resample(bytes.data(), known.data()) && store(bytes.data(), known.data());
    }
    const int buffer = scaling_buffer(position);
    std::array<std::int32_t, kMaxCells> whole, values;
    std::array<float, kMaxCells> scaled;
    // In this order; no evidence tells what saturates in between, and no program comes near.
    const std::int32_t* biases = tile.scaling.biases(buffer);
    for (int c = 0; c < op.cells; ++c) {
      whole[static_cast<std::size_t>(c)] = saturating_sum(sums[c], op.constant);
    }
    for (int c = 0; op.has_bias && c < op.cells; ++c) {
      whole[static_cast<std::size_t>(c)] = saturating_sum(whole[static_cast<std::size_t>(c)], biases[c]);
    }
    const float* scales = tile.scaling.scales(buffer);
    for (int c = 0; c < op.cells; ++c) {
      const auto k = static_cast<std::size_t>(c);
      scaled[k] = static_cast<float>(whole[k]) * (op.has_scales ? scales[c] : op.scale);
    }
    if (!op.activation) {
      round_plain(op, scaled.data(), values.data());
    } else {
      if (!tile.table) return chip.fail("applies an activation table that was never loaded");
      for (std::size_t c = 0; c < static_cast<std::size_t>(op.cells); ++c)
        values[c] = through_table(op, scaled[c], *tile.table);
    }
    put_values(values.data(), bytes.data());
    put_known(unknown, buffer, known.data());
    // The sums themselves are results where they live in wide memory and nothing of this instruction is a weight.
    if (op.sums_are_results() && !store_sums(whole, unknown, psum >> 2)) {
      return false;
    }
    return store(bytes.data(), known.data());
  }

  void put_values(const std::int32_t* values, std::uint8_t* bytes) const {
    if (op.out_16) {
      for (int c = 0; c < op.cells; ++c) {
        bytes[2 * c] = static_cast<std::uint8_t>(values[c]);
        bytes[2 * c + 1] = static_cast<std::uint8_t>(values[c] >> 8);
      }
    } else {
      for (int c = 0; c < op.cells; ++c) bytes[c] = static_cast<std::uint8_t>(values[c]);
    }
    const int end = op.cells * (op.out_16 ? 2 : 1);
    std::fill(bytes + end, bytes + 4 * op.out_words, std::uint8_t{0});
  }

  void put_known(const std::uint8_t* unknown, int buffer, std::uint8_t* known) const {
    const int size = op.out_16 ? 2 : 1;
    std::fill(known, known + 4 * op.out_words, std::uint8_t{1});
    std::uint64_t used = op.cells == kMaxCells ? ~std::uint64_t{0} : (std::uint64_t{1} << op.cells) - 1;
    std::uint64_t missing = 0;
    if (op.has_bias) missing |= used & ~tile.scaling.known_biases(buffer);
    if (op.has_scales) missing |= used & ~tile.scaling.known_scales(buffer);
    if (missing == 0 && unknown == nullptr) return;
    for (int c = 0; c < op.cells; ++c) {
      if ((missing >> c & 1) != 0 || (unknown != nullptr && unknown[c] != 0)) {
        std::fill_n(known + c * size, size, std::uint8_t{0});
      }
    }
  }

  bool store_sums(const std::array<std::int32_t, kMaxCells>& sums, const std::uint8_t* unknown, std::int64_t line) {
    if (!WideMemory::holds(line)) return chip.fail(fmt::format("writes line {} of wide memory", line));
    std::array<std::uint8_t, 4 * kMaxCells> known{};
    for (int c = 0; c < op.cells; ++c) {
      std::fill_n(known.begin() + 4 * c, 4, static_cast<std::uint8_t>(unknown == nullptr || unknown[c] == 0 ? 1 : 0));
    }
    tile.wide.set_words(line, sums.data(), known.data(), op.cells);
    return true;
  }

  // The words of a result that the output nest does not clip, several at once where they lie side by side.
  bool store(const std::uint8_t* bytes, const std::uint8_t* known) {
    const std::int64_t begin = work.results * op.out_words, end = begin + op.out_words;
    if (work.out.done()) return chip.fail("it has more results than the nest they are stored by");
    while (!work.out.done() && work.out.position() < end) {
      const std::int64_t word = work.out.position() - begin;
      const std::int64_t words =
          op.out.stride[0] == 4 ? std::min(work.out.run(), op.out_words - word) : std::int64_t{1};
      const std::int64_t address = work.out.address();
      if (!NarrowMemory::holds_bytes(address, 4 * words)) {
        return chip.fail(fmt::format("writes byte {} of narrow memory", address));
      }
      tile.narrow.set_bytes(address, bytes + 4 * word, known + 4 * word, static_cast<std::size_t>(4 * words));
      work.out.advance(words);
    }
    ++work.results;
    return true;
  }

  bool resample(std::uint8_t* out, std::uint8_t* known) const;

  // ---- All of it ----

  bool advance(std::int64_t end) {
    const std::int64_t from = run.first.position(), from_out = work.out.position();
    // Regular instructions have no clips: all nests are at the same position.
    const std::int64_t from_param = plan.is_regular ? from : work.param.position();
    while (!run.first.done() && run.first.position() < end) {
      const std::int64_t position = run.first.position();
      std::int64_t next = end;
      if (plan.is_regular) {
        const std::int64_t aligned = (position + plan.run_steps - 1) / plan.run_steps * plan.run_steps;
        if (aligned == position && end - position >= plan.run_steps) {
          const std::int64_t runs = advance_by_runs(end);
          if (!chip.failure_.ok()) return false;
          if (runs > 0) {
            run.first.seek(position + runs * plan.run_steps);
            work.are_stale = true;
            continue;
          }
          next = position + plan.run_steps;  // a run with something unknown in it
        } else {
          next = std::min(end, aligned == position ? end : aligned);
        }
      }
      if (!advance_by_steps(next)) return false;
    }
    if (!chip.spend(run.first.position() - from)) return false;
    const std::int64_t to_param = plan.is_regular ? run.first.position() : work.param.position();
    chip.count(tile, op.avdata, signalled(op.avdata, op.out, from_out, work.out.position()));
    if (opcode != isa::Opcode::kResample) {
      chip.count(tile, op.parameters, signalled(op.parameters, op.param, from_param, to_param));
    }
    if (chip.observer_ != nullptr) {
      chip.observer_->computed(
          {&tile, &run, from, run.first.position(), from_param, to_param, from_out, work.out.position()});
    }
    return true;
  }

  void finish() {
    unit.phases.scaling += op.loops.passes(op.scaling_level);
    unit.phases.out += op.out.buffer_passes();
    chip.finish(tile, unit, &op.in, &op.param);
  }
};

// Enlarges a picture: 4 channels of one output pixel from the nearest or the four surrounding input pixels.
bool TensorUnit::resample(std::uint8_t* out, std::uint8_t* known) const {
  const std::int64_t j = work.results;
  const std::int64_t columns = op.loops.count[2], rows = op.loops.count[3];
  const std::int64_t px = op.x.phase + 2 * (j % columns), py = op.y.phase + 2 * (j / columns % rows);
  const std::int64_t fx = 2 * op.x.factor, fy = 2 * op.y.factor;
  const std::int64_t x0 = op.x.nearest ? (px + op.x.factor) / fx : px / fx;
  const std::int64_t y0 = op.x.nearest ? (py + op.y.factor) / fy : py / fy;
  const std::int64_t wx = px % fx * 128 / fx, wy = py % fy * 128 / fy;
  const int taps = op.x.nearest ? 1 : 2;
  std::array<std::int64_t, 4> sums{};
  for (int ty = 0; ty < taps; ++ty) {
    for (int tx = 0; tx < taps; ++tx) {
      const std::int64_t weight = op.x.nearest ? 1 : (tx == 0 ? 128 - wx : wx) * (ty == 0 ? 128 - wy : wy);
      const std::int64_t address = work.in.address() + (x0 + tx) * op.pixel_stride + (y0 + ty) * op.row_stride;
      if (!NarrowMemory::holds_bytes(address, 4))
        return chip.fail(fmt::format("reads byte {} of narrow memory", address));
      for (std::size_t c = 0; c < 4; ++c) {
        sums[c] += weight * tile.narrow.bytes()[address + static_cast<std::int64_t>(c)];
        if (weight != 0 && tile.narrow.known()[address + static_cast<std::int64_t>(c)] == 0) known[c] = 0;
      }
    }
  }
  for (std::size_t c = 0; c < 4; ++c) {
    const float value = op.x.nearest ? static_cast<float>(sums[c]) : static_cast<float>(sums[c]) * op.scale;
    out[c] = static_cast<std::uint8_t>(numeric::chip_round(value, 0, 255));
  }
  return true;
}

void Chip::note_unknown() {
  if (first_unknown_.empty()) first_unknown_ = fmt::format("{} of tile {}", place(failing_index_), failing_tile_);
}

bool Chip::tensor(Tile& tile, Unit& unit) {
  Running& run = *unit.running;
  const auto& op = std::get<TensorOperation>(run.operation->code);
  if (!unit.tensor) unit.tensor = std::make_shared<TensorRun>();
  TensorUnit work{*this, tile, unit, run, *unit.tensor, op, program_->plans[run.index], run.operation->opcode};
  if (!run.started) work.start();
  const std::int64_t end =
      affordable(run.first.position(), permitted_end(op.loops, op.waits, tile.counters, run.first.position()));
  if (end <= run.first.position()) return false;
  if (!work.advance(end)) return false;
  if (run.first.done()) {
    if (!unit.tensor->out.done()) return fail("its results do not fill the nest they are stored by");
    work.finish();
  }
  return true;
}

}  // namespace reef::device
