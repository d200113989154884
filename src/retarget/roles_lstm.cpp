// SPDX-License-Identifier: Apache-2.0
// UNIDIRECTIONAL_SEQUENCE_LSTM. The program holds one time step in a loop: for each gate two fully connected layers
// whose 8-bit results are added and sent through a table, then the cell state in 16 bits. Read in the one program there
// is; only what depends on the model is written, and a cell state of another scale than 2^-12 is refused, because the
// constants of the 16-bit part follow from it in ways not seen.
#include <algorithm>

#include "formats/darwinn/parameters/lstm_gates.h"
#include "ir/op.h"
#include "retarget/layer_match.h"
#include "retarget/roles.h"

namespace reef::retarget {

namespace {

constexpr std::size_t kInput = 0, kInputWeights = 1, kRecurrentWeights = 5, kHidden = 18, kCell = 19;
constexpr int kCellGate = 2;
constexpr float kCellScale = 1.0f / 4096;

struct Lstm {
  std::int32_t k = 0;
  std::int32_t input = 0, hidden = 0, cell = 0, output = 0;
  ChipTensor x, h;
};

std::optional<Lstm> lstm_of(const Network& network, std::int32_t k) {
  const ir::Operator& op = network.op(k);
  if (op.type != Op::UNIDIRECTIONAL_SEQUENCE_LSTM || op.inputs.size() <= kCell) return std::nullopt;
  Lstm lstm{k, op.inputs[kInput], op.inputs[kHidden], op.inputs[kCell], op.outputs[0], {}, {}};
  if (lstm.input < 0 || lstm.hidden < 0 || lstm.cell < 0) return std::nullopt;
  const auto x = network.chip(lstm.input), h = network.chip(lstm.hidden), c = network.chip(lstm.cell);
  const auto y = network.chip(lstm.output);
  if (!x || !h || !c || !y || !(*y == *h) || !(*c == ChipTensor{kCellScale, 32768})) return std::nullopt;
  lstm.x = *x;
  lstm.h = *h;
  return lstm;
}

float weight_scale(const Network& network, const Lstm& lstm, std::size_t operand) {
  const std::int32_t t = network.op(lstm.k).inputs[operand];
  return t >= 0 && network.tensor(t).quantization.scale.size() == 1 ? network.tensor(t).quantization.scale[0] : 0;
}

void offer_gate(RoleContext& context, const Lstm& lstm, const darwinn::LstmParameters& parameters, int gate,
                bool is_recurrent) {
  const Network& network = context.network;
  const darwinn::LstmLayer& layer = parameters.gates[at(2 * gate + (is_recurrent ? 1 : 0))];
  const Sources& sources = context.op.trace->parameters;
  std::uint32_t first = RoleContext::offsets_of(sources).first();
  if (context.op.trace->biases.from_blob()) {
    first = std::min(first, RoleContext::offsets_of(context.op.trace->biases).first());
  }
  const LayerFit fit = fit_layer(context, lstm.k, layer.layer.shape, first);
  if (!fit.reason.empty()) return context.reject(lstm.k, "{}: {}", layer.role, fit.reason);
  if (!(layer.layer.presence() == presence_of(context.op))) {
    return context.reject(lstm.k, "{}: biases, in one of the two files only", layer.role);
  }
  const auto bytes = darwinn::packed_size(layer.layer.shape, layer.layer.presence());
  const Origin blob = RoleContext::blob_of(sources);
  if (!bytes.ok() || first + *bytes > context.compiled.blob(blob).size()) return;
  Choice choice;
  choice.op = lstm.k;
  choice.role = "LSTM " + layer.role;
  choice.part = layer.role;
  choice.label = {Label::of_stage(lstm.k, (is_recurrent ? kLstmGateRecurrent : kLstmGateIn) + gate)};
  choice.writes_zero = false;
  choice.input_zero = Constant::kInZero;
  LayerChunk chunk;
  chunk.range = {blob, first, static_cast<std::uint32_t>(*bytes)};
  chunk.op = lstm.k;
  chunk.part = layer.role;
  chunk.parameters = std::make_shared<darwinn::LayerParameters>(layer.layer);
  choice.new_chunk = std::move(chunk);
  const ChipTensor& in = is_recurrent ? lstm.h : lstm.x;
  const std::size_t operand = (is_recurrent ? kRecurrentWeights : kInputWeights) + static_cast<std::size_t>(gate);
  set_all(choice, {layer.layer.weight_zero_point.value_or(128), in.zero_point, lstm.h.zero_point,
                   numeric::chip_layer_multiplier(in.scale, weight_scale(network, lstm, operand), lstm.h.scale),
                   numeric::chip_clamp(lstm.h.scale, lstm.h.zero_point, numeric::ChipActivation::kNone), 0});
  context.offer(std::move(choice));
}

struct LstmStep {
  RoleContext& context;
  const Lstm& lstm;
  void offer(std::string role, Label label, std::optional<Requantization> constants) const {
    Choice choice;
    choice.op = lstm.k;
    choice.role = "LSTM " + std::move(role);
    choice.label = {label};
    choice.writes_zero = false;
    if (constants) set_all(choice, *constants);
    context.offer(std::move(choice));
  }
  Label stage(int stage) const { return Label::of_stage(lstm.k, stage); }
  bool reads(int stage) const { return context.input.is_stage(lstm.k, stage); }
  bool takes(int stage) const { return context.parameters.is_stage(lstm.k, stage); }
};

// Sum of a gate's two halves, through its table.
void offer_gate_sum(const LstmStep& step) {
  const Operand& in = step.context.input;
  for (int gate = 0; gate < 4; ++gate) {
    const std::vector<Label> both = {step.stage(kLstmGateIn + gate), step.stage(kLstmGateRecurrent + gate)};
    if (!in.tensors.empty() || in.stages != both) continue;
    const bool is_tanh = gate == kCellGate;
    if (step.context.op.is_odd != is_tanh ||
        !tables_are(step.context, is_tanh ? Table::kTanh : Table::kLogistic, is_tanh ? 127.5 : 255)) {
      return step.context.reject(step.lstm.k, "the template applies another function to gate {}", gate);
    }
    const float bound = is_tanh ? kTanhBound : kLogisticBound;
    const ChipTensor& h = step.lstm.h;
    step.offer("gate", step.stage(kLstmGate + gate),
               Requantization{0, 0, is_tanh ? 128 : 0, h.scale, {bound, -bound}, -2 * h.zero_point});
  }
}

// The 16-bit part.
void offer_state_steps(const LstmStep& step) {
  const OpView& op = step.context.op;
  const Operand& in = step.context.input;
  const Lstm& lstm = step.lstm;
  if (op.arithmetic == Arithmetic::kElements && op.lanes_off == 7) {
    if (step.reads(kLstmGate + 0) && step.takes(kLstmGate + kCellGate))
      step.offer("update", step.stage(kLstmUpdate), {});
  } else if (op.arithmetic == Arithmetic::kElements && op.has_wide_result && !op.has_activation) {
    if (step.reads(kLstmGate + 1)) step.offer("forget gate, widened", step.stage(kLstmWideForget), {});
    if (step.reads(kLstmGate + 3)) step.offer("output gate, widened", step.stage(kLstmWideOutput), {});
  } else if (op.arithmetic == Arithmetic::kWideIn) {
    for (const int stage : {kLstmUpdate, kLstmKept}) {
      if (step.reads(stage)) step.offer("packed", step.stage(stage), {});
    }
  } else if (op.arithmetic == Arithmetic::kWideBoth) {
    const auto& cell = step.context.parameters.tensors;
    if (step.reads(kLstmWideForget) && cell == std::vector<std::int32_t>{lstm.cell}) {
      step.offer("kept state", step.stage(kLstmKept), {});
    }
    const std::vector<Label> both = {step.stage(kLstmUpdate), step.stage(kLstmKept)};
    if (in.tensors.empty() && in.stages == both) {
      if (op.has_activation && !tables_are(step.context, Table::kTanh, 16383.5)) return;
      step.offer(op.has_activation ? "tanh of the state" : "state",
                 op.has_activation ? step.stage(kLstmCellTanh) : Label::tensor(lstm.cell), {});
    }
    if (step.reads(kLstmWideOutput) && step.takes(kLstmCellTanh)) {
      const float factor = (1.0f / 255) * (1.0f / 16383.5f);  // a gate's step times a step of tanh
      step.offer(
          "output", Label::tensor(lstm.output),
          Requantization{16384, 0, lstm.h.zero_point, numeric::chip_rescale_multiplier(factor, lstm.h.scale),
                         numeric::chip_clamp(lstm.h.scale, lstm.h.zero_point, numeric::ChipActivation::kNone), 0});
    }
  }
}

}  // namespace

void offer_lstm_gates(RoleContext& context) {
  const OpView& op = context.op;
  if (!op.is_multiply_add() || op.arithmetic != Arithmetic::kWeights || !op.trace->parameters.from_blob()) return;
  const Network& network = context.network;
  for (const std::int32_t k : network.chip_ops()) {
    if (network.op(k).type != Op::UNIDIRECTIONAL_SEQUENCE_LSTM) continue;
    const auto lstm = lstm_of(network, k);
    if (!lstm) {
      context.reject(k, "only an 8-bit LSTM with a cell state of scale 1/4096 is known");
      continue;
    }
    const auto& tensors = context.input.tensors;
    const bool is_recurrent = tensors == std::vector<std::int32_t>{lstm->hidden};
    if (!is_recurrent && !network.all_are(tensors, lstm->input)) continue;
    const auto parameters = darwinn::lstm_parameters_of(network.model(), network.graph(), network.op(k));
    if (!parameters.ok()) {
      context.reject(k, "{}", parameters.status().message());
      continue;
    }
    // Gates stand in the program in their order.
    for (int gate = 0; gate < 4; ++gate) {
      const auto& role = parameters->gates[at(2 * gate + (is_recurrent ? 1 : 0))].role;
      if (context.state.used_parts.count({k, role}) > 0) continue;
      offer_gate(context, *lstm, *parameters, gate, is_recurrent);
      break;
    }
  }
}

void offer_lstm(RoleContext& context) {
  if (!context.op.is_multiply_add() || (context.input.stages.empty() && context.parameters.stages.empty())) return;
  for (const std::int32_t k : context.network.chip_ops()) {
    const auto lstm = lstm_of(context.network, k);
    if (!lstm) continue;
    const LstmStep step{context, *lstm};
    if (context.op.arithmetic == Arithmetic::kWideParam && context.op.has_activation) {
      offer_gate_sum(step);
    } else {
      offer_state_steps(step);
    }
  }
}

}  // namespace reef::retarget
