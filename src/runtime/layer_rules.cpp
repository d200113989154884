// SPDX-License-Identifier: Apache-2.0
#include "runtime/layer_rules.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <set>

#include "formats/darwinn/parameters/layer_geometry.h"
#include "ir/op.h"
#include "ops/window.h"

namespace reef::runtime {
namespace {

using retarget::Choice;
using retarget::Label;
using retarget::LayerChunk;
using retarget::Network;
using retarget::Origin;

constexpr std::int64_t kLayerRulesMaxElements = std::int64_t{1} << 30;
constexpr Op kLstm = Op::UNIDIRECTIONAL_SEQUENCE_LSTM;

// Steps in between whose results belong to one element of the output each.
bool is_step_by_element(const ir::Operator& op, int stage) {
  if (op.type == Op::SOFTMAX) return stage == retarget::kSoftmaxShifted || stage == retarget::kSoftmaxExp;
  // Products with a recurrent network's former state belong to the same step of time as the rest of the sum.
  if (op.type == kLstm) return stage < retarget::kLstmGateRecurrent || stage >= retarget::kLstmGate;
  return is_elementwise(op);
}

// Where each byte of a layer's chunk stands in LayerParameters::weights.
std::vector<std::int32_t> weight_places_of(const darwinn::LayerParameters& layer, std::uint32_t bytes) {
  const darwinn::LayerShape& shape = layer.shape;
  const darwinn::LayerGeometry geometry(shape, layer.presence(), layer.order);
  const bool depthwise = shape.kind == darwinn::LayerKind::kDepthwise;
  std::vector<std::int32_t> places(bytes, -1);
  const auto set = [&](std::int64_t offset, std::int64_t index) {
    if (offset < bytes) places[at(offset)] = static_cast<std::int32_t>(index);
  };
  for (std::int32_t out = 0; out < shape.output_channels; ++out) {
    for (std::int32_t ky = 0; ky < shape.kernel_height; ++ky) {
      for (std::int32_t kx = 0; kx < shape.kernel_width; ++kx) {
        const std::int64_t position = std::int64_t{ky} * shape.kernel_width + kx;
        if (depthwise) {
          set(geometry.weight_offset(out, ky, kx, out), position * shape.output_channels + out);
          continue;
        }
        const std::int64_t kernel = std::int64_t{shape.kernel_height} * shape.kernel_width;
        for (std::int32_t in = 0; in < shape.input_channels; ++in) {
          set(geometry.weight_offset(out, ky, kx, in), (out * kernel + position) * shape.input_channels + in);
        }
      }
    }
  }
  return places;
}

Result<Geometry> geometry_of(const Network& network, const ir::Operator& op, std::int64_t kernel_height,
                             std::int64_t kernel_width) {
  const ir::Shape &in = network.tensor(op.inputs[0]).shape, &out = network.tensor(op.outputs[0]).shape;
  REEF_REQUIRE(in.rank() == 4 && out.rank() == 4, "it has no height and width");
  Geometry g;
  g.in_height = in[1], g.in_width = in[2], g.in_depth = in[3];
  g.out_height = out[1], g.out_width = out[2], g.out_depth = out[3];
  g.kernel_height = kernel_height, g.kernel_width = kernel_width;
  g.stride_h = op.attributes.get_int("stride_h", 1), g.stride_w = op.attributes.get_int("stride_w", 1);
  g.dilation_h = std::max<std::int64_t>(op.attributes.get_int("dilation_h_factor", 1), 1);
  g.dilation_w = std::max<std::int64_t>(op.attributes.get_int("dilation_w_factor", 1), 1);
  const std::string_view padding = op.attributes.get_enum("padding");
  REEF_ASSIGN_OR_RETURN(const auto y, ops::window_axis(g.in_height, kernel_height, g.stride_h, g.dilation_h, padding));
  REEF_ASSIGN_OR_RETURN(const auto x, ops::window_axis(g.in_width, kernel_width, g.stride_w, g.dilation_w, padding));
  g.pad_top = y.pad_before, g.pad_left = x.pad_before;
  return g;
}

// MEAN: the result's place for each place of the input.
Result<std::vector<std::int32_t>> reduced_places(const Network& network, const ir::Operator& op) {
  const ir::Shape& shape = network.tensor(op.inputs[0]).shape;
  REEF_REQUIRE(op.inputs.size() == 2 && network.is_constant(op.inputs[1]), "its axes are not constant");
  const Bytes& axes = ir::constant_data(network.model(), network.tensor(op.inputs[1]));
  std::set<int> is_reduced;
  for (std::size_t k = 0; k + 4 <= axes.size(); k += 4) {
    std::int32_t axis = 0;
    std::memcpy(&axis, axes.data() + k, 4);
    is_reduced.insert(axis < 0 ? axis + shape.rank() : axis);
  }
  std::vector<std::int32_t> places;
  for (std::int64_t i = 0; i < shape.elements(); ++i) {
    std::int64_t rest = i, stride = 1, place = 0;
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      if (!is_reduced.contains(axis)) {
        place += rest % shape[axis] * stride;
        stride *= shape[axis];
      }
      rest /= shape[axis];
    }
    places.push_back(static_cast<std::int32_t>(place));
  }
  return places;
}

}  // namespace

// Makes the rules, one for each tensor instruction.
class RuleMaker {
 public:
  RuleMaker(const retarget::Explanation& explained, ElementMaps& maps)
      : explained_(explained), network_(*explained.network), maps_(maps) {}

  Result<Rules> run() {
    REEF_ASSIGN_OR_RETURN(rules_.cached_, new_range(explained_.compiled.blob(Origin::kCached).size()));
    REEF_ASSIGN_OR_RETURN(rules_.streamed_, new_range(explained_.compiled.blob(Origin::kStreamed).size()));
    for (const std::int32_t t : explained_.compiled.input_tensors) {
      TagRange range;
      if (ir::is_integer_8(network_.tensor(t).type)) {
        const std::int64_t elements = network_.tensor(t).shape.checked_elements().value_or(kLayerRulesMaxElements);
        REEF_REQUIRE(elements < kLayerRulesMaxElements, "the input '{}' has too many elements to be followed",
                     network_.tensor(t).name);
        REEF_ASSIGN_OR_RETURN(range, range_of(Label::tensor(t), elements));
      }
      rules_.inputs_.push_back(range);
    }
    // First the ranges of all results: an instruction may read what one behind it in the list computes.
    const auto& choices = explained_.matching.choices;
    for (const Choice& choice : choices) {
      Rule& rule = rules_.rules_.emplace_back();
      REEF_RETURN_IF_ERROR(begin(choice, rule));
    }
    rules_.by_instruction_.assign(explained_.compiled.execution.program.size(), -1);
    for (std::size_t i = 0; i < choices.size(); ++i) {
      rules_.by_instruction_[explained_.compiled.ops[i].instruction] = static_cast<std::int32_t>(i);
      Rule& rule = rules_.rules_[i];
      const Status status = complete(choices[i], rule);
      if (status.ok()) continue;
      rule.kind = Rule::Kind::kUnknown;
      rule.reason = status.message();
    }
    return std::move(rules_);
  }

 private:
  Result<TagRange> new_range(std::uint64_t size) {
    REEF_REQUIRE(size < std::numeric_limits<Tag>::max() - next_, "the model has too many elements to be followed");
    const TagRange range{next_, static_cast<std::uint32_t>(size), nullptr};
    next_ += range.size;
    return range;
  }

  // One more tag for constants, which is no part of the range.
  Result<TagRange> range_of(const Label& label, std::int64_t elements) {
    const auto known = ranges_.find(label);
    if (known != ranges_.end()) return known->second;
    REEF_ASSIGN_OR_RETURN(TagRange range, new_range(static_cast<std::uint64_t>(elements) + 1));
    --range.size;
    ranges_[label] = range;
    return range;
  }

  // Kind and range of the results.
  Status begin(const Choice& choice, Rule& rule) {
    rule.op = choice.op;
    if (choice.op < 0) {
      rule.kind = Rule::Kind::kCopy;
      return ok_status();
    }
    const ir::Operator& op = network_.op(choice.op);
    if (choice.label.size() != 1) {
      rule.reason = "its instructions compute several things at once";
      return ok_status();
    }
    const Label label = *choice.label.begin();
    if (label.kind == Label::Kind::kTensor) rule.tensor = label.number;
    const bool is_step = label.kind == Label::Kind::kStage && is_step_by_element(op, label.stage);
    if (rule.tensor < 0 && !is_step) {
      rule.reason = fmt::format("'{}' is a step in between", choice.role);
      return ok_status();
    }
    const ir::Tensor& tensor = network_.tensor(rule.tensor < 0 ? op.outputs[0] : rule.tensor);
    if (!ir::is_integer_8(tensor.type)) {
      rule.reason = "its elements are not 8 bits wide";
      return ok_status();
    }
    rule.elements = tensor.shape.checked_elements().value_or(kLayerRulesMaxElements);
    REEF_REQUIRE(rule.elements < kLayerRulesMaxElements, "'{}' has too many elements to be followed", tensor.name);
    REEF_ASSIGN_OR_RETURN(const TagRange range, range_of(label, rule.elements));
    rule.base = range.base;
    // An operand that is only laid out in another way has been computed before.
    if (std::find(op.inputs.begin(), op.inputs.end(), rule.tensor) != op.inputs.end()) rule.tensor = -1;
    return ok_status();
  }

  Status complete(const Choice& choice, Rule& rule) {
    if (choice.op < 0) return ok_status();
    if (rule.base == 0) return unsupported("{}", rule.reason);
    const ir::Operator& op = network_.op(choice.op);
    if (choice.chunk >= 0 && explained_.matching.chunks[at(choice.chunk)].parameters) {
      return complete_layer(choice, op, rule);
    }
    if (op.type == Op::AVERAGE_POOL_2D || op.type == Op::MAX_POOL_2D || op.type == Op::MEAN)
      return complete_window(op, rule);
    if (is_elementwise(op) || op.type == Op::SOFTMAX || op.type == kLstm) return complete_elements(choice.op, op, rule);
    return unsupported("for '{}' it is not known which result is which element", choice.role);
  }

  Result<OperandPlaces> operand(std::int32_t whole) {
    OperandPlaces operand;
    REEF_ASSIGN_OR_RETURN(const std::vector<Element>* origins, maps_.origins(whole));
    std::set<std::int32_t> parts;
    std::int32_t last = -1;
    for (const Element& element : *origins) {
      if (element.tensor == last || element.tensor < 0) continue;
      last = element.tensor;
      parts.insert(last);
    }
    for (const std::int32_t part : parts) {
      const auto range = ranges_.find(Label::tensor(part));
      if (range == ranges_.end()) continue;
      operand.ranges.push_back(range->second);
      operand.constants.push_back(range->second.base + range->second.size);
      if (part == whole) continue;
      REEF_ASSIGN_OR_RETURN(operand.ranges.back().places, maps_.places(part, whole));
    }
    return operand;
  }

  Status complete_layer(const Choice& choice, const ir::Operator& op, Rule& rule) {
    const LayerChunk& chunk = explained_.matching.chunks[at(choice.chunk)];
    rule.shape = chunk.parameters->shape;
    const TagRange& blob = chunk.range.blob == Origin::kCached ? rules_.cached_ : rules_.streamed_;
    rule.weights = {blob.base + chunk.range.offset, chunk.range.bytes, nullptr};
    auto& places = weight_places_[chunk.parameters.get()];
    if (!places) {
      places =
          std::make_shared<const std::vector<std::int32_t>>(weight_places_of(*chunk.parameters, chunk.range.bytes));
    }
    rule.weight_places = places;
    if (rule.shape.kind != darwinn::LayerKind::kFullyConnected) {
      REEF_ASSIGN_OR_RETURN(rule.geometry,
                            geometry_of(network_, op, rule.shape.kernel_height, rule.shape.kernel_width));
    }
    REEF_ASSIGN_OR_RETURN(OperandPlaces input, operand(op.inputs[0]));
    rule.operands.push_back(std::move(input));
    REEF_ASSIGN_OR_RETURN(rule.constants, maps_.constants(op.inputs[0]));
    rule.kind = Rule::Kind::kLayer;
    return ok_status();
  }

  Status complete_window(const ir::Operator& op, Rule& rule) {
    if (op.type == Op::MEAN) {
      REEF_ASSIGN_OR_RETURN(rule.reduced, reduced_places(network_, op));
    } else {
      REEF_ASSIGN_OR_RETURN(rule.geometry, geometry_of(network_, op, op.attributes.get_int("filter_height"),
                                                       op.attributes.get_int("filter_width")));
    }
    REEF_ASSIGN_OR_RETURN(OperandPlaces input, operand(op.inputs[0]));
    rule.operands.push_back(std::move(input));
    rule.kind = Rule::Kind::kWindow;
    return ok_status();
  }

  // Operands of the result's shape; for an operator that also moves, places are those of the result.
  Status complete_elements(std::int32_t k, const ir::Operator& op, Rule& rule) {
    rule.kind = Rule::Kind::kElements;
    for (const auto& [label, range] : ranges_) {
      if (label.kind == Label::Kind::kStage && label.number == k) rule.operands.push_back({{range}, {}});
    }
    if (op.type == Op::CONCATENATION) return complete_concatenation(k, op, rule);
    const ir::Shape& shape = network_.tensor(op.outputs[0]).shape;
    for (const std::int32_t input : op.inputs) {
      if (input < 0 || network_.is_constant(input) || !(network_.tensor(input).shape == shape)) continue;
      if (op.type == kLstm) break;  // only its layers read tensors
      REEF_ASSIGN_OR_RETURN(OperandPlaces places, operand(input));
      rule.operands.push_back(std::move(places));
    }
    REEF_REQUIRE(!rule.operands.empty(), "none of its operands has the shape of its result");
    return ok_status();
  }

  Status complete_concatenation(std::int32_t k, const ir::Operator& op, Rule& rule) {
    REEF_ASSIGN_OR_RETURN(const std::vector<Element> sources, maps_.sources(k, 0));
    for (const std::int32_t input : op.inputs) {
      if (input < 0 || network_.is_constant(input)) continue;
      REEF_ASSIGN_OR_RETURN(const std::vector<Element>* origins, maps_.origins(input));
      std::map<std::int32_t, std::vector<std::int32_t>> by_part;
      for (std::size_t i = 0; i < sources.size(); ++i) {
        if (sources[i].tensor != input) continue;
        const Element& origin = (*origins)[at(sources[i].index)];
        if (origin.tensor < 0) continue;
        auto& places = by_part[origin.tensor];
        places.resize(static_cast<std::size_t>(network_.tensor(origin.tensor).shape.elements()), ElementMaps::kNowhere);
        std::int32_t& place = places[at(origin.index)];
        place = place == ElementMaps::kNowhere ? static_cast<std::int32_t>(i) : ElementMaps::kSeveralPlaces;
      }
      OperandPlaces operand;
      for (auto& [part, places] : by_part) {
        const auto range = ranges_.find(Label::tensor(part));
        if (range == ranges_.end()) continue;
        rules_.kept_.push_back(std::make_unique<const std::vector<std::int32_t>>(std::move(places)));
        operand.ranges.push_back({range->second.base, range->second.size, rules_.kept_.back().get()});
      }
      rule.operands.push_back(std::move(operand));
    }
    return ok_status();
  }

  const retarget::Explanation& explained_;
  const Network& network_;
  ElementMaps& maps_;
  Rules rules_;
  Tag next_ = device::kFillTag + 1;
  std::map<Label, TagRange> ranges_;
  std::map<const darwinn::LayerParameters*, std::shared_ptr<const std::vector<std::int32_t>>> weight_places_;
};

Result<Rules> Rules::create(const retarget::Explanation& explained, ElementMaps& maps) {
  return RuleMaker(explained, maps).run();
}

}  // namespace reef::runtime
