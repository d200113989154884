// SPDX-License-Identifier: Apache-2.0
#include "chip/machine.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

#include "chip/facts.h"

namespace reef::chip {
namespace {

TEST(Chip, EveryFactSaysWhatItIsAndHowItIsKnown) {
  std::set<std::string_view> names;
  for (const Fact& fact : facts()) {
    EXPECT_FALSE(fact.group.empty()) << fact.name;
    EXPECT_FALSE(fact.unit.empty()) << fact.name;
    EXPECT_FALSE(fact.source.empty()) << fact.name;
    EXPECT_FALSE(fact.meaning.empty()) << fact.name;
    EXPECT_TRUE(names.insert(fact.name).second) << fact.name << " appears twice";
  }
  EXPECT_GT(names.size(), 30u);
}

TEST(Chip, CountersStandInTheOrderOfTheRegisters) {
  // libedgetpu, beagle_csr_offsets.h: register addresses of the tile's counters, 8 bytes apart from 0x42028.
  EXPECT_EQ(static_cast<int>(TileCounter::kAvdata), (0x42028 - 0x42028) / 8);
  EXPECT_EQ(static_cast<int>(TileCounter::kMeshNorthIn), (0x42040 - 0x42028) / 8);
  EXPECT_EQ(static_cast<int>(TileCounter::kMeshWestOut), (0x42078 - 0x42028) / 8);
  EXPECT_EQ(static_cast<int>(TileCounter::kWideToScaling), (0x42088 - 0x42028) / 8);
  EXPECT_EQ(static_cast<int>(TileCounter::kRingWrite), (0x420a8 - 0x42028) / 8);
  EXPECT_EQ(static_cast<int>(TileCounter::kRingProducerB), (0x420b8 - 0x42028) / 8);
}

}  // namespace
}  // namespace reef::chip
