// SPDX-License-Identifier: Apache-2.0
#include "ops/chip_maps.h"

namespace reef::ops {
namespace {

// How often the maps must be cut for what an op reads and writes to fit into a tile's narrow memory.
int passes_of(const OpContext& ctx) {
  double bytes = 0;
  const auto add = [&](const Tensor& tensor) {
    const Maps maps = maps_of(tensor);
    if (!tensor.is_constant && !maps.is_vector())
      bytes += maps.pixels_per_tile() * maps.words() * chip::kNarrowWordBytes;
  };
  for (int i = 0; i < ctx.input_count(); ++i) {
    if (ctx.has_input(i)) add(ctx.input(i));
  }
  for (int i = 0; i < ctx.output_count(); ++i) add(ctx.output(i));
  return static_cast<int>(std::clamp(bytes / chip::kNarrowBytes + 1, 1.0, 64.0));
}

}  // namespace

Maps token_maps(std::int64_t tokens) {
  constexpr std::int64_t kMostRows = 1024;  // that are tried
  Maps maps;
  for (std::int64_t rows = 2; rows * rows <= tokens && rows <= kMostRows; ++rows) {
    if (tokens % rows == 0) maps.height = rows;
  }
  maps.width = tokens / maps.height;
  return maps;
}

Maps maps_of(const Tensor& tensor) {
  const Shape& shape = tensor.shape;
  const int rank = shape.rank();
  Maps maps;
  if (rank > 0) maps.channels = shape.last(0);
  if (rank > 1) maps.width = shape.last(1);
  if (rank > 2) maps.height = shape.last(2);
  if (rank > 3) maps.batch = shape.product(0, rank - 3);
  if (rank == 2 || rank == 3) {
    const Maps tokens = token_maps(maps.height * maps.width);
    maps.height = tokens.height;
    maps.width = tokens.width;
  }
  return maps;
}

ChipWork work_of(const OpContext& ctx, double tensor_cycles, double move_cycles, Rows rows) {
  ChipWork work;
  work.tensor_cycles = tensor_cycles;
  work.move_cycles = move_cycles;
  work.passes = passes_of(ctx);
  const double kinds = maps_of(ctx.output(0)).tile_kinds();
  work.instruction_bytes = row_bytes((rows.first + (kinds - 1) * rows.further) * work.passes);
  return work;
}

ChipWork elements_work(const OpContext& ctx, double steps, Rows rows) {
  return work_of(ctx, steps * maps_of(ctx.output(0)).words_per_tile(), kElementGap, rows);
}

ChipWork copy_work(const OpContext& ctx) {
  ChipWork work = elements_work(ctx, 0, {90, 30});
  for (int i = 0; i < ctx.output_count(); ++i) work.tensor_cycles += maps_of(ctx.output(i)).words_per_tile();
  return work;
}

}  // namespace reef::ops
