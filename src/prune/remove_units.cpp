// SPDX-License-Identifier: Apache-2.0
#include "prune/remove_units.h"

#include <algorithm>

#include <fmt/format.h>

#include "ir/constants.h"
#include "ir/verify.h"
#include "ops/settled_shapes.h"

namespace reef::prune {
namespace {

bool is_whole(const std::vector<bool>& kept) {
  return std::all_of(kept.begin(), kept.end(), [](bool k) { return k; });
}

// The elements of a dense array whose index along `axis` stays.
std::vector<std::uint8_t> sliced(std::span<const std::uint8_t> data, const ir::Shape& shape, int axis,
                                 const std::vector<bool>& kept, std::size_t element_bytes) {
  const auto outer = static_cast<std::size_t>(shape.product(0, axis));
  const std::size_t inner = static_cast<std::size_t>(shape.product(axis + 1, shape.rank())) * element_bytes;
  std::vector<std::uint8_t> result;
  result.reserve(data.size());
  for (std::size_t o = 0; o < outer; ++o) {
    for (std::size_t i = 0; i < kept.size(); ++i) {
      if (!kept[i]) continue;
      const std::span<const std::uint8_t> piece = data.subspan((o * kept.size() + i) * inner, inner);
      result.insert(result.end(), piece.begin(), piece.end());
    }
  }
  return result;
}

Status shrink_tensor(ir::Model& model, ir::Tensor& tensor, const std::vector<std::vector<bool>>& kept) {
  const bool holds_data = ir::is_constant(model, tensor);
  std::vector<std::uint8_t> data;
  bool changes = false;
  if (holds_data) {
    const auto bytes = ir::constant_data(model, tensor).span();
    data.assign(bytes.begin(), bytes.end());
  }
  const int bits = ir::bits_per_element(tensor.type);
  for (int axis = 0; axis < tensor.shape.rank(); ++axis) {
    const std::vector<bool>& stays = kept[at(axis)];
    if (is_whole(stays)) continue;
    changes = true;
    REEF_REQUIRE(bits > 0 && bits % 8 == 0, "tensor '{}' has elements of {} bits", tensor.name, bits);
    if (holds_data) data = sliced(data, tensor.shape, axis, stays, static_cast<std::size_t>(bits / 8));
    tensor.shape[axis] = static_cast<std::int32_t>(std::count(stays.begin(), stays.end(), true));
    if (static_cast<int>(tensor.shape_signature.size()) > axis && tensor.shape_signature[at(axis)] >= 0) {
      tensor.shape_signature[at(axis)] = tensor.shape[axis];
    }
  }
  if (changes && holds_data) ir::set_constant(model, tensor, std::span<const std::uint8_t>(data));
  return ok_status();
}

}  // namespace

KeptIndices kept_indices(const ir::Model& model, const Axes& axes, const std::vector<bool>& removed) {
  const auto& tensors = model.subgraphs[0].tensors;
  KeptIndices kept(tensors.size());
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    const auto tensor = static_cast<std::int32_t>(t);
    for (int axis = 0; axis < tensors[t].shape.rank(); ++axis) {
      std::vector<bool>& stays = kept[t].emplace_back();
      for (std::int32_t i = 0; axes.has(tensor) && i < tensors[t].shape[axis]; ++i) {
        stays.push_back(!removed[at(axes.unit(tensor, axis, i))]);
      }
    }
  }
  return kept;
}

Result<ir::Model> remove_units(const ir::Model& model, const KeptIndices& kept) {
  ir::Model result = model;
  ir::Subgraph& graph = result.subgraphs[0];
  for (std::size_t t = 0; t < kept.size(); ++t) {
    ir::Tensor tensor = graph.tensors[t];
    REEF_RETURN_IF_ERROR(shrink_tensor(result, tensor, kept[t]));
    graph.tensors[t] = std::move(tensor);
  }
  for (std::size_t i = 0; i < graph.operators.size(); ++i) {
    REEF_RETURN_IF_ERROR(adapt_sizes(model, kept, i, result).in(fmt::format("op {} {}", i, graph.operators[i].type)));
  }
  REEF_RETURN_IF_ERROR(ir::verify(result));
  ir::Model checked = result;
  const ops::SettledShapes shapes = ops::settle_shapes(checked);
  REEF_RETURN_IF_ERROR(shapes.refusal);
  if (!shapes.corrections.empty()) {
    return Status(StatusCode::kInternal, ops::describe(result, shapes.corrections.front()));
  }
  return result;
}

std::vector<std::size_t> numbers_of(const std::vector<bool>& kept) {
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (kept[i]) result.push_back(i);
  }
  return result;
}

}  // namespace reef::prune
