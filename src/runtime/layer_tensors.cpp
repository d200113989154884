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
  // Chip to TFLite: signed elements have their top bit flipped.
  static std::uint8_t code(const ir::Tensor& tensor, std::int32_t value) {
    return static_cast<std::uint8_t>(value ^ (tensor.type == ir::DataType::kInt8 ? 0x80 : 0));
  }

  void fill(LayerTensor& result) {
    const ir::Tensor& tensor = network_.tensor(result.tensor);
    const auto& seen = follower_->tensors();
    const auto own = seen.find(result.tensor);
    if (!ir::is_integer_8(tensor.type)) {
      result.reason = "its elements are not 8 bits wide";
      return;
    }
    if (maps_.is_move(result.op)) return put_together(result);
    if (own == seen.end()) {
      result.state = LayerTensor::State::kNotOnChip;
      result.reason = "no instruction computes it by itself";
      return;
    }
    const auto elements = static_cast<std::int64_t>(own->second.values.size());
    if (!own->second.problem.empty()) {
      result.reason = own->second.problem;
    } else if (own->second.seen < elements) {
      result.reason = fmt::format("{} of its {} elements were not found", elements - own->second.seen, elements);
    } else {
      result.state = LayerTensor::State::kComputed;
      for (const std::int16_t value : own->second.values) result.bytes.push_back(code(tensor, value));
    }
  }

  void put_together(LayerTensor& result) {
    const ir::Tensor& tensor = network_.tensor(result.tensor);
    const auto origins = maps_.origins(result.tensor);
    if (!origins.ok()) {
      result.reason = origins.status().message();
      return;
    }
    const auto padding = network_.chip(result.tensor);
    std::vector<std::uint8_t> bytes;
    bool is_all_own = true;
    for (const Element& element : **origins) {
      is_all_own = is_all_own && element.tensor == result.tensor;
      if (element.tensor < 0) {
        if (!padding) {
          result.reason = "it has padding of unknown value";
          return;
        }
        bytes.push_back(code(tensor, padding->zero_point));
        continue;
      }
      const auto part = follower_->tensors().find(element.tensor);
      if (part == follower_->tensors().end() || !part->second.problem.empty()) {
        const std::string& name = network_.tensor(element.tensor).name;
        result.reason = part == follower_->tensors().end()
                            ? fmt::format("'{}', which it is made of, is no result of an instruction", name)
                            : fmt::format("of '{}', which it is made of: {}", name, part->second.problem);
        return;
      }
      const std::int16_t value = part->second.values[static_cast<std::size_t>(element.index)];
      if (value == SeenTensor::kNotSeen) {
        result.reason = fmt::format("element {} of '{}', which it is made of, was not found", element.index,
                                    network_.tensor(element.tensor).name);
        return;
      }
      bytes.push_back(code(tensor, value));
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
                                                           std::int64_t max_steps) {
  auto explained = retarget::explain(compiled, source, max_steps);
  if (!explained.ok()) return explained.status().in("the compiled model was not made from this source");
  auto tensors = std::make_unique<Tensors>(std::move(explained).value());
  REEF_RETURN_IF_ERROR(tensors->prepare());
  return std::unique_ptr<LayerTensors>(std::move(tensors));
}

}  // namespace reef::runtime
