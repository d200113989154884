// SPDX-License-Identifier: Apache-2.0
// Ring, mesh, movers and the units between host and ring in simulated time.
#include <algorithm>

#include "execute/device/chip.h"
#include "execute/device/timeline.h"
#include "execute/device/waits.h"

namespace reef::device {
namespace {

// A bound for programs that no compiler made.
constexpr std::size_t kMostLinkRecords = 1 << 20;

}  // namespace

Timeline::Place Timeline::place_of(const Move& move) {
  return {tiles_[at(move.tile->number)], agent(move.tile->number, move.unit)};
}

void Timeline::moved(const Move& move) {
  switch (move.kind) {
    case MoveKind::kLineSent:
      return line_sent(move);
    case MoveKind::kHeaderReceived:
    case MoveKind::kLineReceived:
      return line_received(move);
    case MoveKind::kWordPacked:
      return word_packed(move);
    case MoveKind::kLineStored:
      return line_stored(move);
    case MoveKind::kWordUnpacked:
    case MoveKind::kScalingLoaded:
      return unpacked(move);
    case MoveKind::kWordSent:
      return word_sent(move);
    case MoveKind::kWordReceived:
      return word_received(move);
    case MoveKind::kInfed:
      return infed(move);
    case MoveKind::kPopped:
      return popped(move);
    case MoveKind::kOutfed:
      return outfed(move);
  }
}

// ---- Ring ----

// Lines for one channel of a tile must come in an order that the program enforces, and whoever sends on a channel must
// know that it is its turn.
void Timeline::send(Agent& agent, std::uint16_t tiles, int channel, bool to_scalar, int line_bytes) {
  Stamp stamp = stamp_of(agent);
  stamp.ring_cycles = line_bytes * options_.timing.costs.ring_byte;
  const auto check = [&](Race::Kind kind, Stamp& last, std::uint32_t& last_index, int tile) {
    if (last.clock != 0 && last.agent != stamp.agent && !agent.knowledge.knows(last.agent, last.clock)) {
      races_.add({.kind = kind,
                  .place = channel == 0 ? "ring channel A" : "ring channel B",
                  .tile = tile,
                  .first_index = last_index,
                  .second_index = agent.slice.index,
                  .first_agent = last.agent,
                  .second_agent = stamp.agent,
                  .slack = stamp.moment.time - last.moment.time});
    }
    last = stamp;
    last_index = agent.slice.index;
  };
  const auto c = static_cast<std::size_t>(channel);
  for (int t = 0; t < chip::kTiles; ++t) {
    if ((tiles >> t & 1) == 0) continue;
    TileState& tile = tiles_[at(t)];
    tile.ring[c].push_back(stamp);
    if (options_.find_races) {
      check(Race::Kind::kMessages, tile.last_sender[c], tile.last_sender_index[c], t);
    }
  }
  if (options_.find_races && tiles != 0) {
    check(Race::Kind::kRingTurn, ring_sender_[c], ring_sender_index_[c], -1);
  }
  if (!to_scalar) return;
  to_scalar_.push_back(stamp);
  if (options_.find_races) {
    check(Race::Kind::kMessages, last_to_scalar_, last_to_scalar_index_, -1);
  }
}

// A line can be sent when everyone it goes to has stored the one before.
void Timeline::wait_for_receivers(Agent& sender, std::uint16_t tiles, int channel) {
  for (int t = 0; t < chip::kTiles; ++t) {
    if ((tiles >> t & 1) == 0) continue;
    sender.moment.wait_for(tiles_[at(t)].accepted[at(channel)]);
  }
}

void Timeline::line_sent(const Move& move) {
  const auto& op = std::get<isa::RingSend>(move.run->operation->code);
  const auto [tile, sender] = place_of(move);
  pass_gate(sender, sender.source, op.in, op.waits, tile.counters, move.from);
  sender.knowledge.tick();
  touch(tile.wide.get(), false, move.source, sender);
  const double cycles = kLineBytes * options_.timing.costs.ring_byte;
  if (op.to_tiles != 0) sender.moment.wait_for(ring_);
  wait_for_receivers(sender, op.to_tiles, op.channel);
  work(sender, Spent::kRing, cycles);
  if (op.to_tiles != 0) ring_ = sender.moment;
  send(sender, op.to_tiles, op.channel, op.to_scalar, kLineBytes);
  signal(sender, tile.counters[at(isa::TileCounter::kRingWrite)], signalled(op.ring_write, op.in, move.from, move.to),
         Spent::kRing);
  signal_ring_producer(sender, op.channel, signalled(op.ring_producer, op.in, move.from, move.to), Spent::kRing);
}

void Timeline::line_received(const Move& move) {
  const auto& op = std::get<isa::RingReceive>(move.run->operation->code);
  const auto [tile, receiver] = place_of(move);
  pass_gate(receiver, receiver.target, op.out, op.waits, tile.counters, move.from);
  auto& lines = tile.ring[at(op.channel)];
  if (!lines.empty()) {
    receive(receiver, lines.front());
    if (!options_.timing.reading.takes_lines_while_computing) {
      Moment stored = tile.port;
      stored.spend(Spent::kRing, lines.front().ring_cycles);
      receiver.moment.wait_for(stored);
      tile.port = receiver.moment;
    }
    lines.pop_front();
  }
  receiver.knowledge.tick();
  touch(tile.wide.get(), true, move.target, receiver);
  tile.accepted[at(op.channel)] = receiver.moment;
  if (move.kind == MoveKind::kHeaderReceived) return;
  const auto counter = op.channel == 0 ? isa::TileCounter::kRingReadA : isa::TileCounter::kRingReadB;
  signal(receiver, tile.counters[at(counter)], signalled(op.read, op.out, move.from, move.to), Spent::kRing);
}

// ---- Between the memories of a tile ----

void Timeline::word_packed(const Move& move) {
  const auto& op = std::get<isa::NarrowToWide>(move.run->operation->code);
  const auto [tile, mover] = place_of(move);
  pass_gate(mover, mover.source, op.in, op.in_waits, tile.counters, move.from);
  mover.knowledge.tick();
  touch(tile.narrow.get(), false, move.source, mover);
  work(mover, Spent::kMovers, options_.timing.costs.mover_word);
}

void Timeline::line_stored(const Move& move) {
  const auto& op = std::get<isa::NarrowToWide>(move.run->operation->code);
  const auto [tile, mover] = place_of(move);
  pass_gate(mover, mover.target, op.out, op.out_waits, tile.counters, move.from);
  mover.knowledge.tick();
  touch(tile.wide.get(), true, move.target, mover);
  signal(mover, tile.counters[at(isa::TileCounter::kNarrowToWide)], signalled(op.signal, op.out, move.from, move.to),
         Spent::kMovers);
}

void Timeline::unpacked(const Move& move) {
  const auto& op = std::get<isa::WideToNarrow>(move.run->operation->code);
  const auto [tile, mover] = place_of(move);
  pass_gate(mover, mover.source, op.in, op.in_waits, tile.counters, move.line_position);
  pass_gate(mover, mover.target, op.out, op.out_waits, tile.counters, move.from);
  mover.knowledge.tick();
  touch(tile.wide.get(), false, move.source, mover);
  touch(op.to_scaling ? tile.scaling.get() : tile.narrow.get(), true, move.target, mover);
  work(mover, Spent::kMovers, op.to_scaling ? options_.timing.costs.scaling_step : options_.timing.costs.mover_word);
  const auto counter = op.to_scaling ? isa::TileCounter::kWideToScaling : isa::TileCounter::kWideToNarrow;
  signal(mover, tile.counters[at(counter)], signalled(op.signal, op.out, move.from, move.to), Spent::kMovers);
}

// ---- Mesh ----

void Timeline::word_sent(const Move& move) {
  const auto& op = std::get<isa::Mesh>(move.run->operation->code);
  const auto [tile, sender] = place_of(move);
  pass_gate(sender, sender.source, op.in, op.in_waits, tile.counters, move.from);
  sender.knowledge.tick();
  touch(tile.narrow.get(), false, move.source, sender);
  work(sender, Spent::kMesh, options_.timing.costs.mesh_word);
  const auto direction = static_cast<std::size_t>(move.unit - static_cast<int>(isa::Unit::kMeshSouth));
  const int to = chip::neighbour(move.tile->number, static_cast<chip::Direction>(direction));
  if (to >= 0) tiles_[at(to)].links[direction].push_back(stamp_of(sender));
  signal(sender, tile.counters[op.sent.counter], signalled(op.sent, op.in, move.from, move.to), Spent::kMesh);
}

void Timeline::word_received(const Move& move) {
  const auto& op = std::get<isa::Mesh>(move.run->operation->code);
  const auto [tile, receiver] = place_of(move);
  pass_gate(receiver, receiver.target, op.out, op.out_waits, tile.counters, move.from);
  auto& link = tile.links[at(move.unit - static_cast<int>(isa::Unit::kMeshSouth))];
  if (op.fills) {
    work(receiver, Spent::kMesh, options_.timing.costs.mesh_word);
  } else if (!link.empty()) {
    receive(receiver, link.front());
    link.pop_front();
  }
  receiver.knowledge.tick();
  touch(tile.narrow.get(), true, move.target, receiver);
  signal(receiver, tile.counters[op.received.counter], signalled(op.received, op.out, move.from, move.to),
         Spent::kMesh);
}

// ---- Host ----

// The host sends in the order of what the program asks for, without waiting to be asked, as far as the chip has room.
void Timeline::infed(const Move& move) {
  const auto& op = std::get<isa::Infeed>(move.run->operation->code);
  Agent& infeed = host_agent(move.unit);
  pass_gate(infeed, infeed.target, op.out, op.waits, scalar_counters_, move.from);
  auto& transfers = op.activations ? inputs_ : parameters_;
  std::uint64_t bytes = op.activations ? chip::kActivationFifoUnitBytes : chip::kParameterFifoUnitBytes;
  const Spent kind = op.activations ? Spent::kInput : Spent::kParameters;
  while (bytes > 0 && !transfers.empty()) {
    Incoming& transfer = transfers.front();
    const std::uint64_t part = std::min(bytes, transfer.left);
    Moment arrival = link_in_;
    sent_in_ += part;
    const std::uint64_t ahead = options_.timing.reading.ahead_bytes;
    while (!taken_.empty() && sent_in_ > ahead && taken_.front().first <= sent_in_ - ahead) {
      arrival.wait_for(taken_.front().second);
      taken_.pop_front();
    }
    if (transfer.after_outputs > 0 && transfer.after_outputs <= outputs_complete_.size()) {
      arrival.wait_for(outputs_complete_[transfer.after_outputs - 1]);
    }
    const double begin = arrival.time;
    arrival.spend(kind, static_cast<double>(part) * cycles_per_in_byte_);
    if (!link_slices_.empty() && link_slices_.back().kind == kind && link_slices_.back().end >= begin) {
      link_slices_.back().end = arrival.time;
      link_slices_.back().bytes += part;
    } else if (link_slices_.size() < kMostLinkRecords) {
      link_slices_.push_back({kind, begin, arrival.time, part});
    }
    link_in_ = arrival;
    receive(infeed, transfer.asked);
    infeed.moment.wait_for(arrival);
    taken_.emplace_back(sent_in_, infeed.moment);
    transfer.left -= part;
    bytes -= part;
    if (transfer.left == 0) transfers.pop_front();
  }
  infeed.knowledge.tick();
  touch(fifos_[op.activations ? 1 : 0].get(), true, move.target, infeed);
  signal(infeed, scalar_counters_[op.signal.counter], signalled(op.signal, op.out, move.from, move.to), kind);
}

void Timeline::popped(const Move& move) {
  const auto& op = std::get<isa::Pop>(move.run->operation->code);
  Agent& pop = host_agent(move.unit);
  pass_gate(pop, pop.source, op.in, op.waits, scalar_counters_, move.from);
  pop.knowledge.tick();
  touch(fifos_[at(op.source)].get(), false, move.source, pop);
  const bool loops_back = op.source == 2;
  if (loops_back) work(pop, Spent::kLoopBack, 4 * options_.timing.costs.loop_back_byte);
  for (std::int64_t line = 0; line < move.target; ++line) {
    if (!loops_back) {
      pop.moment.wait_for(ring_);
      wait_for_receivers(pop, op.to_tiles, 0);
      work(pop, Spent::kRing, op.line_bytes * options_.timing.costs.ring_byte);
      ring_ = pop.moment;
    }
    send(pop, op.to_tiles, 0, false, op.line_bytes);
  }
  signal(pop, scalar_counters_[op.signal.counter], signalled(op.signal, op.in, move.from, move.to), Spent::kRing);
  signal_ring_producer(pop, 0, signalled(op.ring_producer, op.in, move.from, move.to), Spent::kRing);
}

void Timeline::outfed(const Move& move) {
  const auto& op = std::get<isa::Outfeed>(move.run->operation->code);
  Agent& outfeed = host_agent(move.unit);
  pass_gate(outfeed, outfeed.target, op.out, op.waits, scalar_counters_, move.from);
  if (!to_scalar_.empty()) {
    receive(outfeed, to_scalar_.front());
    to_scalar_byte_ += op.unit_bytes;
    if (to_scalar_byte_ >= kLineBytes) {
      to_scalar_.pop_front();
      to_scalar_byte_ = 0;
    }
  }
  outfeed.knowledge.tick();
  if (op.loop_back) {
    touch(fifos_[2].get(), true, move.target, outfeed);
    work(outfeed, Spent::kLoopBack, 4 * options_.timing.costs.loop_back_byte);
  } else {
    work(outfeed, Spent::kRing, op.unit_bytes * options_.timing.costs.ring_byte);
  }
  if (op.unit_bytes == 8) put(outfeed, 8);
  signal(outfeed, scalar_counters_[op.signal.counter], signalled(op.signal, op.out, move.from, move.to), Spent::kRing);
}

// Bytes for the host, and which output transfers they complete.
void Timeline::put(Agent& agent, std::uint64_t bytes) {
  if (bytes > 0) {
    link_out_.wait_for(agent.moment);
    const double begin = link_out_.time;
    link_out_.spend(Spent::kOutput, static_cast<double>(bytes) * cycles_per_out_byte_);
    if (!link_slices_.empty() && link_slices_.back().kind == Spent::kOutput && link_slices_.back().end >= begin) {
      link_slices_.back().end = link_out_.time;
      link_slices_.back().bytes += bytes;
    } else if (link_slices_.size() < kMostLinkRecords) {
      link_slices_.push_back({Spent::kOutput, begin, link_out_.time, bytes});
    }
    output_bytes_unclaimed_ += bytes;
  }
  while (!outputs_.empty() && output_bytes_unclaimed_ > 0) {
    const std::uint64_t part = std::min(outputs_.front(), output_bytes_unclaimed_);
    outputs_.front() -= part;
    output_bytes_unclaimed_ -= part;
    if (outputs_.front() > 0) return;
    outputs_.pop_front();
    if (outputs_complete_.size() < kMostLinkRecords) outputs_complete_.push_back(link_out_);
  }
}

}  // namespace reef::device
