// SPDX-License-Identifier: Apache-2.0
#include "lower/transfers.h"

#include "ir/describe.h"

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
  const std::int64_t buffer_bytes = infeed.slots    ? 2 * std::int64_t{slots.bytes}
                                    : infeed.strips ? tiled::InputStrip::max_bytes(tensor)
                                                    : 2 * std::int64_t{rows.slot_bytes};
  const std::int64_t constants = std::int64_t{rows.constant_words} * chip::kNarrowWordBytes;
  infeed.row_buffer = builder.new_narrow(buffer_bytes + constants);
  tiled::NarrowObject& buffer = builder.program().narrow.back();
  buffer.fills_gaps = true;
  buffer.gap_margin = kConstantsReserve - constants;
  infeed.identity = builder.new_wide(rows.identity_lines);
  infeed.row_lines = builder.new_wide(2 * (infeed.slots ? slots.lines : infeed.strips ? 1 : rows.lines));
  step.narrow_used = {infeed.row_buffer};
  step.wide_used = {infeed.identity, infeed.row_lines};
  step.work = infeed;
  return ok_status();
}

}  // namespace

Result<std::int32_t> add_infeed(Builder& builder, std::int32_t source) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t tensor, builder.new_grid(source));
  builder.set_value(source, {tensor, {}});
  tiled::Infeed infeed;
  infeed.border = source;
  infeed.tensor = tensor;
  return builder.add_step(-1, infeed, {}, {tensor}, finish_infeed);
}

Status add_outfeed(Builder& builder, std::int32_t source) {
  REEF_ASSIGN_OR_RETURN(const Value value, builder.value(source));
  std::int32_t tensor = value.tensor;
  if (value.padding != Padding{}) {
    REEF_ASSIGN_OR_RETURN(tensor, builder.grid(source));
  }
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
