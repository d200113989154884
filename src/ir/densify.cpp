// SPDX-License-Identifier: Apache-2.0
#include "ir/densify.h"

#include <cstring>

#include "ir/describe.h"

namespace reef::ir {
namespace {

// One tensor. Levels are dimensions in the order in which they are stored: first those of the shape (of blocks, where
// there are blocks), then those inside of a block.
class Expansion {
 public:
  Expansion(const Tensor& tensor, std::span<const std::uint8_t> elements, std::size_t element_bytes)
      : sparsity_(*tensor.sparsity),
        shape_(tensor.shape),
        elements_(elements),
        element_bytes_(element_bytes),
        place_(sparsity_.dimensions.size()) {}

  Status check() const {
    const auto rank = shape_.dims().size();
    std::vector<std::int64_t> covered(rank, 1);  // by all levels that belong to a dimension
    for (std::size_t level = 0; level < place_.size(); ++level) {
      const auto dimension = static_cast<std::size_t>(sparsity_.traversal_order[level]);
      REEF_REQUIRE((dimension < rank) == (level < rank), "blocks that do not come last are not known");
      const std::int64_t size = size_of(level);
      REEF_REQUIRE(size >= 1, "dimension {} of its storage has no elements", level);
      covered[target(level)] *= size;
      REEF_REQUIRE(covered[target(level)] <= shape_[static_cast<int>(target(level))],
                   "its storage describes more than its shape {}", shape_.to_string());
    }
    for (std::size_t i = 0; i < rank; ++i) {
      REEF_REQUIRE(covered[i] == shape_[static_cast<int>(i)], "its storage does not describe its shape {}",
                   shape_.to_string());
    }
    return ok_status();
  }

  // `before`: position in the level before.
  Status expand(std::size_t level, std::int64_t before, std::uint8_t* to) {
    if (level == place_.size()) return put(to);
    const SparsityDimension& dimension = sparsity_.dimensions[level];
    if (dimension.format == 0) {
      for (std::int32_t i = 0; i < dimension.dense_size; ++i) {
        place_[level] = i;
        REEF_RETURN_IF_ERROR(expand(level + 1, before * dimension.dense_size + i, to));
      }
      return ok_status();
    }
    const std::vector<std::int32_t>&segments = dimension.segments.values, &indices = dimension.indices.values;
    REEF_REQUIRE(static_cast<std::size_t>(before) + 1 < segments.size(), "it has too few segments");
    const std::int32_t begin = segments[reef::at(before)];
    const std::int32_t end = segments[static_cast<std::size_t>(before) + 1];
    REEF_REQUIRE(begin <= end && static_cast<std::size_t>(end) <= indices.size(), "a segment ends beyond its indices");
    for (std::int32_t i = begin; i < end; ++i) {
      place_[level] = indices[reef::at(i)];
      REEF_REQUIRE(place_[level] < size_of(level), "index {} is beyond its dimension", place_[level]);
      REEF_RETURN_IF_ERROR(expand(level + 1, i, to));
    }
    return ok_status();
  }

 private:
  // The dimension of the shape that a level belongs to.
  std::size_t target(std::size_t level) const {
    const std::size_t rank = shape_.dims().size();
    const auto dimension = static_cast<std::size_t>(sparsity_.traversal_order[level]);
    return dimension < rank ? dimension : static_cast<std::size_t>(sparsity_.block_map[dimension - rank]);
  }
  // A compressed level does not say how long it is: what the blocks inside leave of the shape.
  std::int64_t size_of(std::size_t level) const {
    if (sparsity_.dimensions[level].format == 0) return sparsity_.dimensions[level].dense_size;
    std::int64_t size = shape_[static_cast<int>(target(level))];
    for (std::size_t other = 0; other < place_.size(); ++other) {
      if (other == level || target(other) != target(level)) continue;
      const std::int64_t inside = sparsity_.dimensions[other].dense_size;
      size = inside > 0 && size % inside == 0 ? size / inside : 0;
    }
    return size;
  }

  Status put(std::uint8_t* to) {
    REEF_REQUIRE((next_ + 1) * element_bytes_ <= elements_.size(), "it has fewer elements than places for them");
    std::vector<std::int64_t> index(shape_.dims().size(), 0);
    for (std::size_t level = 0; level < place_.size(); ++level) {
      const bool is_inside_block = level >= index.size();
      std::int64_t& at = index[target(level)];
      at = is_inside_block ? at * sparsity_.dimensions[level].dense_size + place_[level] : place_[level];
    }
    std::int64_t flat = 0;
    for (std::size_t i = 0; i < index.size(); ++i) flat = flat * shape_[static_cast<int>(i)] + index[i];
    std::memcpy(to + static_cast<std::size_t>(flat) * element_bytes_, elements_.data() + next_ * element_bytes_,
                element_bytes_);
    ++next_;
    return ok_status();
  }

  const Sparsity& sparsity_;
  const Shape& shape_;
  const std::span<const std::uint8_t> elements_;
  const std::size_t element_bytes_;
  std::vector<std::int32_t> place_;  // by level
  std::size_t next_ = 0;             // element
};

Status densify(Model& model, Tensor& tensor, const Budget& budget) {
  const int bits = bits_per_element(tensor.type);
  if (bits < 8) return unsupported("sparse tensors of {} are not known", type_name(tensor.type));
  const auto bytes = byte_size(tensor.shape, tensor.type);
  REEF_REQUIRE(bytes.has_value(), "its shape {} has too many elements", tensor.shape.to_string());
  REEF_RETURN_IF_ERROR(budget.take(*bytes, "a sparse tensor written out"));
  const Bytes stored = model.buffers[reef::at(tensor.buffer)].data;
  Expansion expansion(tensor, stored.span(), static_cast<std::size_t>(bits) / 8);
  REEF_RETURN_IF_ERROR(expansion.check());
  std::vector<std::uint8_t> dense(static_cast<std::size_t>(*bytes), 0);
  REEF_RETURN_IF_ERROR(expansion.expand(0, 0, dense.data()));
  Buffer buffer;
  buffer.data = Bytes(std::move(dense));
  tensor.buffer = static_cast<std::int32_t>(model.buffers.size());
  model.buffers.push_back(std::move(buffer));
  tensor.sparsity.reset();
  return ok_status();
}

}  // namespace

Status densify(Model& model, const Budget& budget) {
  for (Subgraph& graph : model.subgraphs) {
    for (Tensor& tensor : graph.tensors) {
      if (!tensor.sparsity || constant_data(model, tensor).empty() || tensor.shape.elements() == 0) continue;
      const Status status = densify(model, tensor, budget);
      if (!status.ok()) return status.in(fmt::format("sparse tensor '{}'", describe_name(tensor.name)));
    }
  }
  return ok_status();
}

}  // namespace reef::ir
