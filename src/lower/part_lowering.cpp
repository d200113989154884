// SPDX-License-Identifier: Apache-2.0
#include "lower/part_lowering.h"

#include <algorithm>

#include <fmt/format.h>

#include "lower/elementwise.h"
#include "lower/shared_steps.h"
#include "lower/transfers.h"
#include "ops/inferred_shapes.h"

namespace reef::lower {
namespace {

constexpr std::int64_t kMostHostBytes = std::int64_t{1} << 30;

bool has_no_rows(const tiled::TileRanges& rows) {
  return std::all_of(rows.begin(), rows.end(), [](const tiled::Range& range) { return range.is_empty(); });
}

bool contains(const std::vector<std::int32_t>& list, std::int32_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

}  // namespace

PartLowering::PartLowering(Builder& builder, const PartBorder& part, const LowerOptions& options)
    : builder_(builder),
      part_(part),
      options_(options),
      is_short_of_memory_(!options.groups.empty() || !options.hosted.empty()) {}

AttentionPlan PartLowering::plan_attention() const {
  std::set<std::int32_t> outputs(part_.outputs.begin(), part_.outputs.end());
  outputs.insert(options_.hosted.begin(), options_.hosted.end());
  std::vector<std::int32_t> ops;
  for (std::size_t i = 0; i < part_.ops.size(); ++i) {
    const bool in_slices = std::any_of(options_.groups.begin(), options_.groups.end(), [&](const SliceGroup& group) {
      return static_cast<std::int64_t>(i) >= group.first && static_cast<std::int64_t>(i) <= group.last;
    });
    if (!in_slices) ops.push_back(part_.ops[i]);
  }
  return {part_.model, ops, outputs};
}

Status PartLowering::lower() {
  attention_ = plan_attention();
  std::size_t next = 0;
  std::vector<SlicedOps> sliced;
  const Sliceable sliceable(part_, options_.hosted);
  for (const SliceGroup& group : options_.groups) {
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
  // Those that no operator reads too; then the order of the custom op's operands.
  for (const std::int32_t tensor : part_.inputs) {
    if (!infeeds_.contains(tensor)) REEF_RETURN_IF_ERROR(feed(tensor));
    builder_.program().inputs.push_back(infeeds_.at(tensor));
  }
  return send_rest();
}

std::string PartLowering::place_of(std::int32_t op) const { return fmt::format("op {} {}", op, builder_.op(op).type); }

Status PartLowering::lower_op(std::int32_t index) {
  const ir::Operator& op = builder_.op(index);
  const OpLowering lowering = find_lowering(op.type);
  if (lowering == nullptr) return unsupported("code for this operator is not generated yet");
  REEF_RETURN_IF_ERROR(options_.budget.check("generating code"));
  REEF_REQUIRE(!op.outputs.empty(), "the operator has no result");
  // Everything from here on indexes by declared shapes.
  const Status shapes = ops::check_declared_shapes(part_.model, 0, op);
  if (!shapes.ok()) return unsupported("{}", shapes.message());
  for (const std::int32_t tensor : op.inputs) {
    REEF_RETURN_IF_ERROR(feed(tensor));
    REEF_RETURN_IF_ERROR(load(tensor));
  }
  builder_.begin_op(index);
  if (attention_.is_left_out(index)) return ok_status();
  if (const Attention* attention = attention_.of(index)) return lower_attention(builder_, index, *attention);
  return lowering(builder_, index);
}

// As a whole.
Status PartLowering::lower_by_itself(std::int32_t index) {
  REEF_RETURN_IF_ERROR(lower_op(index));
  for (const std::int32_t tensor : builder_.op(index).outputs) {
    if (is_short_of_memory_ && is_output(tensor)) {
      REEF_ASSIGN_OR_RETURN(const std::int32_t tiled, builder_.any_layout(tensor));
      REEF_RETURN_IF_ERROR(send(tensor, tiled));
    }
    if (!options_.hosted.contains(tensor)) continue;
    REEF_ASSIGN_OR_RETURN(const std::int32_t image, builder_.grid(tensor));
    REEF_RETURN_IF_ERROR(store(tensor, image));
    builder_.forget_value(tensor);
  }
  for (const std::int32_t tensor : builder_.op(index).inputs) {
    if (!options_.hosted.contains(tensor)) continue;
    builder_.forget_value(tensor);
    present_.erase(tensor);
  }
  return ok_status();
}

Status PartLowering::lower_or_note(std::int32_t index) {
  const ir::Operator& op = builder_.op(index);
  const bool lacks_operand =
      std::any_of(op.inputs.begin(), op.inputs.end(), [&](std::int32_t t) { return missing_.contains(t); });
  if (!lacks_operand) {
    const Status status = lower_by_itself(index);
    if (status.ok()) return status;
    if (status.code() != StatusCode::kUnsupported) return status.in(place_of(index));
    if (first_.ok()) first_ = status.in(place_of(index));
    refused_.push_back({index, status.message()});
  }
  missing_.insert(op.outputs.begin(), op.outputs.end());
  return ok_status();
}

// ---- In slices ----

// Results that stay on the chip are made as a whole first, without anything in them; slices fill them, then their halos
// are filled.
Status PartLowering::lower_group(const SlicedOps& group) {
  std::map<std::int32_t, std::int32_t> wholes;  // by tensor of the model
  for (const std::int32_t id : group.results()) {
    if (group.group().joins_late) break;
    REEF_ASSIGN_OR_RETURN(wholes[group.tensor(id)], builder_.new_grid(group.tensor(id)));
  }
  for (const std::int32_t id : group.operands()) {
    const std::int32_t tensor = group.tensor(id);
    REEF_RETURN_IF_ERROR(feed(tensor));
    builder_.begin_op(group.ops().front().op);
    // Single pixels are brought to all tiles by whoever needs them. Others may lie in another shape until now.
    if (builder_.source(tensor).shape[1] == 1) continue;
    REEF_ASSIGN_OR_RETURN(const Value image, builder_.image(tensor));
    builder_.set_value(tensor, image);
  }
  kept_.clear();
  aside_.clear();
  for (std::int32_t slice = 0; slice < group.slice_count(); ++slice) {
    bool is_empty = true;  // more slices than rows
    for (const auto* list : {&group.results(), &group.stored(), &group.outputs()}) {
      for (const std::int32_t id : *list) is_empty = is_empty && has_no_rows(group.share(id, slice));
    }
    if (is_empty && (!group.group().keeps_rows || group.rows(slice).is_empty())) continue;
    REEF_ASSIGN_OR_RETURN(Builder::Slice rows, slice_of(group, slice, wholes));
    builder_.begin_slice(std::move(rows));
    const Status status = lower_slice(group, slice, wholes);
    builder_.end_slice();
    REEF_RETURN_IF_ERROR(status);
  }
  for (const std::int32_t id : group.inputs()) present_.erase(group.tensor(id));
  if (group.group().joins_late) REEF_RETURN_IF_ERROR(join_late(group, wholes));
  for (const auto& [tensor, whole] : wholes) {
    builder_.set_value(tensor, {whole, {}});
    builder_.add_step(-1, tiled::HaloUpdate{whole}, {}, {whole});
    if (is_output(tensor)) REEF_RETURN_IF_ERROR(send(tensor, whole));
  }
  return ok_status();
}

Result<Builder::Slice> PartLowering::slice_of(const SlicedOps& group, std::int32_t slice,
                                              const std::map<std::int32_t, std::int32_t>& wholes) const {
  Builder::Slice result;
  const std::vector<tiled::TileRanges> rows = group.rows(slice).held;
  for (std::size_t i = 0; i < rows.size(); ++i) result.rows[group.tensors()[i]] = rows[i];
  for (const std::int32_t id : group.results()) {
    if (group.is_in_place(id)) result.wholes[group.tensor(id)] = wholes.at(group.tensor(id));
  }
  for (const std::int32_t id : group.operands()) {
    REEF_ASSIGN_OR_RETURN(const Value value, builder_.value(group.tensor(id)));
    tiled::TileRanges& read = result.reads[value.tensor];
    for (std::size_t t = 0; t < read.size(); ++t) {
      const tiled::Range& range = rows[at(id)][t];
      read[t].include({range.begin - value.padding.top, range.end - value.padding.top});
    }
  }
  for (const RowOp& op : group.ops()) {
    if (op.pads && op.computes) result.made.insert(op.results[0].tensor);
  }
  return result;
}

// Rows of this slice and of the next one.
struct PartLowering::Keeping {
  const SlicedOps& group;
  SliceRows now, next;
  bool is_last = false;

  tiled::TileRanges kept(std::int32_t id) const { return now.kept(id, group.height(id)); }
  // Tensors that exist as a whole keep nothing; what the host keeps is loaded again.
  bool keeps(std::int32_t id) const {
    return group.group().keeps_rows && !contains(group.operands(), id) && !contains(group.loaded(), id) &&
           !group.is_in_place(id);
  }
  tiled::TileRanges kept_for_next(std::int32_t id) const {
    return is_last ? tiled::TileRanges{} : next.kept(id, group.height(id));
  }
};

// Where there are rows from before, those of this slice are made behind them.
Status PartLowering::make_room(const Keeping& keeping, std::int32_t id) {
  if (!keeping.keeps(id) || has_no_rows(keeping.kept(id))) return ok_status();
  const std::int32_t tensor = keeping.group.tensor(id);
  REEF_ASSIGN_OR_RETURN(const Image image, image_of(builder_.source(tensor)));
  REEF_ASSIGN_OR_RETURN(const std::int32_t whole, builder_.new_grid(tensor, image, keeping.now.held[at(id)]));
  builder_.make_in(tensor, whole, keeping.now.made[at(id)]);
  return ok_status();
}

// Brings the rows from before to those that were made, and keeps those that the next slice needs.
Status PartLowering::join_rows(const Keeping& keeping, std::int32_t id, std::int32_t op) {
  if (!keeping.keeps(id)) return ok_status();
  const std::int32_t tensor = keeping.group.tensor(id);
  if (const tiled::TileRanges kept = keeping.kept(id); !has_no_rows(kept)) {
    const std::int32_t whole = builder_.use_whole(tensor, keeping.now.held[at(id)]);
    add_copy(builder_, op, builder_.rows_of(kept_.at(tensor), kept), builder_.rows_of(whole, kept));
    builder_.add_step(-1, tiled::HaloUpdate{whole}, {}, {whole});
  }
  kept_.erase(tensor);
  const tiled::TileRanges wanted = keeping.kept_for_next(id);
  if (has_no_rows(wanted)) return ok_status();
  REEF_ASSIGN_OR_RETURN(const std::int32_t from, builder_.grid(tensor));
  REEF_ASSIGN_OR_RETURN(const Image image, image_of(builder_.source(tensor)));
  REEF_ASSIGN_OR_RETURN(const std::int32_t kept, builder_.new_grid(tensor, image, wanted));
  add_copy(builder_, op, builder_.rows_of(from, wanted), builder_.rows_of(kept, wanted));
  kept_[tensor] = kept;
  return ok_status();
}

// Brings in what the operator reads of the part's inputs.
Status PartLowering::feed_rows(const Keeping& keeping, const RowOp& op) {
  for (const RowRead& read : op.reads) {
    if (!contains(keeping.group.inputs(), read.id) || present_.contains(read.tensor)) continue;
    REEF_RETURN_IF_ERROR(make_room(keeping, read.id));
    const bool brings = !has_no_rows(keeping.now.made[at(read.id)]);
    if (brings) REEF_RETURN_IF_ERROR(feed(read.tensor));
    present_.insert(read.tensor);
    REEF_RETURN_IF_ERROR(join_rows(keeping, read.id, op.op));
  }
  return ok_status();
}

Status PartLowering::lower_slice(const SlicedOps& group, std::int32_t slice,
                                 const std::map<std::int32_t, std::int32_t>& wholes) {
  const bool is_last = slice + 1 == group.slice_count();
  const Keeping keeping{group, group.rows(slice), is_last ? SliceRows{} : group.rows(slice + 1), is_last};
  for (const std::int32_t id : group.inputs()) present_.erase(group.tensor(id));
  for (const std::int32_t id : group.operands()) {
    if (builder_.source(group.tensor(id)).shape[1] == 1) continue;
    builder_.begin_op(group.ops().front().op);
    REEF_ASSIGN_OR_RETURN(const Value image, builder_.image_for_windows(group.tensor(id)));
    builder_.set_value(group.tensor(id), image);
  }
  for (const RowOp& op : group.ops()) {
    REEF_RETURN_IF_ERROR(feed_rows(keeping, op).in(place_of(op.op)));
    bool makes = !group.group().keeps_rows || !op.computes;
    for (const RowResult& result : op.results) {
      makes = makes || !has_no_rows(keeping.now.made[at(result.id)]);
      if (op.computes) REEF_RETURN_IF_ERROR(make_room(keeping, result.id).in(place_of(op.op)));
    }
    if (makes) REEF_RETURN_IF_ERROR(lower_op(op.op).in(place_of(op.op)));
    for (const RowResult& result : op.results) {
      if (op.computes) REEF_RETURN_IF_ERROR(join_rows(keeping, result.id, op.op).in(place_of(op.op)));
    }
    REEF_RETURN_IF_ERROR(pass_on(group, op, slice, wholes).in(place_of(op.op)));
  }
  return ok_status();
}

// What a slice has made for others, to wherever they find it.
Status PartLowering::pass_on(const SlicedOps& group, const RowOp& op, std::int32_t slice,
                             const std::map<std::int32_t, std::int32_t>& wholes) {
  for (const RowResult& result : op.results) {
    const bool is_copied = contains(group.results(), result.id) && !group.is_in_place(result.id);
    const bool is_stored = contains(group.stored(), result.id), is_sent = contains(group.outputs(), result.id);
    const tiled::TileRanges share = group.share(result.id, slice);
    if ((!is_copied && !is_stored && !is_sent) || has_no_rows(share)) continue;
    REEF_ASSIGN_OR_RETURN(const std::int32_t tiled, builder_.grid(result.tensor));
    const std::int32_t rows = builder_.rows_of(tiled, share);
    if (is_copied && group.group().joins_late) {
      REEF_RETURN_IF_ERROR(set_aside(group, op, result, slice));
    } else if (is_copied) {
      add_copy(builder_, op.op, rows, builder_.rows_of(wholes.at(result.tensor), share));
    }
    if (is_stored) REEF_RETURN_IF_ERROR(store(result.tensor, rows));
    if (is_sent) REEF_RETURN_IF_ERROR(send(result.tensor, rows));
  }
  return ok_status();
}

Status PartLowering::set_aside(const SlicedOps& group, const RowOp& op, const RowResult& result, std::int32_t slice) {
  const tiled::TileRanges share = group.share(result.id, slice);
  REEF_ASSIGN_OR_RETURN(std::int32_t tiled, builder_.grid(result.tensor));
  // A tensor that has other rows as well, or other readers in the group, is copied: keeping it would take more memory.
  const bool is_by_itself = op.computes && builder_.slice_rows(result.tensor) == share &&
                            std::none_of(group.ops().begin(), group.ops().end(), [&](const RowOp& other) {
                              return std::any_of(other.reads.begin(), other.reads.end(),
                                                 [&](const RowRead& read) { return read.id == result.id; });
                            });
  if (!is_by_itself) {
    REEF_ASSIGN_OR_RETURN(const Image image, image_of(builder_.source(result.tensor)));
    REEF_ASSIGN_OR_RETURN(const std::int32_t copy, builder_.new_grid(result.tensor, image, share));
    add_copy(builder_, op.op, builder_.rows_of(tiled, share), builder_.rows_of(copy, share));
    tiled = copy;
  }
  aside_[result.tensor].push_back({op.op, tiled, share});
  return ok_status();
}

Status PartLowering::join_late(const SlicedOps& group, std::map<std::int32_t, std::int32_t>& wholes) {
  for (const std::int32_t id : group.results()) {
    const std::int32_t tensor = group.tensor(id);
    REEF_ASSIGN_OR_RETURN(const std::int32_t whole, builder_.new_grid(tensor));
    for (const RowsAside& part : aside_[tensor]) {
      add_copy(builder_, part.op, builder_.rows_of(part.tiled, part.rows), builder_.rows_of(whole, part.rows));
    }
    wholes[tensor] = whole;
  }
  return ok_status();
}

// ---- Inputs, results, the host's memory ----

Status PartLowering::feed(std::int32_t tensor) {
  if (!contains(part_.inputs, tensor) || present_.contains(tensor)) return ok_status();
  REEF_ASSIGN_OR_RETURN(infeeds_[tensor], add_infeed(builder_, tensor));
  present_.insert(tensor);
  return ok_status();
}

bool PartLowering::is_output(std::int32_t tensor) const { return contains(part_.outputs, tensor); }

std::int32_t PartLowering::maker_of(std::int32_t tensor) const {
  for (const std::int32_t op : part_.ops) {
    if (contains(builder_.op(op).outputs, tensor)) return op;
  }
  return -1;
}

Status PartLowering::send(std::int32_t tensor, std::int32_t tiled) {
  REEF_RETURN_IF_ERROR(
      image_of(builder_.source(tensor)).status());  // what a host is told of has at most four dimensions
  std::vector<std::int32_t>& steps = sent_[tensor];
  steps.push_back(add_outfeed(builder_, tensor, tiled, static_cast<std::int32_t>(steps.size())));
  return ok_status();
}

Status PartLowering::send_rest() {
  for (const std::int32_t tensor : part_.outputs) {
    if (!sent_.contains(tensor)) {
      REEF_RETURN_IF_ERROR(feed(tensor));
      REEF_RETURN_IF_ERROR(load(tensor));
      REEF_ASSIGN_OR_RETURN(const std::int32_t tiled, builder_.any_layout(tensor));
      const Status sent = send(tensor, tiled);
      if (sent.code() == StatusCode::kUnsupported) {  // the one that makes it can stay on the CPU
        if (const std::int32_t maker = maker_of(tensor); maker >= 0) refused_.push_back({maker, sent.message()});
      }
      REEF_RETURN_IF_ERROR(sent);
    }
    builder_.program().outputs.push_back(sent_.at(tensor).front());
  }
  for (const std::int32_t state : builder_.states()) {
    REEF_ASSIGN_OR_RETURN(const std::int32_t tiled, builder_.any_layout(state));
    builder_.program().outputs.push_back(add_outfeed(builder_, state, tiled, 0, true));
  }
  return ok_status();
}

// In a slice: the rows of it.
Status PartLowering::load(std::int32_t tensor) {
  const auto image = images_.find(tensor);
  if (image == images_.end() || builder_.value(tensor).ok()) return ok_status();
  REEF_ASSIGN_OR_RETURN(const std::int32_t tiled, add_host_load(builder_, tensor, image->second));
  builder_.set_value(tensor, {tiled, {}});
  return ok_status();
}

Status PartLowering::store(std::int32_t tensor, std::int32_t tiled) {
  auto image = images_.find(tensor);
  if (image == images_.end()) image = images_.emplace(tensor, new_host_image(builder_, tiled)).first;
  if (builder_.program().host_bytes > kMostHostBytes) {
    return unsupported("the host would have to keep {} bytes, at most {} are asked for", builder_.program().host_bytes,
                       kMostHostBytes);
  }
  add_host_store(builder_, tiled, image->second);
  return ok_status();
}

}  // namespace reef::lower
