// SPDX-License-Identifier: Apache-2.0
// FULLY_CONNECTED that does not fit (several rows, or a version of it that keeps dimensions) and BATCH_MATMUL with a
// constant are 1x1 convolutions over a picture whose pixels are the rows.
//
// The sums are the same. The factor that brings them to the output's scale is computed in single precision for one and
// double for the other, so that a sum halfway between two results may round differently: one step at most.
#include "passes/pass.h"

namespace reef::passes {
namespace {

struct Product {
  std::int32_t x = -1, weights = -1, bias = -1, y = -1;
  bool weights_by_column = false;  // [k, m] instead of [m, k]
  std::string activation = "NONE";
};

std::optional<Product> product_of(const ChipGraph& edit, std::int32_t index) {
  const ir::Operator& op = edit.op(index);
  if (!edit.is_sound(index)) return {};
  if (op.type == Op::FULLY_CONNECTED) {
    if (op.attributes.get_enum("weights_format", "DEFAULT") != "DEFAULT") return {};
    Product product{op.inputs[0], op.inputs[1], op.inputs.size() > 2 ? op.inputs[2] : -1, op.outputs[0]};
    product.activation = op.attributes.get_enum("fused_activation_function", "NONE");
    if (op.outputs.size() != 1 || edit.shape(product.weights).rank() != 2) return {};
    return product;
  }
  if (op.type != Op::BATCH_MATMUL || op.attributes.get_bool("adj_x")) return {};
  Product product{op.inputs[0], op.inputs[1], -1, op.outputs[0], !op.attributes.get_bool("adj_y")};
  const ir::Shape& shape = edit.shape(product.weights);
  if (shape.rank() < 2 || shape.product(0, shape.rank() - 2) != 1) return {};
  return product;
}

// The weights as [m, 1, 1, k], sharing their data where the order is right.
std::int32_t filter_of(ChipGraph& edit, const Product& product, std::int32_t m, std::int32_t k) {
  ir::Tensor tensor = edit.tensor(product.weights);
  tensor.shape = {m, 1, 1, k};
  tensor.shape_signature.clear();
  tensor.quantization.dimension = 0;
  if (!product.weights_by_column) return edit.add_tensor(std::move(tensor));
  const std::span<const std::uint8_t> data = ir::constant_data(edit.model(), tensor).span();
  std::vector<std::uint8_t> rows(data.size());
  for (std::int32_t row = 0; row < m; ++row) {
    for (std::int32_t i = 0; i < k; ++i) {
      rows[static_cast<std::size_t>(row) * static_cast<std::size_t>(k) + static_cast<std::size_t>(i)] =
          data[static_cast<std::size_t>(i) * static_cast<std::size_t>(m) + static_cast<std::size_t>(row)];
    }
  }
  return edit.add_constant(std::move(tensor), std::move(rows));
}

bool has_usable_weights(const ChipGraph& edit, const Product& product, ir::DataType type) {
  const ir::Tensor& weights = edit.tensor(product.weights);
  const ir::Quantization& quantization = weights.quantization;
  if (!edit.is_constant(product.weights) || weights.type != type || !quantization.is_quantized()) return false;
  if (quantization.is_per_axis() && (product.weights_by_column || quantization.dimension != 0)) return false;
  return type == ir::DataType::kUInt8 || std::all_of(quantization.zero_point.begin(), quantization.zero_point.end(),
                                                     [](std::int64_t zero) { return zero == 0; });
}

// As square as it can be, so that all tiles have a share; as lowering has the rows of matrices (lower::image_of).
std::int32_t picture_height(std::int32_t rows) {
  std::int32_t height = 1;
  for (std::int32_t h = 2; std::int64_t{h} * h <= rows; ++h) {
    if (rows % h == 0) height = h;
  }
  return height;
}

bool matmul_at(ChipGraph& edit, std::int32_t index) {
  const std::string type = edit.op(index).type;
  if (type != Op::FULLY_CONNECTED && type != Op::BATCH_MATMUL) return false;
  const auto product = product_of(edit, index);
  if (!product) return false;
  const auto in = edit.affine(product->x), out = edit.affine(product->y);
  if (!in || !out || in->type != out->type || !has_usable_weights(edit, *product, in->type)) return false;
  const ir::Shape weights = edit.shape(product->weights), x_shape = edit.shape(product->x);
  const std::int32_t m = product->weights_by_column ? weights.last(0) : weights.last(1);
  const std::int32_t k = product->weights_by_column ? weights.last(1) : weights.last(0);
  if (m < 1 || k < 1 || x_shape.rank() < 1 || x_shape.elements() % k != 0) return false;
  const auto rows = static_cast<std::int32_t>(x_shape.elements() / k);
  const bool is_matmul = type == Op::BATCH_MATMUL;
  if (edit.shape(product->y).elements() != std::int64_t{rows} * m) return false;
  if (is_matmul && x_shape.last() != k) return false;
  if (product->bias >= 0 &&
      (!edit.is_constant(product->bias) || edit.tensor(product->bias).type != ir::DataType::kInt32 ||
       edit.shape(product->bias).elements() != m)) {
    return false;
  }
  if (edit.fits(index)) return false;
  OpList list(edit, edit.tensor(product->y).name);
  const std::int32_t filter = filter_of(edit, *product, m, k);
  std::int32_t bias = product->bias;
  if (bias < 0) {
    std::vector<float> scales = edit.tensor(filter).quantization.scale;
    for (float& scale : scales) scale *= in->scale;
    bias = list.bias(std::vector<std::int32_t>(static_cast<std::size_t>(m), 0), std::move(scales));
  }
  const std::int32_t height = picture_height(rows), width = rows / height;
  const std::int32_t picture = list.reshape(product->x, {1, height, width, k});
  const std::int32_t result =
      list.pointwise(picture, filter, bias, product->activation, list.tensor({1, height, width, m}, *out));
  list.reshape(result, edit.shape(product->y), product->y);
  // Reshapes of many dimensions are seen to later (own-movement). A batch of inputs is not: unroll-batch has had it.
  const bool is_batch = edit.is_batch_of_inputs(product->x);
  return edit.commit(index, list.take(), "a 1x1 CONV_2D", 1, is_batch ? OpName() : Op::RESHAPE);
}

}  // namespace

constinit const Pass matmul_chip_pass = {
    .name = "matmul",
    .summary =
        "FULLY_CONNECTED of several rows or of a newer version, and BATCH_MATMUL with a constant, become "
        "a 1x1 CONV_2D.",
    .safety = Safety::kRounding,
    .at_on_chip = matmul_at};

}  // namespace reef::passes
