// SPDX-License-Identifier: Apache-2.0
// Other orders of the units than the usual one. A program whose waits are complete gives the same results in each of
// them; one that depends on the speed of its units does not (docs/device.md).
#include <algorithm>

#include "execute/device/chip.h"

namespace reef::device {
// Units of a mask, each of each tile with one in `odds` chances, in random order.
bool Chip::run_units_of(std::uint32_t units, int odds) {
  std::array<int, chip::kTiles * chip::kTileUnits> order;
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  std::shuffle(order.begin(), order.end(), order_);
  bool moved = false;
  for (const int place : order) {
    const int number = place / chip::kTileUnits, unit = place % chip::kTileUnits;
    if ((units >> unit & 1) == 0 || order_() % static_cast<unsigned>(odds) != 0 || !failure_.ok()) continue;
    Tile& tile = *tiles_[at(number)];
    const bool stepped =
        unit == static_cast<int>(isa::Unit::kTensor) ? run_tensor_units(1u << number) : run_tile_unit(tile, unit);
    moved = moved || stepped;
  }
  return moved;
}

bool Chip::sweep_in_another_order() {
  bool moved = false;
  // The core may run ahead, a little.
  const bool has_room = std::all_of(tiles_.begin(), tiles_.end(),
                                    [](const auto& tile) { return tile->dispatch.size() < kScheduleAhead; });
  if (has_room && order_() % 2 == 0 && scalar_core_moves()) moved = true;
  for (auto& tile : tiles_) {
    if (failure_.ok() && order_() % 2 == 0 && dispatch(*tile)) moved = true;
  }
  const std::uint32_t willing = ~schedule_.reluctant;
  if (failure_.ok() && run_units_of(willing, 3)) moved = true;
  if (failure_.ok() && order_() % 2 == 0 && run_infeed()) moved = true;
  if (failure_.ok() && order_() % 2 == 0 && run_pop()) moved = true;
  if (failure_.ok() && order_() % 2 == 0 && run_outfeed()) moved = true;
  if (moved || !failure_.ok()) return moved && failure_.ok();
  // Nobody was lucky: now everyone who can.
  for (auto& tile : tiles_) {
    if (dispatch(*tile)) moved = true;
  }
  if (failure_.ok() && run_units_of(willing, 1)) moved = true;
  if (failure_.ok() && run_infeed()) moved = true;
  if (failure_.ok() && run_pop()) moved = true;
  if (failure_.ok() && run_outfeed()) moved = true;
  if (!moved && failure_.ok() && has_room && scalar_core_moves()) moved = true;
  if (!moved && failure_.ok() && run_units_of(schedule_.reluctant, 1)) moved = true;
  return moved && failure_.ok();
}

}  // namespace reef::device
