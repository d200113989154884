// SPDX-License-Identifier: Apache-2.0
// Mesh units: words from the narrow memory of a tile to that of its neighbour.
//
// Every step counts its agent's clock up before it accesses anything, and signals after it has.
#include <algorithm>

#include "audit/walk.h"

namespace reef::audit {
namespace {

constexpr std::size_t kLinkDepth = chip::kMeshWordsNeeded;  // words of a link that are under way at once
constexpr std::size_t kFirstMeshReads = 2;                  // readers of narrow memory, in the order of its log

// Words that lie side by side, before the position `until`.
std::int64_t words_in_a_row(const isa::NestCursor& cursor, const isa::NestShape& nest, std::int64_t until) {
  if (nest.stride[0] != 1 || (nest.buffer_stride != 0 && nest.buffer_level == 0)) return 1;
  return std::min(cursor.run(), until - cursor.position());
}

}  // namespace

// Words side by side in both memories; both agents have begun the first. False: they must be looked at one by one, and
// nothing has happened.
bool Walk::mesh_row(TileState& from, Worker& sender, Worker& receiver, std::int64_t words, int direction) {
  TileState& to = tile_of_worker(receiver);
  Agent &reads = *sender.agent, &writes = *receiver.receiver;
  const std::int64_t source = sender.first.address(), target = receiver.second.address();
  if (!from.narrow->holds(source) || !from.narrow->holds(source + words - 1)) return false;
  if (!to.narrow->holds(target) || !to.narrow->holds(target + words - 1)) return false;
  if (!from.narrow->knows_writes(source, words, reads)) return false;
  if (!to.narrow->knows_writes(target, words, writes) || !to.narrow->knows_reads(target, words, writes)) return false;
  reads.tick(static_cast<Clock>(words - 1));
  writes.tick(static_cast<Clock>(words - 1));
  statistics_.reads += words;
  statistics_.writes += words;
  from.narrow->note_reads(source, words, reads, kFirstMeshReads + static_cast<std::size_t>(direction));
  to.narrow->note_writes(target, words, writes);
  std::copy_n(from.narrow_written.begin() + source, words, to.narrow_written.begin() + target);
  return true;
}

// Words that go straight from the sender's memory into its neighbour's, as long as neither of the two waits or signals
// in between: nobody can tell whether they went one by one. 0: the neighbour is not ready to receive.
std::int64_t Walk::mesh_words(Worker& sender, const isa::Mesh& op, int to, int direction) {
  TileState &tile = tile_of_worker(sender), &neighbour = *tiles_[at(to)];
  const auto unit = static_cast<std::size_t>(isa::Unit::kMeshSouth) + static_cast<std::size_t>(direction);
  Worker& other = neighbour.workers[unit];
  const auto* receive = other.is_running ? std::get_if<isa::Mesh>(&other.operation->code) : nullptr;
  if (receive == nullptr || !receive->receives || receive->fills || other.second.done()) return 0;
  Agent &agent = *sender.agent, &receiver = *other.receiver;
  if (!pass(receiver, other, other.second_gate, neighbour.counters, other.second.position())) return 0;
  const std::int64_t send_until = std::min(sender.first_gate.next_any, sender.first_passes.next);
  const std::int64_t receive_until = std::min(other.second_gate.next_any, other.second_passes.next);
  agent.tick();
  receiver.learn(agent.stamp());
  std::int64_t words = 0;
  for (;; agent.tick()) {
    receiver.tick();
    std::int64_t row = std::min(words_in_a_row(sender.first, op.in, send_until),
                                words_in_a_row(other.second, receive->out, receive_until));
    if (row > 1 && mesh_row(tile, sender, other, row, direction)) {
      sender.first.advance(row);
      other.second.advance(row);
    } else {
      row = 1;
      const std::int64_t word = sender.first.address();
      read(*tile.narrow, word, agent, kFirstMeshReads + static_cast<std::size_t>(direction));
      const bool is_written = tile.narrow->holds(word) && tile.narrow_written[at(word)] != 0;
      write_word(neighbour, other.second.address(), receiver, is_written);
      sender.first.advance();
      other.second.advance();
    }
    words += row;
    if (sender.first.done() || sender.first.position() >= send_until) break;
    if (other.second.done() || other.second.position() >= receive_until) break;
  }
  receiver.learn(agent.stamp());
  statistics_.messages += words;
  signal(agent, tile.counters[op.sent.counter], sender.first_passes.up_to(sender.first.position()));
  signal(receiver, neighbour.counters[receive->received.counter], other.second_passes.up_to(other.second.position()));
  if (other.second.done()) wake(other.actor);
  return words;
}

bool Walk::mesh_send(Worker& worker, const isa::Mesh& op, int direction) {
  TileState& tile = tile_of_worker(worker);
  Agent& agent = *worker.agent;
  const int to = chip::neighbour(tile.number, static_cast<chip::Direction>(direction));
  auto* link = to < 0 ? nullptr : &tiles_[at(to)]->links[at(direction)];
  while (!worker.first.done()) {
    if (!pass(agent, worker, worker.first_gate, tile.counters, worker.first.position())) return false;
    if (link != nullptr && link->empty()) {
      const std::int64_t words = mesh_words(worker, op, to, direction);
      if (!spend(2 * words)) return false;
      if (words > 0) continue;
    }
    if ((link != nullptr && link->size() >= kLinkDepth) || !spend(1)) return false;
    agent.tick();
    const std::int64_t word = worker.first.address();
    read(*tile.narrow, word, agent, kFirstMeshReads + static_cast<std::size_t>(direction));
    if (link != nullptr) {
      const bool is_written = tile.narrow->holds(word) && tile.narrow_written[at(word)] != 0;
      ++statistics_.messages;
      link->push_back({agent.stamp(), is_written ? 1u : 0u});
      wake(to * kActorsPerTile + static_cast<int>(isa::Unit::kMeshSouth) + direction);
    }
    worker.first.advance();
    signal(agent, tile.counters[op.sent.counter], worker.first_passes.up_to(worker.first.position()));
  }
  return true;
}

bool Walk::mesh_receive(Worker& worker, const isa::Mesh& op, int direction) {
  TileState& tile = tile_of_worker(worker);
  Agent& agent = *worker.receiver;
  auto& link = tile.links[at(direction)];
  static constexpr std::array<chip::Direction, 4> kOpposite = {chip::Direction::kNorth, chip::Direction::kEast,
                                                               chip::Direction::kSouth, chip::Direction::kWest};
  const int from = chip::neighbour(tile.number, kOpposite[at(direction)]);
  while (!worker.second.done()) {
    if (!pass(agent, worker, worker.second_gate, tile.counters, worker.second.position())) return false;
    if ((!op.fills && link.empty()) || !spend(1)) return false;
    bool is_written = true;
    if (!op.fills) {
      agent.learn(link.front().sent);
      is_written = link.front().written != 0;
      link.pop_front();
      if (from >= 0) wake(from * kActorsPerTile + static_cast<int>(isa::Unit::kMeshSouth) + direction);
    }
    agent.tick();
    write_word(tile, worker.second.address(), agent, is_written);
    worker.second.advance();
    signal(agent, tile.counters[op.received.counter], worker.second_passes.up_to(worker.second.position()));
  }
  return true;
}

// The two halves go on independently; the unit's next instruction begins when both are done.
bool Walk::mesh(Worker& worker, const isa::Mesh& op) {
  const int direction = worker.actor % kActorsPerTile - static_cast<int>(isa::Unit::kMeshSouth);
  const bool is_sent = !op.sends || mesh_send(worker, op, direction);
  const bool is_received = !op.receives || mesh_receive(worker, op, direction);
  return is_sent && is_received;
}

}  // namespace reef::audit
