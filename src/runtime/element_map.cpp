// SPDX-License-Identifier: Apache-2.0
#include "runtime/element_map.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "execute/cpu/evaluate.h"
#include "ir/verify.h"
#include "ops/registry.h"

namespace reef::runtime {
namespace {

// Numbers of elements are 32-bit integers here.
constexpr std::int64_t kMaxElements = std::int64_t{1} << 30;

bool keeps_every_element(const ir::Operator& op) {
  return op.type == Op::QUANTIZE || ops::has_same_bytes(op) || op.type.starts_with("RESIZE_");
}

// The operator alone, on 32-bit integers. Operands that are not moved (axes, sizes) stay as they are.
ir::Model only_op(const retarget::Network& network, const ir::Operator& op, std::vector<std::int32_t>& moved) {
  ir::Model model;
  model.buffers.emplace_back();
  ir::Subgraph& graph = model.subgraphs.emplace_back();
  ir::Operator& own = graph.operators.emplace_back(op);
  own.inputs.clear();
  own.outputs.clear();
  const ir::DataType type = network.tensor(op.outputs[0]).type;
  for (const std::int32_t t : op.inputs) {
    if (t < 0) {
      own.inputs.push_back(-1);
      continue;
    }
    const auto index = static_cast<std::int32_t>(graph.tensors.size());
    own.inputs.push_back(index);
    const ir::Tensor& original = network.tensor(t);
    ir::Tensor& tensor = graph.tensors.emplace_back();
    tensor.name = original.name;
    tensor.shape = original.shape;
    if (original.type == type) {
      tensor.type = ir::DataType::kInt32;
      graph.inputs.push_back(index);
      moved.push_back(t);
    } else {
      tensor.type = original.type;
      tensor.buffer = static_cast<std::int32_t>(model.buffers.size());
      model.buffers.emplace_back().data = ir::constant_data(network.model(), original);
    }
  }
  for (const std::int32_t t : op.outputs) {
    const auto index = static_cast<std::int32_t>(graph.tensors.size());
    own.outputs.push_back(index);
    graph.outputs.push_back(index);
    ir::Tensor& tensor = graph.tensors.emplace_back();
    tensor.name = network.tensor(t).name;
    tensor.shape = network.tensor(t).shape;
    tensor.type = ir::DataType::kInt32;
  }
  return model;
}

}  // namespace

bool is_elementwise(const ir::Operator& op) {
  return ops::is_elementwise(op) || op.type == Op::CONCATENATION;  // where it changes the quantization
}

ElementMaps::ElementMaps(const retarget::Network& network)
    : network_(network), uses_(network.model(), network.chip_ops()) {}

bool ElementMaps::is_move(std::int32_t k) const {
  const ir::Operator& op = network_.op(k);
  if (op.inputs.empty() || op.inputs[0] < 0 || op.outputs.empty()) return false;
  if (op.type.starts_with("RESIZE_")) {
    return network_.tensor(op.inputs[0]).shape == network_.tensor(op.outputs[0]).shape;
  }
  return retarget::Network::only_moves(op);
}

Result<std::vector<Element>> ElementMaps::sources(std::int32_t k, std::size_t output) const {
  const ir::Operator& op = network_.op(k);
  const std::int64_t elements = network_.tensor(op.outputs[output]).shape.elements();
  std::vector<Element> result;
  if (keeps_every_element(op)) {
    REEF_REQUIRE(elements == network_.tensor(op.inputs[0]).shape.elements() && elements < kMaxElements,
                 "{} changes the number of elements", network_.describe(k));
    for (std::int32_t i = 0; i < elements; ++i) result.push_back({op.inputs[0], i});
    return result;
  }
  REEF_REQUIRE(std::all_of(op.outputs.begin(), op.outputs.end(), [](std::int32_t t) { return t >= 0; }),
               "{} has an output that is left out", network_.describe(k));
  std::vector<std::int32_t> moved;
  ir::Model model = only_op(network_, op, moved);
  REEF_RETURN_IF_ERROR(ir::verify(model).in(network_.describe(k)));
  // 0 is padding; a constant operand has no numbers.
  std::vector<std::int32_t> first;
  std::vector<std::vector<std::uint8_t>> inputs;
  std::int64_t next = 1;
  for (std::size_t i = 0; i < moved.size(); ++i) {
    const std::int64_t count = network_.tensor(moved[i]).shape.checked_elements().value_or(kMaxElements);
    REEF_REQUIRE(count < kMaxElements, "{} is too large", network_.describe(k));
    std::vector<std::int32_t> numbers(static_cast<std::size_t>(count));
    REEF_REQUIRE(next + static_cast<std::int64_t>(numbers.size()) < kMaxElements, "{} is too large",
                 network_.describe(k));
    first.push_back(static_cast<std::int32_t>(next));
    if (!network_.is_constant(moved[i])) std::iota(numbers.begin(), numbers.end(), static_cast<std::int32_t>(next));
    next += static_cast<std::int64_t>(numbers.size());
    std::vector<std::uint8_t>& bytes = inputs.emplace_back(numbers.size() * sizeof(std::int32_t));
    if (!numbers.empty()) std::memcpy(bytes.data(), numbers.data(), bytes.size());
  }
  const auto values = cpu::Evaluator()(std::move(model), inputs);
  if (!values.ok()) return values.status().in(network_.describe(k));
  const std::vector<std::uint8_t>& bytes = (*values)[output].bytes;
  std::vector<std::int32_t> numbers(bytes.size() / sizeof(std::int32_t));
  if (!numbers.empty()) std::memcpy(numbers.data(), bytes.data(), bytes.size());
  REEF_REQUIRE(static_cast<std::int64_t>(numbers.size()) == elements, "{} gives another number of elements",
               network_.describe(k));
  for (const std::int32_t number : numbers) {
    if (number == 0) {
      result.push_back({});
      continue;
    }
    std::size_t i = moved.size() - 1;
    while (first[i] > number) --i;
    result.push_back({moved[i], number - first[i]});
  }
  return result;
}

Result<const std::vector<Element>*> ElementMaps::origins(std::int32_t t) {
  if (const auto known = origins_.find(t); known != origins_.end()) return &known->second;
  std::vector<Element> result;
  const std::int32_t k = producer(t);
  if (k >= 0 && is_move(k)) {
    const ir::Operator& op = network_.op(k);
    std::size_t output = 0;
    while (op.outputs[output] != t) ++output;
    REEF_ASSIGN_OR_RETURN(result, sources(k, output));
    std::map<std::int32_t, const std::vector<Element>*> of_inputs;  // null: its quantization changes
    for (const std::int32_t input : op.inputs) {
      if (input < 0 || network_.is_constant(input)) continue;
      of_inputs[input] = nullptr;
      if (!network_.chip(input) || network_.chip(input) != network_.chip(t)) continue;
      REEF_ASSIGN_OR_RETURN(of_inputs[input], origins(input));
    }
    for (std::size_t i = 0; i < result.size(); ++i) {
      if (result[i].tensor < 0) continue;
      const std::vector<Element>* further = of_inputs[result[i].tensor];
      result[i] = further != nullptr ? (*further)[at(result[i].index)] : Element{t, static_cast<std::int32_t>(i)};
    }
  } else {
    const std::int64_t elements = network_.tensor(t).shape.checked_elements().value_or(kMaxElements);
    REEF_REQUIRE(elements < kMaxElements, "a tensor has more than {} elements", kMaxElements);
    for (std::int32_t i = 0; i < elements; ++i) result.push_back({t, i});
  }
  return &origins_.emplace(t, std::move(result)).first->second;
}

Result<const std::vector<bool>*> ElementMaps::constants(std::int32_t t) {
  if (const auto known = constants_.find(t); known != constants_.end()) return &known->second;
  REEF_ASSIGN_OR_RETURN(const std::vector<Element>* elements, origins(t));
  std::vector<bool> result(elements->size());
  const std::int32_t k = producer(t);
  if (k >= 0 && is_move(k)) {
    for (std::size_t i = 0; i < result.size(); ++i) {
      const Element& element = (*elements)[i];
      if (element.tensor == t) continue;
      const std::vector<bool>* further = nullptr;
      if (element.tensor >= 0) {
        REEF_ASSIGN_OR_RETURN(further, constants(element.tensor));
      }
      result[i] = further == nullptr || (*further)[at(element.index)];
    }
  } else if (k >= 0 && is_elementwise(network_.op(k))) {
    bool has_operands = false, are_alike = true;
    std::vector<bool> all(result.size(), true);
    for (const std::int32_t input : network_.op(k).inputs) {
      if (input < 0 || network_.is_constant(input)) continue;
      has_operands = true;
      are_alike = are_alike && network_.tensor(input).shape == network_.tensor(t).shape;
      if (!are_alike) break;
      REEF_ASSIGN_OR_RETURN(const std::vector<bool>* operand, constants(input));
      for (std::size_t i = 0; i < all.size(); ++i) all[i] = all[i] && (*operand)[i];
    }
    if (has_operands && are_alike) result = std::move(all);
  }
  return &constants_.emplace(t, std::move(result)).first->second;
}

Result<const std::vector<std::int32_t>*> ElementMaps::places(std::int32_t part, std::int32_t whole) {
  const auto key = std::make_pair(part, whole);
  if (const auto known = places_.find(key); known != places_.end()) return &known->second;
  REEF_ASSIGN_OR_RETURN(const std::vector<Element>* elements, origins(whole));
  std::vector<std::int32_t> places(static_cast<std::size_t>(network_.tensor(part).shape.elements()), kNowhere);
  for (std::size_t i = 0; i < elements->size(); ++i) {
    if ((*elements)[i].tensor != part) continue;
    std::int32_t& place = places[at((*elements)[i].index)];
    place = place == kNowhere ? static_cast<std::int32_t>(i) : kSeveralPlaces;
  }
  return &places_.emplace(key, std::move(places)).first->second;
}

}  // namespace reef::runtime
