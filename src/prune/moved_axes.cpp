// SPDX-License-Identifier: Apache-2.0
// Element numbers are floats, exact below 2^24. Everything runs a second time on the negated numbers: an element that
// does not change its sign is padding.
#include "prune/moved_axes.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "execute/cpu/evaluate.h"
#include "ir/excerpt.h"
#include "prune/shrinking_moves.h"

namespace reef::prune {
namespace {

constexpr std::int64_t kMostElements = (std::int64_t{1} << 24) - 2;

// An element of the operands: operand number (among the float ones) and coordinates.
struct Operand {
  std::int32_t tensor = 0;
  ir::Shape shape;
  std::int64_t first = 0;  // number of its first element, from 1 on
};

std::vector<Operand> operands_of(const ir::Model& model, const ir::Operator& op) {
  std::vector<Operand> result;
  std::int64_t next = 1;
  for (const std::int32_t t : op.inputs) {
    if (t < 0) continue;
    const ir::Tensor& tensor = model.subgraphs[0].tensors[reef::at(t)];
    const bool is_listed = std::any_of(result.begin(), result.end(), [&](const Operand& o) { return o.tensor == t; });
    if (tensor.type != ir::DataType::kFloat32 || is_listed || !tensor.shape.is_usable()) continue;
    result.push_back({t, tensor.shape, next});
    next += tensor.shape.elements();
  }
  return result;
}

// The results of the operator on element numbers times `sign`; empty: it cannot be run.
std::vector<std::vector<float>> run_on_numbers(const ir::Model& model, const ir::Operator& op,
                                               const std::vector<Operand>& operands, float sign) {
  std::vector<std::int32_t> given;
  std::vector<std::vector<std::uint8_t>> inputs;
  for (const Operand& operand : operands) {
    given.push_back(operand.tensor);
    std::vector<float> numbers(static_cast<std::size_t>(operand.shape.elements()));
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      numbers[i] = sign * static_cast<float>(operand.first + static_cast<std::int64_t>(i));
    }
    std::vector<std::uint8_t>& bytes = inputs.emplace_back(numbers.size() * sizeof(float));
    if (!bytes.empty()) std::memcpy(bytes.data(), numbers.data(), bytes.size());
  }
  ir::Model excerpt = ir::excerpt(model, {&op, 1}, op.outputs, 0, given);
  // A constant operand is counted like a computed one.
  for (const std::int32_t t : excerpt.subgraphs[0].inputs) {
    excerpt.subgraphs[0].tensors[reef::at(t)].buffer = 0;
  }
  const auto results = cpu::Evaluator()(std::move(excerpt), inputs);
  if (!results.ok()) return {};
  std::vector<std::vector<float>> values;
  for (const cpu::Value& result : *results) {
    std::vector<float>& to = values.emplace_back(result.bytes.size() / sizeof(float));
    if (!to.empty()) std::memcpy(to.data(), result.bytes.data(), to.size() * sizeof(float));
  }
  return values;
}

// The coordinates of element `i`.
void coordinates(const ir::Shape& shape, std::int64_t i, std::vector<std::int32_t>& at) {
  at.resize(static_cast<std::size_t>(shape.rank()));
  for (int axis = shape.rank(); axis-- > 0;) {
    at[reef::at(axis)] = static_cast<std::int32_t>(i % shape[axis]);
    i /= shape[axis];
  }
}

constexpr std::int32_t kUnseen = -3, kUnclear = -4;

// Gathers, for all pairs of axes of a result and an operand, whether the one's coordinate alone gives the other's.
class PairTable {
 public:
  PairTable(const ir::Shape& result, const Operand& operand) : result_(result), operand_(operand) {
    for (int a = 0; a < result.rank(); ++a) {
      for (int b = 0; b < operand.shape.rank(); ++b) {
        from_.emplace_back(static_cast<std::size_t>(result[a]), kUnseen);
      }
    }
  }
  void see(const std::vector<std::int32_t>& to, const std::vector<std::int32_t>& from) {
    for (std::size_t a = 0; a < to.size(); ++a) {
      for (std::size_t b = 0; b < from.size(); ++b) {
        std::int32_t& known = from_[a * from.size() + b][reef::at(to[a])];
        if (known == kUnseen) {
          known = from[b];
        } else if (known != from[b]) {
          known = kUnclear;
        }
      }
    }
  }
  // The axis of the result whose coordinate alone gives that of axis `b` of the operand; -1: there is none.
  int follower(int b) const {
    for (int a = 0; a < result_.rank(); ++a) {
      std::set<std::int32_t> seen(table(a, b).begin(), table(a, b).end());
      seen.erase(kUnseen);
      if (!seen.contains(kUnclear) && seen.size() > 1) return a;
    }
    return -1;
  }
  const std::vector<std::int32_t>& table(int a, int b) const { return from_[reef::at(a * operand_.shape.rank() + b)]; }

 private:
  const ir::Shape& result_;
  const Operand& operand_;
  std::vector<std::vector<std::int32_t>> from_;
};

}  // namespace

std::optional<std::vector<MovedAxis>> moved_axes(const ir::Model& model, const ir::Operator& op) {
  const std::vector<Operand> operands = operands_of(model, op);
  std::int64_t all = 0;
  for (const Operand& operand : operands) all += operand.shape.elements();
  if (operands.empty() || all == 0 || all > kMostElements) return std::nullopt;
  const auto numbers = run_on_numbers(model, op, operands, 1), negated = run_on_numbers(model, op, operands, -1);
  if (numbers.size() != op.outputs.size() || negated.size() != numbers.size()) return std::nullopt;
  std::vector<MovedAxis> result;
  std::vector<std::int32_t> to, from;
  for (std::size_t o = 0; o < op.outputs.size(); ++o) {
    const ir::Shape& shape = model.subgraphs[0].tensors[reef::at(op.outputs[o])].shape;
    if (!shape.is_usable() || shape.elements() != static_cast<std::int64_t>(numbers[o].size())) return std::nullopt;
    std::vector<PairTable> tables;
    for (const Operand& operand : operands) tables.emplace_back(shape, operand);
    std::vector<std::vector<bool>> element_seen;
    for (int a = 0; a < shape.rank(); ++a) element_seen.emplace_back(static_cast<std::size_t>(shape[a]), false);
    for (std::size_t i = 0; i < numbers[o].size(); ++i) {
      if (numbers[o][i] != -negated[o][i] || numbers[o][i] == 0) continue;
      const auto number = static_cast<std::int64_t>(numbers[o][i]);
      std::size_t k = operands.size() - 1;
      while (k > 0 && number < operands[k].first) --k;
      if (number < operands[k].first || number >= operands[k].first + operands[k].shape.elements()) return std::nullopt;
      coordinates(shape, static_cast<std::int64_t>(i), to);
      coordinates(operands[k].shape, number - operands[k].first, from);
      tables[k].see(to, from);
      for (std::size_t a = 0; a < to.size(); ++a) element_seen[a][reef::at(to[a])] = true;
    }
    for (std::size_t k = 0; k < operands.size(); ++k) {
      for (int b = 0; b < operands[k].shape.rank(); ++b) {
        const int a = tables[k].follower(b);
        if (a < 0) continue;  // torn apart, or picked from: whole_axes
        MovedAxis moved{op.outputs[o], a, operands[k].tensor, b, tables[k].table(a, b)};
        for (std::size_t i = 0; i < moved.from.size(); ++i) {
          if (moved.from[i] >= 0) continue;
          moved.from[i] = element_seen[reef::at(a)][i] ? MovedAxis::kOther : MovedAxis::kPadding;
        }
        result.push_back(std::move(moved));
      }
    }
  }
  return result;
}

std::vector<std::pair<std::int32_t, int>> whole_axes(const ir::Model& model, const ir::Operator& op,
                                                     const std::vector<MovedAxis>& moved) {
  std::vector<std::pair<std::int32_t, int>> result;
  const auto& tensors = model.subgraphs[0].tensors;
  for (const Operand& operand : operands_of(model, op)) {
    for (int b = 0; b < operand.shape.rank(); ++b) {
      const bool is_followed = std::any_of(moved.begin(), moved.end(), [&](const MovedAxis& each) {
        return each.input == operand.tensor && each.input_axis == b;
      });
      if (!is_followed) result.push_back({operand.tensor, b});
    }
  }
  for (const std::int32_t t : op.outputs) {
    for (int a = 0; a < tensors[reef::at(t)].shape.rank(); ++a) {
      const bool follows = std::any_of(
          moved.begin(), moved.end(), [&](const MovedAxis& each) { return each.output == t && each.output_axis == a; });
      if (!follows) result.push_back({t, a});
    }
  }
  for (const MovedAxis& each : moved) {
    if (!adapts_to_shrinking(model, op, each)) {
      result.push_back({each.output, each.output_axis});
      result.push_back({each.input, each.input_axis});
    }
  }
  return result;
}

}  // namespace reef::prune
