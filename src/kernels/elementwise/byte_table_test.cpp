// SPDX-License-Identifier: Apache-2.0
// Look-ups on every target against one element at a time: random tables, any count, in place and not.
#include "kernels/elementwise/byte_table.h"

#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/simd/each_target.h"

namespace reef::kernels {
namespace {

TEST(ByteTable, EqualsOneElementAtATime) {
  for_each_supported_target([](SimdTarget target) {
    std::mt19937 random(3);
    for (const std::int64_t count : {0, 1, 15, 16, 63, 64, 127, 1023, 1024, 1025, 1151, 1152, 1153, 4099}) {
      ByteTable table;
      for (std::uint8_t& entry : table) entry = static_cast<std::uint8_t>(random());
      constexpr std::uint8_t kBeyond = 77;
      std::vector<std::uint8_t> in(static_cast<std::size_t>(count) + 1, kBeyond), out = in, want = in;
      for (std::int64_t i = 0; i < count; ++i) {
        const auto at = static_cast<std::size_t>(i);
        in[at] = static_cast<std::uint8_t>(i < 256 ? i : random());  // every byte, if there is room
        want[at] = table[in[at]];
      }
      look_up_bytes(in.data(), count, table, out.data());
      EXPECT_EQ(out, want) << target_name(target) << ", " << count;
      look_up_bytes(in.data(), count, table, in.data());
      EXPECT_EQ(in, want) << target_name(target) << ", in place, " << count;
    }
  });
}

}  // namespace
}  // namespace reef::kernels
