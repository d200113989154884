// SPDX-License-Identifier: Apache-2.0
#include "runtime/result_origins.h"

#include <algorithm>
#include <variant>

#include "execute/device/device.h"
#include "execute/device/memory.h"
#include "execute/device/program.h"
#include "host/programs.h"

namespace reef::runtime {
namespace {

constexpr device::Tag kFirst = device::kFillTag + 1;  // the tag of instruction 0's results

std::int64_t instruction_of(const std::vector<device::Tag>& tags, std::int64_t byte) {
  const auto at = static_cast<std::size_t>(byte);
  return at < tags.size() && tags[at] >= kFirst ? static_cast<std::int64_t>(tags[at] - kFirst) : -1;
}

}  // namespace

std::vector<std::int64_t> ResultOrigins::origins(const darwinn::Layer& layer, std::size_t inputs,
                                                 std::size_t output) const {
  const std::vector<device::Tag>& tags = written(host::BufferIndex::kFirstLayer + inputs + output);
  const std::int64_t pixels = std::int64_t{layer.y_dim} * layer.x_dim;
  const std::int64_t depth = pixels == 0 ? 0 : device::tensor_bytes(layer) / pixels;  // bytes
  const std::int64_t element = layer.z_dim == 0 ? 1 : std::max<std::int64_t>(1, depth / layer.z_dim);
  const auto* info = std::get_if<darwinn::OutputInfo>(&layer.info);
  std::vector<std::int64_t> result;
  for (std::int32_t y = 0; y < layer.y_dim; ++y) {
    for (std::int32_t x = 0; x < layer.x_dim; ++x) {
      std::int64_t begin = (std::int64_t{y} * layer.x_dim + x) * depth;
      if (info != nullptr && info->layout) {
        const auto first = info->layout->index_of(static_cast<std::size_t>(y), static_cast<std::size_t>(x));
        begin = first ? *first * element : -1;
      }
      for (std::int64_t i = 0; i < depth; ++i) result.push_back(begin < 0 ? -1 : instruction_of(tags, begin + i));
    }
  }
  return result;
}

std::string ResultOrigins::describe(std::int64_t instruction) const {
  return program().describe(static_cast<std::size_t>(instruction));
}

void ResultOrigins::begins(const device::Program& program, const device::Chip& chip) {
  TagFollower::begins(program, chip);
  works_ = {};
}

void ResultOrigins::started(const device::Tile* tile, int unit, const device::Running& run) {
  TagFollower::started(tile, unit, run);
  if (tile == nullptr || unit != static_cast<int>(isa::Unit::kTensor)) return;
  works_[reef::at(tile->number)] = device::TensorWalk(*tile, run);
}

void ResultOrigins::computed(const device::TensorMove& move) {
  device::TensorWalk& work = works_[reef::at(move.tile->number)];
  if (work.op == nullptr) return;
  for (; !work.out.done() && work.out.position() < move.out_to; work.out.advance()) {
    const std::int64_t address = work.out.address();
    if (device::NarrowMemory::holds_bytes(address, 4)) {
      std::fill_n(narrow(*move.tile) + address, 4, kFirst + work.index);
    }
  }
}

}  // namespace reef::runtime
