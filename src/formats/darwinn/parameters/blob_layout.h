// SPDX-License-Identifier: Apache-2.0
// Which bytes of a parameter blob belong to which operator, found by comparing with the source model.
//
// A blob is a row of chunks without gaps, in the order of execution, which is not always the order of the model. At
// each place every operator's chunk is tried, in all forms a compiler may have given it (loop order, zero biases kept
// or dropped, width of lines), and must be equal byte for byte. A layer streamed several times has several chunks;
// chunks that two operators share are attributed to the first and list the other. What no operator explains is looked
// at for selection matrices; the rest is reported as unknown, never skipped silently.
//
// Not guaranteed: two operators with the same bytes cannot be told apart (they are taken in the order of the model). An
// operator whose quantization in the source differs from the one that was compiled is not found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "formats/darwinn/parameters/layer_parameters.h"
#include "ir/model.h"

namespace reef::darwinn {

enum class ChunkKind {
  kLayer,         // convolution, depthwise or fully connected operator, or a gate of an LSTM
  kSoftmax,       // softmax_rows.h
  kChannelLines,  // channel_lines.h
  kConstant,      // a constant tensor as it is, or the initial output of an LSTM
  kSelection,     // selection_matrix.h; `op` is -1 unless it is a part of an LSTM or a PAD of channels
  kUnknown
};
inline constexpr std::size_t kChunkKinds = 6;
std::string_view chunk_kind_name(ChunkKind kind);

struct BlobChunk {
  BlobChunk(ChunkKind chunk_kind, std::size_t chunk_offset, std::size_t chunk_size)
      : kind(chunk_kind), offset(chunk_offset), size(chunk_size) {}
  ChunkKind kind;
  std::size_t offset, size;  // bytes, multiples of 64
  std::int32_t op = -1;      // index into the subgraph's operators; -1: none
  std::string role;          // which part of the operator, or what the selection does; may be empty
  // kLayer and kSelection: how the layer is stored.
  LayerShape shape;
  Presence presence;
  LoopOrder order;
  std::vector<std::int32_t> also_for;  // further operators that have exactly these bytes and no chunk of their own
};

struct BlobLayout {
  std::vector<BlobChunk> chunks;  // gap-free, in the order of the blob
  std::size_t bytes_of(ChunkKind kind) const;
  // The operator's first chunk with the given role, or nullptr. Chunks that list the operator in also_for count.
  const BlobChunk* find(std::int32_t op, std::string_view role = "") const;
};

// The model must be verified; its subgraph 0 is what was compiled. The blob is Executable::parameters.
Result<BlobLayout> locate(const ir::Model& model, std::span<const std::uint8_t> blob);

}  // namespace reef::darwinn
