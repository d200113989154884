// SPDX-License-Identifier: Apache-2.0
#include "execute/device/cell_products.h"

#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace reef::device {
namespace {

TEST(CellProducts, EqualThePlainOnes) {
  std::mt19937 random(1);
  std::uniform_int_distribution<int> operand(-255, 255);
  for (const int cells : {1, 4, 8, 12, 16, 24, 31, 32, 33, 40, 44, 48, 63, 64}) {
    for (const int pairs : {1, 2, 9, 37}) {
      for (const int rows : {1, 2, 4, 7}) {
        const std::size_t width = static_cast<std::size_t>(padded_cells(cells));
        std::vector<std::int16_t> weights(2 * width * static_cast<std::size_t>(pairs));
        std::vector<std::int16_t> inputs(static_cast<std::size_t>(2 * rows * pairs));
        for (auto& w : weights) w = static_cast<std::int16_t>(operand(random));
        for (auto& x : inputs) x = static_cast<std::int16_t>(random() % 3 == 0 ? 255 : operand(random));
        std::vector<std::int32_t> expected(width * static_cast<std::size_t>(rows), 2147483000), sums = expected;
        add_cell_products_reference(weights.data(), inputs.data(), rows, pairs, cells, expected.data());
        add_cell_products(weights.data(), inputs.data(), rows, pairs, cells, sums.data());
        EXPECT_EQ(sums, expected) << cells << " cells, " << pairs << " pairs, " << rows << " rows";
      }
    }
  }
}

TEST(CellProducts, OfLinesEqualThePlainOnes) {
  std::mt19937 random(3);
  for (const int cells : {1, 4, 8, 12, 31, 44, 64}) {
    for (const std::size_t steps : {1u, 2u, 9u, 40u}) {
      for (const int rows : {1, 2, 4, 7}) {
        const std::size_t width = static_cast<std::size_t>(padded_cells(cells));
        std::vector<std::uint8_t> bytes(256 * steps);
        std::vector<const std::uint8_t*> lines;
        for (auto& b : bytes) b = static_cast<std::uint8_t>(random() % 3 == 0 ? 255 : random());
        for (std::size_t s = 0; s < steps; ++s) lines.push_back(bytes.data() + 256 * s);
        std::vector<std::int32_t> zeros(width);
        for (auto& z : zeros) z = static_cast<std::int32_t>(random() % 256);
        std::vector<std::int16_t> inputs(static_cast<std::size_t>(rows) * steps * 4);
        for (auto& x : inputs) x = static_cast<std::int16_t>(random() % 3 == 0 ? 255 : random() % 511 - 255);
        std::vector<std::int32_t> expected(width * static_cast<std::size_t>(rows), 2147483000), sums = expected;
        const auto count = static_cast<std::ptrdiff_t>(steps);
        add_line_products_reference(lines.data(), zeros.data(), inputs.data(), rows, count, cells, expected.data());
        add_line_products(lines.data(), zeros.data(), inputs.data(), rows, count, cells, sums.data());
        EXPECT_EQ(sums, expected) << cells << " cells, " << steps << " steps, " << rows << " rows";
      }
    }
  }
}

TEST(CellProducts, OfWideOperandsEqualThePlainOnes) {
  std::mt19937 random(2);
  for (const int cells : {1, 4, 8, 12, 31, 64}) {
    for (const int operands : {1, 2, 9}) {
      for (const int rows : {1, 5}) {
        const std::size_t width = static_cast<std::size_t>(padded_cells(cells));
        std::vector<std::int32_t> weights(width * static_cast<std::size_t>(operands));
        std::vector<std::int32_t> inputs(static_cast<std::size_t>(rows * operands));
        for (auto& w : weights) w = static_cast<std::int32_t>(random());
        for (auto& x : inputs) x = static_cast<std::int32_t>(random());
        std::vector<std::int32_t> expected(width * static_cast<std::size_t>(rows), 2147483000), sums = expected;
        add_wide_products_reference(weights.data(), inputs.data(), rows, operands, cells, expected.data());
        add_wide_products(weights.data(), inputs.data(), rows, operands, cells, sums.data());
        EXPECT_EQ(sums, expected) << cells << " cells, " << operands << " operands, " << rows << " rows";
      }
    }
  }
}

}  // namespace
}  // namespace reef::device
