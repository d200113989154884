// SPDX-License-Identifier: Apache-2.0
#include "formats/darwinn/executable_writer.h"

namespace reef::darwinn {
namespace {

template <typename T>
void write_values(BufferWriter& buffer, TableWriter& table, int slot, const std::vector<T>& values) {
  if (!values.empty() || table.writes_default(slot)) table.reference(slot, buffer.values(values));
}

Place write_shape(BufferWriter& buffer, const std::optional<TensorShape>& shape) {
  if (!shape) return 0;
  TableWriter table(buffer, shape->written_defaults);
  write_values(buffer, table, TensorShape::kDimensions, shape->dimensions);
  return table.finish();
}

Place write_layout(BufferWriter& buffer, const std::optional<OutputLayout>& layout) {
  if (!layout) return 0;
  TableWriter table(buffer, layout->written_defaults);
  write_values(buffer, table, OutputLayout::kYToTile, layout->y_to_tile);
  write_values(buffer, table, OutputLayout::kXToTile, layout->x_to_tile);
  write_values(buffer, table, OutputLayout::kTileOffset, layout->tile_offset);
  write_values(buffer, table, OutputLayout::kXToLocalOffset, layout->x_to_local_offset);
  write_values(buffer, table, OutputLayout::kYToLocalRow, layout->y_to_local_row);
  write_values(buffer, table, OutputLayout::kXToRowSize, layout->x_to_row_size);
  return table.finish();
}

// In no file seen, so the order is a guess.
Place write_slices(BufferWriter& buffer, const std::optional<OutputSlices>& slices) {
  if (!slices) return 0;
  std::vector<Place> rows;
  for (const SliceLayout& row : slices->layouts) {
    const Place shape = write_shape(buffer, row.shape);
    TableWriter table(buffer, row.written_defaults);
    table.reference(SliceLayout::kShape, shape);
    write_values(buffer, table, SliceLayout::kStride, row.stride);
    rows.push_back(table.finish());
  }
  TableWriter table(buffer, slices->written_defaults);
  if (!rows.empty() || table.writes_default(OutputSlices::kLayouts)) {
    table.reference(OutputSlices::kLayouts, buffer.list(rows));
  }
  write_values(buffer, table, OutputSlices::kOffsets, slices->offsets);
  return table.finish();
}

Place write_info(BufferWriter& buffer, const Layer& layer) {
  if (const auto* output = std::get_if<OutputInfo>(&layer.info)) {
    const Place layout = write_layout(buffer, output->layout);
    const Place slices = write_slices(buffer, output->slices);
    TableWriter table(buffer, output->written_defaults);
    table.reference(OutputInfo::kLayout, layout);
    table.enumeration(OutputInfo::kDataType, output->data_type);
    table.reference(OutputInfo::kSlices, slices);
    return table.finish();
  }
  return std::holds_alternative<InputInfo>(layer.info) ? TableWriter(buffer, 0).finish() : 0;
}

Place write_numerics(BufferWriter& buffer, const std::optional<Numerics>& numerics) {
  if (!numerics) return 0;
  TableWriter table(buffer, numerics->written_defaults);
  table.number(Numerics::kZeroPoint, numerics->zero_point);
  table.number(Numerics::kDequantizationFactor, numerics->dequantization_factor);
  return table.finish();
}

}  // namespace

Place write_layer(BufferWriter& buffer, const Layer& layer, bool is_bare) {
  TableWriter table(buffer, layer.written_defaults);
  if (!layer.name.empty() || table.writes_default(Layer::kName)) {
    table.reference(Layer::kName, buffer.text(layer.name));
  }
  table.reference(Layer::kNumerics, write_numerics(buffer, layer.numerics));
  table.reference(is_bare ? Layer::kBareAnyInfo : Layer::kAnyInfo, write_info(buffer, layer));
  if (!is_bare) table.reference(Layer::kShape, write_shape(buffer, layer.shape));
  table.number(Layer::kSizeBytes, layer.size_bytes);
  table.number(Layer::kYDim, layer.y_dim);
  table.number(Layer::kXDim, layer.x_dim);
  table.number(Layer::kZDim, layer.z_dim);
  if (!is_bare) table.enumeration(Layer::kDataType, layer.data_type);
  table.number(is_bare ? Layer::kBareAnyInfoType : Layer::kAnyInfoType, static_cast<std::uint8_t>(layer.info.index()));
  if (is_bare) return table.finish();
  table.number(Layer::kExecutionsPerInference, layer.executions_per_inference, 1);
  table.flag(Layer::kCacheOnDram, layer.cache_on_dram);
  return table.finish();
}

}  // namespace reef::darwinn
