// SPDX-License-Identifier: Apache-2.0
#include "passes/chip/unary_function.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "ir/op.h"
#include "ir/verify.h"
#include "passes/chip/ramps.h"

namespace reef::passes {
namespace {

const ir::Shape kAllValues = {1, 1, 256, 1};

std::vector<std::uint8_t> all_values(ir::DataType type) {
  std::vector<std::uint8_t> values(256);
  for (int i = 0; i < 256; ++i) values[at(i)] = static_cast<std::uint8_t>(i + (type == ir::DataType::kInt8 ? -128 : 0));
  return values;
}

std::optional<Table> run(const graph::Evaluate& evaluate, const ir::Model& model,
                         std::span<const std::vector<std::uint8_t>> inputs, ir::DataType out) {
  if (!evaluate || !ir::verify(model).ok()) return {};
  const auto outputs = evaluate(model, inputs);
  if (!outputs.ok() || outputs->size() != 1 || (*outputs)[0].bytes.size() != 256) return {};
  Table table;
  for (std::size_t i = 0; i < 256; ++i) {
    const std::uint8_t value = (*outputs)[0].bytes[i];
    table[i] = out == ir::DataType::kInt8 ? static_cast<std::int8_t>(value) : value;
  }
  return table;
}

ir::Model empty_model() {
  ir::Model model;
  model.buffers.resize(1);
  model.subgraphs.resize(1);
  return model;
}

// Copies tensors into a model in which every computed one has the 256 values and every constant one value.
class Miniature {
 public:
  explicit Miniature(const ChipGraph& edit) : edit_(edit), model_(empty_model()) {}

  std::int32_t copy(std::int32_t index) {
    if (index < 0) return index;
    const auto [found, is_new] = copies_.try_emplace(index, static_cast<std::int32_t>(graph().tensors.size()));
    if (!is_new) return found->second;
    ir::Tensor tensor = edit_.tensor(index);
    tensor.shape_signature.clear();
    if (edit_.is_constant(index)) {
      const Bytes& data = ir::constant_data(edit_.model(), tensor);
      const auto bytes = static_cast<std::size_t>(ir::bits_per_element(tensor.type) / 8);
      tensor.shape = ir::Shape({1, 1, 1, 1});
      tensor.buffer = static_cast<std::int32_t>(model_.buffers.size());
      model_.buffers.push_back({data.slice(0, std::min(bytes, data.size())), false, false});
    } else {
      tensor.shape = kAllValues;
      tensor.buffer = 0;
    }
    graph().tensors.push_back(std::move(tensor));
    return found->second;
  }
  void add(std::span<const std::int32_t> ops) {
    for (const std::int32_t index : ops) {
      ir::Operator op = edit_.op(index);
      for (std::int32_t& tensor : op.inputs) tensor = copy(tensor);
      for (std::int32_t& tensor : op.outputs) tensor = copy(tensor);
      op.intermediates.clear();
      graph().operators.push_back(std::move(op));
    }
  }
  ir::Subgraph& graph() { return model_.subgraphs[0]; }
  const ir::Model& model() const { return model_; }

 private:
  const ChipGraph& edit_;
  ir::Model model_;
  std::map<std::int32_t, std::int32_t> copies_;
};

// The candidate on all values.
std::optional<Table> tabulate(const graph::Evaluate& evaluate, const Affine8& in, const Affine8& out,
                              const Candidate& candidate) {
  ir::Model model = empty_model();
  Graph trial(model);
  OpList list(trial, "tried");
  const std::int32_t x = list.tensor(kAllValues, in), y = list.tensor(kAllValues, out);
  if (!candidate.build(list, x, y)) return {};
  model.subgraphs[0].operators = list.take();
  model.subgraphs[0].inputs = {x};
  model.subgraphs[0].outputs = {y};
  const std::vector<std::vector<std::uint8_t>> inputs = {all_values(in.type)};
  return run(evaluate, model, inputs, out.type);
}

int largest_difference(const Table& a, const Table& b) {
  int largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

// Builds on the real tensors, around which reshapes bring other ranks to [1, 1, n, c].
bool build(ChipGraph& edit, OpList& list, const Candidate& candidate, std::int32_t x, std::int32_t y) {
  const ir::Shape shape = edit.shape(x);
  if (shape.rank() == 4) return shape[0] == 1 && candidate.build(list, x, y);
  if (shape.rank() == 0 || shape.elements() == 0) return false;
  const std::int32_t channels = shape.last();
  const ir::Shape flat = {1, 1, static_cast<std::int32_t>(shape.elements() / channels), channels};
  const std::int32_t from = list.reshape(x, flat), to = list.tensor_like(y, flat);
  if (!candidate.build(list, from, to)) return false;
  list.reshape(to, shape, y);
  return true;
}

double real(const Affine8& affine, std::int32_t q) {
  return static_cast<double>(affine.scale) * (q - affine.zero_point);
}

// Stores [low, low + 1] of the real numbers 0 to `height` (or `height` to 0, if negative) on all 8 bits.
Affine8 ramp_affine(ir::DataType type, double height) {
  Affine8 result{type, static_cast<float>(std::abs(height) / 255), 0};
  result.zero_point = height > 0 ? result.lowest() : result.highest();
  return result;
}

}  // namespace

std::optional<Table> tabulate(const ChipGraph& edit, std::span<const std::int32_t> ops, std::int32_t x,
                              std::int32_t y) {
  Miniature miniature(edit);
  const std::int32_t input = miniature.copy(x);
  miniature.add(ops);
  miniature.graph().inputs = {input};
  miniature.graph().outputs = {miniature.copy(y)};
  const std::vector<std::vector<std::uint8_t>> inputs = {all_values(edit.tensor(x).type)};
  return run(edit.evaluate(), miniature.model(), inputs, edit.tensor(y).type);
}

int amplification(const ChipGraph& edit, std::span<const std::int32_t> ops, std::int32_t x, std::int32_t y,
                  std::int32_t z, const Table& table) {
  const auto stored = edit.affine(y);
  if (!stored) return 256;
  Miniature miniature(edit);
  const std::int32_t in_x = miniature.copy(x), in_y = miniature.copy(y);
  miniature.add(ops);
  miniature.graph().inputs = {in_x, in_y};
  miniature.graph().outputs = {miniature.copy(z)};
  const auto with_error = [&](std::int32_t error) {
    std::vector<std::vector<std::uint8_t>> inputs = {all_values(edit.tensor(x).type), std::vector<std::uint8_t>(256)};
    for (std::size_t i = 0; i < 256; ++i) {
      inputs[1][i] = static_cast<std::uint8_t>(std::clamp(table[i] + error, stored->lowest(), stored->highest()));
    }
    return run(edit.evaluate(), miniature.model(), inputs, edit.tensor(z).type);
  };
  const auto exact = with_error(0), above = with_error(1), below = with_error(-1);
  if (!exact || !above || !below) return 256;
  return std::max(largest_difference(*exact, *above), largest_difference(*exact, *below));
}

ops::ChipAffine chip_affine(const Affine8& affine) { return {affine.scale, affine.zero_point - affine.lowest()}; }

int table_difference(const numeric::TableFit& fit, const Affine8& in, const Affine8& out, const Table& wanted) {
  int largest = 0;
  for (int code = 0; code < 256; ++code) {
    const float argument = static_cast<float>(code - chip_affine(in).zero_point) * in.scale;
    const std::int32_t chip = numeric::chip_round(fit.function.at(argument), chip_affine(out).zero_point, 255);
    largest = std::max(largest, std::abs(chip + out.lowest() - wanted[at(code)]));
  }
  return largest;
}

Candidate line_candidate(const Affine8& in, const Affine8& out, const Table& table) {
  // Through the ends of what is not saturated.
  int first = 0, last = 255;
  while (first < 255 && table[at(first)] == table[static_cast<std::size_t>(first) + 1]) ++first;
  while (last > first && table[at(last)] == table[static_cast<std::size_t>(last) - 1]) --last;
  return {"DEPTHWISE_CONV_2D", [=](OpList& list, std::int32_t x, std::int32_t y) {
            const double x0 = real(in, in.lowest() + first), x1 = real(in, in.lowest() + last);
            const double y0 = real(out, table[at(first)]);
            const double y1 = real(out, table[at(last)]);
            if (last == first || y0 == y1) return false;
            const double slope = (y1 - y0) / (x1 - x0);
            return list.line(x, slope, y0 - slope * x0, out, y) >= 0;
          }};
}

Candidate hard_swish_candidate(const Affine8& out) {
  return {"DEPTHWISE_CONV_2D and MUL", [=](OpList& list, std::int32_t x, std::int32_t y) {
            // clamp(x / 6 + 1 / 2, 0, 1): saturation does the clamping.
            const Affine8 gate{out.type, 1.0f / 255, Affine8{out.type}.lowest()};
            const std::int32_t open = list.line(x, 1.0 / 6, 0.5, gate);
            return open >= 0 && list.binary(Op::MUL, x, open, out, y) >= 0;
          }};
}

Candidate silu_candidate(const Affine8& out) {
  return {"LOGISTIC and MUL", [=](OpList& list, std::int32_t x, std::int32_t y) {
            return list.binary(Op::MUL, x, list.unary(Op::LOGISTIC, x, unit_affine(out.type)), out, y) >= 0;
          }};
}

Candidate gelu_candidate(const Affine8& in, const Affine8& out) {
  return {
      "DEPTHWISE_CONV_2D, LOGISTIC and MUL", [=](OpList& list, std::int32_t x, std::int32_t y) {
        // x * sigmoid(1.702 x); beyond 8 the sigmoid is 0 or 1 in 8 bits.
        constexpr double kSlope = 1.702;
        const double largest = kSlope * std::max(-real(in, in.lowest()), real(in, in.highest()));
        const auto scale = static_cast<float>(std::min(8.0, std::max(largest, 1e-3)) / 127);
        const std::int32_t steep = list.line(x, kSlope, 0, {in.type, scale, in.type == ir::DataType::kInt8 ? 0 : 128});
        if (steep < 0) return false;
        return list.binary(Op::MUL, x, list.unary(Op::LOGISTIC, steep, unit_affine(out.type)), out, y) >= 0;
      }};
}

Candidate kinked_gelu_candidate(const Affine8& in, const Affine8& out) {
  return {"2 DEPTHWISE_CONV_2D, ADD, LOGISTIC and MUL", [=](OpList& list, std::int32_t x, std::int32_t y) {
            // x * sigmoid(g(x)), where g is steeper beyond the kinks: x * sigmoid(g) is then within 0.0038 of GELU
            // everywhere (found by search), five times closer than with a straight line.
            constexpr double kInner = 1.67321, kOuter = 2.20983, kKink = 1.19598;
            const std::int32_t middle = in.type == ir::DataType::kInt8 ? 0 : 128;
            const double largest = kOuter * std::max(-real(in, in.lowest()), real(in, in.highest()));
            const auto scale = static_cast<float>(std::min(8.0, std::max(largest, 1e-3)) / 127);
            const auto bend_scale = static_cast<float>((kOuter - kInner) * kKink / 127);
            const std::int32_t steep = list.line(x, kOuter, 0, {in.type, scale, middle});
            const std::int32_t bend = list.line(x, kInner - kOuter, 0, {in.type, bend_scale, middle});
            if (steep < 0 || bend < 0) return false;
            const std::int32_t g = list.binary(Op::ADD, steep, bend, {in.type, scale, middle});
            return list.binary(Op::MUL, x, list.unary(Op::LOGISTIC, g, unit_affine(out.type)), out, y) >= 0;
          }};
}

Candidate logistic_candidate(const Affine8& out) {
  return {"LOGISTIC and QUANTIZE", [=](OpList& list, std::int32_t x, std::int32_t y) {
            const Affine8 natural = unit_affine(out.type);
            if (natural == out) return list.unary(Op::LOGISTIC, x, out, y) >= 0;
            return list.unary(Op::QUANTIZE, list.unary(Op::LOGISTIC, x, natural), out, y) >= 0;
          }};
}
Candidate tanh_candidate(const Affine8& out) {
  return {"TANH and QUANTIZE", [=](OpList& list, std::int32_t x, std::int32_t y) {
            const Affine8 natural = tanh_affine(out.type);
            if (natural == out) return list.unary(Op::TANH, x, out, y) >= 0;
            return list.unary(Op::QUANTIZE, list.unary(Op::TANH, x, natural), out, y) >= 0;
          }};
}

namespace {

// A ramp with its height in steps of the output: 0 at input `from`, `steps` at input `to` (which may lie below).
struct Ramp {
  int from = 0, to = 0;
  std::int32_t steps = 0;
};

// From the corner at the output's zero outwards, to either side in turn: what is added up then stays within the
// output's range at every stage.
std::vector<Ramp> ramps_between(const std::vector<Corner>& corners, std::size_t zero) {
  std::vector<Ramp> ramps;
  const auto add = [&](const Corner& from, const Corner& to) {
    if (from.level != to.level) ramps.push_back({from.index, to.index, to.level - from.level});
  };
  for (std::size_t i = zero; i + 1 < corners.size(); ++i) add(corners[i], corners[i + 1]);
  for (std::size_t i = zero; i > 0; --i) add(corners[i], corners[i - 1]);
  return ramps;
}

bool build_ramps(OpList& list, std::int32_t x, std::int32_t y, const Affine8& in, const Affine8& out,
                 const std::vector<Ramp>& ramps, std::int32_t base_level) {
  std::int32_t sum = -1;
  const auto shape = ir::Shape({1, 1, 1, 1});
  if (base_level != out.zero_point) sum = list.filled(shape, out, base_level);
  for (std::size_t i = 0; i < ramps.size(); ++i) {
    const Ramp& ramp = ramps[i];
    const double height = static_cast<double>(out.scale) * ramp.steps;
    const double x0 = real(in, in.lowest() + ramp.from), x1 = real(in, in.lowest() + ramp.to);
    const double slope = height / (x1 - x0);
    const std::int32_t term = list.line(x, slope, -slope * x0, ramp_affine(in.type, height));
    if (term < 0) return false;
    const bool is_last = i + 1 == ramps.size();
    sum = sum < 0 ? term : list.binary(Op::ADD, term, sum, out, is_last ? y : kNew);
  }
  if (sum < 0) return false;
  if (ramps.size() == 1 && base_level == out.zero_point) list.unary(Op::QUANTIZE, sum, out, y);
  return true;
}

constexpr std::size_t kMostRamps = 16;

struct RampsAttempt {
  double tolerance;  // in steps
  std::size_t most_corners;
};
// Whole results differ by at most one step from the wanted ones as long as the polygon stays within one and a half; a
// little is left for the rounding of the ramp itself. If pieces are cheap, closer is better. Where many ramps meet,
// their roundings can take more than that little: closer ones follow.
constexpr RampsAttempt kRampsAttempts[] = {
    {0.45, 5}, {0.9, 5}, {1.35, kMostRamps + 1}, {1.1, kMostRamps + 1}, {0.8, kMostRamps + 1}, {0.5, kMostRamps + 1}};

// The function as ramps that keep to the tolerance; nothing if that takes more corners.
std::optional<Candidate> ramps_within(const Affine8& in, const Affine8& out, const Table& table, int runtime,
                                      const RampsAttempt& attempt) {
  if (in.type != out.type) return {};
  PolygonRequest request{table, out.lowest(), attempt.tolerance, out.zero_point, true};
  std::optional<std::vector<Corner>> corners = fit_polygon(request);
  if (!corners) {
    request.must_pass = false;
    corners = fit_polygon(request);
  }
  if (!corners || corners->size() > attempt.most_corners) return {};
  std::size_t base = 0;
  for (std::size_t i = 0; i < corners->size(); ++i) {
    if ((*corners)[i].level == out.zero_point) base = i;
  }
  const std::int32_t base_level = (*corners)[base].level;
  const std::vector<Ramp> ramps = ramps_between(*corners, base);
  if (ramps.empty() || (ramps.size() == 1 && runtime < 13)) return {};
  const std::size_t adds = ramps.size() - (base_level == out.zero_point ? 1 : 0);
  return Candidate{fmt::format("{} DEPTHWISE_CONV_2D and {} ADD", ramps.size(), adds),
                   [=](OpList& list, std::int32_t x, std::int32_t y) {
                     return build_ramps(list, x, y, in, out, ramps, base_level);
                   }};
}

}  // namespace

int differs_by(const ChipGraph& edit, const Affine8& in, const Affine8& out, const Candidate& candidate,
               const Table& wanted) {
  const std::optional<Table> tried = tabulate(edit.evaluate(), in, out, candidate);
  return tried ? largest_difference(*tried, wanted) : 256;
}

bool others_are_closer(const ChipGraph& edit, const Affine8& in, const Affine8& out, const Table& wanted,
                       int difference) {
  if (difference == 0) return false;
  const Candidate candidates[] = {line_candidate(in, out, wanted), hard_swish_candidate(out), logistic_candidate(out),
                                  tanh_candidate(out)};
  return std::any_of(std::begin(candidates), std::end(candidates), [&](const Candidate& candidate) {
    return differs_by(edit, in, out, candidate, wanted) < difference;
  });
}

bool replace_function(ChipGraph& edit, std::int32_t last, std::int32_t x, std::int32_t y, const Table& wanted,
                      std::span<const Candidate> candidates) {
  const auto in = edit.affine(x), out = edit.affine(y);
  if (!in || !out || edit.shape(x) != edit.shape(y) || edit.shape(x).elements() == 0) return false;
  const auto make = [&](const Candidate& candidate, int difference) {
    OpList list(edit, edit.tensor(y).name);
    const OpName except = edit.is_batch_of_inputs(x) ? OpName() : Op::RESHAPE;  // own-movement sees to those
    return build(edit, list, candidate, x, y) && edit.commit(last, list.take(), candidate.into, difference, except);
  };
  const Candidate* closest = nullptr;
  int least = 256;
  const auto try_it = [&](const Candidate& candidate) {
    const int difference = differs_by(edit, *in, *out, candidate, wanted);
    if (difference <= kLargestDifference && make(candidate, difference)) return true;
    if (difference < least) {
      closest = &candidate;
      least = difference;
    }
    return false;
  };
  if (std::any_of(candidates.begin(), candidates.end(), try_it)) return true;
  // Last, because finding them takes longest.
  std::vector<Candidate> ramps;
  ramps.reserve(std::size(kRampsAttempts));  // `closest` points into it
  for (const RampsAttempt& attempt : kRampsAttempts) {
    auto candidate = ramps_within(*in, *out, wanted, edit.options().runtime, attempt);
    if (!candidate) continue;
    ramps.push_back(std::move(*candidate));
    if (try_it(ramps.back())) return true;
  }
  if (closest == nullptr || least <= kLargestDifference || !edit.accepts(last, closest->into, least)) return false;
  return make(*closest, least);
}

bool replace_operator(
    ChipGraph& edit, std::int32_t index, OpName type,
    const std::function<std::vector<Candidate>(const Affine8& in, const Affine8& out)>& candidates_of) {
  if (edit.op(index).type != type || !edit.is_sound(index)) return false;
  const std::int32_t x = edit.op(index).inputs[0], y = edit.op(index).outputs[0];
  const auto in = edit.affine(x), out = edit.affine(y);
  if (!in || !out || in->type != out->type || edit.fits(index)) return false;
  const auto table = tabulate(edit, {&index, 1}, x, y);
  return table && replace_function(edit, index, x, y, *table, candidates_of(*in, *out));
}

}  // namespace reef::passes
