// SPDX-License-Identifier: Apache-2.0
// Where the tensors of a subgraph live: constants in the model's own bytes, variables and tensors of changing shape in
// memory of their own, all others in one planned arena.
#include <algorithm>
#include <cstring>
#include <limits>

#include "execute/cpu/subgraph_runner.h"
#include "execute/cpu/tensor_places.h"

namespace reef::cpu {
namespace {

constexpr std::size_t kConstantAlignment = 8;  // bytes; kernels read up to 8-byte elements in place
constexpr std::int64_t kResourceHandleBytes = 4;

// The value of a variable before the first invocation: zero, which for int8 is the zero point. TFLite takes the raw
// number 0 for all other types.
void clear_variable(const ops::Tensor& tensor, Block& memory) {
  const ir::Quantization& q = *tensor.quantization;
  const bool has_zero_point = tensor.type == ir::DataType::kInt8 && q.scale.size() == 1 && q.zero_point.size() == 1;
  std::memset(memory.data(), has_zero_point ? static_cast<int>(q.zero_point[0] & 0xFF) : 0,
              static_cast<std::size_t>(memory.bytes()));
}

bool may_be_overwritten(const SubgraphRunner::OpState& state, std::size_t input) {
  if (state.shape_deferred || state.outputs.empty() || input >= 32 || !(state.elementwise >> input & 1)) return false;
  const ops::Tensor& from = *state.inputs[input];
  const ops::Tensor& to = *state.outputs[0];
  const int bits = ir::bits_per_element(from.type);
  return bits >= 8 && bits == ir::bits_per_element(to.type) && from.elements() == to.elements();
}

}  // namespace

std::int64_t storage_bytes(const ops::Tensor& tensor) {
  if (tensor.type == ir::DataType::kResource) return tensor.shape.elements() * kResourceHandleBytes;
  return ir::byte_size(tensor.shape, tensor.type).value_or(0);
}

Status check_size(const ops::Tensor& tensor) {
  REEF_REQUIRE(tensor.shape.is_usable(), "tensor '{}' would have shape {}; that is not a usable size", tensor.name,
               tensor.shape.to_string());
  return ok_status();
}

Status SubgraphRunner::bind_constant(std::size_t i) {
  const Bytes& data = constant_data(model_, graph_.tensors[i]);
  ops::Tensor& tensor = tensors_[i];
  if (graph_.tensors[i].sparsity) {
    return unsupported(
        "constant '{}' is stored sparsely, which this version does not run; convert the model without sparsity",
        tensor.name);
  }
  tensor.is_constant = true;
  tensor.bytes = ir::bits_per_element(tensor.type) == 0 ? data.size() : static_cast<std::size_t>(storage_bytes(tensor));
  REEF_REQUIRE(tensor.bytes <= data.size(), "constant '{}' needs {} bytes, but its buffer has {}", tensor.name,
               tensor.bytes, data.size());
  if (reinterpret_cast<std::uintptr_t>(data.data()) % kConstantAlignment == 0) {
    // Kernels see constants through const access only.
    tensor.data = reinterpret_cast<std::byte*>(const_cast<std::uint8_t*>(data.data()));
    return ok_status();
  }
  own_memory_[i] = std::make_unique<Block>();
  REEF_RETURN_IF_ERROR(own_memory_[i]->allocate(budget_, static_cast<std::int64_t>(tensor.bytes)));
  std::memcpy(own_memory_[i]->data(), data.data(), tensor.bytes);
  tensor.data = own_memory_[i]->data();
  return ok_status();
}

// Back to what the model says, with the input shapes asked for. Variables keep their values if their size is the same.
Status SubgraphRunner::reset_tensors() {
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    ops::Tensor& tensor = tensors_[i];
    tensor.shape = graph_.tensors[i].shape;
    tensor.data = nullptr;
    tensor.bytes = 0;
    tensor.is_constant = false;
    dynamic_[i] = false;
    REEF_RETURN_IF_ERROR(check_size(tensor));
    if (tensor.is_variable) {
      const std::int64_t bytes = storage_bytes(tensor);
      if (!own_memory_[i] || own_memory_[i]->bytes() != bytes) {
        own_memory_[i] = std::make_unique<Block>();
        REEF_RETURN_IF_ERROR(own_memory_[i]->allocate(budget_, bytes));
        clear_variable(tensor, *own_memory_[i]);
      }
      tensor.data = own_memory_[i]->data();
      tensor.bytes = static_cast<std::size_t>(bytes);
      continue;
    }
    own_memory_[i].reset();
    if (graph_.tensors[i].external_buffer != 0) {
      return unsupported("constant '{}' is stored in another file, which this version does not read", tensor.name);
    }
    if (!constant_data(model_, graph_.tensors[i]).empty()) REEF_RETURN_IF_ERROR(bind_constant(i));
  }
  for (std::size_t i = 0; i < graph_.inputs.size(); ++i) {
    tensors_[index_of(graph_.inputs[i])].shape = input_shapes_[i];
  }
  return ok_status();
}

// Returns for every tensor the number of the one in whose place it lies. Ops that would only copy a tensor onto itself
// are marked.
std::vector<std::int32_t> SubgraphRunner::share_memory() {
  std::vector<PlacedTensor> tensors(tensors_.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const bool is_planned = tensors_[i].data == nullptr && !dynamic_[i] && writer_[i] != kSeveral;
    tensors[i] = {storage_bytes(tensors_[i]), is_planned && may_join_ops(), false, is_output_[i]};
  }
  for (const std::int32_t input : graph_.inputs) tensors[index_of(input)].is_input = true;
  std::vector<PlacedOp> ops(ops_.size());
  for (std::size_t k = 0; k < ops.size(); ++k) {
    const OpState& state = ops_[k];
    if (state.folded || state.is_done_elsewhere) continue;
    for (std::size_t i = 0; i < state.inputs.size(); ++i) {
      if (state.inputs[i] == nullptr) continue;
      ops[k].reads.push_back(static_cast<std::int32_t>(number_of(state.inputs[i])));
      if (may_be_overwritten(state, i)) ops[k].may_become.push_back(ops[k].reads.back());
    }
    for (const ops::Tensor* output : state.outputs)
      ops[k].writes.push_back(static_cast<std::int32_t>(number_of(output)));
    ops[k].is_view = state.def->same_bytes && !state.shape_deferred;
  }
  const TensorPlaces places = share_places(tensors, ops);
  for (std::size_t k = 0; k < ops.size(); ++k)
    ops_[k].is_done_elsewhere = ops_[k].is_done_elsewhere || places.is_free[k];
  return places.place;
}

// Lays out every tensor of known shape, and each op's scratch memory, in one arena. Graph inputs and outputs live from
// before the first op to after the last, so that the caller can refill or read them at leisure; if all tensors are
// kept, so do results of ops.
Status SubgraphRunner::plan_memory() {
  const auto last_step = static_cast<std::int32_t>(ops_.size());
  const std::vector<std::int32_t> places = share_memory();
  std::vector<ArenaItem> items(tensors_.size() + ops_.size());
  std::vector<bool> used(tensors_.size(), false);
  const auto touch = [&](const ops::Tensor* tensor, std::int32_t step) {
    if (tensor == nullptr) return;
    const std::size_t i = index_of(places[number_of(tensor)]);
    if (tensor->data != nullptr || dynamic_[number_of(tensor)]) return;
    if (!used[i]) items[i] = {storage_bytes(*tensor), step, step};
    items[i].last = std::max(items[i].last, step);
    used[i] = used[number_of(tensor)] = true;
  };
  for (const std::int32_t input : graph_.inputs) {
    touch(&tensors_[index_of(input)], -1);
    touch(&tensors_[index_of(input)], last_step);
  }
  std::int64_t total = 0;
  for (std::size_t k = 0; k < ops_.size(); ++k) {
    const auto step = static_cast<std::int32_t>(k);
    if (ops_[k].folded || ops_[k].is_done_elsewhere) continue;
    for (const ops::Tensor* tensor : ops_[k].outputs) touch(tensor, step);
    for (const ops::Tensor* tensor : ops_[k].inputs) touch(tensor, step);
    if (options_.keeps_all_tensors) {
      for (const ops::Tensor* tensor : ops_[k].outputs) touch(tensor, last_step);
    }
    if (!ops_[k].shape_deferred) items[tensors_.size() + k] = {ops_[k].scratch_bytes, step, step};
  }
  for (const std::int32_t output : graph_.outputs) touch(&tensors_[index_of(output)], last_step);
  for (const ArenaItem& item : items) {
    if (item.bytes > std::numeric_limits<std::int64_t>::max() / 4 - total) {
      return make_error(StatusCode::kResourceExhausted, "the tensors need more memory than can be counted");
    }
    total += item.bytes + kArenaAlignment;
  }
  const ArenaPlan plan = plan_arena(items);
  largest_live_set_bytes_ = plan.largest_live_set_bytes;
  REEF_RETURN_IF_ERROR(arena_.allocate(budget_, plan.bytes).in("planning the arena"));
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (!used[i]) continue;
    tensors_[i].data = arena_.data() + plan.offsets[index_of(places[i])];
    tensors_[i].bytes = static_cast<std::size_t>(items[index_of(places[i])].bytes);
  }
  for (std::size_t k = 0; k < ops_.size(); ++k) {
    ops_[k].scratch = arena_.data() + plan.offsets[tensors_.size() + k];
  }
  return ok_status();
}

Status SubgraphRunner::resize_output(ops::Tensor& tensor, const ir::Shape& shape) {
  const auto i = static_cast<std::size_t>(&tensor - tensors_.data());
  if (!dynamic_[i]) {
    if (tensor.shape == shape) return ok_status();
    return internal_error("tensor '{}' was planned with shape {} and cannot become {}", tensor.name,
                          tensor.shape.to_string(), shape.to_string());
  }
  tensor.shape = shape;
  REEF_RETURN_IF_ERROR(check_size(tensor));
  const std::int64_t bytes = storage_bytes(tensor);
  if (own_memory_[i]->data() == nullptr || own_memory_[i]->bytes() != bytes) {
    REEF_RETURN_IF_ERROR(own_memory_[i]->allocate(budget_, bytes));
  }
  tensor.data = own_memory_[i]->data();
  tensor.bytes = static_cast<std::size_t>(bytes);
  return ok_status();
}

void SubgraphRunner::reset_variables() {
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (tensors_[i].is_variable && own_memory_[i] && own_memory_[i]->data() != nullptr) {
      clear_variable(tensors_[i], *own_memory_[i]);
    }
  }
}

}  // namespace reef::cpu
