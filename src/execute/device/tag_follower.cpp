// SPDX-License-Identifier: Apache-2.0
// Each function repeats what movers.cpp or host_units.cpp does with bytes; queues that are empty against expectation
// give bytes without a tag.
#include "execute/device/tag_follower.h"

#include <algorithm>

namespace reef::device {
namespace {

constexpr std::array<std::size_t, 3> kUnitBytes = {chip::kParameterFifoUnitBytes, chip::kActivationFifoUnitBytes, 4};
constexpr std::array<std::size_t, 3> kUnits = {chip::kParameterFifoUnits, chip::kActivationFifoUnits,
                                               chip::kLoopBackBufferWords};

template <typename T>
T take_front(std::deque<T>& queue) {
  if (queue.empty()) return {};
  const T front = queue.front();
  queue.pop_front();
  return front;
}

void transpose(std::array<Tag, kLineBytes>& line, bool halves) {
  const auto in = line;
  if (halves) {
    for (std::size_t group = 0; group < kLineBytes; group += 8) {
      std::copy_n(in.begin() + static_cast<std::ptrdiff_t>(group) + 4, 2,
                  line.begin() + static_cast<std::ptrdiff_t>(group) + 2);
      std::copy_n(in.begin() + static_cast<std::ptrdiff_t>(group) + 2, 2,
                  line.begin() + static_cast<std::ptrdiff_t>(group) + 4);
    }
    return;
  }
  for (std::size_t group = 0; group < kLineBytes; group += 16) {
    for (std::size_t i = 0; i < 4; ++i) {
      for (std::size_t j = 0; j < 4; ++j) line[group + 4 * i + j] = in[group + 4 * j + i];
    }
  }
}

}  // namespace

TagFollower::TagFollower() : tiles_(chip::kTiles) {
  for (std::size_t i = 0; i < fifos_.size(); ++i) fifos_[i].resize(kUnits[i] * kUnitBytes[i]);
}

void TagFollower::begins(const Program& program, const Chip& /*chip*/) {
  program_ = &program;
  for (TileTags& tile : tiles_) {
    for (auto& channel : tile.ring) channel.clear();
    for (auto& link : tile.links) link.clear();
    tile.packed_words = 0;
  }
  pending_.clear();
  to_scalar_.clear();
  to_scalar_byte_ = 0;
  inputs_.clear();
  parameters_.clear();
  outputs_.clear();
  sent_.clear();
  written_.clear();
}

void TagFollower::executed(std::size_t /*index*/, const std::optional<HostRequest>& request, std::size_t pushed) {
  if (pushed > 0) put(tags_from_core(pushed).data(), pushed);
  if (!request || request->purpose == Purpose::kInterrupt) return;
  const HostMemory::Place place = HostMemory::place_of(request->address);
  const Transfer transfer{place.buffer, place.offset, request->bytes};
  if (request->purpose == Purpose::kOutput) {
    outputs_.push_back(transfer);
    claim();
  } else {
    (request->purpose == Purpose::kParameters ? parameters_ : inputs_).push_back(transfer);
  }
}

void TagFollower::started(const Tile* tile, int unit, const Running& /*run*/) {
  if (tile == nullptr) {
    if (unit == static_cast<int>(HostUnitId::kPop)) pending_.clear();
    return;
  }
  TileTags& tags = of(*tile);
  if (!tags.narrow.empty()) return;
  tags.narrow.resize(chip::kNarrowBytes + kLineBytes);
  tags.wide.resize(chip::kWideLines);
}

void TagFollower::finished(const Tile* tile, int unit, const Running& /*run*/) {
  if (tile != nullptr || unit != static_cast<int>(HostUnitId::kOutfeed) || to_scalar_byte_ == 0) return;
  take_front(to_scalar_);
  to_scalar_byte_ = 0;
}

void TagFollower::moved(const Move& move) {
  switch (move.kind) {
    case MoveKind::kLineSent: {
      const auto& op = std::get<isa::RingSend>(move.run->operation->code);
      send_line(op.to_tiles, op.channel, op.to_scalar,
                std::make_shared<TagLine>(of(*move.tile).wide[reef::at(move.source)]));
      break;
    }
    case MoveKind::kHeaderReceived:
    case MoveKind::kLineReceived:
      receive_line(move);
      break;
    case MoveKind::kWordPacked:
      pack_word(move);
      break;
    case MoveKind::kLineStored:
      store_line(move);
      break;
    case MoveKind::kWordUnpacked:
      unpack_word(move);
      break;
    case MoveKind::kScalingLoaded:
      load_scaling(move);
      break;
    case MoveKind::kWordSent:
    case MoveKind::kWordReceived:
      cross_mesh(move);
      break;
    case MoveKind::kInfed:
      infeed(move);
      break;
    case MoveKind::kPopped:
      pop(move);
      break;
    case MoveKind::kOutfed:
      outfeed(move);
      break;
  }
}

void TagFollower::send_line(std::uint16_t tiles, int channel, bool to_scalar, const SentLine& line) {
  for (std::size_t t = 0; t < tiles_.size(); ++t) {
    if ((tiles >> t & 1) != 0) tiles_[t].ring[reef::at(channel)].push_back(line);
  }
  if (to_scalar) to_scalar_.push_back(line);
}

void TagFollower::receive_line(const Move& move) {
  const auto& op = std::get<isa::RingReceive>(move.run->operation->code);
  TileTags& tile = of(*move.tile);
  const SentLine sent = take_front(tile.ring[reef::at(op.channel)]);
  tile.wide[reef::at(move.target)] = sent == nullptr ? TagLine{} : *sent;
}

void TagFollower::pack_word(const Move& move) {
  TileTags& tile = of(*move.tile);
  if (tile.packed_words >= kLineWords) return;
  std::copy_n(tile.narrow.begin() + 4 * move.source, 4, tile.packed.begin() + 4 * tile.packed_words++);
}

void TagFollower::store_line(const Move& move) {
  const auto& op = std::get<isa::NarrowToWide>(move.run->operation->code);
  TileTags& tile = of(*move.tile);
  std::fill(tile.packed.begin() + 4 * tile.packed_words, tile.packed.end(), kNoTag);
  if (op.transpose) transpose(tile.packed, op.halves);
  tile.wide[reef::at(move.target)] = tile.packed;
  tile.packed_words = 0;
}

void TagFollower::unpack_word(const Move& move) {
  TileTags& tile = of(*move.tile);
  const TagLine& from = tile.wide[reef::at(move.source)];
  std::copy_n(from.begin() + 4 * move.line_word, 4, tile.narrow.begin() + 4 * move.target);
}

void TagFollower::load_scaling(const Move& move) {
  constexpr std::ptrdiff_t kStep = chip::kScalingStepBytes;
  TileTags& tile = of(*move.tile);
  const TagLine& from = tile.wide[reef::at(move.source)];
  std::copy_n(from.begin() + kStep * move.line_word, kStep, tile.scaling.begin() + kStep * move.target);
}

void TagFollower::cross_mesh(const Move& move) {
  const auto& op = std::get<isa::Mesh>(move.run->operation->code);
  const auto direction = static_cast<std::size_t>(move.unit - static_cast<int>(isa::Unit::kMeshSouth));
  TileTags& tile = of(*move.tile);
  TagWord word{};
  if (move.kind == MoveKind::kWordSent) {
    const int to = chip::neighbour(move.tile->number, static_cast<chip::Direction>(direction));
    if (to < 0) return;
    std::copy_n(tile.narrow.begin() + 4 * move.source, 4, word.begin());
    tiles_[reef::at(to)].links[direction].push_back(word);
    return;
  }
  if (op.fills) {
    word.fill(tag_of_fill(*move.run));
  } else {
    word = take_front(tile.links[direction]);
  }
  std::copy(word.begin(), word.end(), tile.narrow.begin() + 4 * move.target);
}

Tag TagFollower::next_of(std::deque<Transfer>& stream) {
  while (!stream.empty() && stream.front().bytes == 0) stream.pop_front();
  if (stream.empty()) return kNoTag;
  Transfer& transfer = stream.front();
  const std::uint64_t at = transfer.offset++;
  --transfer.bytes;
  const auto written = written_.find(transfer.buffer);
  if (written == written_.end()) return tag_of_host_byte(*program_, transfer.buffer, at);
  return at < written->second.size() ? written->second[at] : kNoTag;
}

void TagFollower::infeed(const Move& move) {
  const auto& op = std::get<isa::Infeed>(move.run->operation->code);
  const std::size_t fifo = op.activations ? 1 : 0;
  auto to = fifos_[fifo].begin() + move.target * static_cast<std::int64_t>(kUnitBytes[fifo]);
  std::generate_n(to, kUnitBytes[fifo], [&] { return next_of(op.activations ? inputs_ : parameters_); });
}

void TagFollower::pop(const Move& move) {
  const auto& op = std::get<isa::Pop>(move.run->operation->code);
  const auto fifo = static_cast<std::size_t>(op.source);
  const auto from = fifos_[fifo].begin() + move.source * static_cast<std::int64_t>(kUnitBytes[fifo]);
  pending_.insert(pending_.end(), from, from + static_cast<std::ptrdiff_t>(kUnitBytes[fifo]));
  for (std::int64_t sent = 0; sent < move.target; ++sent) {
    auto line = std::make_shared<TagLine>();
    const auto part = static_cast<std::ptrdiff_t>(std::min(static_cast<std::size_t>(op.line_bytes), pending_.size()));
    std::copy_n(pending_.begin(), part, line->begin());
    pending_.erase(pending_.begin(), pending_.begin() + part);
    send_line(op.to_tiles, 0, false, line);
  }
}

void TagFollower::outfeed(const Move& move) {
  const auto& op = std::get<isa::Outfeed>(move.run->operation->code);
  static constexpr TagLine kUnknown{};
  const Tag* tags = (to_scalar_.empty() ? kUnknown : *to_scalar_.front()).data() + to_scalar_byte_;
  if (op.unit_bytes == 8) {
    put(tags, 8);
  } else if (op.loop_back) {
    std::copy_n(tags, 4, fifos_[2].begin() + move.target % chip::kLoopBackBufferWords * 4);
  } else {
    taken_by_core({tags, 4});
  }
  to_scalar_byte_ += static_cast<std::size_t>(op.unit_bytes);
  if (to_scalar_byte_ < kLineBytes) return;
  take_front(to_scalar_);
  to_scalar_byte_ = 0;
}

void TagFollower::put(const Tag* tags, std::size_t bytes) {
  sent_.insert(sent_.end(), tags, tags + bytes);
  claim();
}

void TagFollower::claim() {
  while (!outputs_.empty() && !sent_.empty()) {
    Transfer& transfer = outputs_.front();
    const auto part = std::min<std::uint64_t>(sent_.size(), transfer.bytes);
    std::vector<Tag>& buffer = written_[transfer.buffer];
    if (buffer.size() < transfer.offset + part) buffer.resize(transfer.offset + part);
    std::copy_n(sent_.begin(), part, buffer.begin() + static_cast<std::ptrdiff_t>(transfer.offset));
    sent_.erase(sent_.begin(), sent_.begin() + static_cast<std::ptrdiff_t>(part));
    transfer.offset += part;
    transfer.bytes -= part;
    if (transfer.bytes > 0) return;
    outputs_.pop_front();
  }
}

}  // namespace reef::device
