// SPDX-License-Identifier: Apache-2.0
#include "compile_report.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/printable.h"
#include "base/shell_word.h"
#include "base/version.h"
#include "compiler/check_subject.h"
#include "compiler/explain.h"
#include "compiler/hints.h"
#include "evaluate/task.h"
#include "ir/describe.h"
#include "quantize_report.h"
#include "report/verdict.h"

namespace reef::app {
namespace {

using compiler::CompiledFile;
using compiler::CompiledOp;

const chip::LinkProfile& link_of(const compiler::CompileOptions& options) {
  return options.plan.costs.link != nullptr ? *options.plan.costs.link : chip::link_profiles().front();
}

std::string rewrite_notes(const CompiledFile& file) {
  std::map<std::string_view, int> counts;
  for (const passes::Application& application : file.plan.rewrites)
    counts[application.rewrite] += application.made ? 1 : 0;
  std::string text;
  for (const auto& [name, count] : counts) {
    if (count == 0) continue;
    text += fmt::format("reef: {}: rewrite {} made {} {} (--no-rewrite {} leaves them)\n", file.input, name, count,
                        count == 1 ? "change" : "changes", name);
  }
  return text;
}

// One warning for all files: scripts compile many.
std::string missing_code_warning(const compiler::CompileResult& result) {
  std::vector<std::string> files;
  std::string reason, source;
  for (const compiler::CompileRun& run : result.runs) {
    for (const CompiledFile& file : run.files) {
      const auto lacks_code = [](const CompiledOp& op) { return !op.has_code; };
      const auto op = std::find_if(file.ops.begin(), file.ops.end(), lacks_code);
      if (op == file.ops.end()) continue;
      files.push_back(file.output);
      reason = op->why_no_code;
      source = file.source;
    }
  }
  if (files.empty()) return "";
  return fmt::format(
      "reef: WARNING: cannot run on an Edge TPU, no machine code: {} ({}). The file says so, and runtimes refuse it "
      "(libedgetpu: \"No executables to register\"). Run {} on the CPU, or put its weights into a file that Google's "
      "compiler made of the same network (reef retarget). --no-code=cpu leaves such operations to the CPU, "
      "--no-code=fail makes this an error.\n",
      fmt::join(files, ", "), reason, source);
}

std::string counted(std::int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

// What the user should read first.
std::string main_reason(const CompiledFile& file) {
  const auto& operators = file.plan.model->subgraphs[0].operators;
  for (std::size_t i = 0; i < operators.size(); ++i) {
    const auto& findings = file.plan.assessment.ops[i].findings;
    if (findings.empty()) continue;
    return fmt::format("op {} {}: {}", i, operators[i].type, findings.front().particulars);
  }
  return "the model has no operator that the chip could run";
}

// Loud and first: the file is the model as it was.
std::string nothing_warning(const compiler::CompileResult& result) {
  if (!result.has_file_without_chip()) return "";
  std::string text;
  for (const compiler::CompileRun& run : result.runs) {
    for (const CompiledFile& file : run.files) {
      if (!file.ops.empty()) continue;
      text += fmt::format(
          "reef: WARNING: {}: nothing of it runs on the Edge TPU, all {} operations stay on the CPU. The first "
          "obstacle is {}. reef check {} lists all of them and what to do\n",
          file.input, file.plan.model->subgraphs[0].operators.size(), main_reason(file), shell_word(file.source));
    }
  }
  return text;
}

// "on the virtual Edge TPU: 8 values in 1 output match bit for bit ...".
std::string verification_text(const CompiledFile& file) {
  const bool has_code = std::any_of(file.ops.begin(), file.ops.end(), [](const CompiledOp& op) { return op.has_code; });
  if (!file.verified.done) return has_code ? "not verified: " + file.verified.why_not : "";
  const compiler::FileComparison& compared = file.verified.comparison;
  return fmt::format("on the virtual Edge TPU: {} in {} match bit for bit{}; {}. Not run on silicon",
                     counted(compared.values, "value"), counted(compared.outputs, "output"),
                     file.verified.rounds == 1 ? "" : ", twice",
                     file.verified.rests_on_timing ? "gathers rest on timing, as Google's do (-O1 goes without)"
                                                   : "no race conditions");
}

// Simulated time of all compiled parts, in microseconds; 0 if the file was not run on the virtual device.
double simulated_us(const compiler::CompileOptions& options, const CompiledFile& file) {
  if (!file.verified.done || file.ops.empty()) return 0;
  device::TimingOptions timing;
  timing.link = &link_of(options);
  double us = 0;
  for (const CompiledOp& op : file.ops) {
    if (op.code == nullptr) return 0;
    const auto explained = compiler::explain(*file.plan.model, *op.code, timing);
    if (!explained.ok()) return 0;
    us += 1000 * explained->ms;
  }
  return us;
}

report::Summary summary_of(const compiler::CompileOptions& options, const CompiledFile& file) {
  report::CheckSubject subject = compiler::check_subject(file.input, *file.given, file.plan);
  subject.simulated_us = simulated_us(options, file);
  report::Summary summary = report::judge(subject);
  const auto all = static_cast<std::int32_t>(file.plan.model->subgraphs[0].operators.size());
  const std::int32_t left = all - file.plan.partition.chip_op_count();
  if (!file.ops.empty()) {
    // The generated code's own figures replace the estimate.
    for (report::Summary::Line& line : summary.lines) {
      if (line.label != "memory") continue;
      line.value = fmt::format("{} of parameters on the chip, {} left{}", ir::describe_bytes(file.cached_bytes),
                               ir::describe_bytes(file.remaining_bytes),
                               file.streamed_bytes > 0 ? fmt::format(", {} sent with every inference",
                                                                     ir::describe_bytes(file.streamed_bytes))
                                                       : "");
    }
  }
  if (left > 0) {
    summary.add("on the CPU", fmt::format("{}; `reef check {}` says why and what to do", counted(left, "operator"),
                                          shell_word(file.source)));
  }
  summary.add("more", compiler::several_parts_hint(file.plan, options.plan));
  summary.add("verified", verification_text(file));
  summary.add("file", fmt::format("{} ({}), log {}", file.output, ir::describe_bytes(file.output_bytes), file.log));
  if (!file.ops.empty()) {
    const bool takes_picture =
        file.given->subgraphs[0].inputs.size() == 1 && evaluate::input_picture(*file.given).width > 0;
    summary.add("next", fmt::format("reef run {}{}", shell_word(file.output), takes_picture ? " --image PICTURE" : ""));
  }
  return summary;
}

// "first op 3 CONV_2D: why", and what to do about it where that is known.
std::string first_without_code(const CompiledFile& file) {
  const lower::RefusedOp& first = file.without_code.front();
  const ir::Subgraph& graph = file.plan.model->subgraphs[0];
  const ir::Operator& op = graph.operators[reef::at(first.op)];
  const bool joins_output = op.type == Op::CONCATENATION &&
                            std::find(graph.outputs.begin(), graph.outputs.end(), op.outputs[0]) != graph.outputs.end();
  return fmt::format("first op {} {}: {}{}", first.op, op.type, first.reason,
                     joins_output ? "; `reef quantize --split-outputs` gives out the parts that it joins" : "");
}

// What Reef says only when it speaks for itself; Google's compiler's output ends elsewhere.
std::string own_notes(const CompiledFile& file) {
  std::string text = rewrite_notes(file);
  if (!file.without_code.empty()) {
    const auto count = static_cast<std::int64_t>(file.without_code.size());
    text += fmt::format("reef: {}: {} on the CPU only because Reef has no code for {} yet, {}\n", file.input,
                        counted(count, "operator"), count == 1 ? "it" : "them", first_without_code(file));
  }
  for (const std::string& note : file.plan.partition.notes) text += fmt::format("reef: {}: {}\n", file.input, note);
  return text;
}

std::string file_notes(const compiler::CompileOptions& options, const CompiledFile& file) {
  std::string text = rewrite_notes(file);
  const auto all = static_cast<std::int32_t>(file.plan.model->subgraphs[0].operators.size());
  if (const std::int32_t left = all - file.plan.partition.chip_op_count(); left > 0) {
    text += fmt::format("reef: {}: {} of {} operations stay on the CPU; reef check {} says why and what to do\n",
                        file.input, left, all, shell_word(file.source));
  }
  if (!file.without_code.empty()) {
    text += fmt::format("reef: {}: {} of them only because Reef has no code for them yet, {}\n", file.input,
                        file.without_code.size(), first_without_code(file));
  }
  const bool has_code = std::any_of(file.ops.begin(), file.ops.end(), [](const CompiledOp& op) { return op.has_code; });
  if (file.verified.done) {
    const compiler::FileComparison& compared = file.verified.comparison;
    text += fmt::format(
        "reef: {}: verified: the whole file, run on the virtual device{}, computes exactly what the model says in the "
        "chip's arithmetic ({} in {}, pseudo-random inputs); the soundness checker {} ({:.1f} s). Not run on silicon\n",
        file.input, file.verified.rounds == 1 ? "" : " twice", counted(compared.values, "value"),
        counted(compared.outputs, "output"),
        file.verified.rests_on_timing ? "finds gathers that rest on timing, as Google's do (-O1 goes without)"
                                      : "finds nothing",
        file.verified.seconds);
  } else if (has_code) {
    text += fmt::format("reef: {}: not verified: {}\n", file.input, file.verified.why_not);
  }
  for (const std::string& note : file.plan.partition.notes) text += fmt::format("reef: {}: {}\n", file.input, note);
  if (const std::string hint = compiler::several_parts_hint(file.plan, options.plan); !hint.empty()) {
    text += fmt::format("reef: {}: {}; REEF_COMPILE_FLAGS passes flags where a program calls the compiler\n",
                        file.input, hint);
  }
  text += fmt::format("reef: {}: {:.2f} ms for one inference over {}, {:.2f} ms on the CPU alone (estimated)\n",
                      file.input, file.plan.partition.predicted_us / 1000, link_of(options).name,
                      file.plan.partition.all_cpu_us / 1000);
  return text;
}

}  // namespace

std::string compile_text(const compiler::PipelineResult& result, bool colour) {
  std::map<std::string, std::string> accuracies;  // by the quantized file
  for (const compiler::QuantizedModel& model : result.quantized) {
    accuracies[model.output] = accuracy_text(model.outcome);
  }
  std::string text;
  for (const compiler::CompileRun& run : result.compiled.runs) {
    for (const CompiledFile& file : run.files) {
      report::Summary summary = summary_of(result.compile, file);
      const std::string& accuracy = accuracies[file.source];
      if (!accuracy.empty()) {
        const auto at = std::find_if(summary.lines.begin(), summary.lines.end(),
                                     [](const report::Summary::Line& line) { return line.label == "file"; });
        summary.lines.insert(at, {"accuracy", accuracy});
      }
      text += fmt::format("{}: ", printable(file.input)) + report::to_text(summary, colour);
    }
  }
  return text;
}

std::string own_compile_notes(const compiler::CompileResult& result) {
  std::string text = nothing_warning(result);
  for (const compiler::CompileRun& run : result.runs) {
    for (const CompiledFile& file : run.files) text += own_notes(file);
  }
  return text + missing_code_warning(result);
}

std::string compile_notes(const compiler::CompileOptions& options, const compiler::CompileResult& result,
                          bool only_warnings) {
  std::string text = nothing_warning(result);
  if (!only_warnings) {
    text += fmt::format(
        "reef: compiled by Reef {}, not by Google's compiler; sizes of parameters on and off the chip are estimates\n",
        reef_version());
  }
  for (const compiler::CompileRun& run : result.runs) {
    for (const CompiledFile& file : run.files) {
      if (!only_warnings) text += file_notes(options, file);
    }
  }
  return text + missing_code_warning(result);
}

}  // namespace reef::app
