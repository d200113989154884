// SPDX-License-Identifier: Apache-2.0
#include "retarget/layer_match.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "formats/darwinn/parameters/from_operator.h"
#include "formats/darwinn/parameters/layer_geometry.h"
#include "ir/describe.h"
#include "ir/op.h"

namespace reef::retarget {

namespace {

// Weight lines of the first result: where each lies in the blob, and the input address it is multiplied with.
struct WeightLine {
  std::uint32_t offset = 0;
  std::int32_t address = 0;
};

bool weight_lines(const OpView& op, std::vector<WeightLine>& lines) {
  const Origin blob = RoleContext::blob_of(op.trace->parameters);
  for (const FirstStep& step : op.trace->first) {
    if (tag_origin(step.parameter) != blob) return false;
    lines.push_back({tag_number(step.parameter), step.input_address});
  }
  std::sort(lines.begin(), lines.end(), [](const WeightLine& a, const WeightLine& b) { return a.offset < b.offset; });
  return true;
}

// Input addresses ascend with row, column and channel, so that their order says which weight a line holds. Returns
// false where the lines are in an order that no compiler is known to use.
bool find_order(const std::vector<WeightLine>& lines, const darwinn::LayerShape& shape, darwinn::LoopOrder& order) {
  const auto count = static_cast<std::int64_t>(lines.size());
  std::vector<std::size_t> by_address(lines.size());
  std::iota(by_address.begin(), by_address.end(), 0);
  std::stable_sort(by_address.begin(), by_address.end(),
                   [&](std::size_t a, std::size_t b) { return lines[a].address < lines[b].address; });
  std::vector<std::int64_t> rank(lines.size());
  for (std::size_t r = 0; r < by_address.size(); ++r) rank[by_address[r]] = static_cast<std::int64_t>(r);
  const bool is_depthwise = shape.kind == darwinn::LayerKind::kDepthwise;
  const std::int64_t words = is_depthwise ? 1 : (shape.input_channels + 3) / 4;
  const std::int64_t positions = count / std::max<std::int64_t>(words, 1);
  std::int64_t block = 1;
  while (block < words && block < count && rank[reef::at(block)] == rank[reef::at(block - 1)] + 1) {
    ++block;
  }
  order.block_words = positions == 1 || block >= words ? 0 : static_cast<std::int32_t>(block);
  const std::int64_t used = order.block_words == 0 ? words : order.block_words;
  for (std::int64_t line = 0; line < count; ++line) {
    const std::int64_t start = line / (used * positions) * used;  // first word of the block
    const std::int64_t in_block = std::min(used, words - start);
    const std::int64_t within = line - start * positions;
    const std::int64_t expected = within / in_block * words + start + within % in_block;
    if (rank[reef::at(line)] != expected) return false;
  }
  return true;
}

std::string describe_shape(const darwinn::LayerShape& shape) {
  return fmt::format("{}x{} kernel, {} input and {} output channels", shape.kernel_height, shape.kernel_width,
                     shape.input_channels, shape.output_channels);
}

}  // namespace

darwinn::Presence presence_of(const OpView& op) { return {op.has_multipliers, op.has_biases, op.has_zero_line}; }

darwinn::LayerShape layer_shape_of(const Network& network, std::int32_t k) {
  const ir::Operator& op = network.op(k);
  const ir::Shape& weights = network.tensor(op.inputs[1]).shape;
  darwinn::LayerShape shape;
  if (op.type == Op::FULLY_CONNECTED && weights.rank() == 2) {
    shape = {darwinn::LayerKind::kFullyConnected, 1, 1, weights[1], weights[0]};
  } else if (weights.rank() == 4 && op.type == Op::CONV_2D) {
    shape = {darwinn::LayerKind::kConvolution, weights[1], weights[2], weights[3], weights[0]};
  } else if (weights.rank() == 4) {
    const bool one_channel =
        network.tensor(op.inputs[0]).shape.rank() == 4 && network.tensor(op.inputs[0]).shape[3] == 1;
    shape = one_channel
                ? darwinn::LayerShape{darwinn::LayerKind::kConvolution, weights[1], weights[2], 1, weights[3]}
                : darwinn::LayerShape{darwinn::LayerKind::kDepthwise, weights[1], weights[2], weights[3], weights[3]};
  }
  return shape;
}

LayerFit fit_layer(const RoleContext& context, std::int32_t, darwinn::LayerShape shape, std::uint32_t start) {
  LayerFit fit;
  const OpView& op = context.op;
  const Status valid = darwinn::validate(shape);
  if (!valid.ok()) {
    fit.reason = valid.message();
    return fit;
  }
  const darwinn::LayerGeometry geometry(shape, presence_of(op), {});
  const bool is_depthwise = shape.kind == darwinn::LayerKind::kDepthwise;
  const std::int32_t cells = is_depthwise ? 4 : (std::min(shape.output_channels, darwinn::kCellsPerTile) + 3) / 4 * 4;
  if (static_cast<std::int64_t>(op.trace->steps_per_result) != geometry.lines() || op.cells != cells) {
    fit.reason = fmt::format("{} make {} weight lines for {} cells; the template has {} lines for {} cells",
                             describe_shape(shape), geometry.lines(), cells, op.trace->steps_per_result, op.cells);
    return fit;
  }
  std::vector<WeightLine> lines;
  if (!weight_lines(op, lines)) {
    fit.reason = "its weight lines do not all come from the blob";
    return fit;
  }
  std::int64_t spacing = geometry.line_bytes();
  if (lines.size() > 1) spacing = lines[1].offset - lines[0].offset;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    if (lines[i].offset - lines[i - 1].offset != spacing) {
      fit.reason = "its weight lines are not evenly spaced in the blob";
      return fit;
    }
  }
  if (spacing != geometry.line_bytes()) shape.cells = static_cast<std::int32_t>(spacing / 4);
  if (spacing % 16 != 0 || !darwinn::validate(shape).ok() || darwinn::cells_per_line(shape) * 4 != spacing) {
    fit.reason = fmt::format("{} make lines of {} bytes; the template's have {}", describe_shape(shape),
                             geometry.line_bytes(), spacing);
    return fit;
  }
  const std::int64_t header = presence_of(op).arrays() * spacing;
  if (lines.front().offset - start != header) {
    fit.reason = fmt::format("its weights should start {} bytes into its parameters, the template's start at {}",
                             header, lines.front().offset - start);
    return fit;
  }
  if (!find_order(lines, shape, fit.order)) {
    fit.reason = fmt::format("the template's weights are in no known order for {}", describe_shape(shape));
    return fit;
  }
  fit.shape = shape;
  return fit;
}

std::string check_kernel(const Network& network, std::int32_t k, const OpView& view, const darwinn::LayerShape& shape) {
  if (shape.kind == darwinn::LayerKind::kFullyConnected) return "";
  const ir::Attributes& attributes = network.op(k).attributes;
  const std::int64_t stride_w = attributes.get_int("stride_w", 1), stride_h = attributes.get_int("stride_h", 1);
  const std::int64_t dilation_w = std::max<std::int64_t>(attributes.get_int("dilation_w_factor", 1), 1);
  const std::int64_t dilation_h = std::max<std::int64_t>(attributes.get_int("dilation_h_factor", 1), 1);
  std::vector<std::int64_t> addresses;
  for (const FirstStep& step : view.trace->first) addresses.push_back(step.input_address);
  std::sort(addresses.begin(), addresses.end());
  const std::int64_t words = shape.kind == darwinn::LayerKind::kDepthwise ? 1 : (shape.input_channels + 3) / 4;
  const auto at = [&](std::int64_t ky, std::int64_t kx) {
    return addresses[reef::at((ky * shape.kernel_width + kx) * words)];
  };
  const std::int64_t column = shape.kernel_width > 1 ? at(0, 1) - at(0, 0) : 0;
  const std::int64_t row = shape.kernel_height > 1 ? at(1, 0) - at(0, 0) : 0;
  for (std::int64_t ky = 0; ky < shape.kernel_height; ++ky) {
    for (std::int64_t kx = 0; kx < shape.kernel_width; ++kx) {
      if (at(ky, kx) != at(0, 0) + ky * row + kx * column) {
        return fmt::format("the template's kernel positions are not those of a {}x{} kernel", shape.kernel_height,
                           shape.kernel_width);
      }
    }
  }
  // Known only from kernels of more than one column: the distance of neighbouring pixels.
  if (column % dilation_w != 0) return fmt::format("it has dilation {}, the template another", dilation_w);
  const std::int64_t pixel = column / dilation_w;
  if (pixel != 0 && row != 0 && row % (dilation_h * pixel) != 0) {
    return fmt::format("it has dilation {}, the template another", dilation_h);
  }
  const std::int64_t step = view.trace->result_step;
  if (pixel == 0 || step == 0) return "";
  // One pixel on the tile: the next result is the next word of channels.
  if (shape.kind == darwinn::LayerKind::kDepthwise && step == 4) return "";
  const bool along_row = step == stride_w * pixel;
  const bool along_column = row != 0 && step == stride_h * (row / dilation_h);
  if (!along_row && !along_column) {
    return fmt::format("it has stride {}x{} and dilation {}x{}, the template another stride or dilation", stride_h,
                       stride_w, dilation_h, dilation_w);
  }
  return "";
}

namespace {

// First steps by kernel position and word of channels, as addresses order them.
std::vector<const FirstStep*> by_position(const OpView& op) {
  std::vector<const FirstStep*> steps;
  for (const FirstStep& step : op.trace->first) steps.push_back(&step);
  std::stable_sort(steps.begin(), steps.end(),
                   [](const FirstStep* a, const FirstStep* b) { return a->input_address < b->input_address; });
  return steps;
}

struct Padding {
  std::int64_t top = 0, left = 0;
};

// SAME padding, and that of a PAD operator in front, which the compiler folds into the layer.
std::optional<Padding> padding_of(const Network& network, std::int32_t k) {
  const ir::Operator& op = network.op(k);
  const ir::Shape &in = network.tensor(op.inputs[0]).shape, &out = network.tensor(op.outputs[0]).shape;
  const ir::Shape& weights = network.tensor(op.inputs[1]).shape;
  if (in.rank() != 4 || out.rank() != 4 || weights.rank() != 4) return std::nullopt;
  Padding padding;
  if (op.attributes.get_enum("padding") == "SAME") {
    const auto before = [&](int axis, std::string_view stride, std::string_view dilation) {
      const std::int64_t reach = (weights[axis] - 1) * op.attributes.get_int(dilation, 1) + 1;
      const std::int64_t total = (out[axis] - 1) * op.attributes.get_int(stride, 1) + reach - in[axis];
      return std::max<std::int64_t>(total, 0) / 2;
    };
    padding.top = before(1, "stride_h", "dilation_h_factor");
    padding.left = before(2, "stride_w", "dilation_w_factor");
  }
  for (const std::int32_t other : network.chip_ops()) {
    const ir::Operator& pad = network.op(other);
    if (pad.type != Op::PAD || pad.outputs[0] != op.inputs[0]) continue;
    const ir::Tensor& amounts = network.tensor(pad.inputs[1]);
    const Bytes& data = ir::constant_data(network.model(), amounts);
    if (amounts.type != ir::DataType::kInt32 || data.size() != 32) return std::nullopt;
    std::array<std::int32_t, 8> values;
    std::memcpy(values.data(), data.data(), data.size());
    padding.top += values[2];
    padding.left += values[4];
  }
  return padding;
}

}  // namespace

std::string check_padding(const RoleContext& context, std::int32_t k, const darwinn::LayerShape& shape) {
  const TensorOpTrace& trace = *context.op.trace;
  if (shape.kind == darwinn::LayerKind::kFullyConnected || (trace.tiles & 1) == 0) return "";
  const auto padding = padding_of(context.network, k);
  if (!padding) return "";
  const ir::Attributes& attributes = context.network.op(k).attributes;
  const std::int64_t words = shape.kind == darwinn::LayerKind::kDepthwise ? 1 : (shape.input_channels + 3) / 4;
  const std::vector<const FirstStep*> steps = by_position(context.op);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Origin origin = tag_origin(steps[i]->inputs[0]);
    if (origin == Origin::kUnwritten) return "";
    const std::int64_t position = static_cast<std::int64_t>(i) / words;
    const std::int64_t y = position / shape.kernel_width * attributes.get_int("dilation_h_factor", 1);
    const std::int64_t x = position % shape.kernel_width * attributes.get_int("dilation_w_factor", 1);
    const bool is_padding = y < padding->top || x < padding->left;
    if (origin == Origin::kValue) {
      // A copy may have moved padding and data alike.
      const auto label = context.state.labels.find(value_instruction(steps[i]->inputs[0]));
      if (label == context.state.labels.end()) return "";
      for (const Label& part : label->second) {
        if (part.kind == Label::Kind::kFill) return "";
      }
    }
    if ((origin == Origin::kFill) != is_padding) {
      return fmt::format("it is padded by {} rows above and {} columns to the left; the template pads otherwise",
                         padding->top, padding->left);
    }
  }
  return "";
}

std::string check_channels(const RoleContext& context, std::int32_t k, const darwinn::LayerShape& shape) {
  if (shape.kind == darwinn::LayerKind::kDepthwise || context.input.tensors.size() < 2) return "";
  const Network& network = context.network;
  const std::int32_t whole = network.op(k).inputs[0];
  const std::int64_t words = (shape.input_channels + 3) / 4;
  const std::vector<const FirstStep*> steps = by_position(context.op);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    for (std::int64_t lane = 0; lane < 4; ++lane) {
      const std::int64_t channel = 4 * (static_cast<std::int64_t>(i) % words) + lane;
      if (channel >= shape.input_channels) break;
      const Tag tag = steps[i]->inputs[reef::at(lane)];
      for (const std::int32_t t : operand_of(context.compiled, context.state, tag).tensors) {
        if (network.may_supply(t, whole, channel)) continue;
        return fmt::format("its input channel {} does not come from '{}', as it does in the template", channel,
                           ir::describe_name(network.tensor(t).name));
      }
    }
  }
  return "";
}

}  // namespace reef::retarget
