// SPDX-License-Identifier: Apache-2.0
#include "chip/machine.h"

#include <array>
#include <cstddef>

namespace reef::chip {
namespace {

constexpr std::array<std::string_view, kTileCounters> kTileCounterNames = {
    "AVDATA",        "PARAMETERS",     "PARTIAL_SUMS",    "MESH_NORTH_IN",  "MESH_EAST_IN",
    "MESH_SOUTH_IN", "MESH_WEST_IN",   "MESH_NORTH_OUT",  "MESH_EAST_OUT",  "MESH_SOUTH_OUT",
    "MESH_WEST_OUT", "WIDE_TO_NARROW", "WIDE_TO_SCALING", "NARROW_TO_WIDE", "RING_READ_A",
    "RING_READ_B",   "RING_WRITE",     "RING_PRODUCER_A", "RING_PRODUCER_B"};
constexpr std::array<std::string_view, kScalarCounters> kScalarCounterNames = {
    "AVDATA_INFEED", "PARAMETER_INFEED", "AVDATA_POP",   "PARAMETER_POP",  "SCALAR_INFEED",
    "PRODUCER_A",    "PRODUCER_B",       "RING_OUTFEED", "SCALAR_PIPELINE"};
constexpr std::array<std::string_view, kTileUnits> kTileUnitNames = {
    "tensor",         "wide_to_narrow", "ring_producer", "ring_consumer_a", "ring_consumer_b",
    "narrow_to_wide", "mesh_south",     "mesh_west",     "mesh_north",      "mesh_east"};

template <std::size_t n>
std::string_view name_at(const std::array<std::string_view, n>& names, std::size_t index) {
  return index < n ? names[index] : "?";
}

}  // namespace

std::string_view name(TileCounter counter) { return name_at(kTileCounterNames, static_cast<std::size_t>(counter)); }
std::string_view name(ScalarCounter counter) { return name_at(kScalarCounterNames, static_cast<std::size_t>(counter)); }
std::string_view name(TileUnit unit) { return name_at(kTileUnitNames, static_cast<std::size_t>(unit)); }

}  // namespace reef::chip
