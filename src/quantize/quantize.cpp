// SPDX-License-Identifier: Apache-2.0
#include "quantize/quantize.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "execute/cpu/evaluate.h"
#include "ir/describe.h"
#include "ir/op.h"
#include "quantize/calibration_checks.h"
#include "quantize/clearing_steps.h"
#include "quantize/fold_quantization.h"
#include "quantize/recover/techniques.h"
#include "quantize/selection_tail.h"
#include "quantize/session.h"
#include "quantize/split_outputs.h"
#include "quantize/weights_only.h"
#include "quantize/work.h"

namespace reef::quantize {
namespace {

// Modes that change weights alone: operators compute as before.
bool is_weights_only(Mode mode) { return mode == Mode::kDynamic || mode == Mode::kFloat16; }

constexpr std::string_view kCompiledOp = "edgetpu-custom-op";

Status check_model(const ir::Model& model, Mode mode) {
  const ir::Subgraph& graph = model.subgraphs[0];
  const auto is_float = [&](std::int32_t t) { return t >= 0 && graph.tensors[at(t)].type == ir::DataType::kFloat32; };
  const bool has_float_ops = std::any_of(graph.operators.begin(), graph.operators.end(), [&](const ir::Operator& op) {
    return op.type != Op::DEQUANTIZE && op.type != Op::QUANTIZE &&
           std::any_of(op.outputs.begin(), op.outputs.end(), is_float);
  });
  const bool is_compiled = std::any_of(graph.operators.begin(), graph.operators.end(),
                                       [](const ir::Operator& op) { return op.type == kCompiledOp; });
  REEF_REQUIRE(!is_compiled, "it is compiled for the Edge TPU already; give the float model that it was made from");
  REEF_REQUIRE(has_float_ops || (!is_weights_only(mode) && computes_in_16_bits(model)),
               "the model computes nothing in float32: it is quantized already. `reef compile` takes it as it is");
  return ok_status();
}

// Types and shapes are such that it runs. Only of the folded model: the form that carries scales has conversions which
// no runtime computes, such as those of 32-bit biases.
Status check_runs(const ir::Model& model) { return cpu::prepared(std::make_shared<const ir::Model>(model)).status(); }

bool may_convolve(const QuantizeOptions& options) {
  return options.mode == Mode::kInt8 && options.rewrite != Choice::kOff && !options.per_channel_fully_connected;
}

// What was tried where options leave a choice.
Status recover(Session& session) {
  const QuantizeOptions& options = session.options();
  if (!session.can_measure()) return ok_status();
  if (options.rewrite != Choice::kOff) {
    REEF_RETURN_IF_ERROR(normalize_twice(session));
    REEF_RETURN_IF_ERROR(fold_centring(session));
    REEF_RETURN_IF_ERROR(affine_layers(session));
    REEF_RETURN_IF_ERROR(centre_attention(session));
  }
  if (options.equalize != Choice::kOff) {
    REEF_RETURN_IF_ERROR(equalize_streams(session));
    REEF_RETURN_IF_ERROR(equalize(session));
  }
  if (may_convolve(options)) REEF_RETURN_IF_ERROR(convolve_uneven_layers(session));
  if (options.automatic_ranges) REEF_RETURN_IF_ERROR(choose_ranges(session));
  if (options.keep_sensitive_float != Choice::kOff && !options.full_integer) {
    REEF_RETURN_IF_ERROR(keep_sensitive_float(session));
  }
  REEF_RETURN_IF_ERROR(clip_weights(session));
  if (options.adaptive_rounding != Choice::kOff) REEF_RETURN_IF_ERROR(round_adaptively(session));
  const auto correct = [&] {
    if (options.correct_biases == Choice::kOff) return ok_status();
    REEF_RETURN_IF_ERROR(correct_biases(session));
    return correct_outputs(session);
  };
  REEF_RETURN_IF_ERROR(correct());
  REEF_RETURN_IF_ERROR(session.go_back_if_worse());
  const bool is_lost = missing_db(session.best_error().views) > 0;
  if (!is_lost || options.keep_sensitive_float == Choice::kOff || options.full_integer) return ok_status();
  REEF_RETURN_IF_ERROR(rescue(session));
  return correct();
}

Status require_full_integer(const ir::Model& model, const std::vector<Decision>& decisions) {
  for (std::size_t i = 0; i < decisions.size(); ++i) {
    if (decisions[i].treatment != Treatment::kFloat) continue;
    return unsupported("{} would stay float: {}; full-integer quantization was asked for",
                       ir::describe_op(model.subgraphs[0], static_cast<std::int32_t>(i)), decisions[i].why);
  }
  return ok_status();
}

Status finish(const State& state, const QuantizeOptions& options, QuantizeResult& result) {
  REEF_ASSIGN_OR_RETURN(IntegerModel made, to_integer(*state.model, state.plan, options));
  const ir::Subgraph &from = state.model->subgraphs[0], &to = made.model.subgraphs[0];
  for (std::size_t i = 0; i < state.plan.decisions.size(); ++i) {
    const Decision& decision = state.plan.decisions[i];
    if (decision.treatment != Treatment::kFloat) continue;
    result.float_ops.push_back({ir::describe_op(from, static_cast<std::int32_t>(i)), decision.why});
  }
  for (std::size_t t = 0; t < made.tensor_of.size(); ++t) {
    if (made.tensor_of[t] < 0) continue;
    result.names.push_back({from.tensors[t].name, to.tensors[at(made.tensor_of[t])].name});
  }
  NamedFactors equalized;
  for (const auto& [t, factors] : state.factors) {
    const std::int32_t there = made.tensor_of[at(t)];
    if (there >= 0) equalized[to.tensors[at(there)].name] = factors;
  }
  store_equalization(equalized, made.model);
  result.integer_ops = made.integer_ops;
  result.conversions = made.quantize_ops;
  result.model = std::move(made.model);
  result.float_model = *state.float_model;
  return put_back_clearing_steps(result.float_model, state.plan.cleared_lstms);
}

// Outputs that a user can do nothing with, and those that have become one number.
void judge_outputs(const Session& session, QuantizeResult& result) {
  const ir::Subgraph& graph = session.best().model->subgraphs[0];
  const std::size_t count = graph.outputs.size();
  std::size_t behind_softmax = count;  // views of outputs themselves stand behind those of what is compared instead
  for (std::size_t o = 0; o < count; ++o) {
    const bool is_itself = session.compared(o) == graph.outputs[o];
    const std::size_t view = is_itself ? o : behind_softmax++;
    if (view >= result.error->views.size()) continue;
    // On all samples measured with, too: those held back may be too few to tell.
    const std::string why = why_useless(result.error->views[view]);
    if (why.empty() || why_useless(session.best_error().views[view]).empty()) continue;
    const std::string& name = graph.tensors[at(graph.outputs[o])].name;
    result.lost.push_back(fmt::format("output '{}': {}", ir::describe_name(name), why));
    result.warnings.push_back(fmt::format(
        "NOT USABLE: output '{}' has little in common with the float model's: {} ({} dB is the least). reef quantize "
        "--report FILE shows which layers lose it",
        ir::describe_name(name), why, kUsableDb));
  }
  for (const PartError& error : result.parts) {
    const ir::Shape& shape = error.part.shape;
    const bool is_whole = shape.rank() == 0 || (error.part.begin == 0 && error.part.size == shape[error.part.axis]);
    if (!error.is_dead && !is_whole && error.sqnr_db < kUsableDb) {
      result.warnings.push_back(fmt::format("output '{}' has little in common with the float model's: {:.1f} dB",
                                            ir::describe_name(error.part.name), error.sqnr_db));
    }
    if (!error.is_dead) continue;
    // Scores of a detector that sees nothing are no loss.
    if (error.min < 0 || error.max > 0.1) {
      result.lost.push_back(
          fmt::format("output '{}': all of it becomes {:.3g}", ir::describe_name(error.part.name), error.dead_value));
    }
    result.warnings.push_back(
        fmt::format("output '{}' is dead: the float model gives {:.3g} to {:.3g}, and all of it becomes {:.3g}",
                    ir::describe_name(error.part.name), error.min, error.max, error.dead_value));
  }
}

// What it took to keep the outputs usable.
void note_rescued(const State& state, QuantizeResult& result) {
  if (!state.has_float_borders) return;
  const ir::Model& model = *state.model;
  double in_float = 0;
  for (const std::int32_t op : state.keep_float) {
    in_float += work_of(model, model.subgraphs[0].operators[at(op)]);
  }
  result.notes.push_back(
      fmt::format("{} of {} operators ({:.0f} % of the work, estimated) stay float, because an output was lost in "
                  "integers; --no-automatic-float leaves it so",
                  state.keep_float.size(), model.subgraphs[0].operators.size(), 100 * in_float / work_of(model)));
  for (const std::int32_t t : state.plan.float_border) {
    result.notes.push_back(fmt::format("'{}' stays float32: no integer operator reads or makes it",
                                       ir::describe_name(model.subgraphs[0].tensors[at(t)].name)));
  }
}

// Puts the end that chooses the best results back behind the integer model and behind the float model it was made from.
Status keep_selection(const SelectionTail& tail, const std::vector<GivenOut>& given, QuantizeResult& result) {
  if (tail.empty()) return ok_status();
  REEF_RETURN_IF_ERROR(put_back_selection(tail, given, result.model));
  REEF_RETURN_IF_ERROR(put_back_selection(tail, given, result.float_model));
  REEF_RETURN_IF_ERROR(check_runs(result.model).in("the quantized model (a defect in Reef)"));
  for (const std::int32_t op : tail.ops) {
    result.float_ops.push_back(
        {ir::describe_op(tail.whole.subgraphs[0], op), "it chooses the best results, or works on what was chosen"});
  }
  result.notes.push_back(
      fmt::format("the last {} operators, which choose the best results, stay float, and so do the outputs they make; "
                  "what they read is measured instead of their outputs",
                  tail.ops.size()));
  return ok_status();
}

// cleared: LSTMs of the model whose clearing steps were taken out. parts: what its outputs consist of.
Result<QuantizeResult> calibrated(ir::Model model, const ClearedLstms& cleared, const std::vector<OutputPart>& parts,
                                  const data::SampleSource* source, const QuantizeOptions& options,
                                  const Calibrator& calibrator) {
  Session session(*source, options, calibrator);
  REEF_RETURN_IF_ERROR(session.split_samples());
  session.measure_with_more(model);
  QuantizeResult result;
  result.measured_samples = static_cast<std::int64_t>(session.measured().size());
  result.measures_unseen = session.deals();
  result.calibration_samples = static_cast<std::int64_t>(session.calibration_samples().size());
  result.held_back_samples = static_cast<std::int64_t>(session.held_back().size());

  State state;
  state.plan.cleared_lstms = cleared;
  // What only takes roundings away needs no proof. Where results are measured, equalization comes first and knows
  // layers by their operators.
  if (!session.can_measure() && may_convolve(options)) {
    if (affine_layers(model) > 0) {
      result.notes.push_back(
          "products and sums with constants for each channel become one layer; --keep-structure leaves them");
    }
    const int uneven = convolve_uneven_layers(model);
    if (uneven > 0) result.notes.push_back(note_of_uneven_layers(uneven) + "; --keep-structure leaves them");
  }
  state.model = state.float_model = std::make_shared<const ir::Model>(model);
  const auto begin = std::chrono::steady_clock::now();
  REEF_ASSIGN_OR_RETURN(state.calibration, session.observe(state.model, "calibrating"));
  result.calibration_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  REEF_RETURN_IF_ERROR(check_calibration(model, *state.calibration, result.warnings));
  if (!session.can_measure() && may_convolve(options)) {
    ir::Model changed = *state.model;
    if (const int twice = normalize_twice(changed, *state.calibration); twice > 0) {
      result.notes.push_back(note_of_normalizing_twice(twice) + "; --keep-structure leaves them");
      state.model = state.float_model = std::make_shared<const ir::Model>(std::move(changed));
      REEF_ASSIGN_OR_RETURN(state.calibration, session.observe(state.model, "calibrating the rewritten model"));
    }
  }
  if (session.can_measure()) REEF_RETURN_IF_ERROR(session.take_reference(state.model));

  const bool is_16 = options.mode == Mode::kInt16x8;
  const RangeRequest request{options.automatic_ranges ? RangeMethod::kMinMax : options.method, options.percentile,
                             is_16 ? 65536 : 256, is_16};
  state.requests.assign(state.model->subgraphs[0].tensors.size(), request);
  state.refresh(options);
  if (options.full_integer) REEF_RETURN_IF_ERROR(require_full_integer(*state.model, state.plan.decisions));
  REEF_RETURN_IF_ERROR(session.start(std::move(state), fmt::format("ranges by {}", name_of(request.method))));
  // What is made where nothing is measured: the result must not be below that, whatever is tried and left out here.
  if (session.can_measure() && may_convolve(options)) {
    ir::Model plain = *session.best().model;
    if (affine_layers(plain) + convolve_uneven_layers(plain) > 0)
      REEF_RETURN_IF_ERROR(session.set_floor(std::move(plain)));
  }
  REEF_RETURN_IF_ERROR(recover(session));
  if (session.can_measure()) {
    std::vector<OutputPart> compared = parts;
    for (OutputPart& part : compared) {
      const bool is_itself = session.compared(part.output) == session.best().model->subgraphs[0].outputs[part.output];
      if (!is_itself) part.name += " (before its SOFTMAX)";
    }
    REEF_ASSIGN_OR_RETURN(auto error, session.error_on_held_back(compared));
    result.error = std::move(error.outputs);
    result.parts = std::move(error.parts);
    judge_outputs(session, result);
    note_rescued(session.best(), result);
  }
  const std::size_t steps = session.steps().size();
  REEF_RETURN_IF_ERROR(session.take_ranges_of_all());
  if (session.steps().size() > steps) {  // it was taken
    result.notes.push_back(fmt::format(
        "in the end ranges were taken from all {} samples; the figures are those of before, on samples that "
        "ranges had not seen",
        session.calibration_samples().size() + session.held_back().size()));
  }
  REEF_RETURN_IF_ERROR(finish(session.best(), options, result));
  result.steps = std::move(session.steps());
  return result;
}

// A model that says itself how it is to be quantized. Samples, if there are any, only measure the result.
Result<QuantizeResult> as_carried(const ir::Model& original, const Folded& folded, const data::SampleSource* source,
                                  const QuantizeOptions& options) {
  if (options.mode == Mode::kInt16x8) {
    return unsupported("the model carries scales for 8 bits; int16x8 cannot use them");
  }
  State state;
  state.model = state.float_model = std::make_shared<const ir::Model>(folded.model);
  state.plan = plan_from_carried(folded, options);
  if (options.full_integer) REEF_RETURN_IF_ERROR(require_full_integer(folded.model, state.plan.decisions));
  QuantizeResult result;
  result.notes = folded.notes;
  result.notes.push_back(
      fmt::format("the model carries {} scales of activations: they are used as they are, nothing is "
                  "calibrated",
                  folded.activation_scales));
  const auto note_borders = [&](const std::vector<std::int32_t>& borders, IoType type, std::string_view word) {
    for (const std::int32_t t : borders) {
      const ir::Tensor& tensor = folded.model.subgraphs[0].tensors[at(t)];
      const bool has_scale = state.plan.scales->tensors[at(t)].has_value();
      if (type == IoType::kFloat32 || has_scale || tensor.type != ir::DataType::kFloat32) continue;
      result.notes.push_back(fmt::format("{} '{}' stays float32: the model carries no scale for it", word,
                                         ir::describe_name(tensor.name)));
    }
  };
  note_borders(folded.model.subgraphs[0].inputs, options.input_type, "input");
  note_borders(folded.model.subgraphs[0].outputs, options.output_type, "output");
  for (const auto& [t, scales] : state.plan.given_weight_scales) {
    if (scales.size() == 1 || folded.model.subgraphs[0].tensors[at(t)].shape.rank() != 2) continue;
    result.notes.push_back(
        "weights of FULLY_CONNECTED carry a scale per output: the result needs TFLite 2.17 or later, and Google's "
        "compiler does not take it");
    break;
  }
  if (source == nullptr) {
    REEF_RETURN_IF_ERROR(finish(state, options, result));
    return result;
  }
  Session session(*source, options);
  REEF_RETURN_IF_ERROR(session.split_samples());
  // Not the folded model: rounding and cutting off is part of what the model computes.
  REEF_RETURN_IF_ERROR(session.take_reference(std::make_shared<const ir::Model>(original), false));
  REEF_RETURN_IF_ERROR(session.start(std::move(state), "scales that the model carries"));
  REEF_RETURN_IF_ERROR(finish(session.best(), options, result));
  result.held_back_samples = result.measured_samples = static_cast<std::int64_t>(session.held_back().size());
  if (session.can_measure()) result.error = session.best_error();
  result.steps = std::move(session.steps());
  return result;
}

}  // namespace

Result<QuantizeResult> quantize(const ir::Model& model, const data::SampleSource* source,
                                const QuantizeOptions& options, const Calibrator& calibrator) {
  REEF_RETURN_IF_ERROR(check_model(model, options.mode));
  REEF_RETURN_IF_ERROR(cpu::check_operators(model));
  REEF_ASSIGN_OR_RETURN(const Folded folded, fold_quantization(model, !is_weights_only(options.mode)));
  REEF_RETURN_IF_ERROR(check_runs(folded.model));
  REEF_RETURN_IF_ERROR(check_names(folded.model, options));
  if (is_weights_only(options.mode)) {
    return weights_only(folded.model, source, options);
  }
  if (folded.has_activation_scales()) return as_carried(model, folded, source, options);
  if (source == nullptr)
    return invalid_input(
        "int8 and int16x8 need samples to calibrate with: name them with --data (a folder of pictures, .npz or .npy); "
        "`reef quantize --mode dynamic` needs none, nor does float16");
  ir::Model rest = folded.model;
  const bool may_be_float = options.keep_sensitive_float != Choice::kOff && !options.full_integer;
  const SelectionTail tail = may_be_float ? take_off_selection(rest) : SelectionTail{};
  REEF_ASSIGN_OR_RETURN(SplitResult split, split_outputs(rest, source, options));
  ir::Model& changed = split.model;
  const ClearedLstms cleared = options.mode == Mode::kInt8 ? take_out_clearing_steps(changed) : ClearedLstms{};
  REEF_ASSIGN_OR_RETURN(QuantizeResult result,
                        calibrated(std::move(changed), cleared, split.parts, source, options, calibrator));
  REEF_RETURN_IF_ERROR(keep_selection(tail, split.given, result));
  // The parts of a tensor that the end reads are joined again in front of it: nobody sees that it was taken apart.
  if (tail.empty()) result.notes.insert(result.notes.end(), split.notes.begin(), split.notes.end());
  result.warnings.insert(result.warnings.end(), split.warnings.begin(), split.warnings.end());
  return result;
}

}  // namespace reef::quantize
