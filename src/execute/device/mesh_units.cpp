// SPDX-License-Identifier: Apache-2.0
// The units of a tile that send words to a neighbour and take them from the one opposite, or fill memory.
#include <algorithm>

#include "execute/device/bulk_moves.h"
#include "execute/device/chip.h"
#include "execute/device/waits.h"

namespace reef::device {
namespace {

int mesh_unit(chip::Direction direction) {
  return static_cast<int>(isa::Unit::kMeshSouth) + static_cast<int>(direction);
}

// The tile that a unit sends to if tiles are numbered by columns.
int neighbour_by_columns(int tile, chip::Direction direction) {
  const auto turned = [](int t) { return chip::tile_column(t) * chip::kTileColumns + chip::tile_row(t); };
  const int to = chip::neighbour(turned(tile), direction);
  return to < 0 ? to : turned(to);
}

}  // namespace

bool Chip::mesh_send(Tile& tile, Running& run, const isa::Mesh& op, chip::Direction direction) {
  const std::int64_t from = run.first.position();
  const std::int64_t end = affordable(from, permitted_end(op.in, op.in_waits, tile.counters, from, comparison_));
  const int to_tile = doubts(Belief::kTileOrder) ? neighbour_by_columns(tile.number, direction)
                                                 : chip::neighbour(tile.number, direction);
  if (to_tile < 0 && doubts(Belief::kMeshEdge)) return false;
  Tile* receiver = to_tile >= 0 ? tiles_[at(to_tile)].get() : nullptr;
  auto* link = receiver != nullptr ? &receiver->links[at(direction)] : nullptr;
  while (!run.first.done() && run.first.position() < end) {
    const std::int64_t address = run.first.address(), position = run.first.position();
    if (!NarrowMemory::holds_word(address)) return fail(fmt::format("reads word {} of narrow memory", address));
    if (link != nullptr && link->size() >= depths_.mesh_words) break;
    std::int64_t words = observer_ != nullptr ? 1 : equal_steps(run.first, op.in, end);
    if (link != nullptr) words = std::min(words, static_cast<std::int64_t>(depths_.mesh_words - link->size()));
    words = steps_inside(address, op.in.stride[0], words, kNarrowWords);
    const auto stride = static_cast<std::int64_t>(op.in.stride[0]);
    for (std::int64_t i = 0; link != nullptr && i < words; ++i) link->push_back(tile.narrow.word(address + i * stride));
    run.first.advance(words);
    if (observer_ != nullptr) {
      observer_->moved({.kind = MoveKind::kWordSent,
                        .tile = &tile,
                        .unit = mesh_unit(direction),
                        .run = &run,
                        .source = address,
                        .from = position,
                        .to = run.first.position()});
    }
  }
  const std::int64_t to = run.first.position();
  if (to == from || !spend(to - from)) return false;
  if (receiver != nullptr) ++receiver->version;
  count(tile, op.sent, signalled(op.sent, op.in, from, to));
  return true;
}

bool Chip::mesh_receive(Tile& tile, Running& run, const isa::Mesh& op, chip::Direction direction) {
  auto& link = tile.links[at(direction)];
  const bool was_full = link.size() >= depths_.mesh_words;  // the sender waits for it
  const std::int64_t from = run.second.position();
  const std::int64_t end = affordable(from, permitted_end(op.out, op.out_waits, tile.counters, from, comparison_));
  while (!run.second.done() && run.second.position() < end && (op.fills || !link.empty())) {
    const std::int64_t address = run.second.address(), position = run.second.position();
    if (!NarrowMemory::holds_word(address)) return fail(fmt::format("writes word {} of narrow memory", address));
    std::int64_t words = observer_ != nullptr ? 1 : equal_steps(run.second, op.out, end);
    if (!op.fills) words = std::min(words, static_cast<std::int64_t>(link.size()));
    words = steps_inside(address, op.out.stride[0], words, kNarrowWords);
    const auto stride = static_cast<std::int64_t>(op.out.stride[0]);
    for (std::int64_t i = 0; i < words; ++i) {
      const Word word = op.fills ? Word{op.fill_value, kAllKnown} : link[at(i)];
      tile.narrow.set_word(address + i * stride, word);
    }
    if (!op.fills) link.pop_front(static_cast<std::size_t>(words));
    run.second.advance(words);
    if (observer_ != nullptr) {
      observer_->moved({.kind = MoveKind::kWordReceived,
                        .tile = &tile,
                        .unit = mesh_unit(direction),
                        .run = &run,
                        .target = address,
                        .from = position,
                        .to = run.second.position()});
    }
  }
  const std::int64_t to = run.second.position();
  if (to == from || !spend(to - from)) return false;
  count(tile, op.received, signalled(op.received, op.out, from, to));
  if (was_full) touch_all();
  return true;
}

bool Chip::mesh(Tile& tile, Unit& unit, const isa::Mesh& op, chip::Direction direction) {
  Running& run = *unit.running;
  start(unit, op.in, op.out);
  bool moved = op.sends && mesh_send(tile, run, op, direction);
  const bool may_receive = !doubts(Belief::kMeshHalves) || !op.sends || run.first.done();
  if (failure_.ok() && op.receives && may_receive && mesh_receive(tile, run, op, direction)) moved = true;
  const bool is_done = (!op.sends || run.first.done()) && (!op.receives || run.second.done());
  if (!failure_.ok() || !is_done) return moved;
  finish(tile, unit, op.sends ? &op.in : nullptr, op.receives ? &op.out : nullptr);
  return true;
}

}  // namespace reef::device
