// SPDX-License-Identifier: Apache-2.0
// TRANSPOSE_CONV: a convolution that enlarges.
//
// Output pixel o gets input pixel i times weight k wherever o = i * stride + k - padding. So pixels whose o + padding
// leaves the same remainder p by the stride all use the weights k = p, p + stride, ...: they are an ordinary
// convolution of stride 1 with those weights, last one first. Both axes together make stride x stride such phases, each
// an image of its own, which are then put between each other.
//
// How it is known: Google's compiler makes the same phases with these kernels
// (docs/hardware/google_programs.md#transposed-convolution: 3x3 by 2 is 2x2, 2x1, 1x2 and 1x1) and copies that put them
// between each other; the copies' details are our own. Phases have the numbers of convolutions, so each pixel has the
// one rounding it would have in one.
#include <algorithm>

#include "ir/describe.h"
#include "ir/op.h"
#include "lower/convolution.h"
#include "lower/lowerings.h"
#include "lower/movement.h"
#include "lower/row_relations.h"
#include "lower/shared_steps.h"
#include "lower/windows.h"

namespace reef::lower {
namespace {

constexpr std::int64_t kMostExtent = 1 << 12;  // of kernels and strides
constexpr std::int32_t kMostPhases = 256;

// Outputs of one remainder along one axis.
struct TransposeConvPhase {
  std::int32_t first_tap = 0, taps = 0;  // of the kernel; the others follow `stride` apart
  std::int32_t first = 0, outputs = 0;   // of the numbers (o + padding) / stride
  tiled::Window window() const {
    return {.outputs = outputs, .kernel = std::max(taps, 1), .pad_before = std::max(taps, 1) - 1 - first};
  }
};
struct TransposeConvAxis {
  std::int32_t stride = 1, padding = 0, outputs = 0;
  std::vector<TransposeConvPhase> phases;  // by remainder
};

Result<TransposeConvAxis> axis_of(std::int64_t input, std::int64_t output, std::int64_t kernel, std::int64_t stride,
                                  std::string_view padding) {
  if (kernel < 1 || kernel > kMostExtent || stride < 1 || stride > kMostExtent || input < 1 || output < 1) {
    return unsupported("size {}, kernel {} or stride {} is out of range", input, kernel, stride);
  }
  // The padding of the convolution that it is the transpose of, as TFLite computes it.
  const std::int64_t forward = padding == "SAME" ? (output + stride - 1) / stride : (output + stride - kernel) / stride;
  const std::int64_t total = std::max<std::int64_t>((forward - 1) * stride + kernel - output, 0);
  TransposeConvAxis axis{
      static_cast<std::int32_t>(stride), static_cast<std::int32_t>(total / 2), static_cast<std::int32_t>(output), {}};
  for (std::int32_t p = 0; p < axis.stride; ++p) {
    TransposeConvPhase phase;
    phase.first_tap = p;
    phase.taps = p < kernel ? static_cast<std::int32_t>((kernel - p + stride - 1) / stride) : 0;
    phase.first = std::max(0, (axis.padding - p + axis.stride - 1) / axis.stride);
    const std::int64_t end = output - 1 + axis.padding - p;  // of o + padding - p
    phase.outputs = end < 0 ? 0 : static_cast<std::int32_t>(end / stride) - phase.first + 1;
    axis.phases.push_back(phase);
  }
  return axis;
}

struct TransposeOperands {
  std::int32_t weights = -1, input = -1, bias = -1, output = -1;
};

// The model's operator as a graph of convolutions, one for each phase.
class TransposeConvPhaseModel {
 public:
  TransposeConvPhaseModel(const Builder& builder, std::int32_t op, const TransposeOperands& operands)
      : source_(builder.model()), op_(builder.op(op)), weights_(builder.source(operands.weights)) {
    model_.buffers.emplace_back();
    model_.subgraphs.emplace_back();
    add_tensor(builder.source(operands.input));
    add_tensor(builder.source(operands.output));
    if (operands.bias >= 0) add_tensor(builder.source(operands.bias));
  }

  // The operator of a phase.
  std::int32_t add(const TransposeConvPhase& y, const TransposeConvPhase& x, std::int32_t stride_y,
                   std::int32_t stride_x) {
    ir::Tensor weights = weights_;
    weights.shape[1] = std::max(y.taps, 1);
    weights.shape[2] = std::max(x.taps, 1);
    weights.buffer = static_cast<std::int32_t>(model_.buffers.size());
    ir::Buffer buffer;
    buffer.data = Bytes(taps_of(y, x, stride_y, stride_x));
    model_.buffers.push_back(std::move(buffer));
    ir::Subgraph& graph = model_.subgraphs[0];
    graph.tensors.push_back(std::move(weights));
    ir::Operator convolution;
    convolution.type = name_of(Op::CONV_2D);
    convolution.inputs = {0, static_cast<std::int32_t>(graph.tensors.size()) - 1};
    if (has_bias()) convolution.inputs.push_back(2);
    convolution.outputs = {1};
    convolution.attributes.set("padding", ir::EnumName{"VALID"});
    convolution.attributes.set("stride_w", std::int64_t{1});
    convolution.attributes.set("stride_h", std::int64_t{1});
    convolution.attributes.set("dilation_w_factor", std::int64_t{1});
    convolution.attributes.set("dilation_h_factor", std::int64_t{1});
    convolution.attributes.set("fused_activation_function",
                               ir::EnumName{std::string(op_.attributes.get_enum("fused_activation_function", "NONE"))});
    graph.operators.push_back(std::move(convolution));
    return static_cast<std::int32_t>(graph.operators.size()) - 1;
  }
  std::shared_ptr<const ir::Model> finish() && { return std::make_shared<const ir::Model>(std::move(model_)); }

 private:
  bool has_bias() const { return op_.inputs.size() > 3 && op_.inputs[3] >= 0; }

  void add_tensor(const ir::Tensor& tensor) {
    ir::Tensor copy = tensor;
    copy.buffer = 0;
    if (const Bytes& data = ir::constant_data(source_, tensor); !data.empty()) {
      copy.buffer = static_cast<std::int32_t>(model_.buffers.size());
      ir::Buffer buffer;
      buffer.data = data;
      model_.buffers.push_back(std::move(buffer));
    }
    model_.subgraphs[0].tensors.push_back(std::move(copy));
  }

  // What a weight of no effect holds: the zero point, of the output channel where there are several.
  std::uint8_t zero_of(std::int64_t channel) const {
    const auto& zeros = weights_.quantization.zero_point;
    if (zeros.empty()) return 0;
    return static_cast<std::uint8_t>(zeros[zeros.size() == 1 ? 0 : static_cast<std::size_t>(channel)]);
  }

  std::vector<std::uint8_t> taps_of(const TransposeConvPhase& y, const TransposeConvPhase& x, std::int32_t stride_y,
                                    std::int32_t stride_x) const {
    const ir::Shape& shape = weights_.shape;
    const auto all = ir::constant_data(source_, weights_).span();
    const std::int64_t inputs = shape[3];
    std::vector<std::uint8_t> bytes;
    for (std::int64_t o = 0; o < shape[0]; ++o) {
      if (y.taps == 0 || x.taps == 0) {
        const auto count = static_cast<std::size_t>(std::max(y.taps, 1) * std::max(x.taps, 1) * inputs);
        bytes.insert(bytes.end(), count, zero_of(o));
        continue;
      }
      for (std::int32_t ky = y.taps - 1; ky >= 0; --ky) {
        for (std::int32_t kx = x.taps - 1; kx >= 0; --kx) {
          const std::int64_t tap =
              (o * shape[1] + y.first_tap + ky * stride_y) * shape[2] + x.first_tap + kx * stride_x;
          const auto first = all.begin() + tap * inputs;
          bytes.insert(bytes.end(), first, first + inputs);
        }
      }
    }
    return bytes;
  }

  const ir::Model& source_;
  const ir::Operator& op_;
  const ir::Tensor& weights_;
  ir::Model model_;
};

Result<TransposeOperands> operands_of(const Builder& builder, std::int32_t op) {
  TransposeOperands operands;
  REEF_ASSIGN_OR_RETURN(operands.weights, builder.operand(op, 1));
  REEF_ASSIGN_OR_RETURN(operands.input, builder.operand(op, 2));
  if (builder.op(op).inputs.size() > 3) operands.bias = builder.op(op).inputs[3];
  operands.output = builder.op(op).outputs[0];
  const ir::Tensor& weights = builder.source(operands.weights);
  const ir::Shape &in = builder.source(operands.input).shape, &out = builder.source(operands.output).shape;
  if (in.rank() != 4 || out.rank() != 4 || weights.shape.rank() != 4 || in[0] != 1 || out[0] != 1) {
    return unsupported("input {} and weights {} must have four dimensions, with a batch of one", in.to_string(),
                       weights.shape.to_string());
  }
  REEF_REQUIRE(weights.shape.is_usable() && weights.shape[3] == in[3] && weights.shape[0] == out[3],
               "weights {} do not fit {} and {}", weights.shape.to_string(), in.to_string(), out.to_string());
  const std::int64_t bytes = weights.shape.elements();
  const auto& zeros = weights.quantization.zero_point;
  if (!ir::is_integer_8(weights.type) || bytes == 0 ||
      static_cast<std::int64_t>(ir::constant_data(builder.model(), weights).size()) != bytes ||
      (zeros.size() > 1 && zeros.size() != static_cast<std::size_t>(weights.shape[0]))) {
    return unsupported("weights '{}' must be constants of 8 bits", ir::describe_name(weights.name));
  }
  return operands;
}

// Padding that the image needs around it so that tiles which compute have something of it; none: as it is.
Padding padding_for(const tiled::TiledTensor& image, const TransposeConvAxis& y, const TransposeConvAxis& x) {
  const auto missing = [](std::int32_t size, const TransposeConvAxis& axis, std::int32_t& before, std::int32_t& after) {
    bool beyond = false;
    std::int32_t first = 0, end = size;
    for (const TransposeConvPhase& phase : axis.phases) {
      if (phase.outputs < 1) continue;
      const tiled::Window window = phase.window();
      beyond |= reads_beyond_owners(tiled::AxisPartition::of(size, {&window, 1}));
      first = std::min(first, window.first(0));
      end = std::max(end, window.end(phase.outputs - 1));
    }
    before = beyond ? -first : 0;
    after = beyond ? end - size : 0;
  };
  Padding padding;
  missing(image.height, y, padding.top, padding.bottom);
  missing(image.width, x, padding.left, padding.right);
  return padding;
}

// Phases between each other: which pixel of which phase an element of the output is.
ElementMap interleaved(const TransposeConvAxis& y, const TransposeConvAxis& x, std::int64_t channels,
                       std::vector<std::int32_t> operand_of) {
  return [=, operand_of = std::move(operand_of)](std::int64_t element) {
    const std::int64_t c = element % channels, at_x = element / channels % x.outputs + x.padding;
    const std::int64_t at_y = element / channels / x.outputs + y.padding;
    const auto py = static_cast<std::size_t>(at_y % y.stride), px = static_cast<std::size_t>(at_x % x.stride);
    const TransposeConvPhase &rows = y.phases[py], &columns = x.phases[px];
    const std::int64_t row = at_y / y.stride - rows.first, column = at_x / x.stride - columns.first;
    return ElementSource{operand_of[py * x.phases.size() + px], (row * columns.outputs + column) * channels + c,
                         channels - c};
  };
}

// Through which the output finds a phase's pixels.
tiled::Window phase_window(const TransposeConvAxis& axis, std::int32_t remainder) {
  const TransposeConvPhase& phase = axis.phases[at(remainder)];
  return {.outputs = axis.outputs,
          .pad_before = axis.stride * phase.first - axis.padding + remainder,
          .enlarged = axis.stride};
}

// The rows of a phase that some rows of the output are made of.
tiled::TileRanges transpose_conv_phase_rows(const TransposeConvAxis& axis, std::int32_t remainder,
                                            const tiled::TileRanges& outputs) {
  const tiled::Window window = phase_window(axis, remainder);
  const TransposeConvPhase& phase = axis.phases[at(remainder)];
  tiled::TileRanges rows;
  for (std::size_t t = 0; t < rows.size(); ++t) {
    const tiled::Range range = outputs[t].within(0, axis.outputs);
    if (range.is_empty()) continue;
    rows[t] = tiled::Range{window.first(range.begin), window.end(range.end - 1)}.within(0, phase.outputs);
  }
  return rows;
}

Result<std::int32_t> new_phase(Builder& builder, std::int32_t output, const Image& image, const TransposeConvAxis& y,
                               std::int32_t remainder) {
  const auto rows = builder.slice_rows(output);
  if (!rows) return builder.new_grid(output, image);
  return builder.new_grid(output, image, transpose_conv_phase_rows(y, remainder, *rows));
}

}  // namespace

// Output o gets inputs (o + padding - kernel + 1) / stride, rounded up, to (o + padding) / stride; a phase is computed
// up to a row before and behind those that are needed.
std::optional<tiled::Window> transpose_conv_rows(const ir::Subgraph& graph, const ir::Operator& op) {
  const auto shape_of = [&](std::int32_t tensor) { return graph.tensors[at(tensor)].shape; };
  const ir::Shape weights = shape_of(op.inputs[1]), in = shape_of(op.inputs[2]), out = shape_of(op.outputs[0]);
  if (weights.rank() != 4) return std::nullopt;
  const auto axis =
      axis_of(in[1], out[1], weights[1], op.attributes.get_int("stride_h"), op.attributes.get_enum("padding", "SAME"));
  if (!axis.ok()) return std::nullopt;
  const std::int32_t reach = (weights[1] + axis->stride - 1) / axis->stride;
  return tiled::Window{
      .kernel = reach + 3, .pad_before = weights[1] - axis->padding - 1 + 2 * axis->stride, .enlarged = axis->stride};
}

Status lower_transpose_conv(Builder& builder, std::int32_t op) {
  REEF_ASSIGN_OR_RETURN(const TransposeOperands operands, operands_of(builder, op));
  const ir::Shape in = builder.source(operands.input).shape, out = builder.source(operands.output).shape;
  const ir::Shape weights = builder.source(operands.weights).shape;
  const ir::Attributes& a = builder.op(op).attributes;
  const std::string_view mode = a.get_enum("padding", "SAME");
  REEF_ASSIGN_OR_RETURN(const TransposeConvAxis y, axis_of(in[1], out[1], weights[1], a.get_int("stride_h"), mode));
  REEF_ASSIGN_OR_RETURN(const TransposeConvAxis x, axis_of(in[2], out[2], weights[2], a.get_int("stride_w"), mode));
  if (y.stride * x.stride > kMostPhases) {
    return unsupported("strides of {} and {} make {} convolutions; at most {} are generated", y.stride, x.stride,
                       y.stride * x.stride, kMostPhases);
  }
  REEF_RETURN_IF_ERROR(image_of(builder.source(operands.output)).status());
  REEF_RETURN_IF_ERROR(builder.grid(operands.input).status());  // without padding
  REEF_ASSIGN_OR_RETURN(const Value input, builder.image_for_windows(operands.input));
  std::int32_t image = input.tensor;
  Padding padding = padding_for(builder.tensor(image), y, x);
  if (builder.slice_rows(operands.input)) padding.top = padding.bottom = 0;  // every tile has the rows that it needs
  if (padding != Padding{}) {
    REEF_ASSIGN_OR_RETURN(image, pad_image(builder, op, operands.input, image, padding));
  }
  TransposeConvPhaseModel model(builder, op, operands);
  Rearrangement join;
  struct TransposeConvLayer {
    std::int32_t output, op;
    Windows windows;
  };
  std::vector<TransposeConvLayer> layers;
  std::vector<std::int32_t> operand_of(static_cast<std::size_t>(y.stride) * static_cast<std::size_t>(x.stride), -1);
  for (std::int32_t py = 0; py < y.stride; ++py) {
    for (std::int32_t px = 0; px < x.stride; ++px) {
      const TransposeConvPhase &rows = y.phases[at(py)], &columns = x.phases[at(px)];
      if (rows.outputs < 1 || columns.outputs < 1) continue;
      REEF_ASSIGN_OR_RETURN(const std::int32_t phase,
                            new_phase(builder, operands.output, {rows.outputs, columns.outputs, out[3]}, y, py));
      Windows windows{rows.window(), columns.window()};
      windows.y.pad_before -= padding.top;
      windows.x.pad_before -= padding.left;
      layers.push_back({phase, model.add(rows, columns, y.stride, x.stride), windows});
      operand_of[at(py * x.stride + px)] = static_cast<std::int32_t>(join.operands.size());
      join.operands.push_back(Read{phase, Windows{phase_window(y, py), phase_window(x, px)}});
    }
  }
  const auto phases = std::move(model).finish();
  for (const TransposeConvLayer& layer : layers) {
    add_convolution(builder, op, {image, layer.output, layer.windows, 0, {phases, layer.op}});
  }
  REEF_ASSIGN_OR_RETURN(join.output, builder.new_grid(operands.output));
  join.source_of = interleaved(y, x, out[3], std::move(operand_of));
  builder.set_value(operands.output, {join.output, {}});
  add_rearrangement(builder, op, std::move(join));
  return ok_status();
}

}  // namespace reef::lower
