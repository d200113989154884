// SPDX-License-Identifier: Apache-2.0
// Enlarging by whole factors, as Keras 3 writes UpSampling2D: RESHAPE to five dimensions, TILE of the one that was
// inserted, RESHAPE, for height and again for width. Together they are RESIZE_NEAREST_NEIGHBOR.
//
// The chain's effect is not guessed from its shapes: the number of every element is sent through it.
#include <algorithm>
#include <numeric>

#include "ops/registry.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

constexpr std::size_t kMostOps = 8;
constexpr std::int64_t kMostRepeated = std::int64_t{1} << 22;

using Numbers = std::vector<std::int32_t>;  // which element of the source stands where

// Copies whole blocks: along every dimension in turn, from the innermost.
Numbers tiled(Numbers numbers, const ir::Shape& shape, const ir::Shape& result) {
  std::size_t block = 1;  // elements below the dimension, of the result
  for (int d = shape.rank() - 1; d >= 0; --d) {
    const std::size_t length = block * static_cast<std::size_t>(shape[d]);
    const auto copies = static_cast<std::size_t>(result[d] / shape[d]);
    Numbers larger;
    larger.reserve(numbers.size() * copies);
    for (std::size_t begin = 0; begin < numbers.size(); begin += length) {
      const auto first = numbers.begin() + static_cast<std::ptrdiff_t>(begin);
      for (std::size_t i = 0; i < copies; ++i)
        larger.insert(larger.end(), first, first + static_cast<std::ptrdiff_t>(length));
    }
    numbers = std::move(larger);
    block = length * copies;
  }
  return numbers;
}

bool is_tile(const ChipGraph& edit, const ir::Operator& op) {
  if (op.type != Op::TILE) return false;
  const ir::Shape &shape = edit.shape(op.inputs[0]), &result = edit.shape(op.outputs[0]);
  const auto multiples = edit.ints(op.inputs[1]);
  if (!multiples || shape.rank() != result.rank() || multiples->size() != static_cast<std::size_t>(shape.rank()))
    return false;
  for (int d = 0; d < shape.rank(); ++d) {
    if (shape[d] < 1 || result[d] != shape[d] * (*multiples)[at(d)]) return false;
  }
  return result.elements() <= kMostRepeated;
}

// Whether `chain` (first to last) enlarges x to y by whole factors.
bool is_nearest(const ChipGraph& edit, const std::vector<std::int32_t>& chain, const ir::Shape& in,
                const ir::Shape& out) {
  if (in.rank() != 4 || out.rank() != 4 || in[0] != 1 || out[0] != 1 || in[3] != out[3]) return false;
  if (in.elements() == 0 || out[1] % in[1] != 0 || out[2] % in[2] != 0 || out.elements() > kMostRepeated) return false;
  Numbers numbers(static_cast<std::size_t>(in.elements()));
  std::iota(numbers.begin(), numbers.end(), 0);
  for (const std::int32_t index : chain) {
    const ir::Operator& op = edit.op(index);
    if (op.type == Op::TILE) numbers = tiled(std::move(numbers), edit.shape(op.inputs[0]), edit.shape(op.outputs[0]));
  }
  const std::int32_t down = out[1] / in[1], across = out[2] / in[2];
  std::size_t at = 0;
  for (std::int32_t y = 0; y < out[1]; ++y) {
    for (std::int32_t x = 0; x < out[2]; ++x) {
      const std::int32_t first = (y / down * in[2] + x / across) * in[3];
      for (std::int32_t c = 0; c < in[3]; ++c) {
        if (numbers[at++] != first + c) return false;
      }
    }
  }
  return true;
}

bool repeat_at(ChipGraph& edit, std::int32_t index) {
  if (!ops::has_same_bytes(edit.op(index)) && edit.op(index).type != Op::TILE) return false;
  const std::int32_t y = edit.op(index).outputs.empty() ? -1 : edit.op(index).outputs[0];
  if (y < 0 || !edit.affine(y) || edit.shape(y).rank() != 4) return false;
  std::vector<std::int32_t> chain, longest;
  bool has_tile = false, some_does_not_fit = false;
  for (std::int32_t op = index; op >= 0 && chain.size() < kMostOps;) {
    const ir::Operator& link = edit.op(op);
    if (!edit.is_sound(op) || !(ops::has_same_bytes(link) || is_tile(edit, link))) break;
    const std::int32_t x = link.inputs[0];
    if (!edit.same_quantization(x, y) || edit.is_constant(x)) break;
    chain.insert(chain.begin(), op);
    has_tile = has_tile || link.type == Op::TILE;
    some_does_not_fit = some_does_not_fit || !edit.fits(op);
    if (has_tile && some_does_not_fit && is_nearest(edit, chain, edit.shape(x), edit.shape(y))) longest = chain;
    op = edit.has_one_user(x) ? edit.producer(x) : -1;
  }
  if (longest.empty()) return false;
  const std::int32_t x = edit.op(longest.front()).inputs[0];
  const std::int64_t size[] = {edit.shape(y)[1], edit.shape(y)[2]};
  OpList list(edit, edit.tensor(y).name);
  ir::Attributes attributes;
  attributes.set("align_corners", false);
  attributes.set("half_pixel_centers", false);
  list.add(Op::RESIZE_NEAREST_NEIGHBOR, "ResizeNearestNeighborOptions", std::move(attributes),
           {x, list.int_vector(size)}, {y}, edit.tensor(y).type);
  return edit.commit(index, list.take(), "RESIZE_NEAREST_NEIGHBOR");
}

}  // namespace

constinit const Pass repeat_chip_pass = {
    .name = "repeat",
    .summary =
        "Chains of RESHAPE and TILE that repeat rows and columns (UpSampling2D of Keras 3) become "
        "RESIZE_NEAREST_NEIGHBOR.",
    .at_on_chip = repeat_at};

}  // namespace reef::passes
