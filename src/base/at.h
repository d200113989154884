// SPDX-License-Identifier: Apache-2.0
// Models number tensors and operators with signed integers, since -1 means none; containers count from 0 without sign.
#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>

namespace reef {

// `position`, which is not negative, as an index of a container: `tensors[at(op.inputs[0])]`. An enumerator is the
// index of its row: `kNames[at(kind)]`.
template <typename Position>
requires std::integral<Position> || std::is_enum_v<Position>
constexpr std::size_t at(Position position) { return static_cast<std::size_t>(position); }

}  // namespace reef
