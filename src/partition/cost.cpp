// SPDX-License-Identifier: Apache-2.0
#include "partition/cost.h"

#include <algorithm>

#include "ops/chip_work.h"
#include "ops/static_ops.h"
#include "partition/cpu_cost.h"

namespace reef::partition {
namespace {

constexpr double kMicrosecondsPerSecond = 1e6;
constexpr std::int64_t kWideBytes = std::int64_t{chip::kWideLines} * chip::kWideLineBytes * chip::kTiles;
constexpr std::int64_t kScratchBytes = 128 * 1024;
constexpr std::int64_t kProgramBytes = 4096;  // instructions that do not belong to an op

}  // namespace

CostModel::CostModel(const ir::Model& model, const CostOptions& options) : model_(&model), options_(options) {
  if (options_.link == nullptr) options_.link = chip::link_profiles().data();
  const ops::StaticOps ops(model);
  for (std::int32_t i = 0; i < ops.count(); ++i) {
    const ops::OpContext context = ops.context(i);
    OpCost cost;
    cost.cpu = cpu_microseconds(context);
    if (ops.definition(i) != nullptr) {
      const ops::ChipWork work = ops::chip_work(context);
      cost.chip = (work.tensor_cycles + work.move_cycles) / options_.clock_hz * kMicrosecondsPerSecond;
      cost.parameter_bytes = work.parameter_bytes;
      cost.instruction_bytes = work.instruction_bytes;
    }
    ops_.push_back(cost);
  }
  for (const ir::Tensor& tensor : ops.graph().tensors) {
    tensor_bytes_.push_back(tensor.shape.is_usable() ? ir::byte_size(tensor.shape, tensor.type).value_or(0) : 0);
  }
}

PartCost CostModel::part(std::span<const std::int32_t> ops, std::span<const std::int32_t> inputs,
                         std::span<const std::int32_t> outputs, std::int64_t cache_bytes) const {
  PartCost cost;
  cost.instruction_bytes = kProgramBytes;
  for (const std::int32_t tensor : inputs) cost.input_bytes += tensor_bytes(tensor);
  for (const std::int32_t tensor : outputs) cost.output_bytes += tensor_bytes(tensor);
  cost.cache_capacity = kWideBytes - kScratchBytes;
  if (cache_bytes >= 0) cost.cache_capacity = std::min(cost.cache_capacity, cache_bytes);
  const double in_byte_us = kMicrosecondsPerSecond / options_.link->in_bytes_per_second;
  const double out_byte_us = kMicrosecondsPerSecond / options_.link->out_bytes_per_second;
  for (const std::int32_t index : ops) {
    const OpCost& one = op(index);
    cost.instruction_bytes += one.instruction_bytes;
    cost.compute += one.chip;
    if (cost.streamed_bytes == 0 && cost.cached_bytes + one.parameter_bytes <= cost.cache_capacity) {
      cost.cached_bytes += one.parameter_bytes;
    } else {
      cost.streamed_bytes += one.parameter_bytes;
      cost.streaming += std::max(0.0, static_cast<double>(one.parameter_bytes) * in_byte_us - one.chip);
    }
  }
  cost.transfer = options_.link->overhead_us +
                  static_cast<double>(cost.input_bytes + cost.instruction_bytes) * in_byte_us +
                  static_cast<double>(cost.output_bytes) * out_byte_us;
  return cost;
}

}  // namespace reef::partition
