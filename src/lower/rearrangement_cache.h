// SPDX-License-Identifier: Apache-2.0
// Movements that were planned before (rearrangement_plan.h), to be used again.
//
// Problem: a plan looks at every element, and the same movement is planned many times: blocks of a network repeat, and
// each cut of a network that is tried lowers its operators again. Approach: a plan follows from how its tensors lie in
// the tiles and from which element goes where, and from nothing else. Both are written into a key, all of the map
// included, so that equal keys mean equal plans. Memory objects have other numbers each time: plans name them by role.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lower/rearrange.h"
#include "tiled/local_copies.h"
#include "tiled/ring_copies.h"

namespace reef::lower {

// A planned movement. Objects of narrow memory are numbers of `ObjectRoles`.
struct PlannedMovement {
  std::vector<tiled::RingCopy> transfers;
  tiled::LocalCopies copies;
  std::int64_t buffer_bytes = 0, scratch_bytes = 0;
};

// The objects of operands and output, in ascending order, then the plan's own two. The order of copies follows the
// numbers of objects; roles keep that order, so a plan is the same whether it was known or not.
class ObjectRoles {
 public:
  ObjectRoles(const Builder& builder, const Rearrangement& what);
  std::int32_t role_of(std::int32_t object) const;
  std::int32_t buffer() const { return static_cast<std::int32_t>(objects_.size()); }
  std::int32_t scratch() const { return buffer() + 1; }
  // The object that has a role, given the plan's own two.
  std::int32_t object_of(std::int32_t role, std::int32_t buffer_object, std::int32_t scratch_object) const;

 private:
  std::vector<std::int32_t> objects_;
};

class RearrangementCache {
 public:
  // Everything that a plan follows from, as a digest.
  static std::string key_of(const Builder& builder, const Rearrangement& what, const ObjectRoles& roles);

  const PlannedMovement* find(const std::string& key) const {
    const auto known = movements_.find(key);
    return known == movements_.end() ? nullptr : &known->second;
  }
  // Plans beyond the limit are not kept.
  void keep(std::string key, const PlannedMovement& movement);

 private:
  static constexpr std::size_t kMostCopies = 1 << 20;  // of all plans together; some 100 bytes each
  std::map<std::string, PlannedMovement> movements_;
  std::size_t copies_ = 0;
};

}  // namespace reef::lower
