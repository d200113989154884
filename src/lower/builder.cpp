// SPDX-License-Identifier: Apache-2.0
#include "lower/builder.h"

#include <algorithm>

#include <fmt/format.h>

#include "ir/describe.h"
#include "lower/lowerings.h"

namespace reef::lower {

using tiled::TiledTensor;

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

Builder::Builder(const ir::Model& model, const std::vector<std::int32_t>& ops) : model_(model), ops_(ops) {}

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

Result<std::int32_t> Builder::grid(std::int32_t tensor) {
  REEF_ASSIGN_OR_RETURN(const Value found, value(tensor));
  if (found.padding != Padding{}) {
    return unsupported("'{}' is padded outside of a convolution, which is not generated yet",
                       ir::describe_name(source(tensor).name));
  }
  return found.tensor;
}

Result<std::int32_t> Builder::new_grid(std::int32_t tensor) {
  const ir::Tensor& from = source(tensor);
  if (from.shape.rank() != 4 || from.shape[0] != 1 || !from.shape.is_usable() || from.shape.elements() == 0) {
    return unsupported("tensor '{}' is {}; only images, with a batch of one, are generated",
                       ir::describe_name(from.name), from.shape.to_string());
  }
  constexpr std::int64_t kMostElements = std::int64_t{chip::kTiles} * chip::kNarrowBytes;
  if (from.shape.elements() > kMostElements) {
    return unsupported(
        "tensor '{}' has {} elements, more than the chip's {} bytes of memory for activations; work in several passes "
        "is not generated yet",
        ir::describe_name(from.name), from.shape.elements(), kMostElements);
  }
  TiledTensor result;
  result.source = tensor;
  result.height = from.shape[1];
  result.width = from.shape[2];
  result.channels = from.shape[3];
  result.pitch = (result.channels + chip::kNarrowWordBytes - 1) / chip::kNarrowWordBytes * chip::kNarrowWordBytes;
  REEF_ASSIGN_OR_RETURN(result.zero_point, chip_zero_point(from));
  result.scale = from.quantization.scale[0];
  result.object = new_narrow(0);  // its size follows from the cut
  program_.tensors.push_back(std::move(result));
  windows_.emplace_back();
  return static_cast<std::int32_t>(program_.tensors.size() - 1);
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
  program_.parameters.push_back(std::move(chunk));
  return static_cast<std::int32_t>(program_.parameters.size() - 1);
}

std::int32_t Builder::add_step(std::int32_t op, tiled::Work work, const std::vector<Read>& reads,
                               const std::vector<std::int32_t>& writes, Finish finish) {
  tiled::Step step;
  step.op = op;
  step.work = std::move(work);
  for (const Read& read : reads) {
    step.reads.push_back(read.tensor);
    if (read.windows) windows_[static_cast<std::size_t>(read.tensor)].push_back(*read.windows);
  }
  step.writes = writes;
  program_.steps.push_back(std::move(step));
  finishes_.push_back(std::move(finish));
  return static_cast<std::int32_t>(program_.steps.size() - 1);
}

// ---- The second round ----

void Builder::cut_tensors() {
  for (std::size_t t = 0; t < program_.tensors.size(); ++t) {
    TiledTensor& tensor = program_.tensors[t];
    if (tensor.spread == tiled::Spread::kGrid) {
      std::vector<tiled::Window> rows, columns;
      for (const Windows& windows : windows_[t]) {
        rows.push_back(windows.y);
        columns.push_back(windows.x);
      }
      tensor.rows = tiled::AxisPartition::of(tensor.height, rows);
      tensor.columns = tiled::AxisPartition::of(tensor.width, columns);
    }
    tiled::NarrowObject& object = program_.narrow[static_cast<std::size_t>(tensor.object)];
    object.bytes = std::max(object.bytes, tensor.tile_bytes());
  }
}

void Builder::set_lifetimes() {
  for (std::size_t i = 0; i < program_.steps.size(); ++i) {
    const tiled::Step& step = program_.steps[i];
    const auto at = static_cast<std::int32_t>(i);
    for (const auto* list : {&step.reads, &step.writes}) {
      for (const std::int32_t t : *list) {
        program_.narrow[static_cast<std::size_t>(program_.tensor(t).object)].life.include(at);
      }
    }
    for (const std::int32_t object : step.narrow_used) {
      program_.narrow[static_cast<std::size_t>(object)].life.include(at);
    }
    for (const std::int32_t object : step.wide_used) program_.wide[static_cast<std::size_t>(object)].life.include(at);
  }
}

Result<tiled::TiledProgram> Builder::finish(std::int32_t& at) && {
  cut_tensors();
  for (std::size_t i = 0; i < program_.steps.size(); ++i) {
    if (finishes_[i] == nullptr) continue;
    at = program_.steps[i].op;
    REEF_RETURN_IF_ERROR(finishes_[i](*this, program_.steps[i]));
  }
  at = -1;
  set_lifetimes();
  return std::move(program_);
}

}  // namespace reef::lower
