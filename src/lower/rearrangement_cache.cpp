// SPDX-License-Identifier: Apache-2.0
#include "lower/rearrangement_cache.h"

#include <algorithm>
#include <span>

#include "base/sha256.h"

namespace reef::lower {
namespace {

void describe(const tiled::AxisPartition& axis, std::vector<std::int64_t>& key) {
  key.insert(key.end(), {axis.size, axis.front, axis.is_local});
  for (const tiled::TileShare& share : axis.tiles) {
    key.insert(key.end(), {share.begin, share.end, share.needed_begin, share.needed_end, share.is_read, share.before,
                           share.after, share.base, share.held});
  }
}

void describe(const tiled::TiledTensor& tensor, std::int32_t role, std::vector<std::int64_t>& key) {
  key.insert(key.end(), {role, static_cast<std::int64_t>(tensor.spread), tensor.height, tensor.width, tensor.channels,
                         tensor.pitch, tensor.offset, tensor.tiles, tensor.run});
  if (tensor.spread != tiled::Spread::kGrid) return;
  describe(tensor.rows, key);
  describe(tensor.columns, key);
}

// Elements of the output that some tile owns lie between these.
std::pair<std::int64_t, std::int64_t> owned_elements(const tiled::TiledTensor& output) {
  const std::int64_t row = std::int64_t{output.width} * output.channels;
  if (output.spread != tiled::Spread::kGrid) return {0, row * output.height};
  tiled::Range rows;
  for (const tiled::TileShare& share : output.rows.tiles) rows.include({share.begin, share.end});
  return {rows.begin * row, rows.end * row};
}

// The map as runs: sources that follow each other in equal steps are written once.
class MapWriter {
 public:
  explicit MapWriter(std::vector<std::int64_t>& key) : key_(key) {}
  ~MapWriter() { flush(); }
  MapWriter(const MapWriter&) = delete;
  MapWriter& operator=(const MapWriter&) = delete;

  void add(const ElementSource& source, std::int64_t run) {
    const std::int64_t step = source.element - last_.element;
    const bool is_alike = count_ > 0 && source.operand == last_.operand && run == run_;
    if (is_alike && (count_ == 1 || step == step_)) {
      step_ = step;
      ++count_;
    } else {
      flush();
      first_ = source;
      run_ = run;
      step_ = 0;
      count_ = 1;
    }
    last_ = source;
  }

 private:
  void flush() {
    if (count_ > 0) key_.insert(key_.end(), {first_.operand, first_.element, run_, step_, count_});
    count_ = 0;
  }
  std::vector<std::int64_t>& key_;
  ElementSource first_, last_;
  std::int64_t run_ = 0, step_ = 0, count_ = 0;
};

}  // namespace

ObjectRoles::ObjectRoles(const Builder& builder, const Rearrangement& what) {
  for (const Read& read : what.operands) objects_.push_back(builder.tensor(read.tensor).object);
  objects_.push_back(builder.tensor(what.output).object);
  std::sort(objects_.begin(), objects_.end());
  objects_.erase(std::unique(objects_.begin(), objects_.end()), objects_.end());
}

std::int32_t ObjectRoles::role_of(std::int32_t object) const {
  return static_cast<std::int32_t>(std::lower_bound(objects_.begin(), objects_.end(), object) - objects_.begin());
}

std::int32_t ObjectRoles::object_of(std::int32_t role, std::int32_t buffer_object, std::int32_t scratch_object) const {
  if (role == buffer()) return buffer_object;
  if (role == scratch()) return scratch_object;
  return objects_[at(role)];
}

std::string RearrangementCache::key_of(const Builder& builder, const Rearrangement& what, const ObjectRoles& roles) {
  std::vector<std::int64_t> key = {builder.is_sketch(), std::ssize(what.operands)};
  const tiled::TiledTensor& output = builder.tensor(what.output);
  describe(output, roles.role_of(output.object), key);
  for (const Read& read : what.operands) {
    const tiled::TiledTensor& operand = builder.tensor(read.tensor);
    describe(operand, roles.role_of(operand.object), key);
  }
  const auto [begin, end] = owned_elements(output);
  {
    MapWriter map(key);
    for (std::int64_t element = begin; element < end;) {
      const ElementSource source = what.source_of(element);
      const std::int64_t run = std::clamp<std::int64_t>(source.run, 1, end - element);
      map.add(source, run);
      element += run;
    }
  }
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(key.data());
  return sha256_hex(std::span(bytes, key.size() * sizeof(std::int64_t)));
}

void RearrangementCache::keep(std::string key, const PlannedMovement& movement) {
  const std::size_t copies = movement.transfers.size() + movement.copies.fills.size() +
                             movement.copies.first_round.size() + movement.copies.second_round.size() + 1;
  if (copies_ + copies > kMostCopies) return;
  copies_ += copies;
  movements_.emplace(std::move(key), movement);
}

}  // namespace reef::lower
