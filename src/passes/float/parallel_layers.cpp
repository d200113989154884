// SPDX-License-Identifier: Apache-2.0
// Parallel branches that are one layer: convolutions of the same tensor whose results are added (or subtracted) become
// one convolution with the sum of their kernels, and so does the tensor itself times a constant per channel. Networks
// that are trained with such branches and meant to be deployed without (RepVGG, MobileOne, FastViT, ACNet) are often
// exported with all of them. Float32 only; results differ by rounding.
//
// A plain skip connection, x + convolution(x), stays as it is: the kernel would hold 1 + w, and 8-bit weights with one
// scale per channel would have few steps left for a small w.
#include <algorithm>

#include "passes/float/patterns.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

// Taps of the merged kernel, as a multiple of the taps of both branches, up to which merging is worth it: 3x3 for
// 1x3 + 3x1, not 7x7 for 1x7 + 7x1.
constexpr std::int64_t kMostTapsPerTap = 2;

constexpr std::int64_t kMostStep = 1 << 16;  // strides and dilations come from a file and may be any number

enum class Kind { kDense, kDepthwise, kScale };

// How a branch looks at one axis of x: output i reads inputs i * stride - before + k * dilation, 0 <= k < taps.
struct Axis {
  std::int64_t taps = 1, stride = 1, dilation = 1, before = 0;
};

struct Branch {
  Kind kind = Kind::kScale;
  OpId op = kNone;  // the convolution; kNone: none
  TensorId x = kNone;
  Axis axes[2];                     // rows, columns
  std::vector<float> weights;       // as the operator has them; kScale: one per channel
  std::vector<float> bias;          // one per output channel
  std::int64_t inputs_per_tap = 1;  // kDense: the last axis of the weights

  std::int64_t taps() const { return axes[0].taps * axes[1].taps; }
};

// The tensor in front of a PAD with zeros of rows and columns, and how much it pads before them; else `x` itself.
TensorId in_front_of_padding(const Graph& graph, TensorId x, std::int64_t (&before)[2]) {
  const OpId pad = made_by(graph, x, Op::PAD);
  if (pad == kNone) return x;
  const auto amounts = graph.ints(graph.op(pad).inputs[1]);
  if (!amounts || amounts->size() != 8) return x;
  const std::vector<std::int64_t>& a = *amounts;
  if (a[0] != 0 || a[1] != 0 || a[6] != 0 || a[7] != 0) return x;
  if (std::any_of(a.begin(), a.end(), [](std::int64_t amount) { return amount < 0; })) return x;
  before[0] = a[2];
  before[1] = a[4];
  return graph.op(pad).inputs[0];
}

std::optional<Branch> as_convolution(const Graph& graph, OpId id) {
  const auto layer = as_layer(graph, id);
  if (!layer || !has_no_activation(graph, id)) return std::nullopt;
  const ir::Operator& op = graph.op(id);
  if (op.type != Op::CONV_2D && op.type != Op::DEPTHWISE_CONV_2D) return std::nullopt;
  const TensorId weights = op.inputs[1];
  const ir::Shape& filter = graph.shape(weights);
  auto bias = bias_of(graph, *layer);
  if (!bias || graph.shape(op.inputs[0]).rank() != 4) return std::nullopt;
  Branch branch;
  branch.kind = layer->is_depthwise ? Kind::kDepthwise : Kind::kDense;
  branch.op = id;
  branch.x = op.inputs[0];
  branch.weights = *graph.floats(weights);
  branch.bias = std::move(*bias);
  if (!layer->is_depthwise) branch.inputs_per_tap = filter[3];
  const ir::Shape image = graph.shape(op.inputs[0]);
  std::int64_t before[2] = {0, 0};
  const bool is_valid = op.attributes.get_enum("padding") == "VALID";
  if (is_valid) branch.x = in_front_of_padding(graph, branch.x, before);
  for (const int i : {0, 1}) {
    Axis& axis = branch.axes[i];
    axis.taps = filter[i + 1];
    axis.stride = op.attributes.get_int(i == 0 ? "stride_h" : "stride_w", 1);
    axis.dilation = op.attributes.get_int(i == 0 ? "dilation_h_factor" : "dilation_w_factor", 1);
    if (axis.stride < 1 || axis.stride > kMostStep || axis.dilation < 1 || axis.dilation > kMostStep) {
      return std::nullopt;
    }
    axis.before = is_valid ? before[i] : same_padding(image[i + 1], axis.taps, axis.stride, axis.dilation).before;
    if (axis.before > axis.taps * axis.dilation) return std::nullopt;
  }
  return branch;
}

// The branch that ends in `tensor`, which `sum` alone reads.
std::optional<Branch> branch_to(const Graph& graph, TensorId tensor, OpId sum) {
  if (!is_float(graph, tensor) || graph.only_user(tensor) != sum || graph.shape(tensor).rank() != 4)
    return std::nullopt;
  OpId op = graph.producer(tensor);
  if (op == kNone) return std::nullopt;
  if (auto convolution = as_convolution(graph, op)) return convolution;
  const auto channels = static_cast<std::size_t>(graph.shape(tensor).last());
  Branch branch;
  branch.weights.assign(channels, 1.0f);
  branch.bias.assign(channels, 0.0f);
  bool is_scaled = false;
  // From the sum upwards: what is nearer to it comes later.
  while (op != kNone && graph.is_sound(op) && has_no_activation(graph, op)) {
    const auto line = channel_line(graph, op);
    if (!line) break;
    for (std::size_t i = 0; i < line->offset.size(); ++i) branch.bias[i] += branch.weights[i] * line->offset[i];
    for (std::size_t i = 0; i < line->scale.size(); ++i) branch.weights[i] *= line->scale[i];
    is_scaled = is_scaled || !line->scale.empty();
    branch.x = with_constant(graph, op)->x;
    op = graph.has_one_user(branch.x) ? graph.producer(branch.x) : kNone;
  }
  if (!is_scaled) return std::nullopt;
  return branch;
}

// The axis of a kernel that holds both; nullopt: there is none.
std::optional<Axis> merged_axis(const Axis& a, const Axis& b) {
  if (a.stride != b.stride || (a.dilation != b.dilation && a.taps > 1 && b.taps > 1)) return std::nullopt;
  Axis merged = a;
  merged.dilation = a.taps > 1 ? a.dilation : b.dilation;
  merged.before = std::max(a.before, b.before);
  if ((merged.before - a.before) % merged.dilation != 0 || (merged.before - b.before) % merged.dilation != 0) {
    return std::nullopt;
  }
  const auto end = [&](const Axis& axis) { return (merged.before - axis.before) / merged.dilation + axis.taps; };
  merged.taps = std::max(end(a), end(b));
  return merged;
}

// Adds the branch's kernel, times `sign`, to that of `merged`.
void add_kernel(const Branch& branch, float sign, Branch& merged) {
  const auto outputs = static_cast<std::int64_t>(branch.bias.size());
  const auto offset = [&](int i) { return (merged.axes[i].before - branch.axes[i].before) / merged.axes[i].dilation; };
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  for (std::int64_t o = 0; o < outputs; ++o) {
    merged.bias[at(o)] += sign * branch.bias[at(o)];
    for (std::int64_t y = 0; y < branch.axes[0].taps; ++y) {
      for (std::int64_t x = 0; x < branch.axes[1].taps; ++x) {
        const std::int64_t from = y * branch.axes[1].taps + x;
        const std::int64_t to = (y + offset(0)) * merged.axes[1].taps + x + offset(1);
        if (merged.kind == Kind::kDepthwise) {
          merged.weights[at(to * outputs + o)] += sign * branch.weights[at(from * outputs + o)];
        } else if (branch.kind == Kind::kScale) {
          const std::int64_t row = o * merged.taps() + to;
          merged.weights[at(row * merged.inputs_per_tap + o % merged.inputs_per_tap)] += sign * branch.weights[at(o)];
        } else {
          for (std::int64_t c = 0; c < branch.inputs_per_tap; ++c) {
            merged.weights[at((o * merged.taps() + to) * merged.inputs_per_tap + c)] +=
                sign * branch.weights[at((o * branch.taps() + from) * branch.inputs_per_tap + c)];
          }
        }
      }
    }
  }
}

// a + sign * b as one convolution.
std::optional<Branch> merge(const Graph& graph, const Branch& a, const Branch& b, float sign) {
  const Branch& layer = a.kind == Kind::kScale ? b : a;
  const Branch& other = a.kind == Kind::kScale ? a : b;
  if (layer.kind == Kind::kScale || a.x != b.x || a.bias.size() != b.bias.size()) return std::nullopt;
  if (other.kind != Kind::kScale && (other.kind != layer.kind || other.inputs_per_tap != layer.inputs_per_tap)) {
    return std::nullopt;
  }
  // Channel i of x itself is only part of output i.
  const auto channels = static_cast<std::size_t>(graph.shape(a.x).last());
  if (other.kind == Kind::kScale && layer.bias.size() != channels) return std::nullopt;
  Branch merged;
  merged.kind = layer.kind;
  merged.op = layer.op;
  merged.x = layer.x;
  merged.inputs_per_tap = layer.inputs_per_tap;
  for (const int i : {0, 1}) {
    const auto axis = merged_axis(a.axes[i], b.axes[i]);
    if (!axis) return std::nullopt;
    merged.axes[i] = *axis;
  }
  if (merged.taps() > kMostTapsPerTap * (a.taps() + b.taps())) return std::nullopt;
  merged.bias.assign(layer.bias.size(), 0.0f);
  merged.weights.assign(layer.bias.size() * static_cast<std::size_t>(merged.taps() * merged.inputs_per_tap), 0.0f);
  add_kernel(a, 1.0f, merged);
  add_kernel(b, sign, merged);
  return merged;
}

// Zeros around x so that the convolution needs no padding of its own; nullopt: shapes do not agree with it.
std::optional<std::vector<std::int32_t>> padding_of(const Branch& branch, const ir::Shape& image,
                                                    const ir::Shape& result) {
  std::vector<std::int32_t> amounts(8, 0);
  for (const int i : {0, 1}) {
    const Axis& axis = branch.axes[i];
    const std::int64_t reach = (axis.taps - 1) * axis.dilation + 1;
    const std::int64_t after = (result[i + 1] - 1) * axis.stride + reach - image[i + 1] - axis.before;
    if (after <= -axis.stride || after > reach) return std::nullopt;
    amounts[static_cast<std::size_t>(i) * 2 + 2] = static_cast<std::int32_t>(axis.before);
    amounts[static_cast<std::size_t>(i) * 2 + 3] = static_cast<std::int32_t>(std::max<std::int64_t>(after, 0));
  }
  return amounts;
}

void replace_sum(Graph& graph, OpId sum, Branch merged, std::vector<std::int32_t> padding) {
  ir::Attributes attributes = graph.op(merged.op).attributes;
  const std::string activation(graph.op(sum).attributes.get_enum("fused_activation_function", "NONE"));
  attributes.set("padding", ir::EnumName{"VALID"});
  attributes.set("fused_activation_function", ir::EnumName{activation});
  attributes.set("dilation_h_factor", merged.axes[0].dilation);
  attributes.set("dilation_w_factor", merged.axes[1].dilation);
  const std::string type = graph.type(merged.op), options_type = graph.op(merged.op).options_type;
  const std::int32_t version = graph.op(merged.op).version;
  const TensorId old_weights = graph.op(merged.op).inputs[1];
  const auto size = [](std::int64_t number) { return static_cast<std::int32_t>(number); };
  const auto outputs = static_cast<std::int32_t>(merged.bias.size());
  const std::int32_t rows = size(merged.axes[0].taps), columns = size(merged.axes[1].taps);
  const ir::Shape shape = merged.kind == Kind::kDepthwise
                              ? ir::Shape{1, rows, columns, outputs}
                              : ir::Shape{outputs, rows, columns, size(merged.inputs_per_tap)};
  const TensorId weights = graph.add_floats(std::move(merged.weights), shape, graph.tensor(old_weights).name);
  const TensorId bias = graph.add_floats(std::move(merged.bias), {outputs}, graph.tensor(old_weights).name + "/bias");
  TensorId x = merged.x;
  if (std::any_of(padding.begin(), padding.end(), [](std::int32_t amount) { return amount > 0; })) {
    ir::Shape padded = graph.shape(x);
    for (const int i : {1, 2}) {
      padded[i] += padding[static_cast<std::size_t>(i) * 2] + padding[static_cast<std::size_t>(i) * 2 + 1];
    }
    const TensorId amounts = graph.add_ints(std::move(padding), {4, 2});
    const TensorId y = graph.add_like(x, padded);
    graph.add_op(sum, Op::PAD, "PadOptions", {}, {x, amounts}, {y});
    x = y;
  }
  graph.become(sum, type, options_type, std::move(attributes), {x, weights, bias});
  graph.set_type_version(sum, version);
}

bool parallel_layers_at(Graph& graph, OpId id) {
  const bool subtracts = graph.is(id, Op::SUB);
  if (!subtracts && !graph.is(id, Op::ADD)) return false;
  const TensorId a = graph.op(id).inputs[0], b = graph.op(id).inputs[1], y = graph.op(id).outputs[0];
  if (a == b || graph.shape(a) != graph.shape(y) || graph.shape(b) != graph.shape(y)) return false;
  const auto first = branch_to(graph, a, id), second = branch_to(graph, b, id);
  if (!first || !second) return false;
  auto merged = merge(graph, *first, *second, subtracts ? -1.0f : 1.0f);
  if (!merged) return false;
  auto padding = padding_of(*merged, graph.shape(merged->x), graph.shape(y));
  if (!padding) return false;
  replace_sum(graph, id, std::move(*merged), std::move(*padding));
  return true;
}

}  // namespace

constinit const Pass parallel_layers_float_pass = {
    .name = "parallel-layers",
    .summary =
        "CONV_2D, or DEPTHWISE_CONV_2D, of the same tensor whose results are added or subtracted become one, also with "
        "the tensor itself times a constant (a batch normalization): the training-time branches of RepVGG, MobileOne, "
        "FastViT, ACNet. A plain skip connection stays: weights of 1 + w in 8 bits are coarser than w.",
    .safety = Safety::kRounding,
    .at = parallel_layers_at};

}  // namespace reef::passes
