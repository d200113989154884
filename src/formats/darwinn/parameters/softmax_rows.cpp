// SPDX-License-Identifier: Apache-2.0
#include "formats/darwinn/parameters/softmax_rows.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "formats/darwinn/parameters/channel_lines.h"
#include "formats/darwinn/parameters/layer_parameters.h"
#include "formats/darwinn/parameters/little_endian.h"
#include "ir/describe.h"
#include "ir/op.h"

namespace reef::darwinn {
namespace {

constexpr std::int32_t kMaxClasses = 1 << 24;
constexpr std::uint32_t kLowest = 0x80000000u;  // INT32_MIN
constexpr std::size_t kLanes = 4;

}  // namespace

Result<std::vector<std::uint8_t>> pack_softmax_rows(const SoftmaxRows& softmax) {
  REEF_REQUIRE(softmax.classes >= 1 && softmax.classes <= kMaxClasses, "softmax over {} classes is outside 1..{}",
               softmax.classes, kMaxClasses);
  const auto classes = static_cast<std::size_t>(softmax.classes);
  const std::size_t lanes = (classes + kLanes - 1) / kLanes * kLanes;
  const float beyond_scale = softmax.input_scale * std::numeric_limits<float>::max();
  std::vector<std::uint32_t> offsets(lanes, kLowest), scales(lanes, std::bit_cast<std::uint32_t>(beyond_scale));
  std::fill_n(offsets.begin(), classes, 0u);
  std::fill_n(scales.begin(), classes, std::bit_cast<std::uint32_t>(softmax.input_scale));
  std::vector<std::uint32_t> words = offsets;
  words.insert(words.end(), offsets.begin(), offsets.end());
  words.insert(words.end(), scales.begin(), scales.end());
  if (softmax.has_mask_row) words.push_back(std::bit_cast<std::uint32_t>(1.0f));
  return pack_channel_lines(words);
}

Result<SoftmaxRows> unpack_softmax_rows(std::span<const std::uint8_t> chunk) {
  const std::size_t rows = chunk.size() / kChunkAlignment;
  REEF_REQUIRE(chunk.size() % kChunkAlignment == 0 && rows >= 3 && rows % 3 != 2 && rows / 3 <= kMaxClasses / kLanes,
               "{} bytes are not the rows of a softmax: three times as many rows of {} as words, and perhaps one more",
               chunk.size(), kChunkAlignment);
  const std::size_t words = rows / 3;
  const std::size_t last_row = (words - 1) * kChunkAlignment;
  std::size_t beyond = 0;
  for (std::size_t lane = 1; lane < kLanes; ++lane) {
    beyond += load_u32(chunk, static_cast<std::int64_t>(last_row + 4 * lane)) == kLowest ? 1 : 0;
  }
  SoftmaxRows softmax;
  softmax.classes = static_cast<std::int32_t>(words * kLanes - beyond);
  softmax.input_scale = std::bit_cast<float>(load_u32(chunk, static_cast<std::int64_t>(2 * words * kChunkAlignment)));
  softmax.has_mask_row = rows % 3 == 1;
  REEF_ASSIGN_OR_RETURN(const std::vector<std::uint8_t> again, pack_softmax_rows(softmax));
  const auto where = std::mismatch(chunk.begin(), chunk.end(), again.begin());
  REEF_REQUIRE(where.first == chunk.end(),
               "byte {} should be 0x{:02x} in the rows of a softmax over {} classes, but is 0x{:02x}",
               where.first - chunk.begin(), *where.second, softmax.classes, *where.first);
  return softmax;
}

Result<SoftmaxRows> softmax_rows_of(const ir::Subgraph& graph, const ir::Operator& op) {
  if (op.type != Op::SOFTMAX || op.is_custom()) return unsupported("{} is not SOFTMAX", op.type);
  REEF_REQUIRE(!op.inputs.empty() && op.inputs[0] >= 0, "SOFTMAX lacks its input");
  const ir::Tensor& input = graph.tensors[at(op.inputs[0])];
  if (!ir::is_integer_8(input.type) || input.quantization.scale.size() != 1 || input.shape.rank() == 0) {
    return unsupported("the input '{}' of SOFTMAX is not an 8-bit tensor with one scale",
                       ir::describe_name(input.name));
  }
  const std::int32_t classes = input.shape.last();
  if (classes < 1 || classes > kMaxClasses || classes % 4 == 0) {
    return unsupported("SOFTMAX over {} classes needs no parameters", classes);
  }
  return SoftmaxRows{classes, input.quantization.scale[0], false};
}

}  // namespace reef::darwinn
