// SPDX-License-Identifier: Apache-2.0
// Reductions in vectors against one element after the other, in the order of memory: random shapes and axes, all
// combiners, on every target. Equal to the bit, floats too.
#include "ops/reduce.h"

#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/simd/each_target.h"
#include "ops/reduce_quantized.h"

namespace reef::ops {
namespace {

struct Case {
  std::vector<std::int32_t> sizes;
  std::vector<bool> reduced;
};

Case random_case(std::mt19937& random) {
  Case made;
  constexpr std::int32_t kSizes[] = {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 24, 31, 33, 64, 70, 200};
  std::int64_t elements = 1;
  const int rank = 1 + static_cast<int>(random() % 5);
  for (int i = 0; i < rank; ++i) {
    const std::int32_t size = kSizes[random() % std::size(kSizes)];
    if (elements * size > 60'000) continue;
    elements *= size;
    made.sizes.push_back(size);
    made.reduced.push_back(random() % 2 == 0);
  }
  return made;
}

template <typename T>
std::vector<T> random_values(std::int64_t count, std::mt19937& random) {
  std::vector<T> values(static_cast<std::size_t>(count));
  for (T& value : values) {
    if constexpr (std::is_floating_point_v<T>) {
      value = static_cast<T>(static_cast<double>(random()) / 4e9 - 0.5) * (random() % 3 == 0 ? T{1000} : T{1});
    } else {
      value = random() % 4 == 0   ? std::numeric_limits<T>::max()
              : random() % 3 == 0 ? std::numeric_limits<T>::min()
                                  : static_cast<T>(random());
    }
  }
  return values;
}

// One element after the other.
template <typename T, typename Accumulator, typename Combiner>
std::vector<Accumulator> plainly_reduced(const Case& c, const std::vector<T>& input, const Combiner& combiner,
                                         std::size_t outputs) {
  std::vector<Accumulator> output(outputs);
  std::vector<bool> has_started(outputs);
  std::vector<std::int32_t> index(c.sizes.size());
  for (const T& x : input) {
    std::size_t place = 0;
    for (std::size_t d = 0; d < index.size(); ++d) {
      if (!c.reduced[d]) place = place * static_cast<std::size_t>(c.sizes[d]) + static_cast<std::size_t>(index[d]);
    }
    output[place] = has_started[place] ? combiner.next(output[place], x) : combiner.start(x);
    has_started[place] = true;
    for (std::size_t d = index.size(); d-- > 0 && ++index[d] == c.sizes[d];) index[d] = 0;
  }
  return output;
}

template <typename T, typename Accumulator, typename Combiner>
void expect_same(const Combiner& combiner, std::uint32_t seed) {
  std::mt19937 random(seed);
  for (int i = 0; i < 120; ++i) {
    const Case c = random_case(random);
    const kernels::ReducePlan plan = kernels::plan_reduce(c.sizes, c.reduced);
    std::int64_t elements = 1;
    for (const std::int32_t size : c.sizes) elements *= size;
    const std::vector<T> input = random_values<T>(elements, random);
    const auto outputs = static_cast<std::size_t>(plan.outputs);
    const auto want = plainly_reduced<T, Accumulator>(c, input, combiner, outputs);
    const std::int64_t middle = static_cast<std::int64_t>(random()) % (plan.split_size + 1);
    kernels::for_each_supported_target([&](kernels::SimdTarget target) {
      std::vector<Accumulator> got(outputs);
      kernels::reduce(plan, input.data(), got.data(), combiner, 0, middle);
      kernels::reduce(plan, input.data(), got.data(), combiner, middle, plan.split_size);
      ASSERT_EQ(std::memcmp(got.data(), want.data(), outputs * sizeof(Accumulator)), 0)
          << kernels::target_name(target) << ", case " << i;
    });
  }
}

TEST(Reduce, SumsEqualThePlainLoop) {
  expect_same<std::int8_t, std::int32_t>(WideSumCombiner<std::int8_t>{}, 1);
  expect_same<std::uint8_t, std::int32_t>(WideSumCombiner<std::uint8_t>{}, 2);
  expect_same<std::int16_t, std::int32_t>(WideSumCombiner<std::int16_t>{}, 3);
  for (const bool from_first : {false, true}) {
    expect_same<float, float>(IdentityCombiner<float, SumFunction<float>>{from_first}, 4);
    expect_same<std::int32_t, std::int32_t>(IdentityCombiner<std::int32_t, SumFunction<std::int32_t>>{from_first}, 5);
  }
}

TEST(Reduce, ExtremesAndProductsEqualThePlainLoop) {
  expect_same<std::int8_t, std::int8_t>(IdentityCombiner<std::int8_t, MaxFunction<std::int8_t>>{false}, 6);
  expect_same<std::uint8_t, std::uint8_t>(IdentityCombiner<std::uint8_t, MinFunction<std::uint8_t>>{false}, 7);
  expect_same<std::int16_t, std::int16_t>(IdentityCombiner<std::int16_t, MaxFunction<std::int16_t>>{false}, 8);
  expect_same<float, float>(IdentityCombiner<float, MaxFunction<float>>{false}, 9);
  expect_same<float, float>(IdentityCombiner<float, MinFunction<float>>{true}, 10);
  expect_same<float, float>(IdentityCombiner<float, ProductFunction<float>>{false}, 11);
  expect_same<std::int64_t, std::int64_t>(IdentityCombiner<std::int64_t, ProductFunction<std::int64_t>>{false}, 12);
  expect_same<std::uint8_t, std::uint8_t>(IdentityCombiner<std::uint8_t, AnyFunction>{false}, 13);
  expect_same<std::uint8_t, std::uint8_t>(IdentityCombiner<std::uint8_t, AllFunction>{false}, 14);
}

}  // namespace
}  // namespace reef::ops
