// SPDX-License-Identifier: Apache-2.0
// Follows bytes while a program runs: every byte that the chip holds has a tag, and tags move as the bytes do.
//
// Derived classes say what tags mean, where they begin and what arithmetic makes of them. 0 is the tag of bytes of
// which nothing is known. A follower observes one device from its first run on: what moved before is not known.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "execute/device/chip.h"

namespace reef::device {

using Tag = std::uint32_t;
inline constexpr Tag kNoTag = 0;
inline constexpr Tag kFillTag = 1;  // a constant word that a mesh instruction stored, unless a derived class says more

class TagFollower : public Observer {
 public:
  TagFollower();

  void begins(const Program& program, const Chip& chip) override;
  void executed(std::size_t index, const std::optional<HostRequest>& request, std::size_t pushed) override;
  void started(const Tile* tile, int unit, const Running& run) override;
  void finished(const Tile* tile, int unit, const Running& run) override;
  void moved(const Move& move) override;

 protected:
  using TagLine = std::array<Tag, kLineBytes>;
  using TagWord = std::array<Tag, 4>;

  // The tag of a byte of one of the host's buffers (in the order of device.cpp) that the program has not written.
  virtual Tag tag_of_host_byte(const Program& program, std::size_t buffer, std::uint64_t offset) const = 0;
  // The tag of bytes that a mesh instruction fills memory with.
  virtual Tag tag_of_fill(const Running& /*run*/) const { return kFillTag; }
  // The scalar core takes a word from the ring into its memory, and sends the host bytes that it has computed itself.
  virtual void taken_by_core(std::span<const Tag> /*word*/) {}
  virtual std::vector<Tag> tags_from_core(std::size_t bytes) { return std::vector<Tag>(bytes); }

  // A tile has memories from its first instruction on.
  Tag* narrow(const Tile& tile) { return tiles_[at(tile.number)].narrow.data(); }
  Tag* line(const Tile& tile, std::int64_t index) { return tiles_[at(tile.number)].wide[at(index)].data(); }
  Tag* scaling(const Tile& tile) { return tiles_[at(tile.number)].scaling.data(); }
  const Program& program() const { return *program_; }
  // The tags of one of the host's buffers, as far as the program has written it.
  const std::vector<Tag>& written(std::size_t buffer) const {
    static const std::vector<Tag> kNothing;
    const auto found = written_.find(buffer);
    return found == written_.end() ? kNothing : found->second;
  }

 private:
  using SentLine = std::shared_ptr<const TagLine>;  // all receivers share it
  struct TileTags {
    std::vector<Tag> narrow;
    std::vector<TagLine> wide;
    std::array<Tag, chip::kScalingStepBytes * ScalingMemory::kSteps> scaling{};
    std::array<std::deque<SentLine>, 2> ring;
    std::array<std::deque<TagWord>, 4> links;
    TagLine packed{};  // narrow to wide: the line under way
    int packed_words = 0;
  };
  struct Transfer {
    std::size_t buffer = 0;
    std::uint64_t offset = 0, bytes = 0;
  };

  TileTags& of(const Tile& tile) { return tiles_[at(tile.number)]; }
  void send_line(std::uint16_t tiles, int channel, bool to_scalar, const SentLine& line);
  void receive_line(const Move& move);
  void pack_word(const Move& move);
  void store_line(const Move& move);
  void unpack_word(const Move& move);
  void load_scaling(const Move& move);
  void cross_mesh(const Move& move);
  void infeed(const Move& move);
  void pop(const Move& move);
  void outfeed(const Move& move);
  Tag next_of(std::deque<Transfer>& stream);
  void put(const Tag* tags, std::size_t bytes);
  void claim();

  std::vector<TileTags> tiles_;
  std::array<std::vector<Tag>, 3> fifos_;  // parameters, activations, loop-back
  std::vector<Tag> pending_;               // pop: bytes of an unfinished line
  std::deque<SentLine> to_scalar_;
  std::size_t to_scalar_byte_ = 0;
  std::deque<Transfer> inputs_, parameters_, outputs_;
  std::deque<Tag> sent_;                             // to the host, not yet claimed by a transfer
  std::map<std::size_t, std::vector<Tag>> written_;  // the host's buffers, as far as the program has written them
  const Program* program_ = nullptr;
};

}  // namespace reef::device
