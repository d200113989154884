// SPDX-License-Identifier: Apache-2.0
#include "lower/transfers.h"
#include "lower/shared_steps.h"

#include <algorithm>

#include "ir/describe.h"
#include "ir/op.h"
#include "tiled/uneven_input.h"

namespace reef::lower {
namespace {

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
  bool only_dense = true;    // as the input of fully connected layers or LSTMs, all of it at once
  std::int32_t outputs = 0;  // the most that one of these has
};

// As a result of the model, or to an operator elsewhere.
bool leaves_the_part(const Builder& builder, std::int32_t source) {
  const auto has = [&](const std::vector<std::int32_t>& list, std::int32_t item) {
    return std::find(list.begin(), list.end(), item) != list.end();
  };
  if (has(builder.graph().outputs, source)) return true;
  for (std::size_t i = 0; i < builder.graph().operators.size(); ++i) {
    const auto index = static_cast<std::int32_t>(i);
    if (has(builder.op(index).inputs, source) && !has(builder.ops(), index)) return true;
  }
  return false;
}

void look_at_readers(const Builder& builder, std::int32_t source, Readers& readers) {
  const ir::Tensor& tensor = builder.source(source);
  const bool is_vector = tensor.shape.elements() == tensor.shape.last();
  if (leaves_the_part(builder, source)) {
    readers.only_dense = false;
    readers.only_vector = readers.only_vector && is_vector;
  }
  for (const std::int32_t index : builder.ops()) {
    const ir::Operator& op = builder.op(index);
    if (std::find(op.inputs.begin(), op.inputs.end(), source) == op.inputs.end()) continue;
    readers.any = true;
    const bool has_matrix = op.type == Op::FULLY_CONNECTED && op.inputs.size() >= 2 && op.inputs[0] == source &&
                            op.inputs[1] >= 0 && builder.source(op.inputs[1]).shape.rank() == 2;
    const bool is_sequence = op.type == Op::UNIDIRECTIONAL_SEQUENCE_LSTM && op.inputs[0] == source &&
                             op.inputs.size() >= 2 && op.inputs[1] >= 0 &&
                             builder.source(op.inputs[1]).shape.rank() == 2 &&
                             tensor.shape.last() % chip::kNarrowWordBytes == 0;
    if (is_sequence || (has_matrix && builder.source(op.inputs[1]).shape[1] == tensor.shape.elements())) {
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
  if (builder.level() != tiled::Level::kAsGoogle && readers.only_dense && readers.outputs > 0 &&
      vector.channels <= kMostCopied) {
    TiledTensor outputs;
    outputs.spread = tiled::Spread::kVector;
    outputs.channels = readers.outputs;
    outputs.run = tiled::vector_run(outputs.channels);
    vector.spread = tiled::Spread::kCopies;
    vector.tiles = outputs.owners();
  }
  return builder.add_tensor(std::move(vector));
}

// A variable that nothing but LSTMs reads, as one of their two states.
bool is_lstm_state(const Builder& builder, std::int32_t source) {
  constexpr std::size_t kFirstState = 18, kLastState = 19;
  if (!builder.source(source).is_variable) return false;
  for (const ir::Operator& op : builder.graph().operators) {
    for (std::size_t k = 0; k < op.inputs.size(); ++k) {
      if (op.inputs[k] != source) continue;
      if (op.type != Op::UNIDIRECTIONAL_SEQUENCE_LSTM || k < kFirstState || k > kLastState) return false;
    }
  }
  return true;
}

// The state of an LSTM: its output, which all tiles with cells need, or its 16-bit cells, of which each tile needs its
// own; see tiled/lstm.h.
Result<std::int32_t> new_state(Builder& builder, std::int32_t source) {
  const ir::Tensor& from = builder.source(source);
  const bool is_16 = from.type == ir::DataType::kInt16;
  constexpr std::int64_t kMostCells = std::int64_t{chip::kTiles} * chip::kCells;
  const std::int64_t cells = from.shape.is_usable() ? from.shape.elements() : 0;
  if (cells < 1 || cells > kMostCells || from.quantization.scale.size() != 1) {
    return unsupported("the state '{}' is {} with {} scales; those of 1 to {} elements with one scale are generated",
                       ir::describe_name(from.name), from.shape.to_string(), from.quantization.scale.size(),
                       kMostCells);
  }
  TiledTensor state;
  state.source = source;
  state.channels = static_cast<std::int32_t>(cells);
  state.scale = from.quantization.scale[0];
  state.spread = tiled::Spread::kVector;
  if (is_16) {
    state.channels = 2 * ((state.channels + 3) / 4 * 4);  // whole words of four numbers
    state.run = 2 * tiled::kVectorRun;
    state.zero_point = 1 << 15;
  } else {
    REEF_ASSIGN_OR_RETURN(state.zero_point, chip_zero_point(from));
    state.tiles = state.owners();
    state.spread = tiled::Spread::kCopies;
  }
  state.pitch = state.pixel_words() * chip::kNarrowWordBytes;
  return builder.add_tensor(std::move(state));
}

}  // namespace

Result<std::int32_t> add_infeed(Builder& builder, std::int32_t source) {
  const ir::Shape& shape = builder.source(source).shape;
  tiled::Infeed infeed;
  infeed.border = source;
  Readers readers;
  const bool is_state = is_lstm_state(builder, source);
  if (is_state) {
    infeed.vector = true;
  } else if (shape.is_usable() && shape.rank() > 0 && shape.elements() > 0) {
    look_at_readers(builder, source, readers);
    infeed.vector = readers.any && readers.only_vector;
  }
  REEF_ASSIGN_OR_RETURN(infeed.tensor, is_state        ? new_state(builder, source)
                                       : infeed.vector ? new_vector_of_all(builder, source, readers)
                                                       : builder.new_grid(source));
  builder.set_value(source, {infeed.tensor, {}});
  return builder.add_step(-1, infeed, {}, {infeed.tensor}, infeed.vector ? finish_vector_infeed : finish_infeed);
}

std::int32_t add_outfeed(Builder& builder, std::int32_t source, std::int32_t tensor, std::int32_t piece,
                         bool is_state) {
  tiled::Outfeed outfeed;
  outfeed.border = source;
  outfeed.is_state = is_state;
  outfeed.tensor = tensor;
  outfeed.piece = piece;
  outfeed.lines = builder.new_wide(tiled::kOutfeedLines);
  const std::int32_t step = builder.add_step(-1, outfeed, {Read{tensor}}, {});
  builder.program().steps.back().wide_used = {outfeed.lines};
  return step;
}

tiled::HostImage new_host_image(Builder& builder, std::int32_t tensor) {
  const TiledTensor& from = builder.tensor(tensor);
  tiled::HostImage image;
  image.offset = builder.program().host_bytes;
  image.height = from.height;
  image.width = from.width;
  image.pixel_words = from.pixel_words();
  builder.program().host_bytes += image.bytes();
  return image;
}

namespace {

// Rows of an odd number of words are moved with the word behind them.
void make_room_behind(Builder& builder, std::int32_t tensor) {
  const TiledTensor& from = builder.tensor(tensor);
  tiled::NarrowObject& object = builder.program().narrow[at(from.object)];
  object.bytes = std::max(object.bytes, from.offset + from.tile_bytes() + chip::kNarrowWordBytes);
}

}  // namespace

void add_host_store(Builder& builder, std::int32_t tensor, const tiled::HostImage& image) {
  tiled::HostStore store{tensor, image, builder.new_wide(tiled::kOutfeedLines)};
  builder.add_step(-1, store, {Read{tensor}}, {}, [tensor](Builder& finishing, tiled::Step&) -> Status {
    const TiledTensor& from = finishing.tensor(tensor);
    if (from.pitch != from.pixel_words() * chip::kNarrowWordBytes) {
      return unsupported("an image inside of another one cannot be kept by the host");
    }
    make_room_behind(finishing, tensor);
    return ok_status();
  });
  builder.program().steps.back().wide_used = {store.lines};
}

Result<std::int32_t> add_host_load(Builder& builder, std::int32_t source, const tiled::HostImage& image) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t tensor, builder.new_grid(source));
  tiled::HostLoad load{tensor, image, builder.new_wide(tiled::HostLoad::kLines)};
  builder.add_step(-1, load, {}, {tensor}, [tensor](Builder& finishing, tiled::Step&) {
    make_room_behind(finishing, tensor);
    return ok_status();
  });
  builder.program().steps.back().wide_used = {load.lines};
  return tensor;
}

}  // namespace reef::lower
