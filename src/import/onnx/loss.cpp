// SPDX-License-Identifier: Apache-2.0
// NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss: the logarithm at each target's class, by a one-hot product.
#include "import/onnx/converter.h"

namespace reef::import {
namespace {

// log_probabilities [n, d..., c], target [n, d...].
Result<Id> picked_loss(NodeContext& ctx, Id log_probabilities, Id target, Id class_weights) {
  GraphBuilder& b = ctx.b;
  const int last = b.rank(log_probabilities) - 1;
  REEF_REQUIRE(b.rank(target) == last, "the target has {} dimensions; {} are needed", b.rank(target), last);
  const std::int32_t classes = b.dim(log_probabilities, last);
  const Id labels = cast(b, target, ir::DataType::kInt32);
  ir::Attributes attributes;
  attributes.set("axis", std::int64_t{-1});
  const Id depth = b.scalar(ir::DataType::kInt32, classes);
  const Id chosen =
      b.emit(Op::ONE_HOT, {labels, depth, b.scalar(ir::DataType::kFloat32, 1), b.scalar(ir::DataType::kFloat32, 0)},
             ir::DataType::kFloat32, std::move(attributes));
  const Id picked = reduce(b, Op::SUM, mul(b, log_probabilities, chosen), {last}, false);
  Id weights = class_weights == kAbsent ? b.filled(ir::DataType::kFloat32, b.shape(target), 1)
                                        : reduce(b, Op::SUM, mul(b, chosen, class_weights), {last}, false);
  if (ctx.has_attribute("ignore_index")) {
    const Id ignored = b.scalar(ir::DataType::kInt32, static_cast<double>(ctx.int_attribute("ignore_index", -1)));
    weights = mul(b, weights, cast(b, compare(b, Op::NOT_EQUAL, labels, ignored), ir::DataType::kFloat32));
  }
  const Id loss = unary(b, Op::NEG, mul(b, picked, weights));
  const std::string reduction = ctx.string_attribute("reduction", "mean");
  if (reduction == "none") return loss;
  REEF_REQUIRE(reduction == "mean" || reduction == "sum", "attribute reduction is '{}'", reduction);
  Dims axes;
  for (int i = 0; i < last; ++i) axes.push_back(i);
  const Id sum = reduce(b, Op::SUM, loss, axes, false);
  return reduction == "sum" ? sum : div(b, sum, reduce(b, Op::SUM, weights, axes, false));
}

// Rows of classes: [n, c, d1, d2, ...] -> [n, d, c] and targets [n, d], so that ranks stay small.
struct Rows {
  Id scores = kAbsent, target = kAbsent;
};

Result<Rows> rows_of(NodeContext& ctx) {
  REEF_RETURN_IF_ERROR(ctx.require_inputs(2));
  GraphBuilder& b = ctx.b;
  const ir::Shape shape = b.shape(ctx.in(0));
  REEF_REQUIRE(shape.rank() >= 2, "scores have {} dimensions", shape.rank());
  const std::int64_t pixels = shape.product(2, shape.rank());
  REEF_REQUIRE(b.elements(ctx.in(1)) == shape[0] * pixels, "there are {} targets; {} are needed", b.elements(ctx.in(1)),
               shape[0] * pixels);
  Rows rows;
  rows.scores = transpose(b, reshape(b, ctx.in(0), {shape[0], shape[1], pixels}), {0, 2, 1});
  rows.target = reshape(b, ctx.in(1), {shape[0], pixels});
  return rows;
}

void give_loss(NodeContext& ctx, Id loss) {
  GraphBuilder& b = ctx.b;
  ctx.out(0, b.rank(loss) == 0 ? loss : reshape(b, loss, dims_of(b.shape(ctx.in(1)))));
}

}  // namespace

Status convert_negative_log_likelihood_loss(NodeContext& ctx, GraphBuilder&) {
  REEF_ASSIGN_OR_RETURN(const Rows rows, rows_of(ctx));
  REEF_ASSIGN_OR_RETURN(const Id loss, picked_loss(ctx, rows.scores, rows.target, ctx.in(2)));
  give_loss(ctx, loss);
  return ok_status();
}

Status convert_softmax_cross_entropy_loss(NodeContext& ctx, GraphBuilder& b) {
  REEF_ASSIGN_OR_RETURN(const Rows rows, rows_of(ctx));
  const Id logs = unary(b, Op::LOG_SOFTMAX, rows.scores);
  REEF_ASSIGN_OR_RETURN(const Id loss, picked_loss(ctx, logs, rows.target, ctx.in(2)));
  give_loss(ctx, loss);
  if (ctx.wants(1)) ctx.out(1, reshape(b, transpose(b, logs, {0, 2, 1}), dims_of(b.shape(ctx.in(0)))));
  return ok_status();
}

}  // namespace reef::import
