// SPDX-License-Identifier: Apache-2.0
#include "rewrite/graph_edit.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "ir/describe.h"
#include "ir/excerpt.h"
#include "ops/registry.h"
#include "ops/static_ops.h"
#include "ops/table_functions.h"

namespace reef::rewrite {
namespace {

std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

// By the rules that stand with each op, where no one else judges.
std::vector<bool> fits_by_rules(const ir::Model& model, int runtime) {
  const ops::StaticOps ops(model);
  std::vector<bool> result;
  for (std::int32_t i = 0; i < ops.count(); ++i) {
    const ops::OpDef* definition = ops.definition(i);
    if (definition == nullptr) {
      result.push_back(false);
      continue;
    }
    const ops::ChipSupport& chip = definition->chip;
    const int first_runtime = ops::first_runtime(*definition, ops.op(i));
    bool fits = first_runtime != 0 && runtime >= first_runtime;
    fits = fits && (chip.newest_version == 0 || ops.op(i).version <= chip.newest_version);
    const ops::OpContext context = ops.context(i);
    for (const ops::ChipRule& rule : chip.rules) {
      fits = fits && (!rule.runtimes.contains(runtime) || rule.broken(context).empty());
    }
    result.push_back(fits);
  }
  return result;
}

template <typename T>
std::vector<std::int64_t> widen(std::span<const std::uint8_t> bytes) {
  std::vector<std::int64_t> result(bytes.size() / sizeof(T));
  for (std::size_t i = 0; i < result.size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    result[i] = value;
  }
  return result;
}

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

GraphEdit::GraphEdit(ir::Model& model, const RewriteOptions& options) : model_(&model), options_(&options) {
  for (std::int32_t i = 0; i < op_count(); ++i) origins_.push_back(i);
}

const ir::Uses& GraphEdit::uses() const {
  if (!uses_) {
    uses_.emplace(*model_);
    find_varying();
  }
  return *uses_;
}

void GraphEdit::find_varying() const {
  varies_.assign(graph().tensors.size(), 0);
  for (const std::int32_t input : graph().inputs) varies_[at(input)] = 1;
  for (std::size_t i = 0; i < varies_.size(); ++i) {
    if (graph().tensors[i].is_variable) varies_[i] = 1;
  }
  for (std::int32_t i = 0; i < op_count(); ++i) {
    const auto varies = [this](std::int32_t tensor) { return tensor >= 0 && varies_[at(tensor)] != 0; };
    // What has a state (READ_VARIABLE) or is not known (random numbers) gives something else each time.
    const ops::OpDef* definition = ops::find_op(op(i));
    const bool is_a_function = definition != nullptr && !definition->has_state;
    if (is_a_function && !std::any_of(op(i).inputs.begin(), op(i).inputs.end(), varies)) continue;
    for (const std::int32_t output : op(i).outputs) {
      if (output >= 0) varies_[at(output)] = 1;
    }
  }
}

bool GraphEdit::varies(std::int32_t tensor) const {
  uses();
  return varies_[at(tensor)] != 0;
}

std::int32_t GraphEdit::producer(std::int32_t tensor) const { return uses().producer(tensor); }
const std::vector<std::int32_t>& GraphEdit::consumers(std::int32_t tensor) const { return uses().consumers(tensor); }
bool GraphEdit::is_graph_input(std::int32_t tensor) const { return uses().is_input(tensor); }
bool GraphEdit::is_graph_output(std::int32_t tensor) const { return uses().is_output(tensor); }
bool GraphEdit::has_one_use(std::int32_t tensor) const { return uses().has_one_use(tensor); }

bool GraphEdit::is_constant(std::int32_t index) const {
  const ir::Tensor& it = tensor(index);
  if (it.is_variable || it.external_buffer != 0 || it.sparsity.has_value()) return false;
  const ir::Buffer& buffer = model_->buffers[at(it.buffer)];
  if (buffer.data.empty() && !buffer.is_empty_constant) return false;
  return !is_graph_input(index) && producer(index) < 0;
}

bool GraphEdit::is_static(std::int32_t index) const {
  const std::vector<std::int32_t>& signature = tensor(index).shape_signature;
  return std::none_of(signature.begin(), signature.end(), [](std::int32_t dim) { return dim < 0; });
}

std::optional<std::vector<std::int64_t>> GraphEdit::ints(std::int32_t index) const {
  if (!is_constant(index)) return std::nullopt;
  const std::span<const std::uint8_t> bytes = ir::constant_data(*model_, tensor(index)).span();
  if (tensor(index).type == ir::DataType::kInt32) return widen<std::int32_t>(bytes);
  if (tensor(index).type == ir::DataType::kInt64) return widen<std::int64_t>(bytes);
  return std::nullopt;
}

std::optional<Affine8> GraphEdit::affine(std::int32_t index) const {
  const ir::Tensor& it = tensor(index);
  const ir::Quantization& quantization = it.quantization;
  if (!ir::is_integer_8(it.type) || quantization.scale.size() != 1 || quantization.zero_point.size() > 1) return {};
  if (!std::holds_alternative<std::monostate>(quantization.details)) return {};
  Affine8 result{it.type, quantization.scale[0], 0};
  const std::int64_t zero_point = quantization.zero_point.empty() ? 0 : quantization.zero_point[0];
  if (!std::isnormal(result.scale) || result.scale <= 0) return {};
  if (zero_point < result.lowest() || zero_point > result.highest()) return {};
  result.zero_point = static_cast<std::int32_t>(zero_point);
  return result;
}

bool GraphEdit::same_quantization(std::int32_t a, std::int32_t b) const {
  if (tensor(a).type != tensor(b).type) return false;
  if (!tensor(a).quantization.is_quantized() && !tensor(b).quantization.is_quantized()) return true;
  const std::optional<Affine8> first = affine(a), second = affine(b);
  return first && second && *first == *second;
}

bool GraphEdit::is_sound(std::int32_t index) const {
  const ir::Operator& it = op(index);
  const ops::OpDef* definition = ops::find_op(it);
  if (definition == nullptr || !ops::check_arity(*definition, it).ok()) return false;
  // Only biases are left out of operators that rewrites deal with.
  const bool takes_bias = it.type == "CONV_2D" || it.type == "DEPTHWISE_CONV_2D" || it.type == "FULLY_CONNECTED";
  for (std::size_t i = 0; i < it.inputs.size(); ++i) {
    if (it.inputs[i] < 0 ? !(takes_bias && i == 2) : !is_static(it.inputs[i])) return false;
    // What is read later would be something else: an operator in between may change a variable.
    if (it.inputs[i] >= 0 && tensor(it.inputs[i]).is_variable) return false;
    // A tensor without elements may be read before it is written, even by the operator that writes it.
    if (it.inputs[i] >= 0 && producer(it.inputs[i]) >= index) return false;
  }
  return !it.inputs.empty() && !it.outputs.empty() &&
         std::all_of(it.outputs.begin(), it.outputs.end(),
                     [&](std::int32_t tensor) { return tensor >= 0 && is_static(tensor); });
}

bool GraphEdit::fits(std::int32_t index) const {
  if (!fits_) fits_ = options_->fits ? options_->fits(*model_) : fits_by_rules(*model_, options_->runtime);
  return at(index) < fits_->size() && (*fits_)[at(index)];
}

std::int32_t GraphEdit::add_tensor(ir::Tensor tensor) {
  model_->subgraphs[0].tensors.push_back(std::move(tensor));
  if (uses_) {
    uses_->add_tensor();
    varies_.push_back(0);
  }
  return static_cast<std::int32_t>(graph().tensors.size()) - 1;
}

std::int32_t GraphEdit::add_constant(ir::Tensor tensor, std::vector<std::uint8_t> data) {
  ir::Buffer buffer;
  buffer.is_empty_constant = data.empty();
  buffer.data = Bytes(std::move(data));
  tensor.buffer = static_cast<std::int32_t>(model_->buffers.size());
  model_->buffers.push_back(std::move(buffer));
  return add_tensor(std::move(tensor));
}

std::string GraphEdit::describe(std::int32_t index) const {
  return ir::describe_op(graph(), index, origins_[at(index)]);
}

void GraphEdit::note(std::int32_t index, std::string what, std::string place, int difference) {
  const std::string how = fmt::format("{} {}", is_trial_ ? "--rewrite" : "--no-rewrite", rewrite_->name);
  applications_.push_back({rewrite_->name, index < 0 ? -1 : origins_[at(index)], std::move(what), std::move(place),
                           difference, !is_trial_, how});
}

void GraphEdit::note_left(std::int32_t index, std::string what, std::string place, int difference, std::string how) {
  Application left{
      rewrite_->name, index < 0 ? -1 : origins_[at(index)], std::move(what), std::move(place), difference, false,
      std::move(how)};
  // A pass that changes something is followed by another, which finds the same again.
  for (const Application& known : applications_) {
    if (!known.made && known.rewrite == left.rewrite && known.op == left.op && known.what == left.what) return;
  }
  applications_.push_back(std::move(left));
}

void GraphEdit::note_change(std::int32_t index, std::string what, std::string place, int difference) {
  note(index, std::move(what), std::move(place), difference);
  ++changes_;
}

bool GraphEdit::accepts(std::int32_t index, std::string_view into, int difference) {
  if (difference <= kLargestDifference || contains(options_->enable, rewrite_->name)) return true;
  note_left(
      index,
      fmt::format("{} could become {}, but results would differ by up to {} steps", describe(index), into, difference),
      tensor(op(index).outputs[0]).name, difference, fmt::format("--rewrite {}", rewrite_->name));
  return false;
}

void GraphEdit::commit_anyway(std::int32_t index, std::vector<ir::Operator> with, std::string_view into,
                              int difference) {
  note(index, fmt::format("{} {} {}", describe(index), is_trial_ ? "could become" : "became", into),
       tensor(op(index).outputs[0]).name, difference);
  std::vector<ir::Operator>& operators = model_->subgraphs[0].operators;
  const std::int32_t origin = origins_[at(index)];
  operators.erase(operators.begin() + index);
  origins_.erase(origins_.begin() + index);
  origins_.insert(origins_.begin() + index, with.size(), origin);
  operators.insert(operators.begin() + index, std::make_move_iterator(with.begin()),
                   std::make_move_iterator(with.end()));
  forget();
  ++changes_;
}

bool GraphEdit::is_batch_of_inputs(std::int32_t tensor) const {
  const ir::Shape& first = shape(tensor);
  if (first.rank() == 0 || first[0] == 1) return false;
  return std::any_of(graph().inputs.begin(), graph().inputs.end(),
                     [&](std::int32_t input) { return shape(input).rank() > 1 && shape(input)[0] == first[0]; });
}

bool GraphEdit::commit(std::int32_t index, std::vector<ir::Operator> with, std::string_view into, int difference,
                       std::string_view except) {
  std::optional<std::vector<bool>> known = std::move(fits_);
  std::vector<bool> judged;
  if (options_->fits) {
    ir::Model alone = ir::excerpt(*model_, with);
    for (ir::Tensor& tensor : alone.subgraphs[0].tensors) tensor.shape_signature.clear();  // who made them has looked
    judged = options_->fits(alone);
    for (std::size_t i = 0; i < with.size(); ++i) {
      if (with[i].type == except || (i < judged.size() && judged[i])) continue;
      fits_ = std::move(known);
      return false;
    }
  }
  commit_anyway(index, std::move(with), into, difference);
  if (!known || judged.empty()) return true;
  // The others are as they were: an operator's verdict depends on its own tensors alone.
  known->erase(known->begin() + index);
  known->insert(known->begin() + index, judged.begin(), judged.end());
  fits_ = std::move(known);
  return true;
}

void GraphEdit::replace_uses(std::int32_t from, std::int32_t to) {
  ir::Subgraph& graph = change().subgraphs[0];
  for (ir::Operator& each : graph.operators) std::replace(each.inputs.begin(), each.inputs.end(), from, to);
  std::replace(graph.outputs.begin(), graph.outputs.end(), from, to);
  for (ir::Signature& signature : model_->signatures) {
    if (signature.subgraph != 0) continue;
    for (ir::SignatureTensor& output : signature.outputs) {
      if (output.tensor == from) output.tensor = to;
    }
  }
}

void GraphEdit::forget() {
  uses_.reset();
  fits_.reset();
}

ir::Model& GraphEdit::change() {
  forget();
  return *model_;
}

void GraphEdit::begin(const RewriteInfo& rewrite, bool is_trial) {
  rewrite_ = &rewrite;
  is_trial_ = is_trial;
}

std::vector<Application> GraphEdit::take_applications() { return std::move(applications_); }

}  // namespace reef::rewrite
