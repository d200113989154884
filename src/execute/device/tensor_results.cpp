// SPDX-License-Identifier: Apache-2.0
// From sums to results in narrow memory.
#include <algorithm>
#include <cmath>

#include "execute/device/cell_results.h"
#include "execute/device/results_otherwise.h"
#include "execute/device/tensor_unit.h"
#include "numeric/chip_tensor.h"

namespace reef::device {
namespace {

using isa::TensorOperation;

constexpr std::size_t kMaxNumbers = (TensorUnit::kMaxBatch + 1) * TensorUnit::kMaxCells;

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

template <typename Value>
void all_through_table(const TensorOperation& op, const float* scaled, std::int64_t count,
                       const numeric::ChipTable& table, Value* values) {
  for (std::int64_t i = 0; i < count; ++i) values[i] = static_cast<Value>(through_table(op, scaled[i], table));
}

// Numbers of the cells, repeated to a multiple of 8.
struct Pattern {
  std::ptrdiff_t size = 0;
  std::array<std::int32_t, 2 * chip::kCells> biases;
  std::array<float, 2 * chip::kCells> scales;
};

Pattern pattern_of(const TensorOperation& op, int width, const ScalingMemory& scaling, int buffer) {
  Pattern pattern;
  pattern.size = width % 8 == 0 ? width : 2 * width;
  const auto size = static_cast<std::size_t>(pattern.size), cells = static_cast<std::size_t>(width);
  if (op.has_bias) {
    std::copy_n(scaling.biases(buffer), cells, pattern.biases.begin());
    std::copy_n(pattern.biases.begin(), size - cells, pattern.biases.begin() + width);
  } else {
    std::fill_n(pattern.biases.begin(), size, 0);
  }
  if (op.has_scales) {
    std::copy_n(scaling.scales(buffer), cells, pattern.scales.begin());
    std::copy_n(pattern.scales.begin(), size - cells, pattern.scales.begin() + width);
  } else {
    std::fill_n(pattern.scales.begin(), size, op.scale);
  }
  return pattern;
}

}  // namespace

bool TensorUnit::emit(std::int64_t slot, std::int64_t position) {
  std::int32_t* sums = work.sums.data() + slot * work.width;
  std::int32_t* unknown = work.unknown.empty() ? nullptr : work.unknown.data() + slot * work.width;
  std::array<std::int32_t, 2 * kMaxCells> copy;
  std::copy_n(sums, work.width, copy.begin());
  if (emit_rows(copy.data(), unknown, 1, position, 1) == 0) return false;
  std::fill_n(sums, work.width, 0);
  if (unknown != nullptr) std::fill_n(unknown, work.width, 0);
  return true;
}

std::int64_t TensorUnit::emit_rows(std::int32_t* sums, const std::int32_t* unknown, std::int64_t rows,
                                   std::int64_t position, std::int64_t distance) {
  const std::int64_t pass = op.loops.pass_length(op.scaling_level);
  for (std::int64_t r = 0; r < rows;) {
    const std::int64_t at = position + r * distance;
    const std::int64_t left_of_pass = pass - at % pass;  // steps; rows that begin within it use the same buffer
    const std::int64_t same = std::min(rows - r, (left_of_pass + distance - 1) / distance);
    const std::int64_t before = work.results;
    // The row after these is overwritten if it pads them: it is one of the next group.
    std::array<std::int32_t, kMaxCells> next;
    std::int32_t* end = sums + (r + same) * work.width;
    if (r + same < rows) std::copy_n(end, work.width, next.begin());
    if (!emit_same_scaling(sums + r * work.width, unknown == nullptr ? nullptr : unknown + r * work.width, same,
                           scaling_buffer(at))) {
      return r + std::max<std::int64_t>(work.results - before - 1, 0);
    }
    if (r + same < rows) std::copy_n(next.begin(), work.width, end);
    r += same;
  }
  return rows;
}

bool TensorUnit::emit_same_scaling(std::int32_t* sums, const std::int32_t* unknown, std::int64_t rows, int buffer) {
  const Pattern pattern = pattern_of(op, work.width, tile.scaling, buffer);
  const std::int32_t limit = op.out_16 ? 65535 : 255;
  const ResultRule rule{
      pattern.size, pattern.biases.data(), pattern.scales.data(), op.constant, op.min, op.max, op.out_zero, limit};
  // An odd row of a pattern for two is padded.
  const std::int64_t numbers = rows * work.width, padded = (numbers + pattern.size - 1) / pattern.size * pattern.size;
  std::fill(sums + numbers, sums + padded, 0);
  std::array<std::uint8_t, 2 * kMaxNumbers> bytes;
  auto* halves = reinterpret_cast<std::uint16_t*>(bytes.data());
  const bool is_otherwise = is_about_results(chip.doubted());
  const bool sums_are_whole = op.activation || op.sums_are_results();  // the constants are added to them here
  if (sums_are_whole) add_constants(rule, sums, padded, sums);
  if (is_otherwise && (!op.activation || tile.table)) {
    ResultsOtherwise results{chip.doubted(), op, rule, sums_are_whole, tile.table ? &*tile.table : nullptr};
    op.out_16 ? results.put(sums, numbers, halves) : results.put(sums, numbers, bytes.data());
  } else if (op.activation) {
    if (!tile.table) return fail("applies an activation table that was never loaded");
    std::array<float, kMaxNumbers> scaled;
    scale_sums(rule, sums, padded, scaled.data());
    op.out_16 ? all_through_table(op, scaled.data(), numbers, *tile.table, halves)
              : all_through_table(op, scaled.data(), numbers, *tile.table, bytes.data());
  } else {
    ResultRule rest = rule;
    std::array<std::int32_t, 2 * chip::kCells> none{};
    if (op.sums_are_results()) {
      rest.constant = 0;
      rest.biases = none.data();
    }
    op.out_16 ? round_sums(rest, sums, padded, halves) : round_sums(rest, sums, padded, bytes.data());
  }
  const std::uint64_t used = op.cells == kMaxCells ? ~std::uint64_t{0} : (std::uint64_t{1} << op.cells) - 1;
  std::uint64_t missing = 0;
  if (op.has_bias) missing |= used & ~tile.scaling.known_biases(buffer);
  if (op.has_scales) missing |= used & ~tile.scaling.known_scales(buffer);
  const int size = op.out_16 ? 2 : 1, end = op.cells * size;
  std::array<std::uint8_t, 2 * kMaxCells + 4> known;
  for (std::int64_t r = 0; r < rows; ++r) {
    std::uint8_t* row = bytes.data() + r * work.width * size;
    std::fill(row + end, row + 4 * op.out_words, std::uint8_t{0});
    const std::int32_t* row_unknown = unknown == nullptr ? nullptr : unknown + r * work.width;
    const bool all_known = missing == 0 && unknown == nullptr && !doubts(Belief::kZeroPadding);
    if (!all_known) put_known(row_unknown, missing, known.data());
    // The sums themselves are results where they live in wide memory and nothing of this instruction is a weight.
    if (op.sums_are_results() && !doubts(Belief::kSumsInWideMemory) &&
        !store_sums(sums + r * work.width, row_unknown, work.psum.address() >> 2)) {
      return false;
    }
    if (!store(row, all_known ? nullptr : known.data())) return false;
  }
  return true;
}

void TensorUnit::put_known(const std::int32_t* unknown, std::uint64_t missing, std::uint8_t* known) const {
  const int size = op.out_16 ? 2 : 1;
  std::fill(known, known + 4 * op.out_words, std::uint8_t{1});
  if (doubts(Belief::kZeroPadding)) std::fill(known + op.cells * size, known + 4 * op.out_words, std::uint8_t{0});
  for (int c = 0; c < op.cells; ++c) {
    if ((missing >> c & 1) != 0 || (unknown != nullptr && unknown[c] != 0)) {
      std::fill_n(known + c * size, size, std::uint8_t{0});
    }
  }
}

bool TensorUnit::store_sums(const std::int32_t* sums, const std::int32_t* unknown, std::int64_t line) {
  if (!WideMemory::holds(line)) return fail(fmt::format("writes line {} of wide memory", line));
  std::array<std::uint8_t, 4 * kMaxCells> known{};
  for (int c = 0; c < op.cells; ++c) {
    std::fill_n(known.begin() + 4 * c, 4, static_cast<std::uint8_t>(unknown == nullptr || unknown[c] == 0 ? 1 : 0));
  }
  tile.wide.set_words(line, sums, known.data(), op.cells);
  return true;
}

// The words of a result that the output nest does not clip, several at once where they lie side by side. `known` may be
// null: all of them are.
bool TensorUnit::store(const std::uint8_t* bytes, const std::uint8_t* known) {
  const std::int64_t begin = work.results * op.out_words, end = begin + op.out_words;
  ++work.results;
  if (work.out.done()) return fail("it has more results than the nest they are stored by");
  while (!work.out.done() && work.out.position() < end) {
    const std::int64_t word = work.out.position() - begin;
    const std::int64_t words = op.out.stride[0] == 4 ? std::min(work.out.run(), op.out_words - word) : std::int64_t{1};
    const std::int64_t address = work.out.address();
    if (!NarrowMemory::holds_bytes(address, 4 * words)) {
      return fail(fmt::format("writes byte {} of narrow memory", address));
    }
    const auto count = static_cast<std::size_t>(4 * words);
    if (known == nullptr) {
      tile.narrow.set_bytes(address, bytes + 4 * word, count);
    } else {
      tile.narrow.set_bytes(address, bytes + 4 * word, known + 4 * word, count);
    }
    work.out.advance(words);
  }
  return true;
}

// Enlarges a picture: 4 channels of one output pixel from the nearest or the four surrounding input pixels.
bool TensorUnit::resample() {
  const std::int64_t j = work.results;
  const std::int64_t columns = op.loops.count[2], rows = op.loops.count[3];
  const std::int64_t px = op.x.phase + 2 * (j % columns), py = op.y.phase + 2 * (j / columns % rows);
  const std::int64_t fx = 2 * op.x.factor, fy = 2 * op.y.factor;
  const std::int64_t x0 = op.x.nearest ? (px + op.x.factor) / fx : px / fx;
  const std::int64_t y0 = op.x.nearest ? (py + op.y.factor) / fy : py / fy;
  const std::int64_t wx = px % fx * 128 / fx, wy = py % fy * 128 / fy;
  const int taps = op.x.nearest ? 1 : 2;
  // Positions count from where the result's first tap points; the nest stands at its last one.
  std::int64_t origin = work.in.address();
  for (const std::size_t d : {std::size_t{0}, std::size_t{1}}) {
    origin -= static_cast<std::int64_t>(op.in.stride[d]) * (op.in.count[d] - 1);
  }
  std::array<std::int64_t, 4> sums{};
  std::array<std::uint8_t, 4> out{}, known = {1, 1, 1, 1};
  for (int ty = 0; ty < taps; ++ty) {
    for (int tx = 0; tx < taps; ++tx) {
      const std::int64_t weight = op.x.nearest ? 1 : (tx == 0 ? 128 - wx : wx) * (ty == 0 ? 128 - wy : wy);
      const std::int64_t address = origin + (x0 + tx) * op.pixel_stride + (y0 + ty) * op.row_stride;
      if (!NarrowMemory::holds_bytes(address, 4)) return fail(fmt::format("reads byte {} of narrow memory", address));
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
  return store(out.data(), known.data());
}

}  // namespace reef::device
