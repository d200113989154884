// SPDX-License-Identifier: Apache-2.0
#include "lower/builder.h"

#include <algorithm>

#include <fmt/format.h>

#include "ir/describe.h"
#include "lower/lowerings.h"
#include "lower/pixel_patches.h"
#include "lower/shared_steps.h"

namespace reef::lower {

namespace {

constexpr std::int64_t kMostTensorElements = std::int64_t{1} << 34;  // keeps sizes in bytes far from overflow

}  // namespace

Result<std::int32_t> chip_zero_point(const ir::Tensor& tensor) {
  const ir::Quantization& q = tensor.quantization;
  if (!ir::is_integer_8(tensor.type) || q.scale.size() != 1 || q.zero_point.size() > 1) {
    return unsupported("tensor '{}' is {} with {} scales; activations are int8 or uint8 with one scale",
                       ir::describe_name(tensor.name), ir::type_name(tensor.type), q.scale.size());
  }
  const std::int64_t shift = tensor.type == ir::DataType::kInt8 ? 128 : 0;
  const std::int64_t point = (q.zero_point.empty() ? 0 : q.zero_point[0]) + shift;
  REEF_REQUIRE(point >= 0 && point <= 255, "tensor '{}' has a zero point that its type cannot hold",
               ir::describe_name(tensor.name));
  return static_cast<std::int32_t>(point);
}

Result<bool> same_quantization(const ir::Tensor& a, const ir::Tensor& b) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t zero_a, chip_zero_point(a));
  REEF_ASSIGN_OR_RETURN(const std::int32_t zero_b, chip_zero_point(b));
  return zero_a == zero_b && a.quantization.scale == b.quantization.scale;
}

OpLowering find_lowering(const std::string& op_type) {
  static const std::map<std::string, OpLowering> kLowerings = {
#define REEF_LOWERING(type, function) {#type, function},
#include "lower/lowerings.def"
#undef REEF_LOWERING
  };
  const auto found = kLowerings.find(op_type);
  return found == kLowerings.end() ? nullptr : found->second;
}

Builder::Builder(const ir::Model& model, const std::vector<std::int32_t>& ops)
    : model_(model), ops_(ops), uses_(model.subgraphs[0].tensors.size()) {
  const auto use = [&](std::int32_t tensor) {
    if (tensor >= 0) ++uses_[reef::at(tensor)];
  };
  for (const ir::Operator& op : graph().operators) std::for_each(op.inputs.begin(), op.inputs.end(), use);
  std::for_each(graph().outputs.begin(), graph().outputs.end(), use);
}

Result<std::int32_t> Builder::operand(std::int32_t index, std::size_t k) const {
  const ir::Operator& from = op(index);
  REEF_REQUIRE(k < from.inputs.size() && from.inputs[k] >= 0, "the operator lacks operand {}", k);
  return from.inputs[k];
}

// ---- Values ----

Result<Value> Builder::value(std::int32_t tensor) const {
  const auto found = values_.find(tensor);
  if (found == values_.end()) {
    return unsupported("'{}' is not computed on the chip", ir::describe_name(source(tensor).name));
  }
  return found->second;
}

Result<Image> image_of(const ir::Tensor& tensor) {
  const ir::Shape& shape = tensor.shape;
  const bool is_image = shape.rank() == 4;
  const bool has_form = shape.rank() >= 1 && shape.rank() <= 4 && (!is_image || shape[0] == 1);
  if (!has_form || !shape.is_usable() || shape.elements() == 0) {
    return unsupported("tensor '{}' is {}; only images, with a batch of one, are generated",
                       ir::describe_name(tensor.name), shape.to_string());
  }
  if (shape.elements() > kMostTensorElements) {
    return unsupported("tensor '{}' has {} elements, more than is ever generated", ir::describe_name(tensor.name),
                       shape.elements());
  }
  if (is_image) return Image{shape[1], shape[2], shape[3]};
  const auto pixels = static_cast<std::int32_t>(shape.elements() / shape.last());
  Image image{1, pixels, shape.last()};
  for (std::int32_t rows = 2; std::int64_t{rows} * rows <= pixels; ++rows) {
    if (pixels % rows == 0) image.height = rows;
  }
  image.width = pixels / image.height;
  return image;
}

Result<std::int32_t> Builder::new_grid(std::int32_t tensor) {
  REEF_ASSIGN_OR_RETURN(const Image image, image_of(source(tensor)));
  return new_grid(tensor, image);
}

Result<std::int32_t> Builder::new_grid(std::int32_t tensor, const Image& image) {
  const ir::Tensor& from = source(tensor);
  TiledTensor result;
  result.source = tensor;
  result.height = image.height;
  result.width = image.width;
  result.channels = image.channels;
  result.pitch = (result.channels + chip::kNarrowWordBytes - 1) / chip::kNarrowWordBytes * chip::kNarrowWordBytes;
  REEF_ASSIGN_OR_RETURN(result.zero_point, chip_zero_point(from));
  result.scale = from.quantization.scale[0];
  return add_tensor(std::move(result));
}

// With memory of its own, whose size follows from the cut; in a slice, with the rows that the slice has.
std::int32_t Builder::add_tensor(TiledTensor tensor) {
  Use use;
  if (tensor.spread == tiled::Spread::kGrid) use.slice = slice_rows(tensor.source);
  tensor.object = new_narrow(0);
  program_.tensors.push_back(std::move(tensor));
  tensor_uses_.push_back(std::move(use));
  return static_cast<std::int32_t>(program_.tensors.size() - 1);
}

std::int32_t Builder::add_tensor(TiledTensor tensor, const std::optional<tiled::TileRanges>& rows) {
  const std::int32_t made = add_tensor(std::move(tensor));
  tensor_uses_[reef::at(made)].slice = rows;
  return made;
}

Result<std::int32_t> Builder::new_grid(std::int32_t tensor, const Image& image, const tiled::TileRanges& rows) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t made, new_grid(tensor, image));
  tensor_uses_[reef::at(made)].slice = rows;
  return made;
}

Result<std::int32_t> Builder::new_grid_of_pixels(std::int32_t tensor, std::int32_t of, std::int32_t count,
                                                 std::int32_t channels, const std::optional<tiled::TileRanges>& rows) {
  const Image image{program_.tensor(of).height, program_.tensor(of).width * count, channels};
  REEF_ASSIGN_OR_RETURN(const std::int32_t made, new_grid(tensor, image));
  Use& use = tensor_uses_[reef::at(made)];
  use.pixels_of = of;
  use.pixel_count = count;
  if (rows) use.slice = rows;
  return made;
}

void Builder::begin_slice(Slice slice) {
  slice_ = std::move(slice);
  values_before_slice_ = values_;
  layouts_before_slice_ = layouts_.size();
}

void Builder::end_slice() {
  slice_.reset();
  values_ = std::move(values_before_slice_);
  layouts_.resize(layouts_before_slice_);
}

std::optional<tiled::TileRanges> Builder::slice_rows(std::int32_t source) const {
  if (!slice_) return std::nullopt;
  const auto found = slice_->rows.find(source);
  return found == slice_->rows.end() ? std::nullopt : std::optional(found->second);
}

void Builder::make_in(std::int32_t source, std::int32_t whole, const tiled::TileRanges& rows) {
  slice_->wholes[source] = whole;
  slice_->rows[source] = rows;
}

std::int32_t Builder::use_whole(std::int32_t source, const tiled::TileRanges& rows) {
  const std::int32_t whole = slice_->wholes.at(source);
  slice_->wholes.erase(source);  // what is made of it from now on are copies
  slice_->rows[source] = rows;
  values_[source] = {whole, {}};
  return whole;
}

std::int32_t Builder::rows_of(std::int32_t tensor, const tiled::TileRanges& rows) {
  TiledTensor part = program_.tensor(tensor);
  part.is_part = true;
  Use use;
  use.slice = rows;
  use.whole = tensor;
  program_.tensors.push_back(std::move(part));
  tensor_uses_.push_back(std::move(use));
  return static_cast<std::int32_t>(program_.tensors.size() - 1);
}

void Builder::set_value(std::int32_t source, const Value& value) {
  values_[source] = value;
  if (!slice_) return;
  const auto whole = slice_->wholes.find(source);
  if (whole == slice_->wholes.end()) return;
  // Made in its place at once.
  TiledTensor& part = program_.tensor(value.tensor);
  tensor_uses_[reef::at(value.tensor)].whole = whole->second;
  part.is_part = true;
  part.object = program_.tensor(whole->second).object;
}

void Builder::set_state(std::int32_t source, std::int32_t tensor) {
  values_[source] = {tensor, {}};
  if (std::find(states_.begin(), states_.end(), source) == states_.end()) states_.push_back(source);
}

Result<std::int32_t> Builder::new_vector(std::int32_t tensor, std::int32_t run) {
  const ir::Tensor& from = source(tensor);
  const bool is_vector = from.shape.is_usable() && from.shape.rank() > 0 && from.shape.elements() > 0 &&
                         from.shape.elements() == from.shape.last();
  if (!is_vector || from.shape.last() > std::int64_t{run} * chip::kTiles) {
    return unsupported("tensor '{}' is {}; only vectors of up to {} elements are generated here",
                       ir::describe_name(from.name), from.shape.to_string(), std::int64_t{run} * chip::kTiles);
  }
  TiledTensor result;
  result.source = tensor;
  result.spread = tiled::Spread::kVector;
  result.channels = from.shape.last();
  result.run = run;
  result.pitch = (result.channels + chip::kNarrowWordBytes - 1) / chip::kNarrowWordBytes * chip::kNarrowWordBytes;
  REEF_ASSIGN_OR_RETURN(result.zero_point, chip_zero_point(from));
  result.scale = from.quantization.scale[0];
  result.object = new_narrow(0);
  program_.tensors.push_back(std::move(result));
  tensor_uses_.emplace_back();
  return static_cast<std::int32_t>(program_.tensors.size() - 1);
}

Result<std::int32_t> Builder::new_like(std::int32_t tensor, std::int32_t like) {
  const ir::Tensor& from = source(tensor);
  const TiledTensor& other = this->tensor(like);
  const bool is_some_pixels = tensor_uses_[reef::at(like)].pixels_of >= 0;
  const std::int64_t elements = std::int64_t{other.height} * other.width * other.channels;
  REEF_REQUIRE(from.shape.is_usable() && (is_some_pixels || from.shape.elements() == elements),
               "tensor '{}' is {}, which is not the shape of what it is computed from", ir::describe_name(from.name),
               from.shape.to_string());
  TiledTensor result;
  result.source = tensor;
  result.spread = other.spread;
  result.height = other.height;
  result.width = other.width;
  result.channels = other.channels;
  result.tiles = other.tiles;
  result.run = other.run;
  result.pitch = result.pixel_words() * chip::kNarrowWordBytes;
  REEF_ASSIGN_OR_RETURN(result.zero_point, chip_zero_point(from));
  result.scale = from.quantization.scale[0];
  const std::int32_t made = add_tensor(std::move(result));
  Use& use = tensor_uses_[reef::at(made)];
  use.pixels_of = tensor_uses_[reef::at(like)].pixels_of;
  use.pixel_count = tensor_uses_[reef::at(like)].pixel_count;
  if (is_some_pixels) use.slice = tensor_uses_[reef::at(like)].slice;
  if (slice_ && !use.slice) {  // of a tensor that exists as a whole, but only these rows of it are wanted
    const auto rows = slice_->reads.find(like);
    if (rows != slice_->reads.end()) use.slice = rows->second;
  }
  return made;
}

// An operator that gives a tensor another name reads it under the old one.
bool Builder::has_one_reader(std::int32_t tensor) const {
  std::int64_t names = 0, uses = 0;
  for (const auto& [source, value] : values_) {
    if (value.tensor != tensor) continue;
    ++names;
    uses += uses_[reef::at(source)];
  }
  return uses <= names;
}

namespace {

// What can write images whose pixels are further apart than they are long.
bool writes_any_pitch(const tiled::Work& work) {
  return std::holds_alternative<tiled::Convolution>(work) || std::holds_alternative<tiled::Elementwise>(work) ||
         std::holds_alternative<tiled::Sum>(work) || std::holds_alternative<tiled::Pool>(work) ||
         std::holds_alternative<tiled::Product>(work) || std::holds_alternative<tiled::MatrixProduct>(work) ||
         std::holds_alternative<tiled::Resample>(work) || std::holds_alternative<tiled::LocalCopies>(work) ||
         std::holds_alternative<tiled::RingCopies>(work);
}

}  // namespace

bool Builder::put_into(std::int32_t tensor, std::int32_t whole, std::int32_t first) {
  TiledTensor& part = program_.tensor(tensor);
  const TiledTensor& all = program_.tensor(whole);
  if (part.spread != tiled::Spread::kGrid || all.spread != tiled::Spread::kGrid || part.height != all.height ||
      part.width != all.width || part.channels % chip::kNarrowWordBytes != 0 || first % chip::kNarrowWordBytes != 0 ||
      first + part.channels > all.channels || tensor == whole || is_read_by_windows(tensor)) {
    return false;
  }
  for (std::size_t t = 0; t < program_.tensors.size(); ++t) {
    if (static_cast<std::int32_t>(t) != tensor && program_.tensors[t].object == part.object) return false;
  }
  for (const tiled::Step& step : program_.steps) {
    const auto has = [&](const std::vector<std::int32_t>& list) {
      return std::find(list.begin(), list.end(), tensor) != list.end();
    };
    if (has(step.reads) || (has(step.writes) && !writes_any_pitch(step.work))) return false;
  }
  part.object = all.object;
  part.offset = all.offset + first;
  part.pitch = all.pitch;
  parts_[tensor] = {whole, first};
  return true;
}

// ---- Memory, parameters, steps ----

std::int32_t Builder::new_narrow(std::int64_t bytes) {
  program_.narrow.push_back({.bytes = bytes});
  return static_cast<std::int32_t>(program_.narrow.size() - 1);
}

std::int32_t Builder::new_wide(std::int64_t lines) {
  program_.wide.push_back({.lines = lines});
  return static_cast<std::int32_t>(program_.wide.size() - 1);
}

std::int32_t Builder::new_parameters(tiled::ParameterChunk chunk) {
  // In slices an operator has several steps that use the same. What one step asks for twice it gets twice.
  const std::int32_t op = finishing_ < program_.steps.size() ? program_.steps[finishing_].op : -1;
  std::vector<ChunkOfStep>& known = chunks_of_op_[op];
  for (const ChunkOfStep& made : known) {
    const tiled::ParameterChunk& other = program_.chunk(made.chunk);
    if (op >= 0 && made.step != finishing_ && other.part_lines == chunk.part_lines &&
        std::ranges::equal(other.bytes.span(), chunk.bytes.span())) {
      return made.chunk;
    }
  }
  program_.parameters.push_back(std::move(chunk));
  known.push_back({static_cast<std::int32_t>(program_.parameters.size() - 1), finishing_});
  return known.back().chunk;
}

std::int32_t Builder::add_step(std::int32_t op, tiled::Work work, const std::vector<Read>& reads,
                               const std::vector<std::int32_t>& writes, Finish finish) {
  tiled::Step step;
  step.op = op;
  step.work = std::move(work);
  for (const Read& read : reads) {
    step.reads.push_back(read.tensor);
    Use& use = tensor_uses_[reef::at(read.tensor)];
    const auto rows = slice_ ? slice_->reads.find(read.tensor) : std::map<std::int32_t, tiled::TileRanges>::iterator();
    const bool has_rows = slice_ && rows != slice_->reads.end();
    if (has_rows) {
      for (std::size_t t = 0; t < use.rows_needed.size(); ++t) use.rows_needed[t].include(rows->second[t]);
    }
    if (!read.windows) continue;
    use.columns.push_back(read.windows->x);
    if (!has_rows) use.rows.push_back(read.windows->y);
  }
  step.writes = writes;
  const auto index = static_cast<std::int32_t>(program_.steps.size());
  if (op >= 0) steps_of_op_[op].push_back(index);
  program_.steps.push_back(std::move(step));
  finishes_.push_back(std::move(finish));
  return index;
}

// ---- The second round ----

// The LOGISTIC of a SiLU that is computed in one pass: nobody reads it. Its step does nothing then.
void Builder::drop_unread_functions() {
  std::set<std::int32_t> read;  // objects of narrow memory
  for (const tiled::Step& step : program_.steps) {
    for (const std::int32_t tensor : step.reads) read.insert(program_.tensor(tensor).object);
  }
  for (std::size_t i = 0; i < program_.steps.size(); ++i) {
    tiled::Step& step = program_.steps[i];
    const auto* work = std::get_if<tiled::Elementwise>(&step.work);
    if (work == nullptr || !work->function || step.op < 0) continue;
    const bool is_read = std::any_of(step.writes.begin(), step.writes.end(), [&](std::int32_t tensor) {
      return read.contains(program_.tensor(tensor).object) || parts_.contains(tensor);
    });
    if (is_read) continue;
    step.work = tiled::RingCopies{};
    step.reads.clear();
    step.writes.clear();
    finishes_[i] = nullptr;
  }
}

void Builder::cut_tensors() {
  std::vector<bool> is_cut(program_.tensors.size());
  for (std::size_t t = 0; t < program_.tensors.size(); ++t) cut_tensor(static_cast<std::int32_t>(t), is_cut);
}

// After what it lies in.
void Builder::cut_tensor(std::int32_t index, std::vector<bool>& is_cut) {
  if (is_cut[reef::at(index)]) return;
  is_cut[reef::at(index)] = true;
  TiledTensor& tensor = program_.tensor(index);
  const Use& use = tensor_uses_[reef::at(index)];
  const auto part = parts_.find(index);
  const std::int32_t in = part != parts_.end() ? part->second.whole : use.whole;
  if (tensor.spread == tiled::Spread::kGrid && in >= 0) {
    cut_tensor(in, is_cut);
    const TiledTensor& whole = program_.tensor(in);
    const bool has_all_rows = part != parts_.end();
    tensor.rows = has_all_rows ? whole.rows : whole.rows.part(*use.slice);
    tensor.columns = whole.columns;
    tensor.object = whole.object;
    tensor.pitch = whole.pitch;
    tensor.offset = whole.offset + (has_all_rows ? part->second.first : 0);
    tensor.is_part = tensor.is_part || whole.is_part;
  } else if (tensor.spread == tiled::Spread::kGrid) {
    tensor.rows = use.slice ? tiled::AxisPartition::local(tensor.height, *use.slice)
                            : tiled::AxisPartition::of(tensor.height, use.rows, use.rows_needed);
    tensor.columns = tiled::AxisPartition::of(tensor.width, use.columns);
    if (use.pixels_of >= 0) {
      cut_tensor(use.pixels_of, is_cut);
      tensor.columns = program_.tensor(use.pixels_of).columns.repeated(use.pixel_count);
    }
    if (level() == tiled::Level::kAsGoogle) {
      if (!use.slice) tensor.rows = tensor.rows.with_own_fronts();
      tensor.columns = tensor.columns.with_own_fronts();
    }
  }
  tiled::NarrowObject& object = program_.narrow[reef::at(tensor.object)];
  object.bytes = std::max(object.bytes, tensor.tile_bytes());
}

bool Builder::is_last_read(std::int32_t tensor) const {
  const std::int32_t object = this->tensor(tensor).object;
  const auto touches = [&](const std::vector<std::int32_t>& tensors) {
    return std::any_of(tensors.begin(), tensors.end(),
                       [&](std::int32_t t) { return this->tensor(t).object == object; });
  };
  for (std::size_t i = finishing_ + 1; i < program_.steps.size(); ++i) {
    if (touches(program_.steps[i].reads) || touches(program_.steps[i].writes)) return false;
  }
  return true;
}

bool Builder::take_place(std::int32_t result, std::int32_t operand) {
  TiledTensor& to = program_.tensor(result);
  const TiledTensor& from = program_.tensor(operand);
  const auto shares = [&](std::size_t t) {
    return static_cast<std::int32_t>(t) != result && program_.tensors[t].object == to.object;
  };
  for (std::size_t t = 0; t < program_.tensors.size(); ++t) {
    if (shares(t)) return false;
  }
  if (!to.lies_like(from) || to.offset != 0 || !is_last_read(operand)) return false;
  program_.narrow[reef::at(to.object)].bytes = 0;
  to.object = from.object;
  to.offset = from.offset;
  return true;
}

tiled::Identity Builder::identity(tiled::Step& step) {
  tiled::Identity result;
  if (identity_ == tiled::kNowhere) {
    identity_ = new_wide(1);
    result.words = new_narrow(tiled::kIdentityLineWords * chip::kNarrowWordBytes);
    step.narrow_used.push_back(result.words);
  }
  result.line = identity_;
  step.wide_used.push_back(identity_);
  return result;
}

std::int32_t Builder::new_without_halo(std::int32_t tensor, std::int32_t owner) {
  TiledTensor copy = program_.tensor(tensor);
  copy.pitch = (copy.channels + chip::kNarrowWordBytes - 1) / chip::kNarrowWordBytes * chip::kNarrowWordBytes;
  copy.offset = 0;
  if (copy.spread == tiled::Spread::kGrid) {
    const tiled::AxisPartition& rows = program_.tensor(owner).rows;
    tiled::TileRanges own;
    for (int t = 0; t < tiled::kTilesPerAxis; ++t) own[reef::at(t)] = {rows.tile(t).begin, rows.tile(t).end};
    copy.rows = tiled::AxisPartition::local(copy.height, own);
    copy.columns = tiled::AxisPartition::of(copy.width, {});
    copy.is_part = false;
  }
  copy.object = new_narrow(copy.tile_bytes());
  program_.tensors.push_back(std::move(copy));
  tensor_uses_.emplace_back();
  return static_cast<std::int32_t>(program_.tensors.size() - 1);
}

Status Builder::finish_steps(std::int32_t& at) {
  std::vector<std::int32_t> moved_to;  // by step
  for (finishing_ = 0; finishing_ < program_.steps.size(); ++finishing_) {
    at = program_.steps[finishing_].op;
    if (finishes_[finishing_] != nullptr) {
      REEF_RETURN_IF_ERROR(finishes_[finishing_](*this, program_.steps[finishing_]));
    }
    std::move(inserted_.begin(), inserted_.end(), std::back_inserter(finished_));
    inserted_.clear();
    moved_to.push_back(static_cast<std::int32_t>(finished_.size()));
    finished_.push_back(program_.steps[finishing_]);
  }
  program_.steps = std::move(finished_);
  for (auto* border : {&program_.inputs, &program_.outputs}) {
    for (std::int32_t& step : *border) step = moved_to[reef::at(step)];
  }
  at = -1;
  return ok_status();
}

void Builder::set_lifetimes() {
  for (std::size_t i = 0; i < program_.steps.size(); ++i) {
    const tiled::Step& step = program_.steps[i];
    const auto at = static_cast<std::int32_t>(i);
    for (const auto* list : {&step.reads, &step.writes}) {
      for (const std::int32_t t : *list) {
        program_.narrow[reef::at(program_.tensor(t).object)].life.include(at);
      }
    }
    for (const std::int32_t object : step.narrow_used) {
      program_.narrow[reef::at(object)].life.include(at);
    }
    for (const std::int32_t object : step.wide_used) program_.wide[reef::at(object)].life.include(at);
  }
}

Result<tiled::TiledProgram> Builder::finish(std::int32_t& at) && {
  drop_unread_functions();
  cut_tensors();
  choose_patches(*this);
  REEF_RETURN_IF_ERROR(finish_steps(at));
  set_lifetimes();
  return std::move(program_);
}

}  // namespace reef::lower
