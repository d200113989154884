// SPDX-License-Identifier: Apache-2.0
// REVERSE_SEQUENCE: reverses the first length[b] elements along seq_dim, for every index b of batch_dim, and leaves the
// rest in place.
#include "ops/movement.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

constexpr AttributeDoc kReverseSequenceAttributes[] = {
    {"seq_dim", "dimension along which elements are reversed"},
    {"batch_dim", "dimension that input 1 has one length for each index of"}};

Status reverse_sequence_run(RunContext& ctx, int seq_dim, int batch_dim) {
  const Tensor& input = ctx.input(0);
  REEF_ASSIGN_OR_RETURN(const std::vector<std::int64_t> lengths, integers(ctx.input(1), "lengths"));
  for (const std::int64_t length : lengths) {
    REEF_REQUIRE(length >= 0 && length <= input.shape[seq_dim], "length {} does not fit dimension {} of {}", length,
                 seq_dim, input.shape.to_string());
  }
  REEF_ASSIGN_OR_RETURN(const std::int64_t bytes, element_bytes(input, "input"));
  if (input.elements() == 0) return ok_status();
  const std::vector<std::int64_t> strides = dense_strides(input.shape, bytes);
  const auto seq = static_cast<std::size_t>(seq_dim), batch = static_cast<std::size_t>(batch_dim);
  kernels::StridedCopy all{.loops = {}, .run_bytes = bytes};
  for (std::size_t d = 0; d < strides.size(); ++d) {
    all.loops.push_back({d == batch ? 1 : input.shape[static_cast<int>(d)], strides[d], strides[d]});
  }
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    const std::int64_t at = static_cast<std::int64_t>(b) * strides[batch];
    kernels::StridedCopy head = all, tail = all;
    head.loops[seq] = {lengths[b], -strides[seq], strides[seq]};
    head.from_offset = at + (lengths[b] - 1) * strides[seq];
    head.to_offset = at;
    tail.loops[seq].count = input.shape[seq_dim] - lengths[b];
    tail.from_offset = tail.to_offset = at + lengths[b] * strides[seq];
    copy(ctx, std::move(head), input.data, ctx.output(0).data);
    copy(ctx, std::move(tail), input.data, ctx.output(0).data);
    if (ctx.environment()->threads().past_deadline()) break;  // the interpreter reports it
  }
  return ok_status();
}

Result<Kernel> reverse_sequence_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(check_moved(ctx.input(0), ctx.output(0)));
  const Tensor& input = ctx.input(0);
  const Tensor& lengths = ctx.input(1);
  REEF_RETURN_IF_ERROR(require_type(lengths, "lengths", {DataType::kInt32, DataType::kInt64}));
  REEF_RETURN_IF_ERROR(require_rank(input, "input", 2, kMaxMovedRank));
  const std::int64_t seq_dim = ctx.attributes().get_int("seq_dim"), batch_dim = ctx.attributes().get_int("batch_dim");
  const auto exists = [&](std::int64_t dim) { return dim >= 0 && dim < input.shape.rank(); };
  REEF_REQUIRE(exists(seq_dim) && exists(batch_dim) && seq_dim != batch_dim,
               "seq_dim {} and batch_dim {} must be two different dimensions of {}", seq_dim, batch_dim,
               input.shape.to_string());
  const int seq = static_cast<int>(seq_dim), batch = static_cast<int>(batch_dim);
  REEF_REQUIRE(lengths.shape == Shape({input.shape[batch]}), "lengths ('{}') have shape {}; [{}] is needed",
               lengths.name, lengths.shape.to_string(), input.shape[batch]);
  return Kernel([seq, batch](RunContext& run_ctx) { return reverse_sequence_run(run_ctx, seq, batch); });
}

}  // namespace

constinit const OpDef reverse_sequence_op = define({.name = name_of(Op::REVERSE_SEQUENCE),
                                                    .summary = "Reverses the beginnings of sequences.",
                                                    .inputs = {2, 2},
                                                    .attributes = kReverseSequenceAttributes,
                                                    .types = kWholeByteTypes,
                                                    .infer = infer_same_shape,
                                                    .prepare = reverse_sequence_prepare,
                                                    .chip = {.instead = "Reverse on the CPU before the model."}});

}  // namespace reef::ops
