// SPDX-License-Identifier: Apache-2.0
#include "partition/cost.h"

#include <algorithm>

#include "ops/static_ops.h"
#include "partition/cpu_cost.h"
#include "partition/free_moves.h"

namespace reef::partition {
namespace {

constexpr double kMicrosecondsPerSecond = 1e6;
// Instructions that belong to no operator: input into the tiles, output out of them. From compiled files.
constexpr double kMapInputRows = 165, kRowsPerVectorInput = 0.25, kMostVectorInputRows = 500;
constexpr double kMapOutputRows = 145, kVectorOutputRows = 55, kRowsPerVectorOutput = 0.09;
// Lines of every tile that programs take for lines under way, beside what layers need: with maps, without, and where
// maps are computed in parts. From compiled files.
constexpr std::int64_t kMapScratchLines = 36, kVectorScratchLines = 8, kPartScratchLines = 150;
// Parameters wait in a FIFO: so many can be sent ahead of their use.
constexpr double kAheadBytes = double{chip::kParameterFifoUnits} * chip::kParameterFifoUnitBytes;
// Of a program, that the chip's instruction memory holds at a time.
constexpr std::int64_t kPieceBytes = std::int64_t{chip::kInstructionChunkRows} * chip::kInstructionRowBytes;

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

bool is_vector(const ir::Shape& shape) {
  for (int i = 1; i < std::min(shape.rank(), 3); ++i) {
    if (shape.last(i) > 1) return false;
  }
  return true;
}

// Tensors that cross the link, as instructions.
double input_rows(const ir::Tensor& tensor, double bytes) {
  return is_vector(tensor.shape) ? std::min(kRowsPerVectorInput * bytes, kMostVectorInputRows) : kMapInputRows;
}
double output_rows(const ir::Tensor& tensor, double bytes) {
  if (!is_vector(tensor.shape)) return kMapOutputRows;
  return std::min(kVectorOutputRows + kRowsPerVectorOutput * bytes, 2 * kMapOutputRows);
}

// On its way out, a pixel's channels fill whole words.
std::int64_t padded_bytes(const ir::Tensor& tensor, std::int64_t bytes) {
  if (tensor.shape.rank() == 0 || tensor.shape.last() <= 0 || !ir::is_integer_8(tensor.type)) return bytes;
  const std::int64_t channels = tensor.shape.last();
  return round_up(bytes / channels * round_up(channels, chip::kNarrowWordBytes), chip::kHostAlignmentBytes);
}

}  // namespace

CostModel::CostModel(const ir::Model& model, const CostOptions& options) : options_(options) {
  if (options_.link == nullptr) options_.link = chip::link_profiles().data();
  if (model.subgraphs.empty()) return;
  const ops::StaticOps ops(model);
  const HostCpu& host = host_cpu(options_.link->name);
  const std::vector<bool> is_free = moves_of_attention(model);
  for (std::int32_t i = 0; i < ops.count(); ++i) {
    const ops::OpContext context = ops.context(i);
    OpCost cost;
    cost.cpu = cpu_microseconds(context, host);
    const bool has_work = ops.definition(i) != nullptr && !is_free[static_cast<std::size_t>(i)];
    const ops::ChipWork work = has_work ? ops::chip_work(context) : ops::ChipWork{};
    cost.chip = (work.tensor_cycles + work.move_cycles) / options_.clock_hz * kMicrosecondsPerSecond;
    cost.parameter_bytes = work.parameter_bytes + work.always_streamed_bytes;
    cost.instruction_bytes = work.instruction_bytes;
    ops_.push_back(cost);
    works_.push_back(work);
  }
  for (const ir::Tensor& tensor : ops.graph().tensors) {
    const std::int64_t bytes = tensor.shape.is_usable() ? ir::byte_size(tensor.shape, tensor.type).value_or(0) : 0;
    tensor_bytes_.push_back(round_up(bytes, chip::kHostAlignmentBytes));
    output_bytes_.push_back(padded_bytes(tensor, bytes));
    const auto size = static_cast<double>(bytes);
    input_instructions_.push_back(static_cast<std::int64_t>(input_rows(tensor, size)) * chip::kInstructionRowBytes);
    output_instructions_.push_back(static_cast<std::int64_t>(output_rows(tensor, size)) * chip::kInstructionRowBytes);
  }
}

double CostModel::in_us(double bytes) const {
  return bytes * kMicrosecondsPerSecond / options_.link->in_bytes_per_second;
}
double CostModel::out_us(double bytes) const {
  return bytes * kMicrosecondsPerSecond / options_.link->out_bytes_per_second;
}

CacheModel CostModel::cache_model(std::span<const std::int32_t> ops) const {
  CacheModel model;
  bool has_maps = false, has_parts = false;
  for (const std::int32_t index : ops) {
    const ops::ChipWork& work = this->work(index);
    CacheLayer layer = CacheLayer::of(work);
    layer.us_per_byte = in_us(work.passes);
    layer.hidden_bytes = static_cast<std::int64_t>(std::min(op(index).chip / layer.us_per_byte, 1e15));
    model.layers.push_back(layer);
    model.scratch_lines = std::max(model.scratch_lines, work.scratch_lines);
    has_maps = has_maps || (work.parameter_bytes > 0 && !work.stays_in_tiles);
    has_parts = has_parts || work.passes > 1;
  }
  model.scratch_lines += has_parts ? kPartScratchLines : has_maps ? kMapScratchLines : kVectorScratchLines;
  return model;
}

PartCost CostModel::part(std::span<const std::int32_t> ops, std::span<const std::int32_t> inputs,
                         std::span<const std::int32_t> outputs, std::int64_t cache_bytes) const {
  const CacheModel cache = cache_model(ops);
  const std::int64_t limit = cache_bytes < 0 ? -1 : cache_bytes / chip::kWideLineBytes;
  const CacheShare share = share_cache({&cache, 1}, options_.cache_policy, limit)[0];

  PartCost cost;
  cost.cache_used = share.lines * chip::kWideLineBytes;
  cost.cache_capacity = cost.cache_used + share.lines_left * chip::kWideLineBytes;
  for (const std::int32_t tensor : inputs) {
    cost.input_bytes += tensor_bytes(tensor);
    cost.instruction_bytes += input_instructions_[static_cast<std::size_t>(tensor)];
  }
  for (const std::int32_t tensor : outputs) {
    cost.output_bytes += output_bytes_[static_cast<std::size_t>(tensor)];
    cost.instruction_bytes += output_instructions_[static_cast<std::size_t>(tensor)];
  }

  double ahead = 0;  // microseconds that the link is ahead of the chip
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const OpCost& one = op(ops[i]);
    const ops::ChipWork& work = this->work(ops[i]);
    const std::int64_t streamed = work.parameter_bytes - share.cached_bytes[i] + work.always_streamed_bytes;
    cost.instruction_bytes += one.instruction_bytes;
    cost.compute += one.chip;
    cost.cached_bytes += share.cached_bytes[i];
    cost.streamed_bytes += streamed;
    const double sending = in_us(static_cast<double>(streamed) * work.passes);
    const double waiting = std::max(0.0, sending - ahead - one.chip);
    cost.streaming += waiting;
    ahead = std::min(in_us(kAheadBytes), ahead + one.chip + waiting - sending);
  }
  // The chip starts when the first piece of the program is there; the others come while it computes.
  const std::int64_t first_piece = std::min(cost.instruction_bytes, kPieceBytes);
  const double later_pieces = in_us(static_cast<double>(cost.instruction_bytes - first_piece));
  cost.transfer = options_.link->overhead_us + in_us(static_cast<double>(cost.input_bytes + first_piece)) +
                  std::max(0.0, later_pieces - cost.compute) + out_us(static_cast<double>(cost.output_bytes));
  return cost;
}

}  // namespace reef::partition
