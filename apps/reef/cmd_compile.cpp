// SPDX-License-Identifier: Apache-2.0
// reef compile, and the same under the name of Google's compiler.
//
// Under Google's name standard output is Google's, letter by letter, because scripts read it, and what Reef itself has
// to say goes to standard error. `reef compile` answers in Reef's own words: a verdict and aligned figures.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/version.h"
#include "commands.h"
#include "compile_report.h"
#include "compiler/compile.h"
#include "compiler/compile_json.h"
#include "compiler/conservative.h"
#include "compiler/front_end.h"
#include "compiler/google_text.h"
#include "compiler/graph_files.h"
#include "compiler/micro_check.h"
#include "compiler/pipeline.h"
#include "console.h"
#include "explanation_report.h"
#include "json_output.h"
#include "limit_flags.h"
#include "pass_report.h"
#include "plan_options.h"
#include "quantize_arguments.h"
#include "quantize_report.h"
#include "sandbox.h"
#include "stage_text.h"
#include "target_option.h"
#include "usage.h"

namespace reef::app {
namespace {

using Json = nlohmann::ordered_json;

struct CompileArguments {
  compiler::CompileOptions how;
  PlanFlags plan;
  TargetFlag target;
  bool show_operations = false;
  bool json = false;
  PassFlags passes;  // also for the stages of stage_text.h
  bool quiet = false;
  bool help = false, version = false;
  bool is_googles = false;     // called by the name of Google's compiler: its words and exit codes
  QuantizeArguments quantize;  // for models that are not quantized yet
};

constexpr double kShortestTimeout = 0.001, kLongestTimeout = 1e9;  // seconds

constexpr std::array kFloat = {passes::Stage::kFloat}, kOnChip = {passes::Stage::kChip};
constexpr std::array kBoth = {passes::Stage::kFloat, passes::Stage::kChip};

// What --dump and --stop-after take: stages, then passes.
std::vector<std::string> names_of_texts() {
  std::vector<std::string> names = names_of_graphs(kBoth);  // begins with import and simplify
  names.insert(names.begin() + 2, stage_names().begin(), stage_names().end());
  return names;
}

bool is_stage(const std::string& name) { return passes::contains(stage_names(), name); }

// Google's own options, with Google's names.
void add_googles_options(Command& command, CompileArguments& arguments) {
  compiler::CompileOptions& how = arguments.how;
  command
      .add_option("-o,--out_dir,--output", how.out_dir,
                  "Folder for the compiled model and its log (default: the current one), or the compiled file "
                  "itself, a name that ends with .tflite")
      .writes(WritesByDefault::kHere);
  command.add_flag("-s,--show_operations", arguments.show_operations, "Also print the table of operations of the log");
  command
      .add_option("-m,--min_runtime_version", arguments.plan.runtime,
                  "Oldest Edge TPU runtime that the result shall run on, 10 to 14")
      .check(between(ops::kOldestRuntime, ops::kNewestRuntime))
      .capture_default_str();
  command
      .add_option("-i,--intermediate_tensors", arguments.plan.intermediate_tensors,
                  "Names of tensors, with commas between them, that end the part for the Edge TPU")
      .option_text("NAMES");
  command
      .add_option("-n,--num_segments", how.segments,
                  "Split the model into N segments, for a pipeline of Edge TPUs; balanced by predicted latency")
      .check(between(1, 1024))
      .capture_default_str();
  command.add_flag("-d,--search_delegate", how.search,
                   "If the model does not compile, find the largest part that does");
  command.add_option("-k,--delegate_search_step", how.search_step, "Operations by which lengths in that search differ")
      .check(between(1, 1000000))
      .capture_default_str();
  command
      .add_option("-t,--timeout_sec", how.timeout_seconds,
                  "Seconds after which an attempt is given up, with everything that belongs to it")
      .check(between(kShortestTimeout, kLongestTimeout))
      .capture_default_str();
  // May be repeated (-aaa), as Google's may.
  command.add_flag("-a,--enable_multiple_subgraphs", arguments.plan.several_parts,
                   "Allow several parts for the Edge TPU, wherever that is predicted to save time");
}

void add_reefs_options(Command& command, CompileArguments& arguments) {
  compiler::CompileOptions& how = arguments.how;
  add_plan_flags(command, arguments.plan);
  add_target_option(command, arguments.target, {"edgetpu", "micro"});
  command
      .add_option(
          "-O", how.level,
          "0: the choices of Google's compiler, as far as they are known; 1: Reef's own, fewer instructions and "
          "cycles; 2: besides, what takes more memory for parameters and more transfers to save time")
      .transform(one_of(std::map<std::string, tiled::Level>{
          {"0", tiled::Level::kAsGoogle}, {"1", tiled::Level::kBetter}, {"2", tiled::Level::kFast}}))
      .option_text(fmt::format("LEVEL [{}]", static_cast<int>(how.level)));
  command.add_flag_callback(
      "--verify", [&how] { how.verify = compiler::Verify::kAlways; },
      "Run the result on the virtual device against the chip's arithmetic on the CPU, and fail on any difference "
      "(default: if that takes a few seconds)");
  command.add_flag_callback(
      "--no-verify", [&how] { how.verify = compiler::Verify::kNever; }, "Skip verification");
  command.add_flag("--keep-signatures", how.keep_signatures,
                   "Keep the model's signatures (Google's compiler drops them)");
  command
      .add_option("--no-code", how.no_code,
                  "Operators that the chip could run but Reef has no code for: cpu (they stay there), package (mapped "
                  "as Google's compiler would, in a file that says it cannot run), fail")
      .transform(one_of(std::map<std::string, compiler::NoCode>{
          {"cpu", compiler::NoCode::kCpu}, {"package", compiler::NoCode::kPackage}, {"fail", compiler::NoCode::kFail}}))
      .option_text("WHAT [cpu]");
  command.add_flag_callback(
      "--conservative", [&how] { how.generate = compiler::conservative(how.generate); },
      "Only code whose instructions combine their fields as public programs of Google's do; what would need others "
      "stays on the CPU (reef audit --novel lists them)");
  command.add_flag("--explain", arguments.passes.explain,
                   "Also print which passes changed the graph and what they changed; tiles, memory map, where "
                   "parameters are kept and simulated cycles of every step");
  command
      .add_option("--dump", arguments.passes.dumps,
                  "Also write what a stage or a pass made, as text, beside the compiled model: import, simplify, "
                  "rewrite, partition, lower, schedule, emit, or the graph behind a pass (docs/passes.md; chip/gelu: "
                  "the pass of that stage); may be repeated")
      .option_text("STAGE|PASS")
      .allow_extra_args(false)
      .transform(one_of(names_of_texts()));
  command
      .add_option("--stop-after", arguments.passes.stop_after,
                  "Only print what this stage or pass made, as text; no file is written. Up to simplify and float "
                  "passes it needs no samples")
      .option_text("STAGE|PASS")
      .transform(one_of(names_of_texts()));
  add_limit_flags(command, arguments.quantize.limits);
  command.add_flag("--quiet", arguments.quiet, "Print nothing but errors and warnings");
  command.add_flag("--json", arguments.json, "Print one JSON object instead (documented in docs/json.md)");
}

// --stop-after simplify, or a pass before quantization: the model is neither quantized nor compiled, so that it needs
// no samples. Float passes do not run on a model that is quantized already. `is_printed`: false where the pass changed
// nothing here, but may in the chip's stage.
Status print_simplified(const std::string& name, const compiler::PipelineRequest& request, bool& is_printed) {
  const bool is_also_on_chip = passes::contains(passes::graph_names(kOnChip), name);
  for (const std::string& path : request.compile.models) {
    REEF_ASSIGN_OR_RETURN(compiler::FrontEndResult loaded, compiler::load_any_model(path, request.quantize.front_end));
    const bool is_as_it_is = loaded.format == compiler::ModelFormat::kTflite && compiler::is_quantized(loaded.model);
    if (!is_as_it_is || name == passes::kSimplified || name == passes::kImported) {
      REEF_RETURN_IF_ERROR(compiler::simplify_once(loaded).status());
    }
    const passes::KeptGraph* graph = loaded.log.find(name);
    is_printed = !is_also_on_chip || (graph != nullptr && graph->changes > 0);
    if (is_printed) REEF_RETURN_IF_ERROR(print_graph(loaded.log, name));
  }
  return ok_status();
}

// --stop-after rewrite, partition, or a pass for the chip: the model need not compile.
Status print_plans(const std::string& name, const compiler::PipelineResult& front) {
  for (const std::string& path : front.compile.models) {
    REEF_ASSIGN_OR_RETURN(const compiler::LoadedModel loaded, compiler::load_given(front.compile, path));
    const auto plan = compiler::make_plan(loaded.model, front.compile.plan);
    if (!plan.ok()) return plan.status().in(path);
    if (is_stage(name)) {
      print_text("{}", planning_text(name, *plan));
    } else {
      REEF_RETURN_IF_ERROR(print_graph(plan->log, name));
    }
  }
  return ok_status();
}

template <typename Use>
Status for_each_file(const compiler::CompileResult& result, const Use& use) {
  for (const compiler::CompileRun& run : result.runs) {
    for (const compiler::CompiledFile& file : run.files) REEF_RETURN_IF_ERROR(use(file));
  }
  return ok_status();
}

// The table of the log, without the lines of Google's compiler above it.
Status print_operations(const compiler::CompiledFile& file) {
  const std::size_t table = file.log_content.find("\n\n");
  print_text("{}\n", table == std::string::npos ? file.log_content : file.log_content.substr(table + 2));
  return ok_status();
}

Status first_refusal(const compiler::CompileResult& result) {
  return Status(StatusCode::kInvalidInput, result.refusals.front().explanation);
}

Status print_stage(const CompileArguments& arguments, compiler::PipelineRequest request) {
  const std::string& name = arguments.passes.stop_after;
  if (passes::contains(names_of_graphs(kFloat), name) || name.starts_with("float/")) {
    bool is_printed = false;
    REEF_RETURN_IF_ERROR(print_simplified(name, request, is_printed));
    if (is_printed) return ok_status();
  }
  if (is_planning(name) || !is_stage(name)) {
    REEF_ASSIGN_OR_RETURN(const compiler::PipelineResult front, compiler::run_front_half(request));
    return front.compiled.ok() ? print_plans(name, front) : first_refusal(front.compiled);
  }
  request.compile.verify = compiler::Verify::kNever;
  REEF_ASSIGN_OR_RETURN(const compiler::PipelineResult result, compiler::run_pipeline(request));
  if (!result.compiled.ok()) return first_refusal(result.compiled);
  return for_each_file(result.compiled, [&](const compiler::CompiledFile& file) -> Status {
    REEF_ASSIGN_OR_RETURN(const std::string text, stage_text(name, result.compile, file));
    print_text("{}", text);
    return ok_status();
  });
}

// The text of --dump: what a stage made, or the graph behind a pass before or behind quantization.
Result<std::string> text_of(const std::string& name, const compiler::CompiledFile& file,
                            const compiler::PipelineResult& result) {
  if (is_stage(name)) return stage_text(name, result.compile, file);
  return compiler::graph_text(log_of(file, result), name);
}

// --dump: a text for each stage beside each compiled file.
void add_dumps(const CompileArguments& arguments, compiler::PipelineRequest& request) {
  request.beside_names = [&arguments](const std::string& compiled) {
    std::vector<std::string> names;
    for (const std::string& name : arguments.passes.dumps) names.push_back(compiler::graph_path(compiled, name));
    return names;
  };
  request.beside = [&](const compiler::CompiledFile& file,
                       const compiler::PipelineResult& result) -> Result<std::vector<compiler::FileBeside>> {
    std::vector<compiler::FileBeside> files;
    for (const std::string& name : arguments.passes.dumps) {
      REEF_ASSIGN_OR_RETURN(std::string text, text_of(name, file, result));
      files.push_back({compiler::graph_path(file.output, name), std::move(text)});
    }
    return files;
  };
}

Status print_dump_names(const CompileArguments& arguments, const compiler::CompiledFile& file) {
  for (const std::string& name : arguments.passes.dumps) {
    print_error("reef: {}: {} written to {}\n", file.input, name, compiler::graph_path(file.output, name));
  }
  return ok_status();
}

// Makes the pipeline's request from the command's options.
Result<compiler::PipelineRequest> pipeline_request(CompileArguments& arguments) {
  compiler::PipelineRequest request;
  compiler::CompileOptions& how = request.compile = arguments.how;
  use_link_of(arguments.target, arguments.plan);
  REEF_ASSIGN_OR_RETURN(how.plan, plan_options(arguments.plan));
  how.budget = how.plan.budget = budget_of(arguments.quantize.limits);
  how.write = arguments.passes.stop_after.empty();
  how.plan.log = arguments.quantize.log = log_request(arguments.passes);
  how.cache_order = cache_order(arguments.plan);
  if (arguments.target.micro()) {
    how.plan = compiler::for_micro(how.plan);
    how.admit = compiler::admit_for_micro;
  }
  REEF_RETURN_IF_ERROR(settle(arguments.quantize));
  request.quantize = arguments.quantize.request;
  return request;
}

// Everything that is printed about a result but errors.
Status print_result(const CompileArguments& arguments, const compiler::PipelineResult& result) {
  const compiler::CompileResult& compiled = result.compiled;
  const bool prints = !arguments.json && !arguments.quiet;
  if (arguments.json) {
    Json json = compiler::pipeline_json(result);
    if (arguments.passes.explain) REEF_RETURN_IF_ERROR(add_explanations(result, json));
    print_json(json);
  } else if (prints && arguments.is_googles) {
    print_text("{}", compiler::console_text(result.compile, compiled, arguments.show_operations, false));
  } else if (prints && compiled.ok()) {
    print_error("{}", own_compile_notes(compiled));
    if (arguments.show_operations) REEF_RETURN_IF_ERROR(for_each_file(compiled, print_operations));
    print_exact("{}", compile_text(result, has_colour()));
  }
  if (arguments.passes.explain && !arguments.json && compiled.ok()) {
    REEF_RETURN_IF_ERROR(
        for_each_file(compiled, [&](const compiler::CompiledFile& file) { return print_explanation(file, result); }));
  }
  std::fflush(stdout);
  return ok_status();
}

// `exit_code`: what to end with where a file was made, but is not what was wanted.
Status compile_models(CompileArguments arguments, int& exit_code) {
  const bool prints = !arguments.json && !arguments.quiet;
  REEF_ASSIGN_OR_RETURN(compiler::PipelineRequest request, pipeline_request(arguments));
  PhaseProgress progress;
  if (prints) request.quantize.how.progress = progress.callback();
  request.quantized = [&](const compiler::QuantizeRequest& how, const compiler::QuantizedModel& model) {
    progress.finish();
    if (prints) print_error("{}", quantize_details(how, model.outcome, arguments.quantize.verbose));
    print_quantize_warnings(model.outcome);
  };
  if (!arguments.passes.stop_after.empty()) return print_stage(arguments, std::move(request));
  add_dumps(arguments, request);
  if (prints && arguments.is_googles) print_text("{}", compiler::version_line());
  std::fflush(stdout);
  const Result<compiler::PipelineResult> result = compiler::run_pipeline(request);
  progress.finish();
  if (!result.ok()) return result.status();
  REEF_RETURN_IF_ERROR(print_result(arguments, *result));
  if (!result->compiled.ok()) return first_refusal(result->compiled);
  exit_code = result->compiled.has_file_without_chip() ? kExitNothingOnChip : result->is_usable() ? 0 : kExitNotUsable;
  if (arguments.is_googles || !prints) print_error("{}", compile_notes(result->compile, result->compiled, !prints));
  return for_each_file(result->compiled,
                       [&](const compiler::CompiledFile& file) { return print_dump_names(arguments, file); });
}

// Under Google's name, as Google's: the version line, then how it is called.
void print_googles_help(const Command& command) {
  std::string options = command.plain_help("edgetpu_compiler");
  options.erase(0, options.find("\nOptions:") == std::string::npos ? 0 : options.find("\nOptions:") + 1);
  print_text("{}Usage:\nedgetpu_compiler [options] model...\n\n{}", compiler::version_line(), options);
}

// One line on standard output, whose last word is the version: Ultralytics' exporter takes it from there. The line on
// standard error ends with the same word, for those who read both.
void print_googles_version() {
  print_text("{}", compiler::version_line());
  std::fflush(stdout);
  print_error("This is Reef {}, an open program that takes the place of Google's edgetpu_compiler {}\n", reef_version(),
              compiler::kCompatibleVersion);
}

constexpr char kFooter[] =
    "Examples:\n  {} -s -o compiled model_int8.tflite\n"
    "  reef compile model.onnx --data pictures --preprocess imagenet -o compiled\n"
    "No generated code has run on silicon yet; docs/proofs.md says what it rests on instead. If you have a Coral, what "
    "it "
    "computes is the most useful thing that you can send us.";

}  // namespace

void add_compile(Command& app, Action& action) {
  auto arguments = std::make_shared<CompileArguments>();
  Command command = app.add_subcommand(
      "compile",
      "Compile models for the Edge TPU, with the options of Google's edgetpu_compiler; float ones with --data");
  command
      .add_option("model", arguments->how.models,
                  "Quantized .tflite files; with --data also float ones and .onnx. Several share the chip's memory")
      .required();
  add_googles_options(command, *arguments);
  add_reefs_options(command, *arguments);
  add_data_options(command, arguments->quantize);
  add_quantizer_options(command, arguments->quantize);
  add_front_end_flags(command, arguments->quantize.front_end);
  add_threads_option(command, arguments->quantize);
  add_verbose_option(command, arguments->quantize);
  command.footer(fmt::format(kFooter, "reef compile"));
  command.callback([arguments, &action] {
    const auto options = plan_options(arguments->plan);
    if (!options.ok()) refuse_usage(options.status().message());
    action = [arguments]() -> Ending {
      int exit_code = 0;
      Status status = compile_models(*arguments, exit_code);
      return {std::move(status), exit_code};
    };
  });
}

namespace {

// Words of $REEF_COMPILE_FLAGS, for programs that call the compiler and cannot be told to pass flags.
std::vector<std::string> flags_of_environment() {
  const char* const text = std::getenv("REEF_COMPILE_FLAGS");
  std::istringstream words(text == nullptr ? "" : text);
  return {std::istream_iterator<std::string>(words), {}};
}

}  // namespace

int edgetpu_compiler_main(int argc, char** argv) {
  constexpr int kFailure = 1;
  CompileArguments arguments;
  CommandLine line("edgetpu_compiler", "");
  line.remove_help_flag();
  Command command = line.root();
  command.add_option("model", arguments.how.models, "Quantized .tflite files; several share the chip's memory");
  command.add_flag("-h,--help", arguments.help, "Print this help and exit");
  command.add_flag("-v,--version", arguments.version, "Print the version and exit");
  add_googles_options(command, arguments);
  add_reefs_options(command, arguments);
  command.footer(fmt::format(kFooter, "edgetpu_compiler"));
  std::vector<std::string> words = flags_of_environment();
  if (!words.empty()) print_error("reef: REEF_COMPILE_FLAGS adds {}\n", fmt::join(words, " "));
  words.insert(words.end(), argv + 1, argv + argc);
  const ParseOutcome outcome = line.parse(words);
  if (outcome.kind == ParseOutcome::Kind::kProblem) {
    print_text("{}", compiler::version_line());
    std::fflush(stdout);
    print_error("{}\n", usage_error(describe(command), outcome));
    return kFailure;
  }
  if (arguments.version && !arguments.help) {
    print_googles_version();
    return 0;
  }
  if (arguments.help || arguments.how.models.empty()) {
    print_googles_help(command);
    return arguments.help ? 0 : kFailure;
  }
  arguments.is_googles = true;
  int exit_code = 0;  // a file without anything for the chip is success to Google's compiler
  Status status = enter_sandbox(line.outputs());
  if (status.ok()) status = compile_models(arguments, exit_code);
  if (!status.ok()) print_error("reef: {}\n", status.message());
  return status.ok() ? 0 : kFailure;
}

}  // namespace reef::app
