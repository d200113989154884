// SPDX-License-Identifier: Apache-2.0
#include "passes/chip/cone_values.h"

#include <cstring>
#include <map>

#include "ir/op.h"
#include "ir/verify.h"

namespace reef::passes {
namespace {

const ir::Shape kAllValues = {1, 1, 256, 1};

std::vector<std::uint8_t> bytes_of(std::span<const float> values) {
  std::vector<std::uint8_t> bytes(values.size_bytes());
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

bool only_changes_the_type(const ir::Operator& op) { return op.type == Op::QUANTIZE || op.type == Op::DEQUANTIZE; }

// A stored number as a real one.
std::optional<float> real_number(const ir::Tensor& tensor, std::span<const std::uint8_t> data) {
  const ir::Quantization& stored = tensor.quantization;
  if (stored.scale.size() != 1 || stored.zero_point.size() > 1 || data.empty()) return {};
  std::int64_t number = 0;
  switch (tensor.type) {
    case ir::DataType::kInt8:
      number = static_cast<std::int8_t>(data[0]);
      break;
    case ir::DataType::kUInt8:
      number = data[0];
      break;
    case ir::DataType::kInt16: {
      std::int16_t value = 0;
      if (data.size() < sizeof value) return {};
      std::memcpy(&value, data.data(), sizeof value);
      number = value;
      break;
    }
    default:
      return {};
  }
  const std::int64_t zero = stored.zero_point.empty() ? 0 : stored.zero_point[0];
  return stored.scale[0] * static_cast<float>(number - zero);
}

// The cone's operators on float32 tensors of 256 elements; quantized constants become the real numbers they stand for.
class FloatTwin {
 public:
  explicit FloatTwin(const ChipGraph& edit) : edit_(edit) {}

  bool build(const Cone& cone) {
    const std::int32_t x = add_tensor(edit_.tensor(cone.x));
    twins_[cone.x] = x;
    graph().inputs = {x};
    for (const std::int32_t index : cone.ops) {
      if (!add(edit_.op(index))) return false;
    }
    graph().outputs = {twins_.at(cone.y)};
    return ir::verify(model_).ok();
  }
  const ir::Model& model() const { return model_; }

 private:
  ir::Subgraph& graph() { return model_.subgraphs[0]; }

  bool add(ir::Operator op) {
    for (std::int32_t& input : op.inputs) {
      const std::optional<std::int32_t> twin = twin_of(input);
      if (!twin) return false;
      input = *twin;
    }
    const std::int32_t y = op.outputs[0];
    if (only_changes_the_type(op)) {
      twins_[y] = op.inputs[0];
      return true;
    }
    op.outputs[0] = twins_[y] = add_tensor(edit_.tensor(y));
    op.intermediates.clear();
    graph().operators.push_back(std::move(op));
    return true;
  }

  std::optional<std::int32_t> twin_of(std::int32_t tensor) {
    if (tensor < 0) return {};
    if (const auto known = twins_.find(tensor); known != twins_.end()) return known->second;
    if (!edit_.is_constant(tensor)) return {};
    ir::Tensor constant = edit_.tensor(tensor);
    const std::span<const std::uint8_t> data = ir::constant_data(edit_.model(), constant).span();
    const auto bytes = static_cast<std::size_t>(ir::bits_per_element(constant.type) / 8);
    std::vector<std::uint8_t> one(data.begin(),
                                  data.begin() + static_cast<std::ptrdiff_t>(std::min(bytes, data.size())));
    if (constant.quantization.is_quantized()) {
      const std::optional<float> number = real_number(constant, data);
      if (!number) return {};
      one = bytes_of({&*number, 1});
    }
    ir::Tensor plain = without_scales(std::move(constant));
    plain.shape = {1, 1, 1, 1};
    const std::int32_t twin = editor_.add_constant(std::move(plain), std::move(one));
    return twin;
  }

  static ir::Tensor without_scales(ir::Tensor tensor) {
    if (tensor.quantization.is_quantized()) tensor.type = ir::DataType::kFloat32;
    tensor.quantization = {};
    tensor.has_quantization = false;
    tensor.shape_signature.clear();
    tensor.buffer = 0;
    return tensor;
  }
  std::int32_t add_tensor(ir::Tensor tensor) {
    tensor = without_scales(std::move(tensor));
    tensor.shape = kAllValues;
    return editor_.add_tensor(std::move(tensor));
  }
  static ir::Model empty_model() {
    ir::Model model;
    model.buffers.resize(1);
    model.subgraphs.resize(1);
    return model;
  }

  const ChipGraph& edit_;
  ir::Model model_ = empty_model();
  Graph editor_{model_};
  std::map<std::int32_t, std::int32_t> twins_;  // of the graph's tensors
};

}  // namespace

std::optional<std::vector<double>> real_values(const ChipGraph& edit, const Cone& cone) {
  const auto in = edit.affine(cone.x);
  FloatTwin twin(edit);
  if (!in || !edit.evaluate() || !twin.build(cone)) return {};
  std::vector<float> arguments;
  for (int q = in->lowest(); q <= in->highest(); ++q) {
    arguments.push_back(in->scale * static_cast<float>(q - in->zero_point));
  }
  const std::vector<std::vector<std::uint8_t>> inputs = {bytes_of(arguments)};
  const auto outputs = edit.evaluate()(twin.model(), inputs);
  constexpr std::size_t kBytes = 256 * sizeof(float);
  if (!outputs.ok() || outputs->size() != 1 || (*outputs)[0].bytes.size() != kBytes) return {};
  std::vector<float> results(256);
  std::memcpy(results.data(), (*outputs)[0].bytes.data(), kBytes);
  return std::vector<double>(results.begin(), results.end());
}

}  // namespace reef::passes
