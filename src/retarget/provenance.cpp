// SPDX-License-Identifier: Apache-2.0
#include "retarget/provenance.h"

namespace reef::retarget {

void OffsetSet::finish() {
  std::sort(runs_.begin(), runs_.end());
  std::size_t kept = 0;
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    if (kept > 0 && runs_[i].first <= runs_[kept - 1].second) {
      runs_[kept - 1].second = std::max(runs_[kept - 1].second, runs_[i].second);
    } else {
      runs_[kept++] = runs_[i];
    }
  }
  runs_.resize(kept);
  merged_ = kept;
}

std::uint64_t OffsetSet::size() const {
  std::uint64_t bytes = 0;
  for (const auto& [first, end] : runs_) bytes += end - first;
  return bytes;
}

namespace {

void insert_sorted(std::vector<std::uint32_t>& list, std::uint32_t value) {
  const auto at = std::lower_bound(list.begin(), list.end(), value);
  if (at == list.end() || *at != value) list.insert(at, value);
}

}  // namespace

void Sources::add(Tag tag) {
  const std::uint32_t number = tag_number(tag);
  switch (tag_origin(tag)) {
    case Origin::kCached:
      cached.add(number);
      return;
    case Origin::kStreamed:
      streamed.add(number);
      return;
    default:
      break;
  }
  if (tag_family(tag) == last_) return;
  last_ = tag_family(tag);
  switch (tag_origin(tag)) {
    case Origin::kInput:
      return insert_sorted(inputs, number);
    case Origin::kValue:
      return insert_sorted(values, value_instruction(tag));
    case Origin::kFill:
      return insert_sorted(fills, number);
    default:
      unwritten = true;
  }
}

void Sources::finish() {
  cached.finish();
  streamed.finish();
}

}  // namespace reef::retarget
