// SPDX-License-Identifier: Apache-2.0
// Copies over the ring (tiled/ring_copies.h) on the virtual device: lists of random copies between random tiles, beside
// the same copies made here, in the usual and in other orders of execution.
//
// One pixel per tile comes in; copies read the lower half of it and write the upper half; all comes out again.
#include "lower/ring_copies.h"

#include <random>

#include <gtest/gtest.h>

#include "emit/package.h"
#include "generated_code.h"
#include "lower/transfers.h"
#include "quantized_model.h"
#include "schedule/schedule.h"

namespace reef::testing {
namespace {

using tiled::RingCopy;
using tiled::WordWalk;

constexpr std::int32_t kWord = chip::kNarrowWordBytes;

// Walks of equally many words in two shapes.
class RandomCopies {
 public:
  RandomCopies(unsigned seed, std::int32_t half_words) : random_(seed), half_words_(half_words) {}

  std::vector<RingCopy> make(int count) {
    std::vector<RingCopy> copies;
    for (int i = 0; i < count; ++i) copies.push_back(copy());
    return copies;
  }

 private:
  int pick(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }

  // `words` words in up to four dimensions that do not overlap, within half_words_ words from `first` on.
  WordWalk walk(std::int32_t words, std::int32_t first) {
    WordWalk walk;
    std::int32_t left = words, reach = 1;
    while (left > 1 && walk.dims.size() < 3) {
      std::int32_t count = left;
      if (pick(0, 1) == 0) {
        for (count = pick(1, left); left % count != 0;) --count;
      }
      const std::int32_t room = half_words_ / (reach * left);  // the widest stride that leaves room for the rest
      const std::int32_t stride = reach * pick(1, std::min(3, room));
      walk.dims.push_back({stride, count});
      reach = stride * count;
      left /= count;
    }
    if (left > 1) walk.dims.push_back({reach, left});
    const std::int32_t extent = reach * left;
    walk.offset = (first + pick(0, half_words_ - extent)) * kWord;
    return walk;
  }

  RingCopy copy() {
    RingCopy copy;
    const int sizes[] = {1, 2, 16, 63, 64, 65, 128, pick(1, half_words_), half_words_};
    const std::int32_t words = std::min(sizes[pick(0, 8)], half_words_);
    copy.from = pick(0, chip::kTiles - 1);
    copy.to = static_cast<tiled::TileMask>(pick(0, 2) == 0 ? 1 << pick(0, 15) : pick(1, 0xffff));
    copy.source = walk(words, 0);
    copy.target = walk(words, half_words_);
    return copy;
  }

  std::mt19937 random_;
  std::int32_t half_words_;
};

std::vector<std::int32_t> words_of(const WordWalk& walk) {
  std::vector<std::int32_t> words = {walk.offset / kWord};
  for (auto dim = walk.dims.begin(); dim != walk.dims.end(); ++dim) {
    const std::vector<std::int32_t> inner = words;
    words.clear();
    for (std::int32_t i = 0; i < dim->count; ++i) {
      for (const std::int32_t word : inner) words.push_back(word + i * dim->stride);
    }
  }
  return words;
}

struct CopiesOnDevice {
  ir::Model model;
  std::int32_t bytes;  // of a tile

  Result<darwinn::Package> package(const std::vector<RingCopy>& copies, bool google_pace = false) const {
    const std::vector<std::int32_t> no_ops;
    lower::Builder builder(model, no_ops);
    const std::int32_t source = model.subgraphs[0].inputs[0];
    REEF_ASSIGN_OR_RETURN(const std::int32_t infeed, lower::add_infeed(builder, source));
    builder.program().inputs.push_back(infeed);
    const std::int32_t tensor = builder.value(source)->tensor;
    builder.add_step(-1, tiled::RingCopies{}, {lower::Read{tensor}}, {tensor},
                     [&](lower::Builder& finishing, tiled::Step& step) {
                       tiled::RingCopies work;
                       work.google_pace = google_pace;
                       work.copies = copies;
                       for (RingCopy& copy : work.copies) {
                         copy.source.object = copy.target.object = finishing.tensor(tensor).object;
                       }
                       return set_ring_copies(finishing, step, std::move(work));
                     });
    builder.program().outputs.push_back(lower::add_outfeed(builder, source, tensor, 0));
    tiled::ParameterChunk unused;  // packages are made for programs with parameters
    unused.bytes = Bytes(std::vector<std::uint8_t>(chip::kWideLineBytes));
    unused.lines = 1;
    builder.new_parameters(std::move(unused));
    std::int32_t at = -1;
    REEF_ASSIGN_OR_RETURN(tiled::TiledProgram program, std::move(builder).finish(at));
    REEF_RETURN_IF_ERROR(schedule::schedule(program));
    REEF_ASSIGN_OR_RETURN(emit::EmittedPackage emitted, emit::package(model, program, {14, 1, "test"}));
    return std::move(emitted.package);
  }

  Status check(const std::vector<RingCopy>& copies, const darwinn::Package& package,
               const device::Schedule& schedule) const {
    REEF_ASSIGN_OR_RETURN(const auto loaded, device::LoadedPackage::load(package));
    device::Device device({.threads = 1});
    device.set_schedule(schedule);
    std::vector<std::uint8_t> image(static_cast<std::size_t>(chip::kTiles * bytes));
    std::mt19937 random(7);
    for (std::uint8_t& byte : image) byte = static_cast<std::uint8_t>(random());
    REEF_ASSIGN_OR_RETURN(const auto found, device.run(loaded, {{image}}));
    const std::vector<std::uint8_t> before = image;
    for (const RingCopy& copy : copies) {
      const auto from = words_of(copy.source), to = words_of(copy.target);
      for (int tile = 0; tile < chip::kTiles; ++tile) {
        if ((copy.to & tiled::mask_of(tile)) == 0) continue;
        for (std::size_t i = 0; i < from.size(); ++i) {
          std::copy_n(before.begin() + copy.from * bytes + from[i] * kWord, kWord,
                      image.begin() + tile * bytes + to[i] * kWord);
        }
      }
    }
    for (std::size_t i = 0; i < image.size(); ++i) {
      REEF_REQUIRE(found[0][i] == image[i], "tile {} byte {}: {} instead of {}", i / static_cast<std::size_t>(bytes),
                   i % static_cast<std::size_t>(bytes), found[0][i], image[i]);
    }
    return ok_status();
  }
};

CopiesOnDevice copies_on_device(std::int32_t half_words) {
  QuantizedModel model;
  const std::int32_t channels = 2 * half_words * kWord;
  const std::int32_t x = model.input({1, 4, 4, channels});
  return {model.finish({model.logistic(x)}), channels};
}

TEST(RingCopies, AnyWordsToAnyTiles) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const std::int32_t sizes[] = {1, 7, 64, 100, 300, 1000};
    const std::int32_t half_words = sizes[seed % 6];
    const CopiesOnDevice on_device = copies_on_device(half_words);
    const auto copies = RandomCopies(seed, half_words).make(1 + static_cast<int>(seed * 7 % 25));
    const auto package = on_device.package(copies);
    ASSERT_TRUE(package.ok()) << package.status().message();
    for (const unsigned reluctant : {0u, 1u << (seed % 10), 1u << ((seed + 3) % 10)}) {
      const Status status = on_device.check(copies, *package, {.seed = seed % 3, .reluctant = reluctant});
      EXPECT_TRUE(status.ok()) << status.message();
    }
    const Status audited = passes_audit(*package);
    EXPECT_TRUE(audited.ok()) << audited.message();
    if (seed % 3 == 0) {
      const Status races = has_no_races(*package);
      EXPECT_TRUE(races.ok()) << races.message();
    }
  }
}

// Counters pass 2^15 and 2^16 within one list.
TEST(RingCopies, MoreWordsThanACounterHolds) {
  const std::int32_t half_words = 2000;
  const CopiesOnDevice on_device = copies_on_device(half_words);
  std::vector<RingCopy> copies;
  for (int i = 0; i < 40; ++i) {
    RingCopy copy{.from = i % chip::kTiles, .to = tiled::kAllTiles, .source = {}, .target = {}};
    copy.source.dims = copy.target.dims = {{1, half_words - i}};
    copy.target.offset = half_words * kWord;
    copies.push_back(copy);
  }
  const auto package = on_device.package(copies);
  ASSERT_TRUE(package.ok()) << package.status().message();
  const Status status = on_device.check(copies, *package, {});
  EXPECT_TRUE(status.ok()) << status.message();
  const Status audited = passes_audit(*package);
  EXPECT_TRUE(audited.ok()) << audited.message();
}

// Google's condition for free lines: short messages may overtake their reader, which the checks here must see, or they
// would not see it in our own either.
TEST(RingCopies, GooglesPaceRestsOnTiming) {
  const CopiesOnDevice on_device = copies_on_device(64);
  std::vector<RingCopy> copies;
  for (int tile = 0; tile < 8; ++tile) {
    RingCopy copy{.from = tile, .to = tiled::kAllTiles, .source = {}, .target = {}};
    copy.source.dims = copy.target.dims = {{1, 8}};
    copy.target.offset = (64 + 8 * tile) * kWord;
    copies.push_back(copy);
  }
  const auto googles = on_device.package(copies, true), ours = on_device.package(copies);
  ASSERT_TRUE(googles.ok() && ours.ok());
  EXPECT_TRUE(on_device.check(copies, *googles, {}).ok());
  EXPECT_FALSE(passes_audit(*googles).ok());
  EXPECT_FALSE(has_no_races(*googles).ok());
  EXPECT_TRUE(passes_audit(*ours).ok());
  EXPECT_TRUE(has_no_races(*ours).ok());
}

// What could not be emitted is refused before.
TEST(RingCopies, WrongCopiesAreRefused) {
  const CopiesOnDevice on_device = copies_on_device(16);
  RingCopy right{.from = 3, .to = 1, .source = {}, .target = {}};
  right.source.dims = right.target.dims = {{1, 4}};
  right.target.offset = 64;
  EXPECT_TRUE(on_device.package({right}).ok());
  const auto refuses = [&](auto change) {
    RingCopy wrong = right;
    change(wrong);
    return on_device.package({wrong}).status().code() == StatusCode::kInternal;
  };
  EXPECT_TRUE(refuses([](RingCopy& copy) { copy.to = 0; }));
  EXPECT_TRUE(refuses([](RingCopy& copy) { copy.from = 16; }));
  EXPECT_TRUE(refuses([](RingCopy& copy) { copy.source.dims[0].count = 5; }));
  EXPECT_TRUE(refuses([](RingCopy& copy) { copy.source.offset = 2; }));
  EXPECT_TRUE(refuses([](RingCopy& copy) { copy.target.offset = 116; })) << "beyond the object";
  EXPECT_TRUE(refuses([](RingCopy& copy) { copy.source.dims = {{-1, 4}}; })) << "before the object";
}

}  // namespace
}  // namespace reef::testing
