// SPDX-License-Identifier: Apache-2.0
#include "formats/darwinn/executable_reader.h"

namespace reef::darwinn {
namespace {

constexpr std::uint32_t kDataTypes = 1u << 0 | 1u << 1 | 1u << 2 | 1u << 3 | 1u << 4 | 1u << 5 | 1u << 8 | 1u << 9;
constexpr int kNoInfo = 0, kOutputInfo = 1, kInputInfo = 2;  // union codes

std::optional<TensorShape> read_shape(Table& parent, int slot) {
  const auto at = parent.child(slot, "shape");
  if (!at) return std::nullopt;
  TensorShape result;
  Table table(parent.buffer(), *at, "TensorShape", result.written_defaults);
  result.dimensions = table.values<Range>(TensorShape::kDimensions, "dimensions");
  table.note_newer_fields(TensorShape::kDimensions + 1);
  return result;
}

std::optional<OutputLayout> read_layout(Table& parent) {
  const auto at = parent.child(OutputInfo::kLayout, "layout");
  if (!at) return std::nullopt;
  OutputLayout result;
  Table table(parent.buffer(), *at, "OutputLayout", result.written_defaults);
  result.y_to_tile = table.values<std::int32_t>(OutputLayout::kYToTile, "y_to_tile");
  result.x_to_tile = table.values<std::int32_t>(OutputLayout::kXToTile, "x_to_tile");
  result.tile_offset = table.values<std::int32_t>(OutputLayout::kTileOffset, "tile_offset");
  result.x_to_local_offset = table.values<std::int32_t>(OutputLayout::kXToLocalOffset, "x_to_local_offset");
  result.y_to_local_row = table.values<std::int32_t>(OutputLayout::kYToLocalRow, "y_to_local_row");
  result.x_to_row_size = table.values<std::int32_t>(OutputLayout::kXToRowSize, "x_to_row_size");
  table.note_newer_fields(OutputLayout::kXToRowSize + 1);
  return result;
}

std::optional<OutputSlices> read_slices(Table& parent) {
  const auto at = parent.child(OutputInfo::kSlices, "slices");
  if (!at) return std::nullopt;
  OutputSlices result;
  Table table(parent.buffer(), *at, "OutputSlices", result.written_defaults);
  for (const std::size_t row_at : table.children(OutputSlices::kLayouts, "layouts", sizeof(SliceLayout))) {
    SliceLayout& row = result.layouts.emplace_back();
    Table row_table(parent.buffer(), row_at, "SliceLayout", row.written_defaults);
    row.shape = read_shape(row_table, SliceLayout::kShape);
    row.stride = row_table.values<std::int32_t>(SliceLayout::kStride, "stride");
    row_table.note_newer_fields(SliceLayout::kStride + 1);
    if (!table.ok()) break;
  }
  result.offsets = table.values<std::int32_t>(OutputSlices::kOffsets, "offsets");
  table.note_newer_fields(OutputSlices::kOffsets + 1);
  return result;
}

OutputInfo read_output_info(const FlatBuffer& buffer, std::size_t at) {
  OutputInfo result;
  Table table(buffer, at, "OutputInfo", result.written_defaults);
  result.layout = read_layout(table);
  result.data_type = table.enumeration<DataType>(OutputInfo::kDataType, "data_type", kDataTypes);
  result.slices = read_slices(table);
  table.note_newer_fields(OutputInfo::kSlices + 1);
  return result;
}

void read_info(Table& table, int type_slot, int slot, Layer& result) {
  const int code = table.number<std::uint8_t>(type_slot, "any_info_type");
  const auto at = table.child(slot, "any_info");
  if (code > kInputInfo) {
    return table.fail_field(type_slot, "any_info_type", fmt::format("kind {} is not known", code));
  }
  if (at.has_value() != (code != kNoInfo)) {
    return table.fail_field(slot, "any_info", "a kind without content, or the reverse");
  }
  if (code == kOutputInfo) result.info = read_output_info(table.buffer(), *at);
  if (code == kInputInfo) {
    FieldSet no_fields = 0;
    Table(table.buffer(), *at, "InputInfo", no_fields).note_newer_fields(0);
    result.info = InputInfo{};
  }
}

std::optional<Numerics> read_numerics(Table& parent) {
  const auto at = parent.child(Layer::kNumerics, "numerics");
  if (!at) return std::nullopt;
  Numerics result;
  Table table(parent.buffer(), *at, "Numerics", result.written_defaults);
  result.zero_point = table.number<std::int32_t>(Numerics::kZeroPoint, "zero_point");
  result.dequantization_factor = table.number<float>(Numerics::kDequantizationFactor, "dequantization_factor");
  table.note_newer_fields(Numerics::kDequantizationFactor + 1);
  return result;
}

Layer read_layer(const FlatBuffer& buffer, std::size_t at, bool is_bare) {
  Layer result;
  Table table(buffer, at, "Layer", result.written_defaults);
  result.name = table.text(Layer::kName, "name");
  result.size_bytes = table.size(Layer::kSizeBytes, "size_bytes");
  result.y_dim = table.size(Layer::kYDim, "y_dim");
  result.x_dim = table.size(Layer::kXDim, "x_dim");
  result.z_dim = table.size(Layer::kZDim, "z_dim");
  result.numerics = read_numerics(table);
  if (is_bare) {
    read_info(table, Layer::kBareAnyInfoType, Layer::kBareAnyInfo, result);
    table.note_newer_fields(Layer::kBareAnyInfo + 1);
    return result;
  }
  result.data_type = table.enumeration<DataType>(Layer::kDataType, "data_type", kDataTypes);
  read_info(table, Layer::kAnyInfoType, Layer::kAnyInfo, result);
  result.executions_per_inference = table.size(Layer::kExecutionsPerInference, "executions_per_inference", 1);
  result.cache_on_dram = table.flag(Layer::kCacheOnDram, "cache_on_dram");
  result.shape = read_shape(table, Layer::kShape);
  table.note_newer_fields(Layer::kShape + 1);
  return result;
}

}  // namespace

std::vector<Layer> read_layers(Table& executable, int slot, const char* name, bool is_bare) {
  std::vector<Layer> result;
  for (const std::size_t at : executable.children(slot, name, sizeof(Layer))) {
    result.push_back(read_layer(executable.buffer(), at, is_bare));
    if (!executable.ok()) break;
  }
  return result;
}

}  // namespace reef::darwinn
