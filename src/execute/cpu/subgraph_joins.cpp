// SPDX-License-Identifier: Apache-2.0
// Ops that are computed together with others, with the same results bit for bit:
//
// - PAD with zeros of height and width, before a convolution without padding of its own: the convolution pads. Sums
// leave
//   out what lies outside the image, which is what zeros add. In floats that holds for finite weights alone.
// - A chain of ops that each map one number to one, from 8 bits to 8 bits (DEQUANTIZE and QUANTIZE, a QUANTIZE between
//   int8 and uint8 beside a RELU, x * constant + constant), or that come back to the chain's first number
//   (x * logistic(x)): a table of 256 numbers, which the ops themselves fill in.
//
// Only ops whose shapes are known before the run take part, and only tensors that nobody else reads disappear. Where
// anything is unusual the ops stay as they are, errors included.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "execute/cpu/evaluate.h"
#include "execute/cpu/subgraph_runner.h"
#include "ir/op.h"
#include "ops/pad_family.h"
#include "ops/unary.h"

namespace reef::cpu {
namespace {

constexpr int kBytes = 256;
constexpr std::int64_t kFewElements = 16;  // a table is not worth making for fewer

bool is_integer_8(const ops::Tensor& tensor) {
  return tensor.type == ir::DataType::kInt8 || tensor.type == ir::DataType::kUInt8;
}

bool has_one_scale_at_most(const ops::Tensor& tensor) {
  return tensor.quantization->scale.size() <= 1 && tensor.quantization->details.index() == 0;
}

// Whether numbers mean the same in both tensors.
bool are_quantized_alike(const ops::Tensor& a, const ops::Tensor& b) {
  return a.type == b.type && has_one_scale_at_most(a) && has_one_scale_at_most(b) &&
         a.quantization->scale == b.quantization->scale && a.quantization->zero_point == b.quantization->zero_point;
}

bool are_finite(const ops::Tensor& tensor) {
  const std::span<const float> values = tensor.values<float>();
  return tensor.is_constant && std::all_of(values.begin(), values.end(), [](float x) { return std::isfinite(x); });
}

// Whether leaving padding out of the sums gives what adding it would.
bool suits_padding(const ops::Tensor& input, const ops::Tensor& weights) {
  if (input.type == ir::DataType::kFloat32) return weights.type == ir::DataType::kFloat32 && are_finite(weights);
  return is_integer_8(input) || input.type == ir::DataType::kInt16;
}

// How much is put around height and width.
struct Margins {
  std::int64_t top = 0, bottom = 0, left = 0, right = 0;
};

// True if `context`, of a PAD, surrounds pictures with zeros; `margins` says how many.
bool pads_pictures(const ops::OpContext& context, Margins& margins) {
  const ops::Tensor& input = context.input(0);
  const bool has_value = context.has_input(2);
  if (input.shape.rank() != 4 || !are_quantized_alike(input, context.output(0))) return false;
  if (!context.input(1).is_constant || (has_value && !context.input(2).is_constant)) return false;
  const Result<std::vector<std::int64_t>> paddings = ops::paddings_of(context, 4, /*small_too=*/true);
  const Result<ops::PadElement> zero = ops::zero_element(input, context.output(0));
  if (!paddings.ok() || !zero.ok()) return false;
  if (has_value && std::memcmp(zero->data(), context.input(2).data, context.input(2).bytes) != 0) return false;
  const std::vector<std::int64_t>& p = *paddings;
  margins = {p[2], p[3], p[4], p[5]};
  return p[0] == 0 && p[1] == 0 && p[6] == 0 && p[7] == 0;
}

// The convolution with these margins as its own padding, or null if windows could lie beside the image.
std::unique_ptr<ir::Operator> with_margins(const ir::Operator& op, const ir::Shape& padded, const ir::Shape& weights,
                                           const Margins& m) {
  const auto reach = [&](int axis, const char* dilation) {
    return (weights[axis] - 1) * op.attributes.get_int(dilation, 1) + 1;
  };
  const std::int64_t height = reach(1, "dilation_h_factor"), width = reach(2, "dilation_w_factor");
  if (std::max(m.top, m.bottom) >= height || std::max(m.left, m.right) >= width) return nullptr;
  if (padded[1] < height || padded[2] < width) return nullptr;
  auto joined = std::make_unique<ir::Operator>(op);
  joined->attributes.set("padding", ir::EnumName{"EXPLICIT"});
  for (const auto& [name, value] : {std::pair("pad_top", m.top), std::pair("pad_bottom", m.bottom),
                                    std::pair("pad_left", m.left), std::pair("pad_right", m.right)}) {
    joined->attributes.set(name, value);
  }
  return joined;
}

ir::Tensor tensor_like(const ops::Tensor& tensor, ir::Shape shape) {
  ir::Tensor result;
  result.type = tensor.type;
  result.shape = std::move(shape);
  result.quantization = *tensor.quantization;
  return result;
}

}  // namespace

void SubgraphRunner::find_uses() {
  writer_.assign(tensors_.size(), kNone);
  readers_.assign(tensors_.size(), {});
  is_output_.assign(tensors_.size(), false);
  for (const std::int32_t output : graph_.outputs) is_output_[index_of(output)] = true;
  for (std::size_t k = 0; k < ops_.size(); ++k) {
    for (const std::int32_t t : ops_[k].op->inputs) {
      if (t >= 0) readers_[index_of(t)].push_back(static_cast<std::int32_t>(k));
    }
    for (const std::int32_t t : ops_[k].op->outputs) {
      if (t < 0) continue;
      writer_[index_of(t)] = writer_[index_of(t)] == kNone ? static_cast<std::int32_t>(k) : kSeveral;
    }
  }
}

SubgraphRunner::OpState* SubgraphRunner::writer_of(const ops::Tensor* tensor) {
  const std::int32_t writer = writer_[number_of(tensor)];
  return writer >= 0 ? &ops_[index_of(writer)] : nullptr;
}

// Made and read within the graph, in memory that is planned.
bool SubgraphRunner::is_private(const ops::Tensor* tensor) const {
  const std::size_t i = number_of(tensor);
  return writer_[i] >= 0 && !is_output_[i] && !tensor->is_variable && !tensor->is_constant && !dynamic_[i];
}

void SubgraphRunner::join_padding(OpState& convolution) {
  const ir::Operator& op = *convolution.op;
  if (op.type != Op::CONV_2D && op.type != Op::DEPTHWISE_CONV_2D) return;
  if (op.attributes.get_enum("padding", "SAME") != "VALID") return;
  for (const ops::Tensor* input : convolution.inputs) {
    if (input != nullptr && dynamic_[number_of(input)]) return;
  }
  ops::Tensor* const padded = convolution.inputs[0];
  const ops::Tensor* const weights = convolution.inputs[1];
  if (padded == nullptr || weights == nullptr || !is_private(padded)) return;
  OpState* const pad = writer_of(padded);
  if (pad == nullptr || (pad->op->type != Op::PAD && pad->op->type != Op::PADV2)) return;
  if (pad->kernel == nullptr || pad->folded || pad->shape_deferred || pad->value_deferred) return;
  if (pad->inputs[0]->is_variable) return;  // an op in between may change it
  const ops::OpContext context(*pad->op, pad->inputs, pad->outputs, &environment_);
  Margins margins;
  if (weights->shape.rank() != 4 || !suits_padding(*padded, *weights) || !pads_pictures(context, margins)) return;
  convolution.joined_op = with_margins(op, padded->shape, weights->shape, margins);
  if (convolution.joined_op == nullptr) return;
  convolution.computed = convolution.joined_op.get();
  convolution.inputs[0] = pad->inputs[0];
  convolution.is_joined = true;
}

// Padding that nobody reads any more is not done.
void SubgraphRunner::drop_joined_padding() {
  for (OpState& state : ops_) {
    if ((state.op->type != Op::PAD && state.op->type != Op::PADV2) || state.outputs.empty()) continue;
    const ops::Tensor* const padded = state.outputs[0];
    const std::vector<std::int32_t>& readers = readers_[number_of(padded)];
    const auto has_joined = [&](std::int32_t reader) {
      const OpState& by = ops_[index_of(reader)];
      return by.is_joined && std::find(by.inputs.begin(), by.inputs.end(), padded) == by.inputs.end();
    };
    state.is_done_elsewhere =
        is_private(padded) && !readers.empty() && std::all_of(readers.begin(), readers.end(), has_joined);
  }
}

namespace {

// Whether each element of the output is decided by the elements at its place of inputs that `is_known` has, and of no
// others; there is one such input at least.
template <typename IsKnown>
bool maps_elements(const SubgraphRunner::OpState& state, const IsKnown& is_known) {
  if (state.folded || state.shape_deferred || state.value_deferred || state.is_done_elsewhere) return false;
  if (state.foreign != nullptr || state.outputs.size() != 1 || state.is_joined) return false;
  const ops::Tensor& output = *state.outputs[0];
  bool has_any = false;
  for (std::size_t i = 0; i < state.inputs.size(); ++i) {
    const ops::Tensor* const input = state.inputs[i];
    if (input == nullptr || i >= 32 || !has_one_scale_at_most(*input)) return false;
    if (input->is_constant && input->elements() == 1) continue;
    if (input->is_constant || !(state.elementwise >> i & 1) || input->elements() != output.elements()) return false;
    if (!is_known(input)) return false;
    has_any = true;
  }
  return has_any && has_one_scale_at_most(output);
}

}  // namespace

// The one input that decides each element of the output, or null if there is no such input.
const ops::Tensor* SubgraphRunner::mapped_input(const OpState& state) const {
  const ops::Tensor* mapped = nullptr;
  const bool is_mapped = maps_elements(state, [&](const ops::Tensor* input) {
    if (mapped == nullptr) mapped = input;
    return mapped == input;
  });
  // The chain reads it where its last op stands; a variable may hold something else by then.
  return is_mapped && !mapped->is_variable ? mapped : nullptr;
}

// Ops from `first` on that map element by element, the last of which gives 8 bits. They may read what the first one
// reads, too.
std::vector<SubgraphRunner::OpState*> SubgraphRunner::chain_of_maps(OpState& first) {
  std::vector<OpState*> chain;
  std::size_t length = 0;  // up to the last that gives 8 bits
  const ops::Tensor* const input = mapped_input(first);
  const ops::Tensor* last = input;
  const auto is_known = [&](const ops::Tensor* tensor) { return tensor == input || tensor == last; };
  for (OpState* next = &first; input != nullptr && maps_elements(*next, is_known);) {
    chain.push_back(next);
    const ops::Tensor* const output = next->outputs[0];
    if (is_integer_8(*output)) length = chain.size();
    const std::vector<std::int32_t>& readers = readers_[number_of(output)];
    const auto is_first_reader = [&](std::int32_t reader) { return reader == readers[0]; };
    if (!is_private(output) || readers.empty() || !std::all_of(readers.begin(), readers.end(), is_first_reader)) break;
    next = &ops_[index_of(readers[0])];
    last = output;
  }
  chain.resize(length);
  return chain;
}

namespace {

// Makes the chain's table by running its ops on all 256 bytes.
Result<kernels::ByteTable> table_of(const std::vector<SubgraphRunner::OpState*>& chain, const ops::Tensor& input,
                                    const InterpreterOptions& options) {
  auto model = std::make_shared<ir::Model>();
  model->buffers.resize(1);
  ir::Subgraph graph;
  graph.tensors.push_back(tensor_like(input, {kBytes}));
  graph.inputs = {0};
  std::int32_t last = 0;  // what the last op made, or the input
  const ops::Tensor* made = &input;
  for (const SubgraphRunner::OpState* state : chain) {
    ir::Operator op = *state->op;
    for (std::size_t i = 0; i < state->inputs.size(); ++i) {
      const ops::Tensor& operand = *state->inputs[i];
      op.inputs[i] = &operand == made ? last : 0;
      if (!operand.is_constant) continue;
      op.inputs[i] = static_cast<std::int32_t>(graph.tensors.size());
      graph.tensors.push_back(tensor_like(operand, operand.shape));
      graph.tensors.back().buffer = static_cast<std::int32_t>(model->buffers.size());
      model->buffers.emplace_back().data =
          Bytes::copy_of({reinterpret_cast<const std::uint8_t*>(operand.data), operand.bytes});
    }
    last = static_cast<std::int32_t>(graph.tensors.size());
    made = state->outputs[0];
    op.outputs = {last};
    graph.tensors.push_back(tensor_like(*state->outputs[0], {kBytes}));
    graph.operators.push_back(std::move(op));
  }
  graph.outputs = {last};
  model->subgraphs.push_back(std::move(graph));
  InterpreterOptions each;
  each.tflite_release = options.tflite_release;
  each.float_sums = options.float_sums;
  each.one_by_one = true;
  REEF_ASSIGN_OR_RETURN(const auto interpreter, prepared(std::move(model), each));
  std::vector<std::uint8_t> bytes(kBytes);
  std::iota(bytes.begin(), bytes.end(), std::uint8_t{0});
  REEF_ASSIGN_OR_RETURN(const std::vector<Value> results, run_once(*interpreter, {&bytes, 1}));
  kernels::ByteTable table;
  if (results[0].bytes.size() != table.size()) return internal_error("a table has {} bytes", results[0].bytes.size());
  std::memcpy(table.data(), results[0].bytes.data(), table.size());
  return table;
}

}  // namespace

void SubgraphRunner::join_maps() {
  for (OpState& first : ops_) {
    ops::Tensor* const input = const_cast<ops::Tensor*>(mapped_input(first));
    if (input == nullptr || !is_integer_8(*input) || input->elements() < kFewElements) continue;
    const std::vector<OpState*> chain = chain_of_maps(first);
    // One op of one operand has its table already.
    if (chain.empty() || (chain.size() == 1 && first.inputs.size() == 1)) continue;
    const Result<kernels::ByteTable> table = table_of(chain, *input, options_);
    if (!table.ok()) continue;  // such as a value that an op refuses: it shall say so itself
    for (OpState* state : chain) state->is_done_elsewhere = state != chain.back();
    OpState& last = *chain.back();
    last.kernel = ops::byte_table_kernel(*table);
    last.inputs = {input};
    last.elementwise = ops::input_set({0});
    last.scratch_bytes = 0;
    last.is_joined = true;
  }
}

}  // namespace reef::cpu
