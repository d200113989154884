// SPDX-License-Identifier: Apache-2.0
#include "changed_shapes.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "ir/describe.h"

namespace reef::testing {
namespace {

std::int32_t pick(std::mt19937& random, const std::vector<std::int32_t>& values) {
  return values[random() % values.size()];
}

// Sizes that lie near the right one, are usual somewhere else, or are none.
std::int32_t other_size(std::int32_t size, std::mt19937& random) {
  const std::int32_t found =
      pick(random, {size - 1, size + 1, 2 * size, size / 2, 0, 1, 2, 3, 64, 255, 256, 4096, 65535});
  return std::max(found, 0);
}

std::string change_size(ir::Tensor& tensor, std::mt19937& random) {
  if (tensor.shape.rank() == 0) return "";
  // The batch as often as all others together: it is what nobody looks at.
  const int at = random() % 2 == 0 ? 0 : static_cast<int>(random() % tensor.shape.dims().size());
  const std::int32_t old = tensor.shape[at];
  tensor.shape[at] = other_size(old, random);
  if (!tensor.shape_signature.empty() && tensor.shape_signature[static_cast<std::size_t>(at)] >= 0) {
    tensor.shape_signature[static_cast<std::size_t>(at)] = tensor.shape[at];
  }
  return tensor.shape[at] == old ? "" : fmt::format("size {} is {}, not {}", at, tensor.shape[at], old);
}

std::string change_rank(ir::Tensor& tensor, std::mt19937& random) {
  std::vector<std::int32_t> dims = tensor.shape.dims();
  const std::string old = tensor.shape.to_string();
  switch (random() % 4) {
    case 0:
      dims.clear();
      break;
    case 1:
      dims.insert(dims.begin(), 1);
      break;
    case 2:
      if (!dims.empty()) dims.erase(dims.begin());
      break;
    default:
      std::reverse(dims.begin(), dims.end());
  }
  tensor.shape = ir::Shape(dims);
  tensor.shape_signature.clear();
  return tensor.shape.to_string() == old ? "" : fmt::format("shape is {}, not {}", tensor.shape.to_string(), old);
}

std::string change_type(ir::Tensor& tensor, std::mt19937& random) {
  constexpr ir::DataType kTypes[] = {ir::DataType::kInt8,  ir::DataType::kUInt8, ir::DataType::kInt16,
                                     ir::DataType::kInt32, ir::DataType::kInt64, ir::DataType::kFloat32,
                                     ir::DataType::kBool};
  const ir::DataType old = tensor.type;
  tensor.type = kTypes[random() % std::size(kTypes)];
  if (tensor.type == old) return "";
  return fmt::format("type is {}, not {}", ir::type_name(tensor.type), ir::type_name(old));
}

std::string change_scales(ir::Tensor& tensor, std::mt19937& random) {
  ir::Quantization& q = tensor.quantization;
  const std::size_t old = q.scale.size();
  const auto last = static_cast<std::size_t>(tensor.shape.rank() > 0 ? tensor.shape.last() : 1);
  const std::size_t counts[] = {0, 1, 2, last, static_cast<std::size_t>(tensor.shape.rank() > 0 ? tensor.shape[0] : 1)};
  const std::size_t count = counts[random() % std::size(counts)];
  q.dimension = tensor.shape.rank() > 0 ? static_cast<std::int32_t>(random() % tensor.shape.dims().size()) : 0;
  q.scale.resize(std::min<std::size_t>(count, 1 << 16), old > 0 ? q.scale[0] : 0.05f);
  q.zero_point.resize(q.scale.size(), 0);
  return fmt::format("{} scales along dimension {}, not {}", q.scale.size(), q.dimension, old);
}

}  // namespace

std::string change_one_claim(ir::Model& model, std::mt19937& random) {
  std::vector<ir::Tensor>& tensors = model.subgraphs[0].tensors;
  if (tensors.empty()) return "";
  const std::size_t index = random() % tensors.size();
  ir::Tensor& tensor = tensors[index];
  std::string what;
  switch (random() % 8) {
    case 0:
      what = change_rank(tensor, random);
      break;
    case 1:
      what = change_type(tensor, random);
      break;
    case 2:
      what = change_scales(tensor, random);
      break;
    default:
      what = change_size(tensor, random);
  }
  return what.empty() ? "" : fmt::format("tensor {} '{}': {}", index, ir::describe_name(tensor.name), what);
}

}  // namespace reef::testing
