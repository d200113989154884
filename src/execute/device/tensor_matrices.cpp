// SPDX-License-Identifier: Apache-2.0
// Regular multiply-adds as matrix products.
//
// Weights are packed once for all runs that share them; the inputs of up to 64 runs are rows of a matrix. Where
// operands are unknown, two more products of zeros and ones count for each result how many of its products are:
// unknown weights times inputs that are not known to be zero, and known weights that are not zero times unknown inputs.
#include <algorithm>
#include <cstring>

#include "execute/device/tensor_unit.h"
#include "execute/device/vector_code.h"

namespace reef::device {
namespace {

bool all_at_last(const isa::NestCursor& cursor, std::uint32_t dims) {
  for (int d = 0; dims != 0; ++d, dims >>= 1) {
    if ((dims & 1) != 0 && !cursor.at_last(d)) return false;
  }
  return true;
}

std::int32_t parameter(const std::uint8_t* word, bool is_16, int index) {
  return is_16 ? word[2 * index] | word[2 * index + 1] << 8 : word[index];
}

// to[i] = bytes[i] - zero
REEF_VECTOR_BODY void widen_body(const std::uint8_t* bytes, std::ptrdiff_t count, std::int16_t zero, std::int16_t* to) {
  for (std::ptrdiff_t i = 0; i < count; ++i) to[i] = static_cast<std::int16_t>(bytes[i] - zero);
}

// Four operands of each cell, which lie side by side: to pairs [2][width][2].
REEF_VECTOR_BODY void pack_words_body(const std::uint8_t* line, const std::int16_t* zeros, int width,
                                      std::int16_t* to) {
  using Bytes = std::uint8_t __attribute__((vector_size(16)));
  using Numbers = std::int16_t __attribute__((vector_size(32)));
  using Pairs = std::uint32_t __attribute__((vector_size(32)));
  using HalfPairs = std::uint32_t __attribute__((vector_size(16)));
  for (int c = 0; c < width; c += kCellBlock) {
    Bytes bytes;
    Numbers zero;
    std::memcpy(&bytes, line + 4 * c, sizeof(bytes));
    std::memcpy(&zero, zeros + 4 * c, sizeof(zero));
    const Pairs pairs = (Pairs)(__builtin_convertvector(bytes, Numbers) - zero);
    const HalfPairs first = {pairs[0], pairs[2], pairs[4], pairs[6]};
    const HalfPairs second = {pairs[1], pairs[3], pairs[5], pairs[7]};
    std::memcpy(to + 2 * c, &first, sizeof(first));
    std::memcpy(to + 2 * (width + c), &second, sizeof(second));
  }
}

}  // namespace

// ---- Weights ----

// Zero points of the cells' parameters. False: no memory, or too large for narrow operands.
bool TensorUnit::load_zeros(std::int64_t position, CellNumbers& zeros) const {
  zeros.fill(op.param_zero);
  if (!op.has_zero_line) return true;
  const std::int64_t line = op.zero_line + op.zero_line_step * scaling_buffer(position);
  if (!WideMemory::holds(line)) return false;
  std::memcpy(zeros.data(), tile.wide.line(line).bytes.data(), static_cast<std::size_t>(4 * op.cells));
  return plan.is_wide ||
         std::all_of(zeros.begin(), zeros.begin() + op.cells, [](std::int32_t z) { return z >= 0 && z <= 255; });
}

// Weights of the run at which param_runs stands. False: it is to be made step by step.
bool TensorUnit::pack_weights(std::int64_t position) {
  const auto size = static_cast<std::size_t>(plan.operands * work.width);
  if (plan.is_wide) {
    work.wide_weights.resize(size);
  } else if (work.weights.size() != size) {
    work.weights.assign(size, 0);  // the padding stays 0
  }
  CellNumbers zeros;
  if (!load_zeros(position, zeros)) return false;
  const std::int64_t base = work.param_runs.address();
  if (!WideMemory::holds((base + plan.param_low) >> 2) || !WideMemory::holds((base + plan.param_high) >> 2)) {
    return false;
  }
  std::array<std::int16_t, 4 * kMaxCells> zeros_of_words;
  if (op.products == 4 && !plan.is_wide) {
    for (std::size_t i = 0; i < zeros_of_words.size(); ++i) zeros_of_words[i] = static_cast<std::int16_t>(zeros[i / 4]);
  }
  work.weights_are_known = true;
  std::int64_t k = 0;
  for (const std::int32_t offset : plan.param_offsets) {
    const std::int64_t address = base + offset;
    const Line& line = tile.wide.line(address >> 2);
    if (line.known_prefix() < 4 * op.cells) work.weights_are_known = false;
    const std::uint8_t* bytes = line.bytes.data();
    if (op.products == 4 && !plan.is_wide) {
      for_this_processor<pack_words_body>(bytes, zeros_of_words.data(), work.width,
                                          work.weights.data() + k * work.width);
      k += 4;
      continue;
    }
    for (int j = 0; j < op.products; ++j, ++k) {
      const int index = parameter_index(static_cast<int>(address & 3), j);
      if (plan.is_wide) {
        std::int32_t* to = work.wide_weights.data() + k * work.width;
        for (int c = 0; c < op.cells; ++c) {
          to[c] = static_cast<std::int32_t>(static_cast<std::uint32_t>(parameter(bytes + 4 * c, op.param_16, index)) -
                                            static_cast<std::uint32_t>(zeros[static_cast<std::size_t>(c)]));
        }
      } else {
        std::int16_t* to = work.weights.data() + k / 2 * 2 * work.width + k % 2;
        for (int c = 0; c < op.cells; ++c) {
          to[2 * c] = static_cast<std::int16_t>(bytes[4 * c + index] - zeros[static_cast<std::size_t>(c)]);
        }
      }
    }
  }
  work.unknown_weights.clear();
  work.known_weights.clear();
  return true;
}

// The zeros and ones that tell of the weights' being known; needed only where something is unknown.
void TensorUnit::pack_flags(const CellNumbers& zeros) {
  const auto operands = (plan.operands + 1) / 2 * 2;
  work.unknown_weights.assign(static_cast<std::size_t>(operands * work.width), 0);
  work.known_weights.assign(static_cast<std::size_t>(operands * work.width), 0);
  const std::int64_t base = work.param_runs.address();
  const int bytes = op.param_16 ? 2 : 1;
  std::int64_t k = 0;
  for (const std::int32_t offset : plan.param_offsets) {
    const std::int64_t address = base + offset;
    const Line& line = tile.wide.line(address >> 2);
    for (int j = 0; j < op.products; ++j, ++k) {
      const int index = parameter_index(static_cast<int>(address & 3), j);
      for (int c = 0; c < op.cells; ++c) {
        const int byte = 4 * c + bytes * index;
        const bool is_known = line.is_known(byte) && line.is_known(byte + bytes - 1);
        const bool is_zero =
            parameter(line.bytes.data() + 4 * c, op.param_16, index) == zeros[static_cast<std::size_t>(c)];
        const auto at = static_cast<std::size_t>(k / 2 * 2 * work.width + 2 * c + k % 2);
        work.unknown_weights[at] = is_known ? 0 : 1;
        work.known_weights[at] = is_known && !is_zero ? 1 : 0;
      }
    }
  }
}

// ---- Inputs ----

// The inputs of the next runs. Returns for how many of them there is memory.
std::int64_t TensorUnit::gather(std::int64_t rows) {
  const auto columns = static_cast<std::size_t>(plan.operands);
  if (plan.is_wide) {
    work.wide_inputs.resize(columns * static_cast<std::size_t>(rows));
  } else {
    work.inputs.resize(columns * static_cast<std::size_t>(rows));
  }
  work.row_is_unknown.assign(static_cast<std::size_t>(rows), 0);
  const std::uint8_t* bytes = tile.narrow.bytes();
  const std::uint8_t* known = tile.narrow.known();
  const int size = op.in_16 ? 2 : 1;
  const auto zero = static_cast<std::int16_t>(op.in_zero);
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t base = work.in_runs.address();
    if (!NarrowMemory::holds_bytes(base + plan.in_low, plan.in_high - plan.in_low)) return r;
    std::int64_t k = r * plan.operands;
    bool all_known = true;
    for (const TensorPlan::Span& span : plan.in_spans) {
      const std::int64_t address = base + span.offset;
      all_known &= std::memchr(known + address, 0, static_cast<std::size_t>(span.elements * size)) == nullptr;
      if (!plan.is_wide) {
        for_this_processor<widen_body>(bytes + address, std::ptrdiff_t{span.elements}, zero, work.inputs.data() + k);
        k += span.elements;
      } else {
        for (std::int32_t i = 0; i < span.elements; ++i) {
          work.wide_inputs[static_cast<std::size_t>(k++)] = parameter(bytes + address, op.in_16, i) - op.in_zero;
        }
      }
    }
    if (!plan.is_wide && k < (r + 1) * plan.operands) work.inputs[static_cast<std::size_t>(k)] = 0;
    work.row_is_unknown[static_cast<std::size_t>(r)] = all_known ? 0 : 1;
    work.in_runs.advance();
  }
  return rows;
}

// Zeros and ones for the runs from `first` on.
void TensorUnit::gather_flags(std::int64_t rows, std::int64_t first) {
  const std::int64_t columns = (plan.operands + 1) / 2 * 2;
  work.live_inputs.assign(static_cast<std::size_t>(columns * rows), 0);
  work.unknown_inputs.assign(static_cast<std::size_t>(columns * rows), 0);
  const int size = op.in_16 ? 2 : 1;
  isa::NestCursor runs = work.in_runs;
  runs.seek(first);
  for (std::int64_t r = 0; r < rows; ++r) {
    std::size_t k = static_cast<std::size_t>(r * columns);
    for (const TensorPlan::Span& span : plan.in_spans) {
      const std::int64_t address = runs.address() + span.offset;
      const std::uint8_t* known = tile.narrow.known() + address;
      for (std::int32_t i = 0; i < span.elements; ++i, ++k) {
        const bool is_known = known[i * size] != 0 && known[i * size + size - 1] != 0;
        const bool is_zero = parameter(tile.narrow.bytes() + address, op.in_16, i) == op.in_zero;
        work.live_inputs[k] = is_known && is_zero ? 0 : 1;
        work.unknown_inputs[k] = is_known ? 0 : 1;
      }
    }
    runs.advance();
  }
}

// ---- Products ----

void TensorUnit::add_products(std::int64_t first_row, std::int64_t rows, std::int32_t* sums) {
  const std::int64_t first = first_row * plan.operands;
  if (plan.is_wide) {
    add_wide_products(work.wide_weights.data(), work.wide_inputs.data() + first, rows, plan.operands, op.cells, sums);
  } else {
    add_cell_products(work.weights.data(), work.inputs.data() + first, rows, plan.operands / 2, op.cells, sums);
  }
}

void TensorUnit::add_unknown(std::int64_t first_row, std::int64_t rows, std::int32_t* unknown) {
  const std::int64_t pairs = (plan.operands + 1) / 2;
  if (!work.weights_are_known) {
    add_cell_products(work.unknown_weights.data(), work.live_inputs.data() + 2 * pairs * first_row, rows, pairs,
                      op.cells, unknown);
  }
  add_cell_products(work.known_weights.data(), work.unknown_inputs.data() + 2 * pairs * first_row, rows, pairs,
                    op.cells, unknown);
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int32_t* row = unknown + r * work.width;
    if (std::any_of(row, row + op.cells, [](std::int32_t count) { return count != 0; })) return chip.note_unknown();
  }
}

bool TensorUnit::has_unknown(std::int64_t rows) const {
  return !work.weights_are_known ||
         std::memchr(work.row_is_unknown.data(), 1, static_cast<std::size_t>(rows)) != nullptr;
}

std::int64_t TensorUnit::run_batch(std::int64_t first, std::int64_t batch) {
  const std::int64_t rows = gather(batch);
  if (rows == 0) return 0;
  const bool is_unknown = has_unknown(rows);
  if (is_unknown) {
    gather_flags(rows, first);
    CellNumbers zeros;
    if (work.known_weights.empty() && load_zeros(first * plan.run_steps, zeros)) pack_flags(zeros);
  }
  if (plan.outer_reduced != 0 || plan.result_runs > 1) return accumulate(first, rows);
  std::array<std::int32_t, (kMaxBatch + 1) * kMaxCells> sums, unknown;
  std::fill_n(sums.begin(), rows * work.width, 0);
  add_products(0, rows, sums.data());
  if (is_unknown) {
    std::fill_n(unknown.begin(), rows * work.width, 0);
    add_unknown(0, rows, unknown.data());
  }
  return emit_rows(sums.data(), is_unknown ? unknown.data() : nullptr, rows, first * plan.run_steps, plan.run_steps);
}

// Partial sums: results under way lie side by side, and are finished in the last pass.
std::int64_t TensorUnit::accumulate(std::int64_t first, std::int64_t rows) {
  const bool is_unknown = has_unknown(rows);
  if (is_unknown && work.unknown.empty()) work.unknown.resize(work.sums.size());
  if (plan.outer_reduced != 0 && work.slot_runs.position() != first) work.slot_runs.seek(first);
  for (std::int64_t r = 0; r < rows; ++r) {
    std::int64_t slot = 0;
    bool ends = (first + r + 1) % plan.result_runs == 0;
    if (plan.outer_reduced != 0) {
      slot = work.slot_runs.address();
      ends = all_at_last(work.slot_runs, plan.outer_reduced);
      work.slot_runs.advance();
    }
    add_products(r, 1, work.sums.data() + slot * work.width);
    if (is_unknown) add_unknown(r, 1, work.unknown.data() + slot * work.width);
    if (ends && !emit(slot, (first + r) * plan.run_steps)) return r;
  }
  return rows;
}

std::int64_t TensorUnit::advance_by_runs(std::int64_t end) {
  const std::int64_t first = run.first.position() / plan.run_steps, last = end / plan.run_steps;
  if (work.in_runs.position() != first) work.in_runs.seek(first);
  std::int64_t done = first;
  while (done < last) {
    const std::int64_t shared = done - done % plan.shared_runs;
    const std::int64_t batch = std::min({last - done, shared + plan.shared_runs - done, kMaxBatch});
    // Another instruction may have written other weights before this call.
    if (done == first || work.weights_from != shared) {
      if (work.param_runs.position() != done) work.param_runs.seek(done);
      if (!pack_weights(done * plan.run_steps)) break;
      work.weights_from = shared;
    }
    const std::int64_t rows = run_batch(done, batch);
    done += rows;
    if (rows < batch) break;
  }
  return done - first;
}

}  // namespace reef::device
