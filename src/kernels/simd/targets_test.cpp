// SPDX-License-Identifier: Apache-2.0
// Which target is chosen at start. Scripts that run tests on an emulated CPU say in REEF_EXPECTED_TARGET which one they
// mean: a wrong choice would otherwise pass unseen, since all targets give the same bits.
#include "kernels/simd/targets.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace reef::kernels {
namespace {

TEST(SimdTargets, TheBestIsChosenUnlessTheEnvironmentNamesAnother) {
  const std::vector<SimdTarget> all = supported_targets();
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(all.front(), SimdTarget::kBaseline);
  SimdTarget expected = all.back();
  if (const char* wanted = std::getenv("REEF_SIMD")) {
    const auto named = std::find_if(all.begin(), all.end(), [&](SimdTarget t) { return target_name(t) == wanted; });
    if (named != all.end()) expected = *named;
  }
  EXPECT_EQ(target_name(active_target()), target_name(expected));
  if (const char* meant = std::getenv("REEF_EXPECTED_TARGET")) {
    EXPECT_EQ(target_name(active_target()), meant);
  }
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));  // see includes()
#if defined(__aarch64__)
  EXPECT_NE(std::find(all.begin(), all.end(), SimdTarget::kNeon), all.end());
#endif
}

TEST(SimdTargets, ANameThatIsNotThereIsSaid) {
  const char* const before = std::getenv("REEF_SIMD");
  const std::string kept = before == nullptr ? "" : before;
  ::setenv("REEF_SIMD", "ssse3", 1);
  EXPECT_NE(unmet_request().find("REEF_SIMD=ssse3 has no effect"), std::string::npos);
  EXPECT_NE(unmet_request().find("baseline"), std::string::npos);
  ::setenv("REEF_SIMD", "baseline", 1);
  EXPECT_EQ(unmet_request(), "");
  before == nullptr ? ::unsetenv("REEF_SIMD") : ::setenv("REEF_SIMD", kept.c_str(), 1);
}

TEST(SimdTargets, IncludeWhatComesBefore) {
  EXPECT_TRUE(includes(SimdTarget::kAvx512, SimdTarget::kAvx2));
  EXPECT_TRUE(includes(SimdTarget::kAvxVnni, SimdTarget::kSse4));
  EXPECT_TRUE(includes(SimdTarget::kSse4, SimdTarget::kSse4));
  EXPECT_FALSE(includes(SimdTarget::kSse4, SimdTarget::kAvx2));
  EXPECT_FALSE(includes(SimdTarget::kAvx512, SimdTarget::kAvxVnni));
}

TEST(SimdTargets, EachHasANameOfItsOwn) {
  std::vector<std::string_view> names;
  for (int i = 0; i <= static_cast<int>(SimdTarget::kDotprod); ++i) {
    names.push_back(target_name(static_cast<SimdTarget>(i)));
    EXPECT_NE(names.back(), "");
    EXPECT_EQ(std::count(names.begin(), names.end(), names.back()), 1);
  }
}

}  // namespace
}  // namespace reef::kernels
