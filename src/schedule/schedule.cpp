// SPDX-License-Identifier: Apache-2.0
#include "schedule/schedule.h"

#include <algorithm>

#include "schedule/first_fit.h"
#include "schedule/parameter_places.h"

namespace reef::schedule {
namespace {

using tiled::TiledInput;
using tiled::TiledLayer;
using tiled::TiledProgram;
using tiled::TiledTensor;

// Bytes of the row buffer and the copy's constants must lie beside the input tensor. Google's compiler asks for this
// much below it whatever the constants' size.
constexpr std::int64_t kConstantsReserve = 272;

Status place_tensors(TiledProgram& program) {
  std::vector<Extent> extents;
  extents.reserve(program.tensors.size());
  for (const TiledTensor& tensor : program.tensors) {
    extents.push_back({tensor.tile_bytes(), tensor.first_step, tensor.last_step});
  }
  const std::vector<std::int64_t> offsets = first_fit(extents);
  std::int64_t end = 0;
  for (std::size_t t = 0; t < offsets.size(); ++t) end = std::max(end, offsets[t] + extents[t].size);
  if (end > chip::kNarrowBytes) {
    return unsupported(
        "activations need {} bytes of each tile, which has {}; work in several passes is not generated "
        "yet",
        end, chip::kNarrowBytes);
  }
  for (std::size_t t = 0; t < offsets.size(); ++t) {
    program.tensors[t].address = static_cast<std::int32_t>(offsets[t]);
  }
  program.narrow_bytes = static_cast<std::int32_t>(end);
  return ok_status();
}

// Objects that exist together at the top of wide memory; returns the first line of each.
Result<std::vector<std::int32_t>> place_scratch(TiledProgram& program, std::initializer_list<std::int64_t> sizes) {
  std::vector<Extent> extents;
  for (const std::int64_t size : sizes) extents.push_back({size, 0, 0});
  const std::vector<std::int64_t> offsets = first_fit(extents);
  std::vector<std::int32_t> lines;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const std::int64_t line = chip::kWideLines - offsets[i] - extents[i].size;
    if (line < 0) {
      return unsupported("scratch of {} lines does not fit into a tile's wide memory of {}",
                         offsets[i] + extents[i].size, chip::kWideLines);
    }
    lines.push_back(static_cast<std::int32_t>(line));
    if (extents[i].size > 0) {
      program.lowest_scratch_line = std::min(program.lowest_scratch_line, static_cast<std::int32_t>(line));
    }
  }
  return lines;
}

Status place_input(TiledProgram& program, TiledInput& input) {
  const TiledTensor& tensor = program.tensors[static_cast<std::size_t>(input.tensor)];
  const tiled::InputRows rows = tiled::InputRows::of(tensor);
  const bool fits_below = tensor.address >= 2 * std::int64_t{rows.slot_bytes} + kConstantsReserve;
  const std::int64_t buffer = fits_below ? 0 : tensor.address + tensor.tile_bytes();
  const std::int64_t end =
      buffer + 2 * std::int64_t{rows.slot_bytes} + std::int64_t{rows.constant_words} * chip::kNarrowWordBytes;
  if (end > chip::kNarrowBytes) {
    return unsupported(
        "the input and its buffers need {} bytes of each tile, which has {}; work in several passes is "
        "not generated yet",
        end, chip::kNarrowBytes);
  }
  input.row_buffer = static_cast<std::int32_t>(buffer);
  program.narrow_bytes = std::max(program.narrow_bytes, static_cast<std::int32_t>(end));
  REEF_ASSIGN_OR_RETURN(const std::vector<std::int32_t> lines,
                        place_scratch(program, {rows.identity_lines, 2 * std::int64_t{rows.lines}}));
  input.identity_line = lines[0];
  input.row_lines = lines[1];
  return ok_status();
}

Status place_layer(TiledProgram& program, TiledLayer& layer) {
  const TiledTensor& output = program.tensors[static_cast<std::size_t>(layer.output)];
  const std::int64_t pixels = std::int64_t{output.rows.max_own()} * output.columns.max_own();
  REEF_ASSIGN_OR_RETURN(
      const std::vector<std::int32_t> lines,
      place_scratch(program, {layer.partial_sums ? pixels : 0,
                              tiled::kHeaderSpareLines + std::int64_t{layer.header.arrays()} * layer.buffers,
                              std::int64_t{layer.block_lines} * layer.buffers}));
  if (layer.partial_sums) layer.sums_line = lines[0];
  layer.header_line = lines[1];
  layer.weights_line = lines[2];
  return ok_status();
}

}  // namespace

Status schedule(TiledProgram& program, const ScheduleOptions& options) {
  program.lowest_scratch_line = chip::kWideLines;
  REEF_RETURN_IF_ERROR(place_tensors(program));
  for (TiledInput& input : program.inputs) REEF_RETURN_IF_ERROR(place_input(program, input));
  for (TiledLayer& layer : program.layers) REEF_RETURN_IF_ERROR(place_layer(program, layer));
  for (tiled::TiledOutput& output : program.outputs) {
    REEF_ASSIGN_OR_RETURN(const std::vector<std::int32_t> lines, place_scratch(program, {tiled::kOutfeedLines}));
    output.lines = lines[0];
  }
  return options.parameters ? use_parameter_places(program, *options.parameters) : place_parameters(program);
}

}  // namespace reef::schedule
