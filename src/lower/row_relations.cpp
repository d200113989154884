// SPDX-License-Identifier: Apache-2.0
#include "lower/row_relations.h"

#include <algorithm>
#include <cstring>

#include "lower/builder.h"
#include "ops/table_functions.h"
#include "ops/window.h"

namespace reef::lower {
namespace {

constexpr std::int32_t kMostRows = 1 << 20;  // of images, windows and paddings: far more than fits

const ir::Tensor& tensor_of(const ir::Subgraph& graph, std::int32_t index) { return graph.tensors[at(index)]; }

bool is_image(const ir::Subgraph& graph, std::int32_t tensor) {
  if (tensor < 0) return false;
  const ir::Shape& shape = tensor_of(graph, tensor).shape;
  return shape.rank() == 4 && shape.is_usable() && shape[0] == 1 && shape.elements() > 0 && shape[1] <= kMostRows;
}

bool is_small(std::int64_t value) { return value >= 1 && value <= kMostRows; }

// An operator whose results are images; reads are filled in by what knows it.
class Relation {
 public:
  Relation(const ir::Model& model, std::int32_t index)
      : model_(model), graph_(model.subgraphs[0]), source_(graph_.operators[at(index)]) {
    op_.op = index;
    for (const std::int32_t tensor : source_.outputs) {
      op_.results.push_back({tensor, is_image(graph_, tensor) ? tensor_of(graph_, tensor).shape[1] : 0});
    }
  }

  std::optional<RowOp> find() {
    // Of a single row nothing can be cut off; whatever is brought to all tiles at once is among these.
    const bool images =
        std::all_of(op_.results.begin(), op_.results.end(), [](const RowResult& result) { return result.height > 1; });
    if (!images || op_.results.empty() || source_.inputs.empty()) return {};
    static constexpr std::pair<Op, bool (Relation::*)()> kKnown[] = {
        {Op::CONV_2D, &Relation::convolution},
        {Op::DEPTHWISE_CONV_2D, &Relation::convolution},
        {Op::TRANSPOSE_CONV, &Relation::transpose_convolution},
        {Op::MAX_POOL_2D, &Relation::pool},
        {Op::AVERAGE_POOL_2D, &Relation::pool},
        {Op::PAD, &Relation::pad},
        {Op::QUANTIZE, &Relation::quantize},
        {Op::CONCATENATION, &Relation::concatenation},
        {Op::SPLIT, &Relation::split},
        {Op::SPLIT_V, &Relation::split},
        {Op::SLICE, &Relation::slice},
        {Op::STRIDED_SLICE, &Relation::strided_slice},
        {Op::RESIZE_BILINEAR, &Relation::resize},
        {Op::RESIZE_NEAREST_NEIGHBOR, &Relation::resize},
        {Op::DEPTH_TO_SPACE, &Relation::depth_to_space},
        {Op::SPACE_TO_DEPTH, &Relation::space_to_depth},
        {Op::TRANSPOSE, &Relation::transpose},
        {Op::TILE, &Relation::tile},
        {Op::ADD, &Relation::same_rows},
        {Op::SUB, &Relation::same_rows},
        {Op::MUL, &Relation::same_rows},
        {Op::MAXIMUM, &Relation::same_rows},
        {Op::MINIMUM, &Relation::same_rows},
        {Op::PRELU, &Relation::same_rows},
        {Op::RELU, &Relation::same_rows},
        {Op::RELU6, &Relation::same_rows},
        {Op::RELU_N1_TO_1, &Relation::same_rows},
        {Op::LOGISTIC, &Relation::same_rows},
        {Op::TANH, &Relation::same_rows},
        {Op::RSQRT, &Relation::same_rows},
        {Op::GELU, &Relation::same_rows},
        {Op::HARD_SWISH, &Relation::same_rows},
        {Op::ELU, &Relation::same_rows},
        {Op::EXP, &Relation::same_rows},
        {Op::LOG, &Relation::same_rows},
        {Op::SQRT, &Relation::same_rows},
        {Op::ABS, &Relation::same_rows},
        {Op::RELU_0_TO_1, &Relation::same_rows},
        {Op::LEAKY_RELU, &Relation::same_rows},
        {Op::DIV, &Relation::same_rows},
        {Op::ReefFunction, &Relation::same_rows},
        {Op::SQUARED_DIFFERENCE, &Relation::same_rows},
        {Op::SOFTMAX, &Relation::same_rows},
        {Op::MEAN, &Relation::total_of_channels},
        {Op::SUM, &Relation::total_of_channels},
    };
    const auto* known =
        std::find_if(std::begin(kKnown), std::end(kKnown), [&](const auto& row) { return source_.type == row.first; });
    if (known == std::end(kKnown) || !(this->*known->second)() || op_.reads.empty()) return {};
    return std::move(op_);
  }

 private:
  std::int32_t operand(std::size_t k) const { return k < source_.inputs.size() ? source_.inputs[k] : -1; }
  const ir::Shape& shape(std::int32_t tensor) const { return tensor_of(graph_, tensor).shape; }
  const ir::Shape& result_shape(std::size_t k = 0) const { return shape(source_.outputs[k]); }
  bool is_constant(std::int32_t tensor) const { return !ir::constant_data(model_, tensor_of(graph_, tensor)).empty(); }

  bool read(std::int32_t tensor, const tiled::Window& window, std::int32_t result = 0) {
    if (!is_image(graph_, tensor)) return false;
    op_.reads.push_back({.tensor = tensor, .result = result, .window = window, .height = shape(tensor)[1]});
    return true;
  }
  // Numbers of a constant, or none.
  std::vector<std::int32_t> numbers(std::size_t k, std::size_t count) const {
    if (operand(k) < 0) return {};
    const ir::Tensor& tensor = tensor_of(graph_, operand(k));
    const Bytes& data = ir::constant_data(model_, tensor);
    std::vector<std::int32_t> result(count);
    if (tensor.type != ir::DataType::kInt32 || data.size() != count * sizeof(std::int32_t)) return {};
    std::memcpy(result.data(), data.data(), data.size());
    return result;
  }

  bool window_read(std::int64_t kernel, std::int64_t columns) {
    const ir::Attributes& a = source_.attributes;
    const std::int64_t stride = a.get_int("stride_h"), dilation = a.get_int("dilation_h_factor", 1);
    if (!is_image(graph_, operand(0)) || !is_small(kernel) || !is_small(stride) || !is_small(dilation) ||
        (kernel - 1) * dilation >= kMostRows) {
      return false;
    }
    const auto axis = ops::window_axis(shape(operand(0))[1], kernel, stride, dilation, a.get_enum("padding", "SAME"));
    if (!axis.ok() || axis->output_size != result_shape()[1]) return false;
    tiled::Window window;
    window.kernel = static_cast<std::int32_t>(kernel);
    window.stride = static_cast<std::int32_t>(stride);
    window.dilation = static_cast<std::int32_t>(dilation);
    window.pad_before = axis->pad_before;
    op_.reads_windows = true;
    if (!read(operand(0), window)) return false;
    op_.reads.back().sees_padding = true;
    op_.reads.back().keeps_columns = columns == 1 && a.get_int("stride_w") == 1;
    return true;
  }

  bool convolution() {
    if (operand(1) < 0 || shape(operand(1)).rank() != 4) return false;
    return window_read(shape(operand(1))[1], shape(operand(1))[2]);
  }

  bool pool() {
    return window_read(source_.attributes.get_int("filter_height"), source_.attributes.get_int("filter_width"));
  }

  bool transpose_convolution() {
    if (!is_image(graph_, operand(2)) || operand(1) < 0) return false;
    const auto window = transpose_conv_rows(graph_, source_);
    if (!window || !read(operand(2), *window)) return false;
    op_.reads.back().sees_padding = true;
    return true;
  }

  bool pad() {
    const std::vector<std::int32_t> pads = numbers(1, 8);
    if (pads.empty() || std::any_of(pads.begin(), pads.end(), [](auto p) { return p < 0 || p > kMostRows; })) {
      return false;
    }
    if (pads[0] != 0 || pads[1] != 0 || !read(operand(0), {.pad_before = pads[2]})) return false;
    // Rows and columns around an image are seen by windows that read them; channels are made.
    op_.pads = pads[6] == 0 && pads[7] == 0;
    op_.computes = !op_.pads;
    op_.reads.back().sees_padding = op_.pads;
    return true;
  }

  // Row by row: every computed operand has the rows of the result, or a single one that is the same for all.
  // One for all channels, or one for each.
  bool is_number_per_channel(std::int32_t tensor) const {
    const std::int64_t elements = shape(tensor).elements();
    return elements == 1 || elements == shape(tensor).last();
  }
  bool has_all_pixels(std::int32_t tensor) const {
    return shape(tensor)[1] == result_shape()[1] && shape(tensor)[2] == result_shape()[2] &&
           (shape(tensor)[3] == result_shape()[3] || shape(tensor)[3] == 1);
  }

  bool same_rows() {
    for (const std::int32_t tensor : source_.inputs) {
      if (tensor < 0) return false;
      if (is_constant(tensor)) {
        if (!is_number_per_channel(tensor)) return false;  // an image with rows of its own
        continue;
      }
      // Others are repeated by moving elements, for all rows at once.
      if (!is_image(graph_, tensor) || !(has_all_pixels(tensor) || is_number_per_channel(tensor))) return false;
      const std::int32_t rows = shape(tensor)[1];
      if (rows != result_shape()[1] && rows != 1) return false;
      read(tensor, {.stride = rows == 1 ? 0 : 1});
      op_.reads.back().keeps_columns = true;
    }
    return true;
  }

  // MEAN and SUM over the channels of each pixel.
  bool total_of_channels() {
    const std::vector<std::int32_t> axes = numbers(1, 1);
    if (axes.empty() || (axes[0] != 3 && axes[0] != -1) || !is_image(graph_, operand(0))) return false;
    const ir::Shape &from = shape(operand(0)), &to = result_shape();
    if (to[1] != from[1] || to[2] != from[2] || to[3] != 1 || !read(operand(0), {})) return false;
    op_.reads.back().keeps_columns = true;
    return true;
  }

  bool quantize() {
    if (!is_image(graph_, operand(0))) return false;
    const auto same = same_quantization(tensor_of(graph_, operand(0)), tensor_of(graph_, source_.outputs[0]));
    if (!same.ok()) return false;
    op_.computes = !*same;
    if (!same_rows()) return false;
    op_.reads.back().sees_padding = *same;  // of the view
    return true;
  }

  bool concatenation() {
    const std::int64_t axis = source_.attributes.get_int("axis"), dimension = axis < 0 ? axis + 4 : axis;
    if (dimension < 1 || dimension > 3) return false;
    std::int64_t before = 0;
    for (const std::int32_t tensor : source_.inputs) {
      if (!is_image(graph_, tensor) || before > kMostRows) return false;
      const auto offset = static_cast<std::int32_t>(dimension == 1 ? before : 0);
      before += shape(tensor)[1];
      if (is_constant(tensor)) continue;
      read(tensor, {.pad_before = offset});
      op_.reads.back().keeps_columns = dimension == 3;
    }
    return true;
  }

  bool split() {
    const bool sized = source_.type == Op::SPLIT_V;
    const std::vector<std::int32_t> axis = numbers(sized ? 2 : 0, 1);
    const std::int32_t from = operand(sized ? 0 : 1);
    if (axis.empty() || !is_image(graph_, from)) return false;
    const std::int32_t dimension = axis[0] < 0 ? axis[0] + 4 : axis[0];
    if (dimension < 1 || dimension > 3) return false;
    std::int64_t before = 0;
    for (std::size_t k = 0; k < source_.outputs.size(); ++k) {
      if (before > kMostRows) return false;
      read(from, {.pad_before = static_cast<std::int32_t>(dimension == 1 ? -before : 0)}, static_cast<std::int32_t>(k));
      op_.reads.back().keeps_columns = dimension == 3;
      before += result_shape(k)[1];
    }
    return true;
  }

  bool slice() {
    const std::vector<std::int32_t> begin = numbers(1, 4);
    if (begin.empty() || begin[1] < 0 || begin[1] > kMostRows) return false;
    return read(operand(0), {.pad_before = -begin[1]});
  }

  bool strided_slice() {
    const std::vector<std::int32_t> begin = numbers(1, 4), strides = numbers(3, 4);
    if (begin.empty() || strides.empty() || !is_image(graph_, operand(0)) || !is_small(strides[1])) return false;
    if (source_.attributes.get_int("shrink_axis_mask") != 0) return false;
    const std::int64_t size = shape(operand(0))[1];
    std::int64_t first = begin[1] < 0 ? begin[1] + size : begin[1];
    if ((source_.attributes.get_int("begin_mask") >> 1 & 1) != 0) first = 0;
    first = std::clamp<std::int64_t>(first, 0, size - 1);
    return read(operand(0), {.stride = strides[1], .pad_before = static_cast<std::int32_t>(-first)});
  }

  bool resize() {
    if (!is_image(graph_, operand(0))) return false;
    if (shape(operand(0)) == result_shape()) {
      op_.computes = false;
      if (!read(operand(0), {})) return false;
      op_.reads.back().sees_padding = true;  // of the view
      return true;
    }
    const auto window = resize_rows(graph_, source_);
    if (!window || !read(operand(0), *window)) return false;
    op_.reads.back().sees_padding = true;  // a row outside, where the border is repeated
    return true;
  }

  bool depth_to_space() {
    const std::int64_t block = source_.attributes.get_int("block_size");
    return is_small(block) && read(operand(0), {.enlarged = static_cast<std::int32_t>(block)});
  }
  bool space_to_depth() {
    const std::int64_t block = source_.attributes.get_int("block_size");
    const auto size = static_cast<std::int32_t>(is_small(block) ? block : 1);
    return is_small(block) && read(operand(0), {.kernel = size, .stride = size});
  }

  bool transpose() {
    const std::vector<std::int32_t> order = numbers(1, 4);
    return !order.empty() && order[0] == 0 && order[1] == 1 && read(operand(0), {});
  }

  bool tile() {
    const std::vector<std::int32_t> multiples = numbers(1, 4);
    if (multiples.empty() || multiples[0] != 1 || !is_image(graph_, operand(0))) return false;
    if (multiples[1] == 1) return read(operand(0), {});
    return shape(operand(0))[1] == 1 && read(operand(0), {.stride = 0});
  }

  const ir::Model& model_;
  const ir::Subgraph& graph_;
  const ir::Operator& source_;
  RowOp op_;
};

}  // namespace

std::optional<RowOp> row_op(const ir::Model& model, std::int32_t index) { return Relation(model, index).find(); }

}  // namespace reef::lower
