// SPDX-License-Identifier: Apache-2.0
// Collects findings: one for each kind, pair of instructions and memory, however often it is met.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "audit/audit.h"
#include "audit/listing.h"

namespace reef::audit {

// Instructions by number in the listing; kNone: no instruction.
struct Observed {
  static constexpr std::uint32_t kNone = ~0u;
  FindingKind kind = FindingKind::kStandstill;
  std::uint32_t first = kNone, second = kNone;
  int tile = -1;
  std::string_view memory;    // lives as long as the walk
  std::int64_t address = -1;  // -1: none
  std::string_view detail;    // what the sentence says beyond this; need not live longer than the call
  std::uint64_t times = 1;
};

class Findings {
 public:
  static constexpr std::size_t kMost = 1000;
  void begin(const Listing& listing) {
    listing_ = &listing;
    index_.clear();
  }
  void add(const Observed& observed);
  bool is_full() const { return findings_.size() >= kMost; }
  // With their sentences.
  std::vector<Finding> take();

 private:
  using Key = std::tuple<FindingKind, std::uint32_t, std::uint32_t, std::string_view, std::string_view>;
  const Listing* listing_ = nullptr;
  std::vector<Finding> findings_;
  std::deque<std::string> details_;  // keys refer to them
  std::map<Key, std::size_t> index_;
};

}  // namespace reef::audit
