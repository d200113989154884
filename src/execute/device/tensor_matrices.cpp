// SPDX-License-Identifier: Apache-2.0
// Regular multiply-adds as matrix products.
//
// Weights are made ready once for all runs that share them; the inputs of up to 64 runs are rows of a matrix. They are
// read before the results of these runs are written: no instruction reads its own results (on silicon, nothing would
// make it wait for them). Where
// operands are unknown, two more products of zeros and ones count for each result how many of its products are:
// unknown weights times inputs that are not known to be zero, and known weights that are not zero times unknown inputs.
#include <algorithm>
#include <cstring>

#include "execute/device/tensor_unit.h"
#include "execute/device/tensor_walk.h"
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

// The bytes of one run, minus their zero point. Returns 1 if all of them are known, else 0.
REEF_VECTOR_BODY std::uint32_t gather_body(const std::uint8_t* bytes, const std::uint8_t* known,
                                           const TensorPlan::Span* spans, std::size_t span_count, std::int16_t zero,
                                           std::int16_t* to) {
  using Bytes = std::uint8_t __attribute__((vector_size(16)));
  using HalfBytes = std::uint8_t __attribute__((vector_size(8)));
  using Numbers = std::int16_t __attribute__((vector_size(32)));
  using HalfNumbers = std::int16_t __attribute__((vector_size(16)));
  Bytes all = Bytes{} + std::uint8_t{1};
  std::uint32_t all_words = kAllKnown;
  for (const TensorPlan::Span* span = spans; span != spans + span_count; ++span) {
    const std::uint8_t* from = bytes + span->offset;
    const std::uint8_t* flags = known + span->offset;
    std::int32_t i = 0;
    for (; i + 16 <= span->elements; i += 16) {
      Bytes part, part_known;
      std::memcpy(&part, from + i, sizeof(part));
      std::memcpy(&part_known, flags + i, sizeof(part_known));
      all &= part_known;
      const Numbers numbers = __builtin_convertvector(part, Numbers) - zero;
      std::memcpy(to + i, &numbers, sizeof(numbers));
    }
    for (; i + 4 <= span->elements; i += 4) {
      HalfBytes part{};
      std::uint32_t part_known;
      std::memcpy(&part, from + i, 4);
      std::memcpy(&part_known, flags + i, 4);
      all_words &= part_known;
      const HalfNumbers numbers = __builtin_convertvector(part, HalfNumbers) - zero;
      std::memcpy(to + i, &numbers, 8);
    }
    for (; i < span->elements; ++i) {
      to[i] = static_cast<std::int16_t>(from[i] - zero);
      all_words &= kAllKnown - 1 + flags[i];
    }
    to += span->elements;
  }
  std::array<std::uint32_t, 4> words;
  std::memcpy(words.data(), &all, sizeof(all));
  return (all_words & words[0] & words[1] & words[2] & words[3]) == kAllKnown ? 1 : 0;
}

// The same for spans of 4 bytes each.
REEF_VECTOR_BODY std::uint32_t gather_words_body(const std::uint8_t* bytes, const std::uint8_t* known,
                                                 const TensorPlan::Span* spans, std::size_t span_count,
                                                 std::int16_t zero, std::int16_t* to) {
  using HalfBytes = std::uint8_t __attribute__((vector_size(8)));
  using HalfNumbers = std::int16_t __attribute__((vector_size(16)));
  const HalfNumbers zeros = zero - HalfNumbers{};
  std::uint32_t all = kAllKnown;
  for (std::size_t s = 0; s < span_count; ++s, to += 4) {
    HalfBytes part{};
    std::uint32_t part_known;
    std::memcpy(&part, bytes + spans[s].offset, 4);
    std::memcpy(&part_known, known + spans[s].offset, 4);
    all &= part_known;
    const HalfNumbers numbers = __builtin_convertvector(part, HalfNumbers) - zeros;
    std::memcpy(to, &numbers, 8);
  }
  return all == kAllKnown ? 1 : 0;
}

}  // namespace

// ---- Weights ----

// Zero points of the cells' parameters. False: no memory, or too large for narrow operands.
bool TensorUnit::load_zeros(std::int64_t position) {
  work.zeros.fill(op.param_zero);
  if (!op.has_zero_line) return true;
  const std::int64_t line = op.zero_line + op.zero_line_step * scaling_buffer(position);
  if (!WideMemory::holds(line)) return false;
  std::memcpy(work.zeros.data(), tile.wide.line(line).bytes.data(), static_cast<std::size_t>(4 * op.cells));
  const auto is_byte = [](std::int32_t z) { return z >= 0 && z <= 255; };
  return plan.is_wide || std::all_of(work.zeros.begin(), work.zeros.begin() + op.cells, is_byte);
}

// Operands `k` and following of all cells.
void TensorUnit::pack_step(const std::uint8_t* line, int lane, std::int64_t k) {
  for (int j = 0; j < op.products; ++j, ++k) {
    const int index = parameter_index(op, lane, j);
    if (plan.is_wide) {
      std::int32_t* to = work.wide_weights.data() + k * work.width;
      for (int c = 0; c < op.cells; ++c) {
        const auto w = static_cast<std::uint32_t>(parameter(line + 4 * c, op.param_16, index));
        to[c] = static_cast<std::int32_t>(w - static_cast<std::uint32_t>(work.zeros[reef::at(c)]));
      }
    } else {
      std::int16_t* to = work.weights.data() + k / 2 * 2 * work.width + k % 2;
      for (int c = 0; c < op.cells; ++c) {
        to[2 * c] = static_cast<std::int16_t>(line[4 * c + index] - work.zeros[reef::at(c)]);
      }
    }
  }
}

// Weights of the run at which param_runs stands. False: it is to be made step by step.
bool TensorUnit::pack_weights(std::int64_t position) {
  const std::int64_t base = work.param_runs.address();
  if (!load_zeros(position) || !WideMemory::holds((base + plan.param_low) >> 2) ||
      !WideMemory::holds((base + plan.param_high) >> 2)) {
    return false;
  }
  const auto size = static_cast<std::size_t>(plan.operands * work.width);
  if (uses_lines()) {
    work.lines.resize(plan.param_offsets.size());
  } else if (plan.is_wide) {
    work.wide_weights.resize(size);
  } else if (work.weights.size() != size) {
    work.weights.assign(size, 0);  // the padding stays 0
  }
  int least_known = kLineBytes;
  for (std::size_t s = 0; s < plan.param_offsets.size(); ++s) {
    const std::int64_t address = base + plan.param_offsets[s];
    const Line& line = tile.wide.line(address >> 2);
    least_known = std::min(least_known, line.known_prefix());
    if (uses_lines()) {
      work.lines[s] = line.bytes.data();
    } else {
      pack_step(line.bytes.data(), static_cast<int>(address & 3), static_cast<std::int64_t>(s) * op.products);
    }
  }
  work.weights_are_known = least_known >= 4 * op.cells;
  work.unknown_weights.clear();
  work.known_weights.clear();
  return true;
}

// The zeros and ones that tell of the weights' being known; needed only where something is unknown.
void TensorUnit::pack_flags() {
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
      const int index = parameter_index(op, static_cast<int>(address & 3), j);
      for (int c = 0; c < op.cells; ++c) {
        const int byte = 4 * c + bytes * index;
        const bool is_known = line.is_known(byte) && line.is_known(byte + bytes - 1);
        const bool is_zero = parameter(line.bytes.data() + 4 * c, op.param_16, index) == work.zeros[reef::at(c)];
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
  using Row = std::uint32_t (*)(const std::uint8_t*, const std::uint8_t*, const TensorPlan::Span*, std::size_t,
                                std::int16_t, std::int16_t*);
  const Row gather_row =
      plan.spans_are_words ? Row(for_this_processor<gather_words_body>) : Row(for_this_processor<gather_body>);
  const bool is_padded = plan.operands != plan.run_steps * op.products;
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t base = work.in_runs.address();
    if (!NarrowMemory::holds_bytes(base + plan.in_low, plan.in_high - plan.in_low)) return r;
    std::int64_t k = r * plan.operands;
    bool all_known = true;
    if (!plan.is_wide) {
      all_known = gather_row(bytes + base, known + base, plan.in_spans.data(), plan.in_spans.size(), zero,
                             work.inputs.data() + k) != 0;
      if (is_padded) work.inputs[reef::at(k + plan.operands - 1)] = 0;
    } else {
      for (const TensorPlan::Span& span : plan.in_spans) {
        const std::int64_t address = base + span.offset;
        all_known &= std::memchr(known + address, 0, static_cast<std::size_t>(span.elements * size)) == nullptr;
        for (std::int32_t i = 0; i < span.elements; ++i) {
          work.wide_inputs[reef::at(k++)] = parameter(bytes + address, op.in_16, i) - op.in_zero;
        }
      }
    }
    work.row_is_unknown[reef::at(r)] = all_known ? 0 : 1;
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
  } else if (uses_lines()) {
    add_line_products(work.lines.data(), work.zeros.data(), work.inputs.data() + first, rows, plan.run_steps, op.cells,
                      sums);
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
    if (std::any_of(row, row + op.cells, [](std::int32_t count) { return count != 0; })) return note_unknown();
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
    if (work.known_weights.empty()) pack_flags();
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
  std::array<std::int64_t, kMaxBatch> slots;
  std::array<bool, kMaxBatch> ends;
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto k = static_cast<std::size_t>(r);
    slots[k] = 0;
    ends[k] = (first + r + 1) % plan.result_runs == 0;
    if (plan.outer_reduced == 0) continue;
    slots[k] = work.slot_runs.address();
    ends[k] = all_at_last(work.slot_runs, plan.outer_reduced);
    work.slot_runs.advance();
  }
  for (std::int64_t r = 0; r < rows;) {
    // Rows of results that lie side by side are added at once.
    const std::int64_t slot = slots[reef::at(r)];
    std::int64_t count = 1;
    while (r + count < rows && slots[reef::at(r + count)] == slot + count) ++count;
    add_products(r, count, work.sums.data() + slot * work.width);
    if (is_unknown) add_unknown(r, count, work.unknown.data() + slot * work.width);
    for (std::int64_t i = 0; i < count; ++i, ++r) {
      if (ends[reef::at(r)] && !emit(slot + i, (first + r) * plan.run_steps)) return r;
    }
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
