// SPDX-License-Identifier: Apache-2.0
#include "compiler/slicing_estimate.h"

#include <algorithm>

#include "ir/op.h"
#include "lower/builder.h"

namespace reef::compiler {
namespace {

using lower::RowOp;
using lower::RowRead;
using lower::RowResult;
using tiled::Lifetime;
using tiled::TiledTensor;
using tiled::TileRanges;

// Cycles that things take besides the work itself (estimates). Instructions come from the host with every inference:
// a block of some 80 rows, or some 400 for an input, at about 0.8 bytes a cycle.
constexpr std::int64_t kBlockCycles = 1600, kInputBlockCycles = 8000, kInputByteCycles = 2;
// Tensors that the host keeps go out and come in again, tile by tile.
constexpr std::int64_t kHostByteCycles = 3;
constexpr std::int64_t kRingLineCycles = 16;
constexpr std::int64_t kInputConstants = 512;  // bytes that come with the slots of an input
constexpr std::int64_t kSmallScratch = 1024;   // bytes that do not become less with fewer rows

std::int32_t most_rows(const TileRanges& rows, std::int32_t height) {
  std::int32_t most = 0;
  for (const tiled::Range& range : rows) {
    const tiled::Range inside = range.within(0, height);
    most = std::max(most, inside.end - inside.begin);
  }
  return most;
}

// AxisPartition::local(height, rows).max_length(), without making the partition: this is asked for very often.
std::int32_t local_length(const TileRanges& rows, std::int32_t height) {
  std::int32_t front = 0, held = 0;
  for (const tiled::Range& range : rows) {
    if (range.is_empty()) continue;
    const std::int32_t begin = std::clamp(range.begin, 0, height - 1);
    const std::int32_t end = std::clamp(range.end, begin + 1, height);
    front = std::max(front, begin - range.begin);
    held = std::max(held, end - begin + std::max(0, range.end - end));
  }
  return front + held;
}

}  // namespace

// ---- The part without slices ----

Whole::Whole(const lower::PartBorder& part, tiled::TiledProgram program, bool may_put_aside,
             const std::set<std::int32_t>& hosted)
    : part_(part), program_(std::move(program)) {
  std::map<std::int32_t, std::int32_t> positions;
  for (std::size_t i = 0; i < part.ops.size(); ++i) positions[part.ops[i]] = static_cast<std::int32_t>(i);
  std::int32_t at = 0;
  for (const tiled::Step& step : program_.steps) {
    const auto found = positions.find(step.op);
    if (found != positions.end()) at = found->second;
    position_of_step_.push_back(at);
  }
  for (std::size_t t = 0; t < program_.tensors.size(); ++t) {
    tensors_[program_.tensors[t].source].push_back(static_cast<std::int32_t>(t));
  }
  find_presence(may_put_aside, hosted);
  find_scratch();
  count_bytes(false, bytes_);
  count_bytes(true, scratch_);
}

const TiledTensor* Whole::tensor(std::int32_t source) const {
  const auto found = tensors_.find(source);
  if (found == tensors_.end()) return nullptr;
  const auto image = lower::image_of(part_.model.subgraphs[0].tensors[reef::at(source)]);
  if (!image.ok()) return nullptr;
  for (const std::int32_t t : found->second) {
    const TiledTensor& tensor = program_.tensor(t);
    if (tensor.spread == tiled::Spread::kGrid && tensor.height == image->height && tensor.width == image->width &&
        tensor.channels == image->channels) {
      return &tensor;
    }
  }
  return nullptr;
}

std::vector<std::int32_t> Whole::objects(std::int32_t source) const {
  std::vector<std::int32_t> objects;
  const auto found = tensors_.find(source);
  if (found == tensors_.end()) return objects;
  for (const std::int32_t t : found->second) objects.push_back(program_.tensor(t).object);
  return objects;
}

bool Whole::exists_at(std::int32_t object, std::int32_t op) const {
  const std::vector<Lifetime>& present = presence_[reef::at(object)];
  return std::any_of(present.begin(), present.end(),
                     [&](const Lifetime& steps) { return position(steps.first) <= op && op <= position(steps.last); });
}

// By object: runs of steps.
void Whole::find_presence(bool may_put_aside, const std::set<std::int32_t>& hosted) {
  presence_.resize(program_.narrow.size());
  std::vector<bool> goes(program_.narrow.size(), may_put_aside);
  for (const std::int32_t source : hosted) {
    for (const std::int32_t object : objects(source)) goes[reef::at(object)] = true;
  }
  for (std::size_t i = 0; i < presence_.size(); ++i) {
    if (!goes[i] && program_.narrow[i].life.first >= 0) presence_[i] = {program_.narrow[i].life};
  }
  const auto use = [&](std::int32_t object, std::size_t step) {
    if (!goes[reef::at(object)]) return;
    const auto at = static_cast<std::int32_t>(step);
    std::vector<Lifetime>& present = presence_[reef::at(object)];
    if (present.empty() || present.back().last < at - 1) {
      present.push_back({at, at});
    } else {
      present.back().last = at;
    }
  };
  for (std::size_t i = 0; i < program_.steps.size(); ++i) {
    const tiled::Step& step = program_.steps[i];
    for (const auto* tensors : {&step.reads, &step.writes}) {
      for (const std::int32_t t : *tensors) use(program_.tensor(t).object, i);
    }
    for (const std::int32_t object : step.narrow_used) use(object, i);
  }
}

// Memory of a single operator, unless it is that of a tensor that others see.
void Whole::find_scratch() {
  scratch_of_.assign(program_.narrow.size(), -1);
  for (std::size_t i = 0; i < program_.narrow.size(); ++i) {
    const Lifetime& life = program_.narrow[i].life;
    if (life.first >= 0 && position(life.first) == position(life.last)) scratch_of_[i] = position(life.first);
  }
  for (const auto& [source, list] : tensors_) {
    const TiledTensor* main = tensor(source);
    if (main != nullptr) scratch_of_[reef::at(main->object)] = -1;
  }
}

void Whole::count_bytes(bool scratch_only, std::vector<std::int64_t>& most) const {
  most.assign(part_.ops.size(), 0);
  std::vector<std::int64_t> change(program_.steps.size() + 1, 0);
  for (std::size_t i = 0; i < presence_.size(); ++i) {
    if (scratch_only && scratch_of_[i] < 0) continue;
    for (const Lifetime& steps : presence_[i]) {
      change[reef::at(steps.first)] += program_.narrow[i].bytes;
      change[static_cast<std::size_t>(steps.last) + 1] -= program_.narrow[i].bytes;
    }
  }
  std::int64_t now = 0;
  for (std::size_t step = 0; step < program_.steps.size(); ++step) {
    now += change[step];
    std::int64_t& there = most[reef::at(position_of_step_[step])];
    there = std::max(there, now);
  }
}

// ---- A group ----

GroupEstimate::GroupEstimate(const Whole& whole, const lower::SlicedOps& group) : whole_(whole), group_(group) {
  for (const std::int32_t source : group_.tensors()) tensors_.push_back(whole.tensor(source));
  find_lives();
  find_others();
}

// When tensors of which there are slices exist: positions in the group, of the first and last that touch them.
void GroupEstimate::find_lives() {
  lives_.resize(tensors_.size());
  std::vector<std::int32_t> roots(tensors_.size());  // of other views of a tensor
  for (std::size_t id = 0; id < roots.size(); ++id) roots[id] = static_cast<std::int32_t>(id);
  const auto root = [&](std::int32_t id) { return static_cast<std::size_t>(roots[reef::at(id)]); };
  for (std::size_t i = 0; i < group_.ops().size(); ++i) {
    const RowOp& op = group_.ops()[i];
    for (const RowRead& read : op.reads) lives_[root(read.id)].include(static_cast<std::int32_t>(i));
    for (const RowResult& result : op.results) {
      if (!op.computes) roots[reef::at(result.id)] = static_cast<std::int32_t>(root(op.reads[0].id));
      lives_[root(result.id)].include(static_cast<std::int32_t>(i));
    }
  }
  for (const std::int32_t id : group_.operands()) lives_[root(id)] = {};
  for (const std::int32_t id : group_.results()) {
    if (group_.is_in_place(id)) lives_[root(id)] = {};
  }
}

// Operands and results on the chip exist all the time; what the group does not know is as without slices.
void GroupEstimate::find_others() {
  std::int64_t fixed = 0;
  std::set<std::int32_t> borders, sliced;
  for (const auto* list : {&group_.results(), &group_.operands()}) {
    for (const std::int32_t id : *list) {
      const TiledTensor* tensor = tensors_[reef::at(id)];
      if (tensor == nullptr || !borders.insert(tensor->object).second) continue;
      if (group_.group().joins_late && list == &group_.results()) {
        joined_ = std::max(joined_, whole_.bytes_of(tensor->object));
      } else {
        fixed += whole_.bytes_of(tensor->object);
      }
    }
  }
  for (const std::int32_t source : group_.tensors()) {
    for (const std::int32_t object : whole_.objects(source)) {
      if (!whole_.is_scratch(object)) sliced.insert(object);
    }
  }
  for (std::int32_t op = group_.group().first; op <= group_.group().last; ++op) {
    std::int64_t bytes = whole_.bytes_at(op) - whole_.scratch_at(op);
    for (const std::int32_t object : sliced) {
      if (whole_.exists_at(object, op)) bytes -= whole_.bytes_of(object);
    }
    others_.push_back(fixed + std::max<std::int64_t>(bytes, 0));
  }
}

std::int64_t GroupEstimate::least_bytes() const {
  return std::max(joined_, *std::max_element(others_.begin(), others_.end()));
}

// The first, the last and one of the other slices stand for all.
std::int64_t GroupEstimate::bytes(std::int32_t slices) {
  group_.set_slices(slices);
  std::int64_t most = joined_ + joined_ / slices;  // while a slice's rows are copied to the others
  const std::int32_t first = group_.warm_up();
  const std::int64_t kept = group_.group().keeps_rows ? kept_bytes(group_.rows(first + slices / 2)) : 0;
  for (const std::int32_t slice : {first, first + slices / 2, first + slices - 1}) {
    const std::vector<TileRanges> rows = group_.rows(slice).held;
    const std::vector<std::int64_t> sizes = slice_bytes(rows);
    std::vector<std::int64_t> change(others_.size() + 1, 0);
    for (std::size_t id = 0; id < sizes.size(); ++id) {
      if (lives_[id].first < 0) continue;
      change[reef::at(lives_[id].first)] += sizes[id];
      change[static_cast<std::size_t>(lives_[id].last) + 1] -= sizes[id];
    }
    std::int64_t now = 0;
    for (std::size_t at = 0; at < others_.size(); ++at) {
      now += change[at];
      const std::int64_t buffers = at == 0 ? input_buffers() : 0;
      most = std::max(most, others_[at] + kept + now + std::max(scratch_bytes(at, rows), buffers));
    }
  }
  return most;
}

std::int32_t GroupEstimate::most_slices() const {
  std::int32_t rows = 1;
  for (const auto* list : {&group_.results(), &group_.stored(), &group_.outputs()}) {
    for (const std::int32_t id : *list) rows = std::max(rows, tiled::cut(group_.height(id), 1));
  }
  return rows;
}

std::vector<std::int64_t> GroupEstimate::slice_bytes(const std::vector<TileRanges>& rows) const {
  std::vector<std::int64_t> sizes(rows.size(), 0);
  for (std::size_t id = 0; id < rows.size(); ++id) {
    const TiledTensor* tensor = tensors_[id];
    if (tensor == nullptr || lives_[id].first < 0) continue;
    sizes[id] = std::int64_t{local_length(rows[id], tensor->height)} * tensor->columns.max_length() *
                (tensor->pixel_words() * chip::kNarrowWordBytes);
  }
  return sizes;
}

// An operator's own memory, of a part of its rows.
std::int64_t GroupEstimate::scratch_bytes(std::size_t op, const std::vector<TileRanges>& rows) const {
  const std::int64_t whole = whole_.scratch_at(group_.group().first + static_cast<std::int32_t>(op));
  const RowResult& result = group_.ops()[op].results[0];
  const std::int64_t all = tiled::cut(result.height, 1);
  const std::int64_t some = most_rows(rows[reef::at(result.id)], result.height);
  return std::min(whole, std::max(std::min(whole, kSmallScratch), (whole * some + all - 1) / all));
}

std::int64_t GroupEstimate::input_buffers() const {
  std::int64_t bytes = 0;
  for (const std::int32_t id : group_.inputs()) {
    const TiledTensor* tensor = tensors_[reef::at(id)];
    if (tensor != nullptr) bytes += 2 * std::int64_t{tiled::InputSlots::of(*tensor).bytes} + kInputConstants;
  }
  return bytes;
}

std::int64_t GroupEstimate::cycles(std::int32_t slices) {
  group_.set_slices(slices);
  if (group_.group().keeps_rows && slices > 1) {  // one stands for all; the first ones have less to do
    return slice_cycles(group_.rows(group_.warm_up() + slices / 2)) * (2 * slices + group_.warm_up()) / 2;
  }
  std::int64_t cycles = slice_cycles(group_.rows(0));
  if (slices > 1) cycles += slice_cycles(group_.rows(slices - 1));
  if (slices > 2) cycles += slice_cycles(group_.rows(slices / 2)) * (slices - 2);
  return cycles;
}

// Rows of a tensor that a slice finds kept from earlier slices; operands and results that exist whole keep none.
TileRanges GroupEstimate::kept_rows(std::size_t id, const lower::SliceRows& rows) const {
  const auto& loaded = group_.loaded();
  const bool is_loaded = std::find(loaded.begin(), loaded.end(), static_cast<std::int32_t>(id)) != loaded.end();
  if (!group_.group().keeps_rows || is_loaded || tensors_[id] == nullptr || lives_[id].first < 0) return {};
  return rows.kept(static_cast<std::int32_t>(id), tensors_[id]->height);
}

std::int64_t GroupEstimate::kept_bytes(const lower::SliceRows& rows) const {
  std::int64_t bytes = 0;
  for (std::size_t id = 0; id < tensors_.size(); ++id) {
    const std::int32_t most = tensors_[id] == nullptr ? 0 : most_rows(kept_rows(id, rows), tensors_[id]->height);
    if (most == 0) continue;
    bytes +=
        std::int64_t{most} * tensors_[id]->columns.max_own() * tensors_[id]->pixel_words() * chip::kNarrowWordBytes;
  }
  return bytes;
}

// Rows from before are copied twice, each time by a block of its own, and a third one fills the halos.
std::int64_t GroupEstimate::keeping_cycles(const lower::SliceRows& rows) const {
  std::int64_t cycles = 0;
  for (std::size_t id = 0; id < tensors_.size(); ++id) {
    const std::int32_t most = tensors_[id] == nullptr ? 0 : most_rows(kept_rows(id, rows), tensors_[id]->height);
    if (most == 0) continue;
    cycles += 2 * std::int64_t{most} * tensors_[id]->columns.max_own() * tensors_[id]->pixel_words() + 2 * kBlockCycles;
  }
  // Results that are put together late go to wide memory, come back and are copied.
  for (const std::int32_t id : group_.results()) {
    const TiledTensor* tensor = tensors_[reef::at(id)];
    if (tensor == nullptr || !group_.group().joins_late) continue;
    const std::int64_t most = most_rows(rows.made[reef::at(id)], tensor->height);
    cycles += 3 * most * tensor->columns.max_own() * tensor->pixel_words() + 3 * kBlockCycles;
  }
  return cycles;
}

std::int64_t GroupEstimate::slice_cycles(const lower::SliceRows& slice) const {
  const std::vector<TileRanges>& rows = slice.made;
  std::int64_t cycles = host_cycles(slice) + keeping_cycles(slice);
  for (const RowOp& op : group_.ops()) {
    const RowResult& first = op.results[0];
    const TiledTensor* result = op.computes ? tensors_[reef::at(first.id)] : nullptr;
    if (result == nullptr) continue;
    const std::int64_t most = most_rows(rows[reef::at(first.id)], first.height);
    cycles += most * result->columns.max_own() * pixel_cycles(op) + parameter_cycles(op) + kBlockCycles;
  }
  return cycles;
}

std::int64_t GroupEstimate::host_cycles(const lower::SliceRows& slice) const {
  const auto bytes = [&](std::int32_t id, const std::vector<TileRanges>& rows) {
    const TiledTensor* tensor = tensors_[reef::at(id)];
    if (tensor == nullptr) return std::int64_t{0};
    std::int64_t all = 0;
    for (const tiled::Range& range : rows[reef::at(id)]) {
      const tiled::Range inside = range.within(0, tensor->height);
      all += std::max(0, inside.end - inside.begin);
    }
    return all * tensor->width * tensor->channels;
  };
  std::int64_t cycles = 0;
  for (const std::int32_t id : group_.inputs()) cycles += bytes(id, slice.made) * kInputByteCycles + kInputBlockCycles;
  for (const std::int32_t id : group_.loaded()) cycles += bytes(id, slice.held) * kHostByteCycles + kInputBlockCycles;
  for (const auto* list : {&group_.stored(), &group_.outputs()}) {
    for (const std::int32_t id : *list) cycles += bytes(id, slice.made) * kHostByteCycles + kInputBlockCycles;
  }
  return cycles;
}

// Steps of the tensor unit for one pixel of the result.
std::int64_t GroupEstimate::pixel_cycles(const RowOp& op) const {
  const ir::Operator& model = graph().operators[reef::at(op.op)];
  const std::int64_t channels = graph().tensors[reef::at(op.results[0].tensor)].shape.last();
  if (model.type != Op::CONV_2D && model.type != Op::DEPTHWISE_CONV_2D) return (channels + 3) / 4;
  const ir::Shape& weights = graph().tensors[reef::at(model.inputs[1])].shape;
  const std::int64_t positions = std::int64_t{weights[1]} * weights[2];
  if (model.type == Op::DEPTHWISE_CONV_2D) return positions * ((channels + 3) / 4);
  return positions * ((weights[3] + 3) / 4) * ((channels + 63) / 64);
}

std::int64_t GroupEstimate::parameter_cycles(const RowOp& op) const {
  const std::string& type = graph().operators[reef::at(op.op)].type;
  return type == Op::CONV_2D || type == Op::DEPTHWISE_CONV_2D ? kRingLineCycles * pixel_cycles(op) : 0;
}

}  // namespace reef::compiler
