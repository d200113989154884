// SPDX-License-Identifier: Apache-2.0
// Multiply-add, maximum, sum and resample: the arithmetic of a tile.
//
// An instruction makes its steps in order. A step adds the products of a few input elements with the parameters of each
// cell; a group of steps makes one result of `cells` elements. Which steps form a group: see TensorOperation.
#include "execute/device/tensor_unit.h"

#include <algorithm>

#include "execute/device/waits.h"
#include "numeric/chip_tensor.h"

namespace reef::device {
namespace {

using isa::TensorOperation;

constexpr int kMaxCells = chip::kCells;

// Dimensions that are summed, if they are the innermost ones: then one result is under way at a time.
bool reduces_innermost(const TensorOperation& op, isa::Opcode opcode) {
  if (op.group_level >= 0 || opcode == isa::Opcode::kResample) return true;
  return (op.reduce_dims & (op.reduce_dims + 1)) == 0;
}

std::int64_t slots_of(const TensorOperation& op, isa::Opcode opcode) {
  if (reduces_innermost(op, opcode)) return 1;
  std::int64_t slots = 1;
  for (int d = 0; d < op.loops.dims; ++d) {
    if ((op.reduce_dims >> d & 1) == 0) slots *= op.loops.count[static_cast<std::size_t>(d)];
  }
  return slots;
}

std::int64_t slot_at(const TensorOperation& op, const isa::NestCursor& loops) {
  std::int64_t slot = 0, size = 1;
  for (int d = 0; d < op.loops.dims; ++d) {
    if ((op.reduce_dims >> d & 1) != 0) continue;
    slot += size * loops.index(d);
    size *= op.loops.count[static_cast<std::size_t>(d)];
  }
  return slot;
}

// Before the cursors move on: whether this step is the last of its result.
bool ends_result(const TensorOperation& op, isa::Opcode opcode, const isa::NestCursor& loops,
                 const isa::NestCursor& psum) {
  if (opcode == isa::Opcode::kResample) return loops.at_last(0) && loops.at_last(1);
  if (op.group_level >= 0) {
    for (int d = 0; d < std::min(op.group_level, op.psum.dims); ++d) {
      if (!psum.at_last(d)) return false;
    }
    return true;
  }
  for (int d = 0; d < op.loops.dims; ++d) {
    if ((op.reduce_dims >> d & 1) != 0 && !loops.at_last(d)) return false;
  }
  return true;
}

std::int32_t element(const std::uint8_t* bytes, bool is_16, int index) {
  return is_16 ? bytes[2 * index] | bytes[2 * index + 1] << 8 : bytes[index];
}

// The parameter that product `j` of a cell uses: a byte or a half of the cell's word, beginning at the lane.
std::int32_t parameter(const std::uint8_t* word, const TensorOperation& op, int lane, int j) {
  if (op.param_16) return element(word, true, op.products == 1 ? lane >> 1 : j);
  return word[op.products == 4 ? j : (lane + j) & 3];
}

struct Operands {
  std::array<std::int32_t, 4> x{};  // input elements minus their zero point
  const std::uint8_t* line = nullptr;
  int lane = 0;
  const std::uint8_t* zero_line = nullptr;
};

void multiply_add(const TensorOperation& op, const Operands& in, std::int32_t* sums) {
  for (int c = 0; c < op.cells; ++c) {
    std::int32_t zero = op.param_zero;
    if (in.zero_line != nullptr) std::memcpy(&zero, in.zero_line + 4 * c, 4);
    auto sum = static_cast<std::uint32_t>(sums[c]);
    for (int j = 0; j < op.products; ++j) {
      const std::int32_t w = parameter(in.line + 4 * c, op, in.lane, j) - zero;
      sum += static_cast<std::uint32_t>(in.x[static_cast<std::size_t>(j)]) * static_cast<std::uint32_t>(w);
    }
    sums[c] = static_cast<std::int32_t>(sum);
  }
}

// The usual case: 4 bytes times 4 bytes, one zero point.
void multiply_add_bytes(const TensorOperation& op, const Operands& in, std::int32_t* sums) {
  const std::int32_t x0 = in.x[0], x1 = in.x[1], x2 = in.x[2], x3 = in.x[3];
  const std::int32_t base = -op.param_zero * (x0 + x1 + x2 + x3);
  const std::uint8_t* w = in.line;
  for (int c = 0; c < op.cells; ++c, w += 4) sums[c] += base + x0 * w[0] + x1 * w[1] + x2 * w[2] + x3 * w[3];
}

void reduce(const TensorOperation& op, isa::Opcode opcode, const Operands& in, std::int32_t* sums) {
  for (int c = 0; c < op.cells; ++c) {
    const std::uint8_t* word = in.line + 4 * c;
    if (opcode == isa::Opcode::kMaximum) {
      const std::int32_t value = op.param_16 ? element(word, true, in.lane >> 1) : word[in.lane];
      sums[c] = std::max(sums[c], value);
    } else {
      for (int j = 0; j < op.products; ++j) sums[c] += parameter(word, op, in.lane, j);
    }
  }
}

// From a finished sum to the stored number.
std::int32_t result_of(const TensorOperation& op, std::int64_t sum, float scale, const numeric::ChipTable* table) {
  float value = static_cast<float>(numeric::chip_saturate(sum)) * scale;
  if (op.activation && op.reciprocal_root) {
    value = numeric::chip_reciprocal_root(*table, value);
  } else {
    value = std::min(std::max(value, op.min), op.max);
    if (op.activation) {
      if (!op.odd_symmetry) {
        value = table->at(value);
      } else {
        value = value == 0 ? 0.0f : std::copysign(1.0f, value) * table->at(std::fabs(value));
      }
    }
  }
  return numeric::chip_round(value, op.out_zero, op.out_16 ? 65535 : 255);
}

}  // namespace

// Access to the chip for the functions below.
struct TensorUnit {
  Chip& chip;
  Tile& tile;
  Unit& unit;
  Running& run;
  TensorRun& work;
  const TensorOperation& op;
  isa::Opcode opcode;

  void start() {
    run.first = isa::NestCursor(op.loops, 0);
    work.in = isa::NestCursor(op.in, unit.phases.first);
    work.param = isa::NestCursor(op.param, unit.phases.second);
    work.psum = isa::NestCursor(op.psum, 0);
    work.out = isa::NestCursor(op.out, unit.phases.out);
    work.slots = slots_of(op, opcode);
    work.sums.assign(static_cast<std::size_t>(work.slots * op.cells), 0);
    work.results = 0;
    run.header_done = true;
  }

  int scaling_buffer() const {
    return static_cast<int>((run.first.position() / op.loops.pass_length(op.scaling_level) + unit.phases.scaling) & 1);
  }

  bool load_input(Operands& operands) const {
    const int bytes = op.products * (op.in_16 ? 2 : 1);
    const std::int64_t address = work.in.address();
    if (!NarrowMemory::holds_bytes(address, bytes))
      return chip.fail(fmt::format("reads byte {} of narrow memory", address));
    if (chip.options_.check_unwritten) {
      for (std::int64_t w = address / 4; w <= (address + bytes - 1) / 4; ++w) {
        if (!tile.narrow.is_written(w)) {
          return chip.fail(fmt::format("reads byte {} of narrow memory, which nothing wrote", address));
        }
      }
    }
    const std::uint8_t* data = tile.narrow.data() + address;
    for (int j = 0; j < op.products; ++j) {
      operands.x[static_cast<std::size_t>(j)] = element(data, op.in_16, j) - op.in_zero;
    }
    return true;
  }

  bool load_parameters(Operands& operands) const {
    const std::int64_t address = work.param.address();
    operands.line = chip.load_line(tile, address >> 2);
    operands.lane = static_cast<int>(address & 3);
    if (operands.line == nullptr) return false;
    if (!op.has_zero_line) return true;
    operands.zero_line = chip.load_line(tile, op.zero_line + op.zero_line_step * scaling_buffer());
    return operands.zero_line != nullptr;
  }

  bool step(std::int32_t* sums) {
    Operands operands;
    if (opcode == isa::Opcode::kResample) return true;
    if (opcode == isa::Opcode::kMultiplyAdd && !load_input(operands)) return false;
    if (!load_parameters(operands)) return false;
    if (opcode != isa::Opcode::kMultiplyAdd) {
      reduce(op, opcode, operands, sums);
    } else if (op.products == 4 && !op.has_zero_line) {
      multiply_add_bytes(op, operands, sums);
    } else {
      multiply_add(op, operands, sums);
    }
    return true;
  }

  bool emit(std::int32_t* sums) {
    std::array<std::uint8_t, 2 * kMaxCells + 4> bytes{};
    if (opcode == isa::Opcode::kResample) {
      if (!resample(bytes.data())) return false;
    } else {
      if (op.activation && tile.table == nullptr) return chip.fail("applies an activation table that was never loaded");
      numeric::ChipTable table;
      if (op.activation) table = {tile.table->segments, tile.table->breaks};
      const int buffer = scaling_buffer();
      std::array<std::int32_t, kMaxCells> whole{};
      for (int c = 0; c < op.cells; ++c) {
        const std::int64_t sum = std::int64_t{sums[c]} + op.constant + (op.has_bias ? tile.scaling.bias(buffer, c) : 0);
        whole[static_cast<std::size_t>(c)] = numeric::chip_saturate(sum);
        const float scale = op.has_scales ? tile.scaling.scale(buffer, c) : op.scale;
        const std::int32_t value = result_of(op, sum, scale, &table);
        if (op.out_16) {
          bytes[static_cast<std::size_t>(2 * c)] = static_cast<std::uint8_t>(value);
          bytes[static_cast<std::size_t>(2 * c + 1)] = static_cast<std::uint8_t>(value >> 8);
        } else {
          bytes[static_cast<std::size_t>(c)] = static_cast<std::uint8_t>(value);
        }
        sums[c] = 0;
      }
      // The sums themselves are kept where they live in wide memory and nothing else reads them as weights.
      if (!op.accumulate_inside && op.param_16 && !op.in_16 && !op.static_params) {
        const std::int64_t line = work.psum.address() >> 2;
        if (!WideMemory::holds(line)) return chip.fail(fmt::format("writes line {} of wide memory", line));
        std::memcpy(tile.wide.mutable_line(line), whole.data(), static_cast<std::size_t>(4 * op.cells));
      }
    }
    return store(bytes.data());
  }

  // The words of a result that the output nest does not clip.
  bool store(const std::uint8_t* bytes) {
    const std::int64_t end = (work.results + 1) * op.out_words;
    while (!work.out.done() && work.out.position() < end) {
      const std::int64_t word = work.out.position() - work.results * op.out_words;
      const std::int64_t address = work.out.address();
      if (!NarrowMemory::holds_bytes(address, 4))
        return chip.fail(fmt::format("writes byte {} of narrow memory", address));
      tile.narrow.set_bytes(address, bytes + 4 * word, 4);
      work.out.advance();
    }
    ++work.results;
    return true;
  }

  bool resample(std::uint8_t* out) const;

  bool advance(std::int64_t end) {
    const std::int64_t from = run.first.position(), from_param = work.param.position(), from_out = work.out.position();
    while (!run.first.done() && run.first.position() < end) {
      std::int32_t* sums = work.sums.data();
      if (work.slots > 1) sums += slot_at(op, run.first) * op.cells;
      if (!step(sums)) return false;
      if (ends_result(op, opcode, run.first, work.psum) && !emit(sums)) return false;
      run.first.advance();
      if (opcode == isa::Opcode::kMultiplyAdd || opcode == isa::Opcode::kResample) work.in.advance();
      if (opcode != isa::Opcode::kResample) work.param.advance();
      work.psum.advance();
    }
    if (!chip.spend(run.first.position() - from)) return false;
    chip.count(tile, op.avdata, signalled(op.avdata, op.out, from_out, work.out.position()));
    if (opcode != isa::Opcode::kResample) {
      chip.count(tile, op.parameters, signalled(op.parameters, op.param, from_param, work.param.position()));
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
bool TensorUnit::resample(std::uint8_t* out) const {
  const auto taps = op.loops.count[0] * op.loops.count[1];
  const std::int64_t j = work.results;
  const std::int64_t columns = op.loops.count[2], rows = op.loops.count[3];
  const std::int64_t px = op.x.phase + 2 * (j % columns), py = op.y.phase + 2 * (j / columns % rows);
  const std::int64_t fx = 2 * op.x.factor, fy = 2 * op.y.factor;
  const std::int64_t base = work.in.address();  // all taps of a result start at one address
  const auto at = [&](std::int64_t x, std::int64_t y) { return base + x * op.pixel_stride + y * op.row_stride; };
  const auto readable = [&](std::int64_t address) { return NarrowMemory::holds_bytes(address, 4); };
  (void)taps;
  if (op.x.nearest) {
    const std::int64_t address = at((px + op.x.factor) / fx, (py + op.y.factor) / fy);
    if (!readable(address)) return chip.fail(fmt::format("reads byte {} of narrow memory", address));
    std::copy_n(tile.narrow.data() + address, 4, out);
    return true;
  }
  const std::int64_t x0 = px / fx, y0 = py / fy, wx = px % fx * 128 / fx, wy = py % fy * 128 / fy;
  if (!readable(at(x0, y0)) || !readable(at(x0 + 1, y0 + 1))) return chip.fail("reads beyond narrow memory");
  const std::uint8_t* data = tile.narrow.data();
  for (int c = 0; c < 4; ++c) {
    const auto pixel = [&](std::int64_t x, std::int64_t y) { return std::int64_t{data[at(x, y) + c]}; };
    const std::int64_t top = pixel(x0, y0) * (128 - wx) + pixel(x0 + 1, y0) * wx;
    const std::int64_t bottom = pixel(x0, y0 + 1) * (128 - wx) + pixel(x0 + 1, y0 + 1) * wx;
    const auto sum = static_cast<float>(top * (128 - wy) + bottom * wy);
    out[c] = static_cast<std::uint8_t>(numeric::chip_round(sum * op.scale, 0, 255));
  }
  return true;
}

bool Chip::tensor(Tile& tile, Unit& unit) {
  Running& run = *unit.running;
  const auto& op = std::get<TensorOperation>(run.operation->code);
  if (!unit.tensor) unit.tensor = std::make_shared<TensorRun>();
  TensorUnit work{*this, tile, unit, run, *unit.tensor, op, run.operation->opcode};
  if (!run.header_done) work.start();
  const std::int64_t end = permitted_end(op.loops, op.waits, tile.counters, run.first.position());
  if (end <= run.first.position()) return false;
  if (!work.advance(end)) return false;
  if (run.first.done()) work.finish();
  return true;
}

}  // namespace reef::device
