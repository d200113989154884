// SPDX-License-Identifier: Apache-2.0
#include "shard.h"

#include <charconv>
#include <string_view>

namespace reef::app {

Result<std::vector<std::int64_t>> samples_of_shard(const std::string& shard, std::int64_t all) {
  std::int64_t number = 1, count = 1;
  if (!shard.empty()) {
    const std::size_t slash = shard.find('/');
    const auto read = [](std::string_view text, std::int64_t& value) {
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      return error == std::errc() && end == text.data() + text.size();
    };
    REEF_REQUIRE(slash != std::string::npos && read(std::string_view(shard).substr(0, slash), number) &&
                     read(std::string_view(shard).substr(slash + 1), count) && number >= 1 && number <= count,
                 "--shard {}: give K/N, part K of N, such as 2/8", shard);
  }
  std::vector<std::int64_t> samples;
  for (std::int64_t i = all * (number - 1) / count; i < all * number / count; ++i) samples.push_back(i);
  return samples;
}

}  // namespace reef::app
