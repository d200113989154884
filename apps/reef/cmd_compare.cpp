// SPDX-License-Identifier: Apache-2.0
// reef compare: which layers a quantized model loses its accuracy in, and what to do about it.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <thread>

#include <fmt/format.h>

#include "base/file.h"
#include "base/shell_word.h"
#include "commands.h"
#include "compiler/float_subject.h"
#include "compiler/front_end.h"
#include "compiler/output_check.h"
#include "console.h"
#include "data_options.h"
#include "evaluate/compare.h"
#include "front_end_flags.h"
#include "ir/describe.h"
#include "json_output.h"
#include "limit_flags.h"
#include "output_name.h"
#include "passes/simplify.h"
#include "progress.h"
#include "report/summary.h"
#include "usage.h"

namespace reef::app {
namespace {

struct CompareArguments {
  std::string float_model, quantized, output;
  FrontEndFlags front_end;  // of the float model
  DataArguments data;
  std::int64_t effect_samples = 4;
  int threads = 0;  // 0: as many as there are cores
  bool all = false;
  bool json = false;
  LimitFlags limits = LimitFlags::for_data();
};

Result<std::shared_ptr<const ir::Model>> loaded(const std::string& path, const compiler::FrontEndOptions& front_end) {
  REEF_ASSIGN_OR_RETURN(compiler::FrontEndResult result, compiler::load_any_model(path, front_end));
  return std::make_shared<const ir::Model>(std::move(result.model));
}

// The float model, or its simplified form where more of the quantized model's results stand for something in that:
// `reef quantize` simplifies first.
Result<std::shared_ptr<const ir::Model>> closer_to(const ir::Model& quantized, std::shared_ptr<const ir::Model> model) {
  REEF_ASSIGN_OR_RETURN(const evaluate::TensorMatch match, evaluate::match_tensors(*model, quantized));
  if (match.unmatched.empty()) return model;
  auto simplified = std::make_shared<ir::Model>(*model);
  if (!passes::simplify(*simplified).ok()) return model;
  const auto other = evaluate::match_tensors(*simplified, quantized);
  if (!other.ok() || other->unmatched.size() >= match.unmatched.size()) return model;
  return std::shared_ptr<const ir::Model>(std::move(simplified));
}

// What is said, or stored in either model; else what the quantized model's input is for.
Result<data::ChosenPreprocess> preprocess_for_both(const std::string& text, const ir::Model& float_model,
                                                   const ir::Model& quantized) {
  for (const ir::Model* model : {&quantized, &float_model}) {
    REEF_ASSIGN_OR_RETURN(data::ChosenPreprocess chosen, data::choose_preprocess(text, *model, 0));
    if (!chosen.is_guess) return chosen;
  }
  if (auto codes = data::preprocess_of_codes(quantized, 0)) return std::move(*codes);
  return data::choose_preprocess("", float_model, 0);
}

// The summary names a layer that causes at least this share of the whole error by itself.
constexpr double kMainShare = 0.25;

report::Summary summary_of(const CompareArguments& arguments, const evaluate::Comparison& comparison) {
  constexpr double kGoodDb = 30, kFairDb = 20;
  report::Summary summary;
  double worst = std::numeric_limits<double>::infinity();
  for (const evaluate::OutputReport& output : comparison.outputs) {
    const double db = output.error.sqnr_db();
    if (!std::isnan(db)) worst = std::min(worst, db);
  }
  const std::string figure = std::isinf(worst) ? "they are equal" : fmt::format("{:.1f} dB", worst);
  summary.tone = worst >= kGoodDb   ? report::Tone::kGood
                 : worst >= kFairDb ? report::Tone::kNeutral
                                    : report::Tone::kBad;
  summary.verdict = fmt::format("{} ({}, measured on {} samples)",
                                worst >= kGoodDb   ? "Nothing is wrong: outputs are close to the float model's"
                                : worst >= kFairDb ? "A little is lost: outputs differ from the float model's"
                                                   : "Accuracy is lost: outputs are far from the float model's",
                                figure, comparison.samples);
  if (!comparison.ranking.empty()) {
    const evaluate::LayerReport& layer = comparison.layers[comparison.ranking[0]];
    summary.add("worst layer", fmt::format("{} '{}'{}", layer.type, ir::describe_name(layer.name),
                                           comparison.effect_samples > 0
                                               ? fmt::format(", {:.0f} % of all layers' effect", 100 * layer.share)
                                               : ""));
    if (worst < kGoodDb && layer.share >= kMainShare && !layer.advice.empty()) summary.add("do", layer.advice[0]);
  }
  summary.add("page", arguments.output);
  if (worst >= kGoodDb) {
    summary.add("next", fmt::format("reef compile {}", shell_word(arguments.quantized)));
  } else if (arguments.output.empty()) {
    summary.add("next", "the same with -o report.html: every layer with its distribution");
  }
  return summary;
}

Status run_compare(CompareArguments arguments) {
  REEF_REQUIRE(arguments.float_model != arguments.quantized, "both models are the same file");
  arguments.output = output_file(arguments.output, arguments.quantized, "_report.html");
  REEF_RETURN_IF_ERROR(compiler::check_files(
      {{arguments.output}, {arguments.float_model, arguments.quantized}, {arguments.data.dataset}, {}}));
  REEF_RETURN_IF_ERROR(compiler::check_ending(arguments.output, compiler::Content::kPage));
  const Budget budget = budget_of(arguments.limits);
  arguments.data.dataset.budget = budget;
  REEF_ASSIGN_OR_RETURN(compiler::FrontEndOptions front_end, front_end_options(arguments.front_end));
  front_end.budget = budget;
  REEF_ASSIGN_OR_RETURN(auto float_model, loaded(arguments.float_model, front_end));
  REEF_ASSIGN_OR_RETURN(const auto quantized, loaded(arguments.quantized, {.budget = budget}));
  REEF_REQUIRE(!compiler::computes_in_bytes(*float_model) || compiler::computes_in_bytes(*quantized),
               "{} is quantized and {} is not: the float model comes first, `reef compare {} {} ...`",
               arguments.float_model, arguments.quantized, shell_word(arguments.quantized),
               shell_word(arguments.float_model));
  REEF_ASSIGN_OR_RETURN(float_model, closer_to(*quantized, float_model));
  REEF_ASSIGN_OR_RETURN(const data::ChosenPreprocess chosen,
                        preprocess_for_both(arguments.data.dataset.preprocess, *float_model, *quantized));
  arguments.data.dataset.preprocess = data::to_string(chosen.preprocess);
  REEF_ASSIGN_OR_RETURN(const auto dataset, open_data(arguments.data, data::Use::kCalibration, *float_model, true));
  if (!arguments.json) {
    print_error("reef: {}\n", dataset->describe());
    if (dataset->holds_pictures())
      print_error("reef: preprocessing {} ({})\n", data::to_string(chosen.preprocess), chosen.origin);
  }
  Progress progress("runs");
  evaluate::CompareOptions options;
  options.threads = arguments.threads > 0 ? arguments.threads : static_cast<int>(std::thread::hardware_concurrency());
  options.effect_samples = arguments.effect_samples;
  options.budget = budget;
  options.progress = [&](std::int64_t done, std::int64_t all) { progress.show(done, all); };
  auto comparison = evaluate::compare(float_model, quantized, *dataset, options);
  if (!comparison.ok()) return comparison.status().in(arguments.quantized);
  if (!arguments.output.empty()) {
    REEF_RETURN_IF_ERROR(write_file(
        arguments.output, evaluate::comparison_html(*comparison, arguments.float_model, arguments.quantized)));
  }
  if (arguments.json) {
    print_json_text(evaluate::comparison_json(*comparison, arguments.float_model, arguments.quantized));
    return ok_status();
  }
  constexpr std::size_t kShown = 12;
  const report::Summary summary = summary_of(arguments, *comparison);
  print_exact("{}", report::verdict_line(summary, has_colour()));
  print_text("{}", evaluate::comparison_text(*comparison, arguments.all ? 0 : kShown));
  print_text(
      "own dB: signal over the layer's own rounding; cum dB: over all that came before it too. {:.1f} s (measured)\n",
      comparison->seconds);
  print_exact("{}", report::closing_lines(summary, has_colour()));
  return ok_status();
}

}  // namespace

void add_compare(Command& app, Action& action) {
  auto arguments = std::make_shared<CompareArguments>();
  Command command = app.add_subcommand(
      "compare", "Run a float model and its quantized version side by side and rank the layers by the harm they do");
  command.add_option("float", arguments->float_model, "The float model").required();
  command.add_option("quantized", arguments->quantized, "What was made of it").required();
  add_front_end_flags(command, arguments->front_end);
  arguments->data.dataset.limit = 32;
  add_data_options(command, arguments->data, /*is_required=*/true);
  command
      .add_option(
          "--effects", arguments->effect_samples,
          "On how many samples to measure what each layer alone does to the outputs: a run of the float model for "
          "every layer and sample; 0: layers are ranked by their own error")
      .check(not_negative())
      .capture_default_str();
  command
      .add_option("-o,--output", arguments->output,
                  "Write a page with pictures (HTML) to this file, or into this folder")
      .writes();
  add_limit_flags(command, arguments->limits);
  command.add_flag("--all", arguments->all, "Show every layer");
  command.add_option("--threads", arguments->threads, "Threads; results do not depend on it. Default: all cores")
      .check(between(1, 256));
  command.add_flag("--json", arguments->json, "Print one JSON object (documented in docs/json.md)");
  command.footer(
      "Samples: the first 32 unless --limit says otherwise; an .npz's calibration array if it has one.\n"
      "Example:\n  reef compare models/reef_creatures_float.tflite models/reef_creatures_int8.tflite \\\n"
      "      --data models/images --preprocess unit -o report.html");
  command.callback([arguments, &action] { action = [arguments] { return run_compare(*arguments); }; });
}

}  // namespace reef::app
