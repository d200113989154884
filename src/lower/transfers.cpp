// SPDX-License-Identifier: Apache-2.0
#include "lower/transfers.h"

#include <algorithm>

#include "ir/describe.h"
#include "lower/reshape.h"
#include "tiled/uneven_input.h"

namespace reef::lower {
namespace {

using tiled::TiledTensor;

// The copy's buffers must lie beside the input tensor. Google's compiler asks for this much below it whatever the size
// of the constants behind them.
constexpr std::int64_t kConstantsReserve = 272;

// Rows can come in one after the other where all tiles have equal shares, of whole words and whole units of the host's
// transfers, and pixels are whole words or less than one.
bool comes_by_rows(const TiledTensor& input) {
  const bool even = input.height % tiled::kTilesPerAxis == 0 && input.width % tiled::kTilesPerAxis == 0;
  const std::int64_t share = std::int64_t{input.width} / tiled::kTilesPerAxis * input.channels;
  const std::int64_t strip = std::int64_t{input.height} / tiled::kTilesPerAxis * input.width * input.channels;
  return even && share % chip::kNarrowWordBytes == 0 && strip % chip::kActivationFifoUnitBytes == 0 &&
         (input.channels % chip::kNarrowWordBytes == 0 || input.channels < chip::kNarrowWordBytes);
}

// Google's compiler keeps room for the whole vector and two slots of a line beside it, which nothing uses.
constexpr std::int64_t kVectorSlots = 2 * chip::kWideLineBytes;

// A vector that all tiles need is sent to all of them, up to this many elements: more are spread and then gathered, so
// that the transfer from the host is over sooner.
constexpr std::int32_t kMostCopied = 1 << 15;

Status finish_vector_infeed(Builder& builder, tiled::Step& step) {
  tiled::Infeed infeed = std::get<tiled::Infeed>(step.work);
  const TiledTensor& tensor = builder.tensor(infeed.tensor);
  const std::int32_t rows = (tensor.vector_tiles() + chip::kTileColumns - 1) / chip::kTileColumns;
  infeed.row_lines = builder.new_wide(
      tensor.spread == tiled::Spread::kCopies ? 2 : std::max(2 * rows, tiled::InputVector::lines(tensor)));
  if (builder.level() == tiled::Level::kAsGoogle && tensor.run == tiled::kVectorRun) {
    infeed.row_buffer = builder.new_narrow(std::int64_t{tensor.vector_tiles()} * tiled::kVectorRun + kVectorSlots);
    step.narrow_used = {infeed.row_buffer};
  }
  step.wide_used = {infeed.row_lines};
  step.work = infeed;
  return ok_status();
}

Status finish_infeed(Builder& builder, tiled::Step& step) {
  tiled::Infeed infeed = std::get<tiled::Infeed>(step.work);
  const TiledTensor& tensor = builder.tensor(infeed.tensor);
  const tiled::InputRows rows = tiled::InputRows::of(tensor);
  const bool by_rows = comes_by_rows(tensor) && !tensor.rows.is_local;
  infeed.slots = !by_rows && tiled::InputSlots::can_take(tensor);
  infeed.strips = !by_rows && !infeed.slots;
  if (infeed.strips && tensor.rows.is_local) {
    return unsupported("an input of {} channels cannot come in slice by slice", tensor.channels);
  }
  const tiled::InputSlots slots = tiled::InputSlots::of(tensor);
  const bool uneven = infeed.slots && tiled::UnevenInput::can_take(builder.level(), tensor);
  const tiled::UnevenInput as_google = tiled::UnevenInput::of(tensor);
  const std::int64_t buffer_bytes = uneven          ? 2 * std::int64_t{as_google.slot_bytes}
                                    : infeed.slots  ? 2 * std::int64_t{slots.bytes}
                                    : infeed.strips ? tiled::InputStrip::max_bytes(tensor)
                                                    : 2 * std::int64_t{rows.slot_bytes};
  const std::int64_t constants = std::int64_t{rows.constant_words} * chip::kNarrowWordBytes;
  infeed.row_buffer = builder.new_narrow(buffer_bytes + constants);
  tiled::NarrowObject& buffer = builder.program().narrow.back();
  buffer.fills_gaps = true;
  buffer.gap_margin = kConstantsReserve - constants;
  infeed.identity = builder.new_wide(rows.identity_lines);
  infeed.row_lines = builder.new_wide(2 * (uneven          ? as_google.lines
                                           : infeed.slots  ? slots.lines
                                           : infeed.strips ? 1
                                                           : rows.lines));
  step.narrow_used = {infeed.row_buffer};
  step.wide_used = {infeed.identity, infeed.row_lines};
  step.work = infeed;
  return ok_status();
}

// How the readers of a tensor take it, those of its other shapes included.
struct Readers {
  bool any = false;
  bool only_vector = true;   // without looking at its shape
  bool only_dense = true;    // as the input of fully connected layers, all of it at once
  std::int32_t outputs = 0;  // the most that one of these has
};

void look_at_readers(const Builder& builder, std::int32_t source, Readers& readers) {
  const ir::Tensor& tensor = builder.source(source);
  const bool is_vector = tensor.shape.elements() == tensor.shape.last();
  const auto& results = builder.graph().outputs;
  if (std::find(results.begin(), results.end(), source) != results.end()) {
    readers.only_dense = false;
    readers.only_vector = readers.only_vector && is_vector;
  }
  for (const std::int32_t index : builder.ops()) {
    const ir::Operator& op = builder.op(index);
    if (std::find(op.inputs.begin(), op.inputs.end(), source) == op.inputs.end()) continue;
    readers.any = true;
    const bool has_matrix = op.type == "FULLY_CONNECTED" && op.inputs.size() >= 2 && op.inputs[0] == source &&
                            op.inputs[1] >= 0 && builder.source(op.inputs[1]).shape.rank() == 2;
    if (has_matrix && builder.source(op.inputs[1]).shape[1] == tensor.shape.elements()) {
      readers.outputs = std::max(readers.outputs, builder.source(op.inputs[1]).shape[0]);
    } else if (keeps_elements(builder, op)) {
      look_at_readers(builder, op.outputs[0], readers);
    } else {
      readers.only_dense = false;
      readers.only_vector = readers.only_vector && is_vector;
    }
  }
}

// All elements as one pixel: cut by channels, or at once on all tiles of the layers that read them.
Result<std::int32_t> new_vector_of_all(Builder& builder, std::int32_t source, const Readers& readers) {
  const ir::Tensor& from = builder.source(source);
  constexpr std::int64_t kMostElements = std::int64_t{chip::kTiles} * chip::kNarrowBytes;
  if (from.shape.elements() > kMostElements) {
    return unsupported("tensor '{}' has {} elements, more than the chip's {} bytes of memory for activations",
                       ir::describe_name(from.name), from.shape.elements(), kMostElements);
  }
  TiledTensor vector;
  vector.source = source;
  vector.spread = tiled::Spread::kVector;
  vector.channels = static_cast<std::int32_t>(from.shape.elements());
  vector.run = tiled::vector_run(vector.channels);
  vector.pitch = vector.pixel_words() * chip::kNarrowWordBytes;
  REEF_ASSIGN_OR_RETURN(vector.zero_point, chip_zero_point(from));
  vector.scale = from.quantization.scale[0];
  if (builder.level() == tiled::Level::kBetter && readers.only_dense && vector.channels <= kMostCopied) {
    TiledTensor outputs;
    outputs.spread = tiled::Spread::kVector;
    outputs.channels = readers.outputs;
    outputs.run = tiled::vector_run(outputs.channels);
    vector.spread = tiled::Spread::kCopies;
    vector.tiles = outputs.owners();
  }
  return builder.add_tensor(std::move(vector));
}

}  // namespace

Result<std::int32_t> add_infeed(Builder& builder, std::int32_t source) {
  const ir::Shape& shape = builder.source(source).shape;
  tiled::Infeed infeed;
  infeed.border = source;
  Readers readers;
  if (shape.is_usable() && shape.rank() > 0 && shape.elements() > 0) {
    look_at_readers(builder, source, readers);
    infeed.vector = readers.any && readers.only_vector;
  }
  REEF_ASSIGN_OR_RETURN(infeed.tensor,
                        infeed.vector ? new_vector_of_all(builder, source, readers) : builder.new_grid(source));
  builder.set_value(source, {infeed.tensor, {}});
  return builder.add_step(-1, infeed, {}, {infeed.tensor}, infeed.vector ? finish_vector_infeed : finish_infeed);
}

Status add_outfeed(Builder& builder, std::int32_t source) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t tensor, builder.any_layout(source));
  tiled::Outfeed outfeed;
  outfeed.border = source;
  outfeed.tensor = tensor;
  outfeed.lines = builder.new_wide(tiled::kOutfeedLines);
  const std::int32_t step = builder.add_step(-1, outfeed, {Read{tensor}}, {});
  builder.program().steps.back().wide_used = {outfeed.lines};
  builder.program().outputs.push_back(step);
  return ok_status();
}

}  // namespace reef::lower
