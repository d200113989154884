// SPDX-License-Identifier: Apache-2.0
#include "lower/lower.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "lower/builder.h"
#include "lower/transfers.h"

namespace reef::lower {
namespace {

// Inputs of the part, each of which comes in where it is first needed: until then the memory is free for other things.
class Inputs {
 public:
  explicit Inputs(const std::vector<std::int32_t>& tensors) : tensors_(tensors) {}

  // Brings the tensor in if it is an input that is not there yet.
  Status feed(Builder& builder, std::int32_t tensor) {
    const bool is_input = std::find(tensors_.begin(), tensors_.end(), tensor) != tensors_.end();
    if (!is_input || infeeds_.contains(tensor)) return ok_status();
    REEF_ASSIGN_OR_RETURN(infeeds_[tensor], add_infeed(builder, tensor));
    return ok_status();
  }
  // It comes in anew, some rows of it in each slice.
  void feed_again(std::int32_t tensor) { infeeds_.erase(tensor); }
  // Those that no operator reads too; then the order of the custom op's operands.
  Status feed_all(Builder& builder) {
    for (const std::int32_t tensor : tensors_) {
      REEF_RETURN_IF_ERROR(feed(builder, tensor));
      builder.program().inputs.push_back(infeeds_.at(tensor));
    }
    return ok_status();
  }

 private:
  const std::vector<std::int32_t>& tensors_;
  std::map<std::int32_t, std::int32_t> infeeds_;  // by tensor: the step
};

Status lower_op(Builder& builder, Inputs& inputs, std::int32_t index) {
  const ir::Operator& op = builder.op(index);
  const OpLowering lowering = find_lowering(op.type);
  if (lowering == nullptr) return unsupported("code for this operator is not generated yet");
  REEF_REQUIRE(!op.outputs.empty(), "the operator has no result");
  for (const std::int32_t tensor : op.inputs) REEF_RETURN_IF_ERROR(inputs.feed(builder, tensor));
  builder.begin_op(index);
  return lowering(builder, index);
}

// Lowers a part of the model, and remembers what there is no code for.
class PartLowering {
 public:
  PartLowering(Builder& builder, const PartBorder& part) : builder_(builder), part_(part), inputs_(part.inputs) {}

  // All operators in order; goes on behind one that there is no code for, to find the others.
  Status lower_ops(const std::vector<SliceGroup>& groups) {
    std::size_t next = 0;
    std::vector<SlicedOps> sliced;
    const Sliceable sliceable(part_);
    for (const SliceGroup& group : groups) {
      auto ops = sliceable.group(group);
      REEF_REQUIRE(ops, "operators {} to {} cannot be executed in slices", group.first, group.last);
      sliced.push_back(std::move(*ops));
    }
    for (const SlicedOps& group : sliced) {
      for (; next < static_cast<std::size_t>(group.group().first); ++next) {
        REEF_RETURN_IF_ERROR(lower_or_note(part_.ops[next]));
      }
      if (!first_.ok()) return first_;  // a group needs operands
      REEF_RETURN_IF_ERROR(lower_group(group));
      next = static_cast<std::size_t>(group.group().last) + 1;
    }
    for (; next < part_.ops.size(); ++next) REEF_RETURN_IF_ERROR(lower_or_note(part_.ops[next]));
    REEF_RETURN_IF_ERROR(first_);
    return inputs_.feed_all(builder_);
  }

  std::vector<RefusedOp>& refused() { return refused_; }

 private:
  std::string place_of(std::int32_t op) const { return fmt::format("op {} {}", op, builder_.op(op).type); }

  Status lower_or_note(std::int32_t index) {
    const ir::Operator& op = builder_.op(index);
    const bool lacks_operand =
        std::any_of(op.inputs.begin(), op.inputs.end(), [&](std::int32_t t) { return missing_.contains(t); });
    if (!lacks_operand) {
      const Status status = lower_op(builder_, inputs_, index);
      if (status.ok()) return status;
      if (status.code() != StatusCode::kUnsupported) return status.in(place_of(index));
      if (first_.ok()) first_ = status.in(place_of(index));
      refused_.push_back({index, status.message()});
    }
    missing_.insert(op.outputs.begin(), op.outputs.end());
    return ok_status();
  }

  // Results are made as a whole first, without anything in them; slices fill them, then their halos are filled.
  Status lower_group(const SlicedOps& group) {
    Builder::Slice slice;
    for (const std::int32_t id : group.results()) {
      REEF_ASSIGN_OR_RETURN(slice.wholes[group.tensor(id)], builder_.new_grid(group.tensor(id)));
    }
    for (const std::int32_t id : group.operands()) {
      REEF_RETURN_IF_ERROR(inputs_.feed(builder_, group.tensor(id)));
    }
    for (std::int32_t s = 0; s < group.group().slices; ++s) {
      const std::vector<tiled::TileRanges> rows = group.rows(s);
      if (is_empty(group, rows)) continue;  // more slices than rows
      slice.rows.clear();
      slice.reads.clear();
      for (std::size_t i = 0; i < rows.size(); ++i) slice.rows[group.tensors()[i]] = rows[i];
      for (const std::int32_t id : group.operands()) {
        REEF_ASSIGN_OR_RETURN(const Value value, builder_.value(group.tensor(id)));
        tiled::TileRanges& read = slice.reads[value.tensor];
        for (std::size_t t = 0; t < read.size(); ++t) {
          const tiled::Range& range = rows[static_cast<std::size_t>(id)][t];
          read[t].include({range.begin - value.padding.top, range.end - value.padding.top});
        }
        slice.rows.erase(group.tensor(id));
      }
      builder_.begin_slice(slice);
      const Status status = lower_slice(group);
      builder_.end_slice();
      REEF_RETURN_IF_ERROR(status);
    }
    for (const auto& [tensor, whole] : slice.wholes) {
      builder_.set_value(tensor, {whole, {}});
      builder_.add_step(-1, tiled::HaloUpdate{whole}, {Read{whole}}, {whole});
    }
    return ok_status();
  }

  static bool is_empty(const SlicedOps& group, const std::vector<tiled::TileRanges>& rows) {
    return std::all_of(group.results().begin(), group.results().end(), [&](std::int32_t id) {
      const tiled::TileRanges& ranges = rows[static_cast<std::size_t>(id)];
      return std::all_of(ranges.begin(), ranges.end(), [](const tiled::Range& range) { return range.is_empty(); });
    });
  }

  Status lower_slice(const SlicedOps& group) {
    for (const std::int32_t id : group.inputs()) inputs_.feed_again(group.tensor(id));
    for (const SlicedOps::SlicedOp& op : group.ops()) {
      REEF_RETURN_IF_ERROR(lower_op(builder_, inputs_, op.op).in(place_of(op.op)));
    }
    return ok_status();
  }

  Builder& builder_;
  const PartBorder& part_;
  Inputs inputs_;
  Status first_ = ok_status();
  std::set<std::int32_t> missing_;  // tensors that are not there because an operator was refused
  std::vector<RefusedOp> refused_;
};

Result<tiled::TiledProgram> lower_part(Builder& builder, const PartBorder& part, const LowerOptions& options,
                                       std::vector<RefusedOp>& refused) {
  PartLowering lowering(builder, part);
  const Status lowered = lowering.lower_ops(options.groups);
  refused = std::move(lowering.refused());
  REEF_RETURN_IF_ERROR(lowered);
  for (const std::int32_t tensor : part.outputs) REEF_RETURN_IF_ERROR(add_outfeed(builder, tensor));
  for (const std::int32_t state : builder.states()) REEF_RETURN_IF_ERROR(add_outfeed(builder, state, true));
  std::int32_t at = -1;
  auto program = std::move(builder).finish(at);
  if (!program.ok() && at >= 0) {
    if (program.status().code() == StatusCode::kUnsupported) refused.push_back({at, program.status().message()});
    return program.status().in(fmt::format("op {} {}", at, builder.op(at).type));
  }
  return program;
}

}  // namespace

Result<tiled::TiledProgram> lower(const ir::Model& model, const std::vector<std::int32_t>& ops,
                                  const std::vector<std::int32_t>& inputs, const std::vector<std::int32_t>& outputs,
                                  const LowerOptions& options) {
  Builder builder(model, ops);
  builder.program().level = options.level;
  builder.set_sketch(options.sketch);
  std::vector<RefusedOp> refused;
  auto program = lower_part(builder, {model, ops, inputs, outputs}, options, refused);
  if (options.refused != nullptr) *options.refused = std::move(refused);
  return program;
}

}  // namespace reef::lower
