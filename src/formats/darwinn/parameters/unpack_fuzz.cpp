// SPDX-License-Identifier: Apache-2.0
// Any bytes as a chunk of any shape: unpacking must end in a result, and what it accepts must pack to the same bytes.
// The first 16 bytes choose shape, arrays and order; the rest is the chunk, cut or repeated to the size it must have.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "formats/darwinn/parameters/channel_lines.h"
#include "formats/darwinn/parameters/layer_parameters.h"
#include "formats/darwinn/parameters/selection_matrix.h"
#include "formats/darwinn/parameters/softmax_rows.h"

namespace {

using namespace reef;
using namespace reef::darwinn;

constexpr std::size_t kMaxChunk = 1 << 16;

void check(bool holds) {
  if (!holds) std::abort();
}

bool equal(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

std::int32_t take_u16(std::span<const std::uint8_t> head, std::size_t at) { return head[at] | head[at + 1] << 8; }

void fuzz_layer(std::span<const std::uint8_t> head, std::span<const std::uint8_t> body) {
  LayerShape shape;
  shape.kind = static_cast<LayerKind>(head[0] % 3);
  shape.kernel_height = head[1];
  shape.kernel_width = head[2];
  shape.input_channels = take_u16(head, 3);
  shape.output_channels = take_u16(head, 5);
  shape.cells = head[7] % 2 == 0 ? 0 : head[8];
  const Presence presence{(head[9] & 1) != 0, (head[9] & 2) != 0, (head[9] & 4) != 0};
  const LoopOrder order{head[10] % 2 == 0 ? 0 : head[11]};
  static_cast<void>(unpack(body, shape, presence, order).ok());  // a size that almost never fits
  const Result<std::size_t> size = packed_size(shape, presence);
  if (!size.ok() || *size > kMaxChunk || body.empty()) return;
  std::vector<std::uint8_t> chunk(*size);
  for (std::size_t i = 0; i < chunk.size(); ++i) chunk[i] = body[i % body.size()];
  const Result<LayerParameters> layer = unpack(chunk, shape, presence, order);
  if (!layer.ok()) return;
  const Result<std::vector<std::uint8_t>> again = pack(*layer);
  check(again.ok() && *again == chunk);
}

void fuzz_rows(std::span<const std::uint8_t> head, std::span<const std::uint8_t> body) {
  const Result<SoftmaxRows> softmax = unpack_softmax_rows(body);
  if (softmax.ok()) {
    const Result<std::vector<std::uint8_t>> again = pack_softmax_rows(*softmax);
    check(again.ok() && equal(*again, body));
  }
  const Result<std::vector<std::uint32_t>> words =
      unpack_channel_lines(body, static_cast<std::size_t>(take_u16(head, 12)));
  if (words.ok()) check(equal(pack_channel_lines(*words), body));
  const SelectionFinder finder(body);
  for (std::size_t offset = 0; offset < body.size(); offset += kChunkAlignment) {
    const auto found = finder.longest_at(offset);
    if (!found) continue;
    const Result<LayerParameters> layer = selection_layer(found->selection);
    check(layer.ok());
    const Result<std::vector<std::uint8_t>> again = pack(*layer);
    check(again.ok() && equal(*again, body.subspan(offset, found->size)));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kHead = 16;
  if (size < kHead) return 0;
  const std::span<const std::uint8_t> input(data, size);
  fuzz_layer(input.first(kHead), input.subspan(kHead));
  fuzz_rows(input.first(kHead), input.subspan(kHead));
  return 0;
}
