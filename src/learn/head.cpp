// SPDX-License-Identifier: Apache-2.0
#include "learn/head.h"

#include <algorithm>
#include <initializer_list>

#include "ir/describe.h"
#include "ops/registry.h"

namespace reef::learn {
namespace {

// Walks from the output towards the input, as long as every tensor is computed for one reader only.
class BackwardWalk {
 public:
  BackwardWalk(const ir::Model& model, std::int32_t output) : graph_(model.subgraphs[0]), model_(model), at_(output) {}

  // The operator that computes the present tensor; null: none does, or it has several results.
  const ir::Operator* op() const {
    const std::int32_t index = op_index();
    return index < 0 ? nullptr : &graph_.operators[at(index)];
  }
  std::int32_t op_index() const {
    for (std::size_t i = 0; i < graph_.operators.size(); ++i) {
      const ir::Operator& op = graph_.operators[i];
      if (op.outputs.size() == 1 && op.outputs[0] == at_) return static_cast<std::int32_t>(i);
    }
    return -1;
  }
  bool is(std::initializer_list<Op> types) const {
    const ir::Operator* here = op();
    return here != nullptr && std::find(types.begin(), types.end(), here->type) != types.end();
  }
  // Another shape or other numbers for the same values.
  bool is_view() const {
    const ir::Operator* here = op();
    return here != nullptr && (ops::has_same_bytes(*here) || is({Op::QUANTIZE, Op::DEQUANTIZE}));
  }
  // To the first operand. False if somebody else reads that too.
  bool step() {
    const std::int32_t next = op()->inputs.empty() ? -1 : op()->inputs[0];
    if (next < 0 || readers(next) != 1) return false;
    at_ = next;
    return true;
  }
  bool skip(std::initializer_list<Op> types) {
    while (is(types)) {
      if (!step()) return false;
    }
    return true;
  }
  bool skip_views() {
    while (is_view()) {
      if (!step()) return false;
    }
    return true;
  }
  std::int32_t tensor() const { return at_; }

 private:
  std::int64_t readers(std::int32_t tensor) const {
    std::int64_t count = std::count(graph_.outputs.begin(), graph_.outputs.end(), tensor);
    for (const ir::Operator& op : graph_.operators) count += std::count(op.inputs.begin(), op.inputs.end(), tensor);
    return count;
  }

  const ir::Subgraph& graph_;
  const ir::Model& model_;
  std::int32_t at_;
};

// One vector: all dimensions but the last have size 1.
bool is_vector(const ir::Shape& shape) { return shape.rank() >= 1 && shape.product(0, shape.rank() - 1) == 1; }

bool is_linear_layer(const ir::Model& model, const ir::Operator& op) {
  const ir::Subgraph& graph = model.subgraphs[0];
  if (op.type != Op::FULLY_CONNECTED && op.type != Op::CONV_2D) return false;
  if (op.inputs.size() < 2 || op.inputs[0] < 0 || op.inputs[1] < 0) return false;
  const ir::Tensor& input = graph.tensors[at(op.inputs[0])];
  const ir::Tensor& weights = graph.tensors[at(op.inputs[1])];
  if (!ir::is_constant(model, weights) || weights.shape.rank() < 2 || !is_vector(input.shape)) return false;
  if (op.attributes.get_enum("fused_activation_function", "NONE") != "NONE") return false;
  const bool is_pointwise = weights.shape.rank() == 2 || weights.shape.product(1, weights.shape.rank() - 1) == 1;
  return is_pointwise && weights.shape.last() == input.shape.last();
}

// MUL by one constant number.
bool is_factor(const ir::Model& model, const ir::Operator& op) {
  if (op.type != Op::MUL || op.inputs.size() != 2 || op.inputs[1] < 0) return false;
  const ir::Tensor& factor = model.subgraphs[0].tensors[at(op.inputs[1])];
  return ir::is_constant(model, factor) && factor.shape.is_usable() && factor.shape.elements() == 1;
}

Status check_embedding(const ir::Model& model, const Head& head) {
  const ir::Tensor& tensor = model.subgraphs[0].tensors[at(head.embedding)];
  REEF_REQUIRE(
      is_vector(tensor.shape) && tensor.shape.last() > 0,
      "the embedding '{}' has shape {}; one vector is needed: end the extractor with a global average pool, or "
      "name another tensor with --embedding",
      tensor.name, tensor.shape.to_string());
  const bool is_float = tensor.type == ir::DataType::kFloat32;
  REEF_REQUIRE(is_float || ir::is_integer_8(tensor.type),
               "the embedding '{}' is {}; learning takes float32, int8 and uint8", tensor.name,
               ir::type_name(tensor.type));
  REEF_REQUIRE(is_float || (tensor.quantization.scale.size() == 1 && tensor.quantization.zero_point.size() == 1 &&
                            tensor.quantization.scale[0] > 0),
               "the embedding '{}' needs one scale and one zero point", tensor.name);
  return ok_status();
}

Result<Head> head_at(const ir::Model& model, std::string_view name) {
  const ir::Subgraph& graph = model.subgraphs[0];
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
    if (graph.tensors[i].name != name) continue;
    REEF_REQUIRE(!ir::is_constant(model, graph.tensors[i]), "tensor '{}' is a constant, not an embedding", name);
    Head head;
    head.embedding = static_cast<std::int32_t>(i);
    head.dimension = graph.tensors[i].shape.rank() > 0 ? graph.tensors[i].shape.last() : 0;
    REEF_RETURN_IF_ERROR(check_embedding(model, head));
    return head;
  }
  return invalid_input("the model has no tensor '{}'; `reef inspect --tensors` lists them", name);
}

// The layer of a classifier that ends in SOFTMAX or LOGISTIC; nothing found: kind stays kNone.
Head classifier_head(const ir::Model& model, BackwardWalk& walk) {
  Head head;
  if (!walk.skip_views()) return head;
  if (walk.is({Op::MUL}) && is_factor(model, *walk.op())) {
    head.factor = walk.op_index();
    if (!walk.step() || !walk.skip({Op::RESHAPE, Op::SQUEEZE})) return head;
  }
  if (walk.op() == nullptr || !is_linear_layer(model, *walk.op())) return head;
  const ir::Operator& layer = *walk.op();
  const ir::Subgraph& graph = model.subgraphs[0];
  head.layer = walk.op_index();
  head.embedding = layer.inputs[0];
  head.dimension = graph.tensors[at(head.embedding)].shape.last();
  head.classes = graph.tensors[at(layer.inputs[1])].shape[0];
  head.kind = HeadKind::kLinear;
  BackwardWalk before(model, head.embedding);
  const bool is_clear = before.skip({Op::QUANTIZE}) && before.op() != nullptr && !before.op()->inputs.empty() &&
                        before.op()->inputs[0] >= 0;
  head.reads_normalized = head.is_normalized = is_clear && before.is({Op::L2_NORMALIZATION});
  if (head.reads_normalized && head.factor >= 0 && layer.type == Op::CONV_2D) {
    head.kind = HeadKind::kImprinting;
    head.embedding = before.op()->inputs[0];
    head.is_normalized = false;
  }
  return head;
}

}  // namespace

std::string_view to_string(HeadKind kind) {
  switch (kind) {
    case HeadKind::kNone:
      return "none";
    case HeadKind::kImprinting:
      return "imprinting";
    case HeadKind::kLinear:
      return "linear";
  }
  return "";
}

Result<Head> find_head(const ir::Model& model, std::string_view embedding) {
  REEF_REQUIRE(!model.subgraphs.empty(), "the model has no graph");
  if (!embedding.empty()) return head_at(model, embedding);
  const ir::Subgraph& graph = model.subgraphs[0];
  REEF_REQUIRE(
      graph.outputs.size() == 1,
      "the model has {} outputs; learning needs one. Name the tensor that holds the embedding with --embedding",
      graph.outputs.size());
  Head head;
  BackwardWalk walk(model, graph.outputs[0]);
  if (walk.skip_views() && walk.is({Op::SOFTMAX, Op::LOGISTIC})) {
    const std::string last = walk.op()->type;
    if (walk.step()) head = classifier_head(model, walk);
    REEF_REQUIRE(
        head.kind != HeadKind::kNone,
        "the model ends in {}, but no FULLY_CONNECTED or 1x1 CONV_2D with constant weights was found before it "
        "(in a compiled model it may be on the chip: split first, then compile the extractor). Name the tensor "
        "that holds the embedding with --embedding",
        last);
  }
  if (head.kind == HeadKind::kNone) {
    head = {};
    head.embedding = graph.outputs[0];
    const ir::Shape& shape = graph.tensors[at(head.embedding)].shape;
    head.dimension = shape.rank() > 0 ? shape.last() : 0;
    BackwardWalk before(model, head.embedding);
    head.is_normalized = before.is({Op::L2_NORMALIZATION});
    if (before.skip_views() && before.op() != nullptr && is_linear_layer(model, *before.op())) {
      const std::int32_t read = before.op()->inputs[0];
      if (graph.tensors[at(read)].shape.last() > head.dimension) head.behind = read;
    }
  }
  REEF_RETURN_IF_ERROR(check_embedding(model, head));
  return head;
}

}  // namespace reef::learn
