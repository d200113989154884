// SPDX-License-Identifier: Apache-2.0
// GRU, RNN and the LSTMs that cannot be one operator, unrolled: one FULLY_CONNECTED for the inputs of all steps, then
// per step one for the state and element-wise operators. Such a graph runs in any TFLite runtime and quantizes as any
// other; with many steps it grows large, which is said, and beyond some is refused. An LSTM becomes one operator where
// that computes the same (sequence_lstm.cpp): it is smaller, faster, and in integers keeps its cells in 16 bits, where
// an unrolled one rounds them to 8 in every step.
//
// Equations, gate orders and the names of activation functions are ONNX's. Sequences of different lengths in a batch
// keep their state, and give zeros, after their end; where the direction is reverse they are turned around in place.
#include <algorithm>

#include "import/onnx/recurrent.h"
#include "ir/op.h"

namespace reef::import {
namespace {

// Cells of more steps are said to be large.
constexpr std::int64_t kManySteps = 128;
// Fewer steps of an LSTM are not worth those that clear its state.
constexpr std::int64_t kLeastForOneOperator = 4;
// Operators of a node that is unrolled. Files grow by some 100 bytes with each.
constexpr std::int64_t kMostUnrolled = 50'000;

// The functions of one direction, with ONNX's defaults for their parameters.
Result<std::vector<ActivationSpec>> read_activations(const NodeContext& ctx, int direction, int per_direction,
                                                     std::vector<std::string> defaults) {
  const onnx::Attribute* names = ctx.node().find("activations");
  const std::vector<float> alphas = ctx.floats_attribute("activation_alpha");
  const std::vector<float> betas = ctx.floats_attribute("activation_beta");
  std::vector<ActivationSpec> result;
  for (int i = 0; i < per_direction; ++i) {
    const auto at = static_cast<std::size_t>(direction * per_direction + i);
    std::string name = defaults[reef::at(i)];
    if (names != nullptr && !names->strings.empty()) {
      REEF_REQUIRE(at < names->strings.size(), "attribute activations has {} names", names->strings.size());
      name = names->strings[at];
    }
    ActivationSpec spec = activation_of(std::move(name));
    if (at < alphas.size()) spec.alpha = alphas[at];
    if (at < betas.size()) spec.beta = betas[at];
    result.push_back(std::move(spec));
  }
  return result;
}

Id part(GraphBuilder& b, const Direction& d, Id gates, int index) {
  const int axis = b.rank(gates) - 1;
  return slice_axis(b, gates, axis, index * d.hidden, d.hidden);
}

Id clipped(GraphBuilder& b, const Direction& d, Id x) {
  if (d.clip <= 0) return x;
  return minimum(b, maximum(b, x, b.scalar(b.type(x), -d.clip)), b.scalar(b.type(x), d.clip));
}

Result<Id> gate(GraphBuilder& b, const Direction& d, int function, Id x) {
  return activate(b, d.activations[reef::at(function)], clipped(b, d, x));
}

// Products of the inputs of all steps, cut into steps: each [batch, gates * hidden].
std::vector<Id> input_products(GraphBuilder& b, const Direction& d, Id bias) {
  const Id rows = reshape(b, d.x, {d.steps * d.batch, d.inputs});
  const Id all = fully_connected(b, rows, d.weights, bias);
  std::vector<Id> result;
  for (std::int64_t t = 0; t < d.steps; ++t) result.push_back(slice_axis(b, all, 0, t * d.batch, d.batch));
  return result;
}

Id both_biases(GraphBuilder& b, const Direction& d) {
  return d.bias == kAbsent ? kAbsent : add(b, d.bias, d.recurrent_bias);
}

// [batch, 1] bool: sequences that are not over at step t.
Id is_running(GraphBuilder& b, const Direction& d, std::int64_t t) {
  const Id step = b.scalar(ir::DataType::kInt32, static_cast<double>(t));
  return reshape(b, compare(b, Op::GREATER, d.lengths, step), {d.batch, 1});
}

struct Run {
  std::vector<Id> outputs;  // per step [batch, hidden]
  Id state = kAbsent, cell = kAbsent;
};

using Step = std::function<Result<Id>(Id products, Id state, Id& cell)>;

Result<Run> run_steps(GraphBuilder& b, const Direction& d, Id bias, const Step& step) {
  Run run;
  run.state = d.state;
  run.cell = d.cell;
  const std::vector<Id> products = input_products(b, d, bias);
  for (std::int64_t t = 0; t < d.steps; ++t) {
    Id cell = run.cell;
    REEF_ASSIGN_OR_RETURN(Id state, step(products[reef::at(t)], run.state, cell));
    Id output = state;
    if (d.lengths != kAbsent) {
      const Id running = is_running(b, d, t);
      const Id zeros = b.filled(b.type(state), b.shape(state), 0);
      output = select(b, running, state, zeros);
      state = select(b, running, state, run.state);
      if (cell != kAbsent) cell = select(b, running, cell, run.cell);
    }
    run.outputs.push_back(output);
    run.state = state;
    run.cell = cell;
    REEF_RETURN_IF_ERROR(b.status());
  }
  return run;
}

// Gates i, o, f, c.
Result<Run> run_lstm(NodeContext& ctx, const Direction& d) {
  GraphBuilder& b = ctx.b;
  const bool couples = ctx.int_attribute("input_forget", 0) != 0;
  const auto peephole = [&](int index, Id cell) {
    return mul(b, slice_axis(b, d.peepholes, 0, index * d.hidden, d.hidden), cell);
  };
  return run_steps(b, d, both_biases(b, d), [&](Id products, Id state, Id& cell) -> Result<Id> {
    const Id gates = add(b, products, fully_connected(b, state, d.recurrent, kAbsent));
    Id i = part(b, d, gates, 0), o = part(b, d, gates, 1), f = part(b, d, gates, 2);
    if (d.peepholes != kAbsent) {
      i = add(b, i, peephole(0, cell));
      f = add(b, f, peephole(2, cell));
    }
    REEF_ASSIGN_OR_RETURN(i, gate(b, d, 0, i));
    if (couples) {
      f = subtract_from(b, 1.0, i);
    } else {
      REEF_ASSIGN_OR_RETURN(f, gate(b, d, 0, f));
    }
    REEF_ASSIGN_OR_RETURN(const Id candidate, gate(b, d, 1, part(b, d, gates, 3)));
    cell = add(b, mul(b, f, cell), mul(b, i, candidate));
    if (d.peepholes != kAbsent) o = add(b, o, peephole(1, cell));
    REEF_ASSIGN_OR_RETURN(o, gate(b, d, 0, o));
    REEF_ASSIGN_OR_RETURN(const Id shown, activate(b, d.activations[2], cell));
    return mul(b, o, shown);
  });
}

// Gates z, r, h.
Result<Run> run_gru(NodeContext& ctx, const Direction& d) {
  GraphBuilder& b = ctx.b;
  const bool resets_after = ctx.int_attribute("linear_before_reset", 0) != 0;
  const std::int64_t h = d.hidden;
  const Id recurrent_zr = slice_axis(b, d.recurrent, 0, 0, 2 * h),
           recurrent_h = slice_axis(b, d.recurrent, 0, 2 * h, h);
  const Id bias_zr = d.bias == kAbsent ? kAbsent : slice_axis(b, d.recurrent_bias, 0, 0, 2 * h);
  const Id bias_h = d.bias == kAbsent ? kAbsent : slice_axis(b, d.recurrent_bias, 0, 2 * h, h);
  return run_steps(b, d, d.bias, [&](Id products, Id state, Id&) -> Result<Id> {
    const Id zr = add(b, slice_axis(b, products, 1, 0, 2 * h), fully_connected(b, state, recurrent_zr, bias_zr));
    REEF_ASSIGN_OR_RETURN(const Id z, gate(b, d, 0, part(b, d, zr, 0)));
    REEF_ASSIGN_OR_RETURN(const Id r, gate(b, d, 0, part(b, d, zr, 1)));
    const Id inner = resets_after ? mul(b, r, fully_connected(b, state, recurrent_h, bias_h))
                                  : fully_connected(b, mul(b, r, state), recurrent_h, bias_h);
    REEF_ASSIGN_OR_RETURN(const Id candidate, gate(b, d, 1, add(b, slice_axis(b, products, 1, 2 * h, h), inner)));
    return add(b, mul(b, subtract_from(b, 1.0, z), candidate), mul(b, z, state));
  });
}

Result<Run> run_rnn(NodeContext& ctx, const Direction& d) {
  GraphBuilder& b = ctx.b;
  return run_steps(b, d, both_biases(b, d), [&](Id products, Id state, Id&) -> Result<Id> {
    return gate(b, d, 0, add(b, products, fully_connected(b, state, d.recurrent, kAbsent)));
  });
}

// Turns the steps around; with lengths, each sequence within its own.
Id turned(GraphBuilder& b, Id x, Id lengths) {
  if (lengths == kAbsent) return reverse(b, x, 0);
  ir::Attributes attributes;
  attributes.set("seq_dim", std::int64_t{0});
  attributes.set("batch_dim", std::int64_t{1});
  return b.emit(Op::REVERSE_SEQUENCE, {x, lengths}, b.type(x), std::move(attributes));
}

// Row `index` of the first axis, without it.
Id row_of(GraphBuilder& b, Id x, std::int64_t index) {
  Dims dims = dims_of(b.shape(x));
  dims.erase(dims.begin());
  return reshape(b, slice_axis(b, x, 0, index, 1), dims);
}

struct CellKind {
  int gates = 1;
  int functions = 1;
  std::vector<std::string> defaults;
  Result<Run> (*run)(NodeContext&, const Direction&) = nullptr;
};

struct Sequence {
  Id all = kAbsent;  // [steps, batch, hidden], in the order in which steps are taken; kAbsent where nobody wants it
  Id state = kAbsent, cell = kAbsent;
};

// Operators of one step, by which the size of an unrolled node is estimated.
std::int64_t operators_per_step(const CellKind& kind, const Direction& d) {
  const std::int64_t plain = kind.gates == 4 ? 13 : kind.gates == 3 ? 16 : 4;
  return plain + (d.lengths != kAbsent ? 3 : 0) + (d.clip > 0 ? 2 * kind.gates : 0);
}

Result<Sequence> run_direction(NodeContext& ctx, const CellKind& kind, const Direction& d) {
  GraphBuilder& b = ctx.b;
  Sequence result;
  if (!ctx.unrolls() && d.steps >= kLeastForOneOperator && kind.gates == 4 && fits_sequence_lstm(ctx, d)) {
    result.all = sequence_lstm(b, d);
    result.state = reshape(b, slice_axis(b, result.all, 0, d.steps - 1, 1), {d.batch, d.hidden});
    return result;
  }
  const std::int64_t operators = operators_per_step(kind, d) * d.steps;
  const std::string size = fmt::format("its {} steps become some {} operators, {} KiB of the file (estimated)", d.steps,
                                       operators, operators / 10);
  if (operators > kMostUnrolled) {
    return unsupported(
        "{}, which is too much; split the sequence, or export an LSTM without initial state, lengths and "
        "last cell, which becomes one operator",
        size);
  }
  if (d.steps > kManySteps) ctx.note(size);
  REEF_ASSIGN_OR_RETURN(const Run run, kind.run(ctx, d));
  result.state = run.state;
  result.cell = run.cell;
  if (ctx.wants(0)) {
    result.all = d.steps == 1 ? reshape(b, run.outputs[0], {1, d.batch, d.hidden}) : stack(b, run.outputs, 0);
  }
  return result;
}

Status check_operands(NodeContext& ctx, const CellKind& kind, std::int64_t directions, std::int64_t hidden) {
  GraphBuilder& b = ctx.b;
  const auto check = [&](int input, const Dims& wanted, std::string_view name) -> Status {
    if (!ctx.has(input)) return ok_status();
    REEF_REQUIRE(b.is_shape_known(ctx.in(input)) && dims_of(b.shape(ctx.in(input))) == wanted,
                 "input {} {} has the shape {}; {} is needed", input, name, b.shape(ctx.in(input)).to_string(),
                 shape_from(wanted).to_string());
    return ok_status();
  };
  const bool batch_first = ctx.int_attribute("layout", 0) != 0;
  const std::int64_t batch = b.dim(ctx.in(0), batch_first ? 0 : 1), inputs = b.dim(ctx.in(0), 2);
  const Dims states = batch_first ? Dims{batch, directions, hidden} : Dims{directions, batch, hidden};
  REEF_RETURN_IF_ERROR(check(1, {directions, kind.gates * hidden, inputs}, "W"));
  REEF_RETURN_IF_ERROR(check(2, {directions, kind.gates * hidden, hidden}, "R"));
  REEF_RETURN_IF_ERROR(check(3, {directions, 2 * kind.gates * hidden}, "B"));
  REEF_RETURN_IF_ERROR(check(4, {batch}, "sequence_lens"));
  REEF_RETURN_IF_ERROR(check(5, states, "initial_h"));
  REEF_RETURN_IF_ERROR(check(6, states, "initial_c"));
  return check(7, {directions, 3 * hidden}, "P");
}

Status convert_cell(NodeContext& ctx, const CellKind& kind) {
  REEF_RETURN_IF_ERROR(ctx.require_inputs(3));
  GraphBuilder& b = ctx.b;
  REEF_REQUIRE(b.rank(ctx.in(0)) == 3 && b.rank(ctx.in(1)) == 3 && b.rank(ctx.in(2)) == 3,
               "inputs X, W and R must have three dimensions");
  const std::int64_t hidden = ctx.int_attribute("hidden_size", b.dim(ctx.in(2), 2));
  REEF_REQUIRE(hidden >= 1 && hidden < (1 << 24), "attribute hidden_size is {}", hidden);
  const std::string name = ctx.string_attribute("direction", "forward");
  REEF_REQUIRE(name == "forward" || name == "reverse" || name == "bidirectional", "attribute direction is '{}'", name);
  const int directions = name == "bidirectional" ? 2 : 1;
  REEF_RETURN_IF_ERROR(check_operands(ctx, kind, directions, hidden));
  const bool batch_first = ctx.int_attribute("layout", 0) != 0;
  const auto time_first = [&](Id x) { return batch_first ? transpose(b, x, {1, 0, 2}) : x; };
  const Id x = time_first(ctx.in(0));
  const std::int64_t steps = b.dim(x, 0), batch = b.dim(x, 1), width = kind.gates * hidden;
  REEF_REQUIRE(steps >= 1, "the sequence is empty");
  Id lengths = ctx.has(4) ? cast(b, ctx.in(4), ir::DataType::kInt32) : kAbsent;
  if (const auto known = ctx.has(4) ? b.int_values(lengths) : std::nullopt) {
    if (std::all_of(known->begin(), known->end(), [&](std::int64_t n) { return n == steps; })) lengths = kAbsent;
  }
  std::vector<Id> sequences, states, cells;
  for (int i = 0; i < directions; ++i) {
    Direction d;
    d.steps = steps, d.batch = batch, d.inputs = b.dim(x, 2), d.hidden = hidden, d.gates = kind.gates;
    d.is_reverse = name == "reverse" || i == 1;
    d.lengths = lengths;
    d.x = d.is_reverse ? turned(b, x, lengths) : x;
    d.weights = row_of(b, ctx.in(1), i);
    d.recurrent = row_of(b, ctx.in(2), i);
    if (ctx.has(3)) {
      const Id biases = row_of(b, ctx.in(3), i);
      d.bias = slice_axis(b, biases, 0, 0, width);
      d.recurrent_bias = slice_axis(b, biases, 0, width, width);
    }
    const auto initial = [&](int input) {
      if (ctx.has(input)) return row_of(b, time_first(ctx.in(input)), i);
      return b.filled(b.type(x), shape_from({batch, hidden}), 0);
    };
    d.state = initial(5);
    if (kind.functions == 3) d.cell = initial(6);
    if (kind.functions == 3 && ctx.has(7)) d.peepholes = row_of(b, ctx.in(7), i);
    d.clip = ctx.float_attribute("clip", 0);
    REEF_ASSIGN_OR_RETURN(d.activations, read_activations(ctx, i, kind.functions, kind.defaults));
    REEF_ASSIGN_OR_RETURN(const Sequence result, run_direction(ctx, kind, d));
    sequences.push_back(d.is_reverse && ctx.wants(0) ? turned(b, result.all, lengths) : result.all);
    states.push_back(result.state);
    cells.push_back(result.cell);
  }
  const auto with_directions = [&](const std::vector<Id>& parts) {
    const Id all = parts.size() == 1 ? reshape(b, parts[0], {1, batch, hidden}) : stack(b, parts, 0);
    return time_first(all);
  };
  if (ctx.wants(0)) {
    Id y = sequences.size() == 1 ? reshape(b, sequences[0], {steps, 1, batch, hidden}) : stack(b, sequences, 1);
    ctx.out(0, batch_first ? transpose(b, y, {2, 0, 1, 3}) : y);
  }
  if (ctx.wants(1)) ctx.out(1, with_directions(states));
  if (ctx.wants(2)) ctx.out(2, with_directions(cells));
  return ok_status();
}

}  // namespace

ActivationSpec activation_of(std::string name) {
  for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  ActivationSpec spec;
  spec.alpha = name == "hardsigmoid" ? 0.2f : name == "leakyrelu" ? 0.01f : 1.0f;
  spec.beta = name == "hardsigmoid" ? 0.5f : name == "affine" ? 0.0f : 1.0f;
  spec.name = std::move(name);
  return spec;
}

Result<Id> activate(GraphBuilder& b, const ActivationSpec& spec, Id x) {
  const auto scaled = [&](OpName op, double outer, double inner) {
    return mul(b, unary(b, op, mul(b, x, inner)), outer);
  };
  if (spec.name == "sigmoid") return unary(b, Op::LOGISTIC, x);
  if (spec.name == "tanh") return unary(b, Op::TANH, x);
  if (spec.name == "relu") return unary(b, Op::RELU, x);
  if (spec.name == "affine") return add(b, mul(b, x, spec.alpha), spec.beta);
  if (spec.name == "scaledtanh") return scaled(Op::TANH, spec.alpha, spec.beta);
  if (spec.name == "hardsigmoid") return unary(b, Op::RELU_0_TO_1, add(b, mul(b, x, spec.alpha), spec.beta));
  if (spec.name == "softsign") return div(b, x, add(b, unary(b, Op::ABS, x), 1.0));
  if (spec.name == "elu" && spec.alpha == 1) return unary(b, Op::ELU, x);
  if (spec.name == "leakyrelu") {
    ir::Attributes attributes;
    attributes.set("alpha", static_cast<double>(spec.alpha));
    return b.emit(Op::LEAKY_RELU, {x}, b.type(x), std::move(attributes));
  }
  return unsupported("attribute activations has '{}', which is not converted", spec.name);
}

Status convert_lstm(NodeContext& ctx, GraphBuilder&) {
  return convert_cell(ctx, {4, 3, {"sigmoid", "tanh", "tanh"}, run_lstm});
}
Status convert_gru(NodeContext& ctx, GraphBuilder&) { return convert_cell(ctx, {3, 2, {"sigmoid", "tanh"}, run_gru}); }
Status convert_rnn(NodeContext& ctx, GraphBuilder&) { return convert_cell(ctx, {1, 1, {"tanh"}, run_rnn}); }

}  // namespace reef::import
