// SPDX-License-Identifier: Apache-2.0
#include "quantize_report.h"

#include <cstdio>
#include <map>

#include <fmt/format.h>

#include "base/shell_word.h"
#include "compiler/quantize_json.h"
#include "console.h"
#include "data_options.h"
#include "ir/describe.h"
#include "pass_report.h"

namespace reef::app {
namespace {

constexpr double kGoodDb = 25, kFairDb = 15;
constexpr double kGoodShare = 0.95;  // of boxes, classes or scores

// Of ten boxes nine and a half: what a user would call the same detector.
bool keeps_boxes(const evaluate::BoxAgreement& boxes) {
  return boxes.boxes > 0 && static_cast<double>(boxes.kept) >= kGoodShare * static_cast<double>(boxes.boxes) &&
         static_cast<double>(boxes.added) <= (1 - kGoodShare) * 2 * static_cast<double>(boxes.boxes) + 1;
}

std::string steps_text(const quantize::QuantizeResult& result, bool verbose) {
  if (result.steps.empty()) return "";
  std::int64_t kept = 0;
  for (const quantize::Step& step : result.steps) kept += step.kept ? 1 : 0;
  const bool more = result.measured_samples > result.held_back_samples;
  const std::string on = result.measures_unseen
                             ? fmt::format("{} samples, each with ranges from others", result.measured_samples)
                         : more ? fmt::format("{} samples, those held back and others", result.measured_samples)
                                : "the samples held back";
  if (!verbose) return fmt::format("tried {} ways, kept {}, on {} (-v lists them)\n", result.steps.size(), kept, on);
  std::string text = fmt::format("tried, on {} (outputs against the float model's):\n", on);
  for (const quantize::Step& step : result.steps) {
    text += fmt::format("  {} {:<56} {}", step.kept ? "+" : "-", step.what, quantize::describe(step.error));
    if (step.gain.standard_error > 0) {
      text += fmt::format(" ({:+.1f} dB, standard error {:.1f})", step.gain.db, step.gain.standard_error);
    }
    if (!step.why_not.empty()) text += fmt::format(" not kept: {}", step.why_not);
    text += '\n';
  }
  return text;
}

// A line for each operator that stays float; without -v one for those that stay float for the same reason.
std::string float_ops_text(const std::vector<quantize::FloatOp>& ops, bool verbose) {
  constexpr std::size_t kMostListed = 3;
  std::map<std::string, std::vector<std::string>> by_reason;
  for (const quantize::FloatOp& op : ops) by_reason[op.why].push_back(op.op);
  std::string text;
  for (const quantize::FloatOp& op : ops) {
    std::vector<std::string>& alike = by_reason[op.why];
    if (verbose || alike.size() <= kMostListed) {
      text += fmt::format("stays float: {}: {}\n", op.op, op.why);
    } else if (alike.front() == op.op) {
      text += fmt::format("stays float: {} operators, {} to {}: {} (-v lists them)\n", alike.size(), alike.front(),
                          alike.back(), op.why);
    }
  }
  return text;
}

// Everything was kept float to save an output: right on any CPU, and useless to an Edge TPU.
bool nothing_for_the_chip(const compiler::QuantizeRequest& request, const quantize::QuantizeResult& result) {
  return request.how.mode == quantize::Mode::kInt8 && result.integer_ops == 0 && !result.float_ops.empty();
}

}  // namespace

std::string accuracy_text(const compiler::QuantizeOutcome& outcome) {
  std::string truth;
  if (outcome.accuracy) {
    truth = fmt::format("{} {:.1f} %, float {:.1f} % (measured, {} samples)",
                        outcome.accuracy->metric == "map50" ? "mAP@0.5" : "top-1", 100 * outcome.accuracy->of_quantized,
                        100 * outcome.accuracy->of_float, outcome.accuracy->samples);
    if (outcome.boxes || outcome.result.error) truth += "; ";
  }
  if (outcome.boxes) return truth + evaluate::describe(*outcome.boxes);
  if (!outcome.result.error) return truth;
  return truth + fmt::format("{} against the float model (measured, {} samples)",
                             quantize::describe(*outcome.result.error), outcome.result.held_back_samples);
}

report::Summary quantize_summary(const compiler::QuantizeRequest& request, const compiler::QuantizeOutcome& outcome) {
  const quantize::QuantizeResult& result = outcome.result;
  report::Summary summary;
  const std::string kind = compiler::mode_name(request.how.mode);
  if (!result.lost.empty()) {
    summary.tone = report::Tone::kBad;
    summary.verdict = fmt::format("NOT USABLE: {}", result.lost.front());
  } else if (nothing_for_the_chip(request, result)) {
    summary.tone = report::Tone::kBad;
    summary.verdict = fmt::format(
        "Not for the Edge TPU: all {} operators stay float, because integers lose an output; samples on which outputs "
        "hardly vary do that, too",
        result.float_ops.size());
  } else if (outcome.boxes && outcome.boxes->boxes > 0) {
    const bool is_good = keeps_boxes(*outcome.boxes);
    summary.tone = is_good ? report::Tone::kGood : report::Tone::kBad;
    summary.verdict =
        fmt::format("{}: the {} detector finds {} of the float model's {} boxes", is_good ? "Good" : "Accuracy is lost",
                    kind, outcome.boxes->kept, outcome.boxes->boxes);
  } else if (!result.error) {
    summary.verdict = fmt::format("Quantized to {}; nothing was measured", kind);
  } else {
    const quantize::OutputError& error = *result.error;
    const bool agrees = (error.top1_agreement < 0 || error.top1_agreement >= kGoodShare) &&
                        (error.kept_scores < 0 || error.kept_scores >= kGoodShare);
    const bool is_good = agrees && error.mean_sqnr_db >= kGoodDb, is_fair = error.mean_sqnr_db >= kFairDb;
    summary.tone = is_good ? report::Tone::kGood : is_fair ? report::Tone::kNeutral : report::Tone::kBad;
    summary.verdict =
        fmt::format("{}: outputs in {} {}",
                    is_good   ? "Good"
                    : is_fair ? "Fair"
                              : "Rough",
                    kind,
                    is_good   ? "are close to the float model's"
                    : is_fair ? "differ a little from the float model's; measure with reef eval"
                              : "differ from the float model's; measure with reef eval before you use it");
  }
  summary.add("accuracy", accuracy_text(outcome));
  summary.add("operators", fmt::format("{} in integers, {} in float, {} conversions between", result.integer_ops,
                                       result.float_ops.size(), result.conversions));
  summary.add("size", fmt::format("{} -> {}", ir::describe_bytes(outcome.model_bytes),
                                  ir::describe_bytes(outcome.output_bytes)));
  summary.add("report", request.report);
  summary.add("file", request.output);
  if (!outcome.better_preprocess.empty() && !outcome.preprocess_is_guess) {
    summary.add("next", fmt::format("the same with --preprocess {}", outcome.better_preprocess));
  } else if (nothing_for_the_chip(request, result)) {
    summary.add("next", "the same with samples that show what the model looks for, or with --no-automatic-float");
  } else if (result.lost.empty() && request.how.mode != quantize::Mode::kInt8) {
    summary.add("runs on", "CPUs; for the Edge TPU: the same without --mode");
    summary.add("next", fmt::format("reef run {}", shell_word(request.output)));
  } else if (result.lost.empty()) {
    summary.add("next", fmt::format("reef compile {}", shell_word(request.output)));
  } else {
    summary.add("next", fmt::format("reef compare {} {} --data {} -o report.html", shell_word(request.model),
                                    shell_word(request.output), shell_word(request.data.path)));
  }
  return summary;
}

std::string quantize_details(const compiler::QuantizeRequest& request, const compiler::QuantizeOutcome& outcome,
                             bool verbose) {
  const quantize::QuantizeResult& result = outcome.result;
  std::string text;
  for (const std::string& lost : result.lost) text += fmt::format("lost: {}\n", lost);
  text += fmt::format("{} -> {}: {}, {} -> {}\n", request.model, request.output, compiler::mode_name(request.how.mode),
                      ir::describe_bytes(outcome.model_bytes), ir::describe_bytes(outcome.output_bytes));
  if (!outcome.data.empty()) text += fmt::format("samples: {}\n", outcome.data);
  if (!outcome.preprocess.empty()) {
    text += fmt::format("preprocessing: {} ({})\n", outcome.preprocess, outcome.preprocess_from);
  }
  if (result.calibration_samples > 0) {
    text += fmt::format("calibrated on {} samples in {:.1f} s (measured); {} held back to measure with\n",
                        result.calibration_samples, result.calibration_seconds, result.held_back_samples);
  }
  text += steps_text(result, verbose);
  text += float_ops_text(result.float_ops, verbose);
  for (const std::string& note : outcome.notes) text += fmt::format("note: {}\n", note);
  for (const std::string& note : result.notes) text += fmt::format("note: {}\n", note);
  text += fmt::format("{} operators in integers, {} in float, {} conversions between\n", result.integer_ops,
                      result.float_ops.size(), result.conversions);
  if (result.error) {
    text += fmt::format("outputs: {} against the float model (measured, {} samples)\n",
                        quantize::describe(*result.error), result.held_back_samples);
  }
  if (result.parts.size() > 1) {
    for (const quantize::PartError& error : result.parts) {
      text += fmt::format("  output '{}': {:.1f} dB, values from {:.3g} to {:.3g}{}\n",
                          ir::describe_name(error.part.name), error.sqnr_db, error.min, error.max,
                          error.is_dead ? fmt::format(" all become {:.3g}", error.dead_value) : "");
    }
  }
  for (const std::string& layer : outcome.worst_layers) {
    text += fmt::format("{}: {}\n", result.lost.empty() ? "worst layer" : "layer at fault", layer);
  }
  if (!request.report.empty()) text += fmt::format("every layer's error: {}\n", request.report);
  text += fmt::format("{:.1f} s (measured)\n", outcome.seconds);
  return text;
}

void print_quantize_report(const compiler::QuantizeRequest& request, const compiler::QuantizeOutcome& outcome,
                           bool verbose) {
  const report::Summary summary = quantize_summary(request, outcome);
  print_exact("{}", report::verdict_line(summary, has_colour()));
  print_text("{}", quantize_details(request, outcome, verbose));
  if (verbose && outcome.fetched.samples > 0) print_read_counters(outcome.fetched);
  if (outcome.log.request().changes) print_text("{}", pass_text(outcome.log));
  print_exact("{}", report::closing_lines(summary, has_colour()));
}

void print_quantize_warnings(const compiler::QuantizeOutcome& outcome) {
  std::fflush(stdout);
  const std::string& better = outcome.better_preprocess;
  if (outcome.preprocess_is_guess && !better.empty()) {
    print_error(
        "reef: WARNING: preprocessing is a guess. On your samples the float model does best with {} ({}, measured), so "
        "that was taken; if you know better, say it with --preprocess\n",
        better, outcome.better_preprocess_why);
  } else if (outcome.preprocess_is_guess) {
    print_error(
        "reef: WARNING: preprocessing is a guess ({}), and a wrong one costs much accuracy. Say it with --preprocess: "
        "imagenet (torchvision, timm), tf (TensorFlow's MobileNets), yolo (Ultralytics), caffe, unit or none\n",
        outcome.preprocess);
  } else if (!better.empty()) {
    print_error(
        "reef: WARNING: the preprocessing ({}, {}) is probably wrong: with --preprocess {} the float model does better "
        "({}, measured)\n",
        outcome.preprocess, outcome.preprocess_from, better, outcome.better_preprocess_why);
  }
  for (const std::string& warning : outcome.result.warnings) {
    print_error("reef: WARNING: {}\n", warning);
  }
}

}  // namespace reef::app
