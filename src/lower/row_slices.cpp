// SPDX-License-Identifier: Apache-2.0
#include "lower/row_slices.h"

#include <algorithm>

#include "base/at.h"

namespace reef::lower {

using tiled::TileRanges;

tiled::Range share_of(std::int32_t height, int tile_row, std::int32_t slice, std::int32_t slices) {
  const std::int32_t begin = tiled::cut(height, tile_row);
  const std::int64_t own = tiled::cut(height, tile_row + 1) - begin;
  return {begin + static_cast<std::int32_t>(own * slice / slices),
          begin + static_cast<std::int32_t>(own * (slice + 1) / slices)};
}

Sliceable::Sliceable(const PartBorder& part, const std::set<std::int32_t>& hosted) : hosted_(hosted) {
  const ir::Subgraph& graph = part.model.subgraphs[0];
  for (std::size_t i = 0; i < part.ops.size(); ++i) {
    ops_.push_back(row_op(part.model, part.ops[i]));
    for (const std::int32_t tensor : graph.operators[reef::at(part.ops[i])].inputs) {
      Readers& readers = readers_[tensor];
      if (readers.first < 0) readers.first = static_cast<std::int32_t>(i);
      readers.last = static_cast<std::int32_t>(i);
    }
  }
  for (const std::int32_t tensor : part.outputs) readers_[tensor].is_output = true;
  for (const std::int32_t tensor : part.inputs) readers_[tensor].is_input = true;
}

std::optional<SlicedOps> Sliceable::group(const SliceGroup& group) const {
  if (group.first < 0 || group.last < group.first || static_cast<std::size_t>(group.last) >= ops_.size() ||
      group.slices < 1) {
    return {};
  }
  SlicedOps sliced;
  sliced.group_ = group;
  for (std::int32_t i = group.first; i <= group.last; ++i) {
    const auto& op = ops_[reef::at(i)];
    if (!op) return {};
    sliced.ops_.push_back(*op);
  }
  make_paddings(sliced);
  add_borders(sliced);
  if (sliced.results_.empty() && sliced.stored_.empty() && sliced.outputs_.empty()) return {};
  sliced.find_those_in_place();
  sliced.set_slices(group.slices);
  return sliced;
}

Sliceable::Readers Sliceable::readers_of(std::int32_t tensor) const {
  const auto found = readers_.find(tensor);
  return found == readers_.end() ? Readers{} : found->second;
}

bool Sliceable::is_read_outside(std::int32_t tensor, const SliceGroup& group) const {
  const Readers readers = readers_of(tensor);
  return readers.first >= 0 && (readers.first < group.first || readers.last > group.last);
}

// Paddings that others read than windows inside of the group are made.
void Sliceable::make_paddings(SlicedOps& sliced) const {
  std::set<std::int32_t> wanted;  // tensors that must be there with all that is in them
  for (auto op = sliced.ops_.rbegin(); op != sliced.ops_.rend(); ++op) {
    const std::int32_t result = op->results[0].tensor;
    const bool is_view = !op->computes && !op->pads;
    if (op->pads &&
        (wanted.contains(result) || is_read_outside(result, sliced.group_) || readers_of(result).is_output)) {
      op->computes = true;
      op->reads[0].sees_padding = false;
    }
    const bool needs_all = is_view ? wanted.contains(result) : !op->reads_windows && !op->pads;
    for (const RowRead& read : op->reads) {
      if (needs_all) wanted.insert(read.tensor);
    }
  }
}

void Sliceable::add_borders(SlicedOps& sliced) const {
  for (RowOp& op : sliced.ops_) {
    for (RowRead& read : op.reads) {
      const std::size_t known = sliced.tensors_.size();
      read.id = sliced.id_of(read.tensor, read.height);
      if (known == sliced.tensors_.size()) continue;
      const bool is_hosted = hosted_.contains(read.tensor);
      if (readers_of(read.tensor).is_input) {
        const bool comes_in = is_hosted || !is_read_outside(read.tensor, sliced.group_);
        (comes_in ? sliced.inputs_ : sliced.operands_).push_back(read.id);
      } else {
        (is_hosted ? sliced.loaded_ : sliced.operands_).push_back(read.id);
      }
    }
    for (RowResult& result : op.results) {
      result.id = sliced.id_of(result.tensor, result.height);
      const bool is_hosted = hosted_.contains(result.tensor);
      const bool is_read = is_read_outside(result.tensor, sliced.group_);
      const bool is_output = readers_of(result.tensor).is_output;
      if (is_read) (is_hosted ? sliced.stored_ : sliced.results_).push_back(result.id);
      if (is_output && (!is_read || is_hosted)) sliced.outputs_.push_back(result.id);
    }
  }
}

std::int32_t SlicedOps::id_of(std::int32_t tensor, std::int32_t height) {
  const auto found = std::find(tensors_.begin(), tensors_.end(), tensor);
  if (found != tensors_.end()) return static_cast<std::int32_t>(found - tensors_.begin());
  tensors_.push_back(tensor);
  heights_.push_back(height);
  return static_cast<std::int32_t>(tensors_.size() - 1);
}

// Rows of a tensor that are needed are those of its share, whatever the slice, if it is read inside of the group for
// the same rows of such tensors only. What is no border must be read. Halos of columns are not there before all slices
// are.
void SlicedOps::find_those_in_place() {
  std::vector<bool> is_read(tensors_.size()), reads_differ(tensors_.size());
  std::set<std::int32_t> borders(results_.begin(), results_.end());
  borders.insert(stored_.begin(), stored_.end());
  borders.insert(outputs_.begin(), outputs_.end());
  const auto is_exact = [&](std::int32_t id) {
    const auto at = static_cast<std::size_t>(id);
    return !reads_differ[at] && (is_read[at] || borders.contains(id));
  };
  std::set<std::int32_t> views;  // no tensors of their own
  for (auto op = ops_.rbegin(); op != ops_.rend(); ++op) {
    for (const RowResult& result : op->results) {
      if (!op->computes) views.insert(result.id);
    }
    for (const RowRead& read : op->reads) {
      const RowResult& result = op->results[reef::at(read.result)];
      const tiled::Window& w = read.window;
      const bool same_rows = w.kernel == 1 && w.stride == 1 && w.pad_before == 0 && w.enlarged == 1 &&
                             read.keeps_columns && read.height == result.height && is_exact(result.id);
      is_read[reef::at(read.id)] = true;
      if (!same_rows) reads_differ[reef::at(read.id)] = true;
    }
  }
  for (const std::int32_t id : results_) {
    if (is_exact(id) && !views.contains(id)) in_place_.insert(id);
  }
}

void SlicedOps::set_slices(std::int32_t slices) {
  group_.slices = slices;
  warm_up_ = 0;
  if (group_.keeps_rows && slices > 1) warm_up_ = find_warm_up();
}

TileRanges SlicedOps::share(std::int32_t id, std::int32_t slice) const {
  TileRanges share;
  for (int t = 0; t < tiled::kTilesPerAxis; ++t) {
    tiled::Range& range = share[reef::at(t)];
    range = share_of(height(id), t, std::max(slice - warm_up_, 0), group_.slices);
    if (slice < warm_up_) range.end = range.begin;
  }
  return share;
}

// The rows of each tensor that the results of some slices need, without slices that make no results yet.
SlicedOps::Rows SlicedOps::needed(std::int32_t first_slice, std::int32_t end_slice) const {
  Rows rows(tensors_.size());
  if (first_slice >= end_slice) return rows;
  for (const auto* list : {&results_, &stored_, &outputs_}) {
    for (const std::int32_t id : *list) {
      const TileRanges first = share(id, warm_up_ + first_slice), last = share(id, warm_up_ + end_slice - 1);
      for (std::size_t t = 0; t < first.size(); ++t) {
        rows[reef::at(id)][t].include({first[t].begin, last[t].end});
      }
    }
  }
  for (auto op = ops_.rbegin(); op != ops_.rend(); ++op) {
    for (const RowRead& read : op->reads) {
      const RowResult& result = op->results[reef::at(read.result)];
      const TileRanges needed = rows[reef::at(result.id)];  // by all that read it, which come behind
      TileRanges& operand = rows[reef::at(read.id)];
      for (std::size_t t = 0; t < needed.size(); ++t) {
        operand[t].include(read.rows(op->computes ? needed[t].within(0, result.height) : needed[t]));
      }
    }
  }
  return rows;
}

// Up to which row each tensor has been made before slice `slice`, without limits: what results up to some row need.
// Where that lies before a result's first row, operands are only as far as they have to be by then.
SlicedOps::Ends SlicedOps::ends(std::int32_t slice, std::int32_t warm_up) const {
  constexpr std::int32_t kNothing = -(1 << 28);
  Ends ends(tensors_.size());
  for (auto& end : ends) end.fill(kNothing);
  for (const auto* list : {&results_, &stored_, &outputs_}) {
    for (const std::int32_t id : *list) {
      for (int t = 0; t < tiled::kTilesPerAxis; ++t) {
        const tiled::Range whole = share_of(height(id), t, 0, 1);
        const std::int32_t own = whole.end - whole.begin, done = slice - warm_up;
        const std::int32_t end = done >= 0
                                     ? whole.begin + static_cast<std::int32_t>(std::int64_t{own} * done / group_.slices)
                                     : whole.begin + done * std::max(1, own / group_.slices);
        std::int32_t& known = ends[reef::at(id)][reef::at(t)];
        if (own > 0) known = std::max(known, end);
      }
    }
  }
  for (auto op = ops_.rbegin(); op != ops_.rend(); ++op) {
    for (const RowRead& read : op->reads) {
      const RowResult& result = op->results[reef::at(read.result)];
      for (std::size_t t = 0; t < tiled::kTilesPerAxis; ++t) {
        std::int32_t from = ends[reef::at(result.id)][t];
        if (from == kNothing) continue;
        if (op->computes) from = std::min(from, result.height);
        std::int32_t end = read.window.end(from - 1);
        if (!read.sees_padding) end = std::min(end, read.height);
        std::int32_t& known = ends[reef::at(read.id)][t];
        known = std::max(known, end);
      }
    }
  }
  return ends;
}

// As many slices as it takes until the first rows of results can be made without making much more than later slices do.
std::int32_t SlicedOps::find_warm_up() const {
  constexpr std::int32_t kMost = 16;
  const Rows all = needed(0, group_.slices);
  Ends last;
  for (std::int32_t count = 0; count < kMost; ++count) {
    const Ends now = ends(0, count);
    bool is_done = true;
    for (std::size_t id = 0; id < all.size(); ++id) {
      for (std::size_t t = 0; t < all[id].size(); ++t) {
        is_done = is_done && (all[id][t].is_empty() || now[id][t] <= all[id][t].begin);
      }
    }
    if (is_done || now == last) return count;
    last = now;
  }
  return kMost;
}

// The rows of each tensor that readers need from `slice` on, made up to `done` by then; `all` is the end state.
// A result that exists by itself is made from where it was left; another view of a tensor is read again like the
// tensor.
SlicedOps::Rows SlicedOps::still_needed(std::int32_t slice, const Ends& done, const Rows& all) const {
  Rows rows(tensors_.size());
  for (const auto* list : {&results_, &stored_, &outputs_}) {
    for (const std::int32_t id : *list) {
      const TileRanges first = share(id, slice), last = share(id, slice_count() - 1);
      for (std::size_t t = 0; t < first.size(); ++t) {
        rows[reef::at(id)][t].include({first[t].begin, last[t].end});
      }
    }
  }
  for (auto op = ops_.rbegin(); op != ops_.rend(); ++op) {
    for (const RowRead& read : op->reads) {
      const RowResult& result = op->results[reef::at(read.result)];
      const auto from = static_cast<std::size_t>(result.id), to = static_cast<std::size_t>(read.id);
      for (std::size_t t = 0; t < rows[to].size(); ++t) {
        const tiled::Range rest =
            op->computes ? tiled::Range{done[from][t], all[from][t].end}.within(0, result.height) : rows[from][t];
        rows[to][t].include(read.rows(rest));
      }
    }
  }
  return rows;
}

SliceRows SlicedOps::rows(std::int32_t slice) const {
  SliceRows rows;
  if (!group_.keeps_rows) {
    rows.held = needed(slice, slice + 1);
    rows.made = rows.held;
  } else {
    const Rows all = needed(0, group_.slices);
    const auto within = [&](Ends ends, bool is_first) {
      for (std::size_t id = 0; id < all.size(); ++id) {
        for (std::size_t t = 0; t < all[id].size(); ++t) {
          const tiled::Range& range = all[id][t];
          ends[id][t] = is_first || range.is_empty() ? range.begin : std::clamp(ends[id][t], range.begin, range.end);
        }
      }
      return ends;
    };
    const Ends before = within(ends(slice, warm_up_), slice == 0), after = within(ends(slice + 1, warm_up_), false);
    rows.held = still_needed(slice, before, all);
    rows.made.resize(tensors_.size());
    for (std::size_t id = 0; id < tensors_.size(); ++id) {
      for (std::size_t t = 0; t < all[id].size(); ++t) {
        tiled::Range &made = rows.made[id][t], &held = rows.held[id][t];
        made = {before[id][t], std::max(before[id][t], after[id][t])};
        held = held.is_empty() ? made : tiled::Range{std::min(held.begin, made.begin), made.end};
      }
    }
  }
  for (std::size_t id = 0; id < tensors_.size(); ++id) {
    for (tiled::Range& range : rows.made[id]) range = range.within(0, heights_[id]);
  }
  return rows;
}

bool SliceRows::is_empty() const {
  return std::all_of(made.begin(), made.end(), [](const TileRanges& rows) {
    return std::all_of(rows.begin(), rows.end(), [](const tiled::Range& range) { return range.is_empty(); });
  });
}

TileRanges SliceRows::kept(std::int32_t id, std::int32_t height) const {
  TileRanges kept = held[reef::at(id)];
  for (std::size_t t = 0; t < kept.size(); ++t) {
    const tiled::Range& own = made[reef::at(id)][t];
    kept[t] = kept[t].within(0, height);
    if (!own.is_empty()) kept[t].end = std::min(kept[t].end, own.begin);
    if (kept[t].is_empty()) kept[t] = {};
  }
  return kept;
}

}  // namespace reef::lower
