// SPDX-License-Identifier: Apache-2.0
// Equalization of residual streams: tensors that sums tie together share one factor for each channel.
//
// Layers add to a stream (x + f(x)), other layers read it, often through a normalization. A sum needs the same factor
// on both sides, so equalize.cpp, which looks at one tensor between two layers, cannot touch it; but the channels of
// all tensors of the stream can be divided by the same factors s:
//
//   what writes to the stream: the rows of a layer's weights and its bias, the columns of a table of embeddings and
//     constants are divided by s;
//   what keeps channels apart carries s on: sums, moves, zeros around, pooling, resizing, ReLU, a product with one
//     number for each row (the end of a normalization);
//   layers that read it: the columns of their weights are multiplied by s;
//   whoever else reads it (the variance of a normalization) gets the values as they were, by one MUL with s.
//
// What the network computes stays the same. Tensor t, with largest values a[t][c] per channel and A[t] in all, is
// rounded in steps proportional to its largest a[t][c] / s[c], and an error e of a channel counts as s[c] e. With s[c]
// the largest a[t][c] / A[t] over the tensors of the stream, no step grows and no s[c] is above 1: no error of any
// tensor does. (Factors that make the sum of all errors least, at some tensors' cost, were tried: nothing gained.)
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "graph/appender.h"
#include "ops/registry.h"
#include "quantize/graph_constants.h"
#include "quantize/op_rules.h"
#include "quantize/recover/techniques.h"
#include "quantize/session.h"

namespace reef::quantize {
namespace {

constexpr float kSmallestFactor = 1.0f / 64;  // channels that hardly vary must not make weights' ranges useless
constexpr double kWorthwhile = 0.9;           // power of errors against that before, from which it is tried

// A constant and where in it a channel of the stream is.
struct Constant {
  std::int32_t tensor;
  bool channels_are_last;  // otherwise first
};

struct Reader {
  std::size_t op;
  std::int32_t tensor;
};

struct Stream {
  std::int32_t width = 0;               // channels
  std::vector<std::int32_t> members;    // tensors, ascending
  std::vector<std::int32_t> scaled;     // those whose scale is their own, not that of what they were moved from
  std::vector<Constant> written, read;  // to divide and to multiply
  std::vector<Reader> unable;           // who needs the values as they were
  int sums = 0;
};

class StreamFinder {
 public:
  StreamFinder(const ir::Model& model, const ir::Uses& index)
      : model_(model), graph_(model.subgraphs[0]), index_(index), group_(graph_.tensors.size()) {
    std::iota(group_.begin(), group_.end(), 0);
  }

  std::vector<Stream> find() {
    for (const ir::Operator& op : graph_.operators) {
      for (const std::int32_t t : carried(op)) join(t, op.outputs[0]);
    }
    std::map<std::int32_t, std::vector<std::int32_t>> groups;
    for (std::size_t t = 0; t < group_.size(); ++t) {
      groups[root(static_cast<std::int32_t>(t))].push_back(static_cast<std::int32_t>(t));
    }
    std::vector<Stream> result;
    for (const auto& [first, members] : groups) {
      if (auto stream = stream_of(members)) result.push_back(std::move(*stream));
    }
    return result;
  }

  // The values that `op` gives on with each channel at its place, apart from constants: a factor for each channel of
  // them is one of its result. Empty: there is no such value.
  std::vector<std::int32_t> carried(const ir::Operator& op) const {
    if (op.outputs.size() != 1 || op.inputs.empty() || op.inputs[0] < 0) return {};
    const std::string_view activation = op.attributes.get_enum("fused_activation_function", "NONE");
    if (activation != "NONE" && activation != "RELU") return {};
    const std::int32_t width = width_of(op.outputs[0]);
    if (width < 2) return {};
    if (op.type == Op::ADD || op.type == Op::SUB) {
      std::vector<std::int32_t> result;
      for (const std::int32_t t : op.inputs) {
        if (width_of(t) != width) return {};
        if (is_own_constant(t)) continue;
        result.push_back(t);
      }
      return result;
    }
    if (op.type == Op::MUL) {
      if (width_of(op.inputs[0]) == width && is_one_per_row(op.inputs[1])) return {op.inputs[0]};
      if (width_of(op.inputs[1]) == width && is_one_per_row(op.inputs[0])) return {op.inputs[1]};
      return {};
    }
    if (width_of(op.inputs[0]) != width || !keeps_channels(op)) return {};
    return {op.inputs[0]};
  }

 private:
  // Of an operator with one operand, whose last dimension is as long as that of the result: whether it is the same one.
  bool keeps_channels(const ir::Operator& op) const {
    if (ops::has_trait(op, ops::Trait::kScalesByChannel)) return true;
    if ((op.type != Op::MEAN && op.type != Op::TRANSPOSE) || op.inputs.size() != 2 || op.inputs[1] < 0) return false;
    if (tensor(op.inputs[1]).type != ir::DataType::kInt32) return false;
    const std::vector<std::int32_t> axes = int_values<std::int32_t>(model_, tensor(op.inputs[1]));
    const std::int32_t last = tensor(op.inputs[0]).shape.rank() - 1;
    if (op.type == Op::TRANSPOSE) return !axes.empty() && axes.back() == last;
    return !axes.empty() && std::find(axes.begin(), axes.end(), last) == axes.end() &&
           std::find(axes.begin(), axes.end(), -1) == axes.end();
  }

  const ir::Tensor& tensor(std::int32_t t) const { return graph_.tensors[at(t)]; }
  std::int32_t width_of(std::int32_t t) const {
    if (t < 0 || tensor(t).type != ir::DataType::kFloat32 || tensor(t).shape.rank() < 1) return -1;
    return tensor(t).shape.last();
  }
  bool is_one_per_row(std::int32_t t) const { return t >= 0 && (tensor(t).shape.rank() == 0 || width_of(t) == 1); }
  bool is_own_constant(std::int32_t t) const { return quantize::is_own_constant(model_, index_, t); }

  std::int32_t root(std::int32_t t) {
    while (group_[at(t)] != t) {
      auto& up = group_[at(t)];
      t = up = group_[at(up)];
    }
    return t;
  }
  void join(std::int32_t a, std::int32_t b) { group_[at(root(a))] = root(b); }

  std::optional<Stream> stream_of(const std::vector<std::int32_t>& members) const {
    Stream stream;
    stream.members = members;
    stream.width = width_of(members[0]);
    if (members.size() < 3) return std::nullopt;  // the least sum
    for (const std::int32_t t : members) {
      const std::int32_t producer = index_.producer(t);
      if (producer < 0 || index_.is_output(t)) return std::nullopt;
      if (!add_writer(graph_.operators[at(producer)], stream)) return std::nullopt;
      for (const std::int32_t reader : index_.consumers(t)) {
        const auto number = static_cast<std::size_t>(reader);
        if (!add_reader(graph_.operators[number], t, stream)) stream.unable.push_back({number, t});
      }
    }
    return stream.sums > 0 ? std::optional(std::move(stream)) : std::nullopt;
  }

  bool add_writer(const ir::Operator& op, Stream& stream) const {
    const std::int32_t width = width_of(op.outputs[0]);
    const OpRule* rule = rule_of(op.type);
    const bool is_carried = !carried(op).empty();
    const bool is_moved = is_carried && rule != nullptr && rule->kind == RuleKind::kSameScale;
    if (!is_moved) stream.scaled.push_back(op.outputs[0]);
    if (is_carried) {
      const bool is_sum = op.type == Op::ADD || op.type == Op::SUB;
      stream.sums += is_sum ? 1 : 0;
      for (const std::int32_t t : op.inputs) {
        if (is_sum && is_own_constant(t)) stream.written.push_back({t, true});
      }
      return true;
    }
    if (op.type == Op::GATHER) {
      const std::int32_t table = op.inputs[0];
      const bool takes_rows = op.attributes.get_int("axis") == 0 && op.attributes.get_int("batch_dims") == 0;
      if (!takes_rows || !is_own_constant(table) || width_of(table) != width) return false;
      return tensor(table).shape.rank() >= 2 && (stream.written.push_back({table, true}), true);
    }
    const bool is_depthwise = op.type == Op::DEPTHWISE_CONV_2D;
    if (!is_depthwise && op.type != Op::CONV_2D && op.type != Op::FULLY_CONNECTED) return false;
    const std::string_view activation = op.attributes.get_enum("fused_activation_function", "NONE");
    if (activation != "NONE" && activation != "RELU") return false;
    const std::int32_t weights = op.inputs[1], bias = op.inputs.size() > 2 ? op.inputs[2] : -1;
    if (!is_own_constant(weights) || (bias >= 0 && !is_own_constant(bias))) return false;
    stream.written.push_back({weights, is_depthwise});
    if (bias >= 0) stream.written.push_back({bias, true});
    return (is_depthwise ? width_of(weights) : tensor(weights).shape[0]) == width;
  }

  // False: `op` needs the values as they were.
  bool add_reader(const ir::Operator& op, std::int32_t t, Stream& stream) const {
    const std::vector<std::int32_t> on = carried(op);
    if (std::find(on.begin(), on.end(), t) != on.end()) return true;
    const bool is_layer = op.type == Op::CONV_2D || op.type == Op::FULLY_CONNECTED || op.type == Op::DEPTHWISE_CONV_2D;
    if (!is_layer || op.inputs[0] != t || !is_own_constant(op.inputs[1])) return false;
    // The last dimension is the input's channels, but of a depthwise layer with a multiplier or a grouped one; and a
    // dense one may read several places with their channels one behind the other.
    const std::int32_t taken = width_of(op.inputs[1]), width = width_of(t);
    if (op.type == Op::FULLY_CONNECTED ? taken % width != 0 : taken != width) return false;
    stream.read.push_back({op.inputs[1], true});
    return true;
  }

  const ir::Model& model_;
  const ir::Subgraph& graph_;
  const ir::Uses& index_;
  std::vector<std::int32_t> group_;
};

class StreamScaler {
 public:
  StreamScaler(ir::Model& model, const Calibration& calibration, ChannelFactors& factors)
      : model_(model), graph_(model.subgraphs[0]), calibration_(calibration), factors_(factors) {}

  int run() {
    std::vector<Stream> streams;
    {
      const ir::Uses index(model_);
      streams = StreamFinder(model_, index).find();
    }
    int count = 0;
    for (const Stream& stream : streams) {
      const std::vector<float> factors = factors_for(stream);
      if (factors.empty()) continue;
      for (const Constant& constant : stream.written) change(constant, factors, true);
      for (const Constant& constant : stream.read) change(constant, factors, false);
      for (const Reader& reader : stream.unable) give_as_it_was(reader, factors);
      for (const std::int32_t t : stream.members) {
        graph_.tensors[at(t)].name += kEqualizedSuffix;
        factors_[t] = factors;
      }
      ++count;
    }
    put_copies_in_place();
    return count;
  }

 private:
  // s of the head comment. Empty: nothing to gain, or a tensor that was never observed.
  std::vector<float> factors_for(const Stream& stream) const {
    std::vector<float> result(static_cast<std::size_t>(stream.width), kSmallestFactor);
    for (const std::int32_t t : stream.scaled) {
      const std::vector<float> range = channel_limits(calibration_, t);
      if (range.empty() || range.size() != result.size()) return {};
      const float widest = *std::max_element(range.begin(), range.end());
      if (!(widest > 0) || !std::isfinite(widest)) return {};
      for (std::size_t c = 0; c < range.size(); ++c) result[c] = std::max(result[c], range[c] / widest);
    }
    double power = 0;  // of errors, against that before
    for (const float s : result) power += static_cast<double>(s) * s / static_cast<double>(result.size());
    return power < kWorthwhile ? result : std::vector<float>();
  }

  void change(const Constant& constant, const std::vector<float>& factors, bool divide) {
    ir::Tensor& tensor = graph_.tensors[at(constant.tensor)];
    std::vector<float> values = float_values(model_, tensor);
    const std::size_t block = constant.channels_are_last ? 1 : values.size() / factors.size();
    for (std::size_t k = 0; k < values.size(); ++k) {
      const float s = factors[k / block % factors.size()];
      values[k] = divide ? values[k] / s : values[k] * s;
    }
    set_constant(model_, tensor, values);
  }

  void give_as_it_was(const Reader& reader, const std::vector<float>& factors) {
    auto [copy, is_new] = copies_.try_emplace(reader.tensor, -1);
    if (is_new) {
      graph::Appender make(model_);
      const ir::Tensor scaled = graph_.tensors[at(reader.tensor)];
      copy->second = make.add_tensor(scaled.name, scaled.shape);
      graph_.tensors.back().shape_signature = scaled.shape_signature;
      const std::int32_t s =
          make.add_constant(scaled.name + "/factors", ir::Shape({static_cast<std::int32_t>(factors.size())}),
                            ir::DataType::kFloat32, factors);
      make.op(Op::MUL, "MulOptions", {reader.tensor, s}, copy->second);
    }
    std::vector<std::int32_t>& inputs = graph_.operators[reader.op].inputs;
    std::replace(inputs.begin(), inputs.end(), reader.tensor, copy->second);
  }

  // The products, which were appended, each behind the operator that gives what it reads.
  void put_copies_in_place() {
    const std::size_t before = graph_.operators.size() - copies_.size();
    std::map<std::int32_t, std::size_t> product_of;
    for (std::size_t i = before; i < graph_.operators.size(); ++i) product_of[graph_.operators[i].inputs[0]] = i;
    std::vector<ir::Operator> ordered;
    for (std::size_t i = 0; i < before; ++i) {
      ordered.push_back(graph_.operators[i]);
      for (const std::int32_t t : graph_.operators[i].outputs) {
        const auto found = product_of.find(t);
        if (found != product_of.end()) ordered.push_back(graph_.operators[found->second]);
      }
    }
    graph_.operators = std::move(ordered);
  }

  ir::Model& model_;
  ir::Subgraph& graph_;
  const Calibration& calibration_;
  ChannelFactors& factors_;
  std::map<std::int32_t, std::int32_t> copies_;  // of members, as they were
};

}  // namespace

int equalize_streams(ir::Model& model, const Calibration& calibration, ChannelFactors& factors) {
  return StreamScaler(model, calibration, factors).run();
}

Status equalize_streams(Session& session) {
  ir::Model model = *session.best().model;
  const std::size_t operators = model.subgraphs[0].operators.size();
  ChannelFactors factors;
  const int count = equalize_streams(model, *session.best().calibration, factors);
  if (count == 0) return ok_status();
  // Operators more must be worth it.
  const bool is_free = model.subgraphs[0].operators.size() == operators;
  Session::Proof proof = is_free ? Session::Proof::kNotWorse : Session::Proof::kBetter;
  if (session.options().equalize == Choice::kOn) proof = Session::Proof::kAsked;
  return session.consider_rewritten(std::move(model),
                                    fmt::format("equalization of {} residual stream{}", count, count == 1 ? "" : "s"),
                                    proof, factors);
}

}  // namespace reef::quantize
