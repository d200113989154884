// SPDX-License-Identifier: Apache-2.0
#include "runtime/layer_tensors.h"

#include "retarget/open_template.h"
#include "runtime/element_map.h"
#include "runtime/layer_follower.h"
#include "runtime/layer_rules.h"

namespace reef::runtime {
namespace {

class Tensors : public LayerTensors {
 public:
  explicit Tensors(std::unique_ptr<retarget::Explanation> explained)
      : explained_(std::move(explained)), network_(*explained_->network), maps_(network_) {}

  Status prepare() {
    REEF_ASSIGN_OR_RETURN(Rules rules, Rules::create(*explained_, maps_));
    rules_ = std::make_unique<Rules>(std::move(rules));
    follower_ = std::make_unique<LayerFollower>(*rules_);
    return ok_status();
  }

  device::Observer& observer() override { return *follower_; }

  std::vector<LayerTensor> tensors() override {
    std::vector<LayerTensor> result;
    for (const std::int32_t k : network_.chip_ops()) {
      for (const std::int32_t t : network_.op(k).outputs) {
        if (t < 0) continue;
        LayerTensor& tensor = result.emplace_back();
        tensor.tensor = t;
        tensor.op = k;
        fill(tensor);
      }
    }
    return result;
  }

 private:
  // Chip to TFLite and back: signed elements have their top bit flipped.
  static std::uint8_t code(const ir::Tensor& tensor, std::int32_t value) {
    return static_cast<std::uint8_t>(value ^ (tensor.type == ir::DataType::kInt8 ? 0x80 : 0));
  }

  // The bytes that the chip returned or was given for a tensor; null if it is neither input nor output.
  static const std::vector<std::uint8_t>* find(const std::vector<std::int32_t>& tensors, std::int32_t tensor,
                                               const std::vector<std::vector<std::uint8_t>>& bytes) {
    for (std::size_t i = 0; i < std::min(tensors.size(), bytes.size()); ++i) {
      if (tensors[i] == tensor) return &bytes[i];
    }
    return nullptr;
  }

  void fill(LayerTensor& result) {
    const ir::Tensor& tensor = network_.tensor(result.tensor);
    if (!ir::is_integer_8(tensor.type)) {
      result.reason = "its elements are not 8 bits wide";
    } else if (maps_.is_move(result.op)) {
      put_together(result);
    } else {
      fill_computed(result);
    }
    const auto* returned = find(explained_->compiled.output_tensors, result.tensor, follower_->outputs());
    if (returned == nullptr) return;
    if (!result.has_bytes()) {
      result.state = LayerTensor::State::kReturned;
      result.bytes = *returned;
    } else if (result.bytes != *returned) {
      result.state = LayerTensor::State::kNotLocated;
      result.reason = "what was found of it is not what the chip returned";
    }
  }

  void fill_computed(LayerTensor& result) {
    const ir::Tensor& tensor = network_.tensor(result.tensor);
    const auto& seen = follower_->tensors();
    const auto own = seen.find(result.tensor);
    if (own == seen.end()) {
      result.state = LayerTensor::State::kNotOnChip;
      result.reason = "no tensor instruction has it as its result";
      return;
    }
    if (!own->second.problem.empty()) {
      result.reason = own->second.problem;
      return;
    }
    for (std::size_t i = 0; i < own->second.values.size(); ++i) {
      const auto value = value_of({result.tensor, static_cast<std::int32_t>(i)});
      if (value.ok()) result.bytes.push_back(code(tensor, *value));
    }
    if (result.bytes.size() == own->second.values.size()) {
      result.state = LayerTensor::State::kComputed;
      return;
    }
    result.reason = fmt::format("{} of its {} elements were found{}{}", result.bytes.size(), own->second.values.size(),
                                own->second.left_out.empty() ? "" : "; left out: ", own->second.left_out);
    result.bytes.clear();
  }

  // An element as the chip holds it.
  Result<std::int32_t> value_of(const Element& element) {
    const ir::Tensor& tensor = network_.tensor(element.tensor);
    const auto index = static_cast<std::size_t>(element.index);
    const auto* given = find(explained_->compiled.input_tensors, element.tensor, follower_->inputs());
    if (given != nullptr && index < given->size()) return std::int32_t{code(tensor, (*given)[index])};
    const auto part = follower_->tensors().find(element.tensor);
    REEF_REQUIRE(part != follower_->tensors().end(), "'{}' is no result of an instruction", tensor.name);
    REEF_REQUIRE(part->second.problem.empty(), "'{}': {}", tensor.name, part->second.problem);
    const SeenTensor& seen = part->second;
    if (seen.values[index] != SeenTensor::kNotSeen) return std::int32_t{seen.values[index]};
    REEF_ASSIGN_OR_RETURN(const std::vector<bool>* constants, maps_.constants(element.tensor));
    REEF_REQUIRE((*constants)[index] && seen.constant >= 0, "element {} of '{}' was not found", index, tensor.name);
    return std::int32_t{seen.constant};
  }

  void put_together(LayerTensor& result) {
    const ir::Tensor& tensor = network_.tensor(result.tensor);
    const auto origins = maps_.origins(result.tensor);
    const auto padding = network_.chip(result.tensor);
    if (!origins.ok() || !padding) {
      result.reason = origins.ok() ? "it has no quantization" : origins.status().message();
      return;
    }
    std::vector<std::uint8_t> bytes;
    bool is_all_own = true;
    for (const Element& element : **origins) {
      is_all_own = is_all_own && element.tensor == result.tensor;
      const Result<std::int32_t> value = element.tensor < 0 ? padding->zero_point : value_of(element);
      if (!value.ok()) {
        result.reason = value.status().message();
        return;
      }
      bytes.push_back(code(tensor, *value));
    }
    result.bytes = std::move(bytes);
    result.state = is_all_own ? LayerTensor::State::kComputed : LayerTensor::State::kMoved;
  }

  std::unique_ptr<retarget::Explanation> explained_;
  const retarget::Network& network_;
  ElementMaps maps_;
  std::unique_ptr<Rules> rules_;
  std::unique_ptr<LayerFollower> follower_;
};

}  // namespace

Result<std::unique_ptr<LayerTensors>> LayerTensors::create(const ir::Model& compiled, const ir::Model& source,
                                                           std::int64_t max_steps, const Budget& budget) {
  auto explained = retarget::explain(compiled, source, max_steps, budget);
  if (!explained.ok()) return explained.status().in("the compiled model was not made from this source");
  auto tensors = std::make_unique<Tensors>(std::move(explained).value());
  REEF_RETURN_IF_ERROR(tensors->prepare());
  return std::unique_ptr<LayerTensors>(std::move(tensors));
}

}  // namespace reef::runtime
