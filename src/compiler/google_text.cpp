// SPDX-License-Identifier: Apache-2.0
#include "compiler/google_text.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/ranges.h>

#include "report/check_report.h"

namespace reef::compiler {
namespace {

using ops::GoogleStatus;

constexpr std::string_view kSomeOnCpu =
    "Model successfully compiled but not all operations are supported by the Edge TPU. A percentage of the model will "
    "instead run on the CPU, which is slower. If possible, consider updating your model to use only operations "
    "supported "
    "by the Edge TPU. For details, visit g.co/coral/model-reqs.\n";
constexpr std::string_view kSucceeded =
    "Compilation child process completed within timeout period.\nCompilation succeeded! \n";
constexpr std::string_view kFailed =
    "Compilation child process completed within timeout period.\nCompilation failed! \n";

std::string timer_line(const CompileOptions& options) {
  return fmt::format("Started a compilation timeout timer of {} seconds.\n",
                     static_cast<std::int64_t>(std::llround(options.timeout_seconds)));
}

struct Row {
  std::string op;
  std::vector<std::pair<GoogleStatus, int>> counts;  // by status, ascending: mapped first
};

std::vector<Row> rows_of(const CompiledFile& file) {
  std::vector<Row> rows;
  const auto& operators = file.plan.model->subgraphs[0].operators;
  for (std::size_t i = 0; i < operators.size(); ++i) {
    const std::string name = operators[i].is_custom() ? "CUSTOM" : operators[i].type;
    auto row = std::find_if(rows.begin(), rows.end(), [&](const Row& r) { return r.op == name; });
    if (row == rows.end()) row = rows.insert(rows.end(), {name, {}});
    const GoogleStatus status =
        report::google_status(file.plan.assessment, file.plan.partition, static_cast<std::int32_t>(i));
    auto count = std::find_if(row->counts.begin(), row->counts.end(), [&](const auto& c) { return c.first >= status; });
    if (count == row->counts.end() || count->first != status) count = row->counts.insert(count, {status, 0});
    ++count->second;
  }
  return rows;
}

std::string table_text(const CompiledFile& file) {
  constexpr const char* kColumns = "{:<31}{:<11}{}\n";
  std::string text = fmt::format(fmt::runtime(kColumns), "Operator", "Count", "Status") + "\n";
  for (const Row& row : rows_of(file)) {
    for (const auto& [status, count] : row.counts) {
      text += fmt::format(fmt::runtime(kColumns), row.op, count, ops::to_string(status));
    }
  }
  return text;
}

// Lines before an attempt's timer. Without a search there are none.
std::string attempt_lines(const Attempt& attempt) {
  std::string text = fmt::format("Try to compile segment with {} ops\n", attempt.ops);
  if (!attempt.tensors.empty()) text += fmt::format("Intermediate tensors: {}\n", fmt::join(attempt.tensors, ","));
  return text;
}

std::string failure_lines(const Attempt& attempt) {
  const Status& status = attempt.status;
  if (!attempt.is_late && status.code() == StatusCode::kResourceExhausted) {
    return "ERROR: Restored original execution plan after delegate application failure.\n"
           "Compilation failed: Compilation failed due to large activation tensors in model.\n";
  }
  return fmt::format("Compilation failed: {}\n", status.message());
}

// The search up to the attempt that led to something, whose timer is the last line.
std::string search_text(const CompileOptions& options, const std::vector<Attempt>& attempts) {
  std::string text = fmt::format("Searching for valid delegate with step {}\n", options.search_step);
  for (const Attempt& attempt : attempts) {
    if (attempt.status.ok()) continue;
    text += attempt_lines(attempt) + timer_line(options) + failure_lines(attempt) + std::string(kFailed);
  }
  return text;
}

// A bisection may try shorter lengths, which compile, before the longest one that does: only that one counts.
const Attempt* longest_success(const std::vector<Attempt>& attempts) {
  const Attempt* longest = nullptr;
  for (const Attempt& attempt : attempts) {
    if (attempt.status.ok() && (longest == nullptr || attempt.ops > longest->ops)) longest = &attempt;
  }
  return longest;
}

std::string file_text(const CompiledFile& file, bool show_operations) {
  const std::int64_t all = static_cast<std::int64_t>(file.plan.model->subgraphs[0].operators.size());
  const std::int64_t on_chip = file.plan.partition.chip_op_count();
  std::string text = "\n";
  text += fmt::format("Input model: {}\n", file.input);
  text += fmt::format("Input size: {}\n", size_text(file.input_bytes));
  text += fmt::format("Output model: {}\n", file.output);
  text += fmt::format("Output size: {}\n", size_text(file.output_bytes));
  text += fmt::format("On-chip memory used for caching model parameters: {}\n", size_text(file.cached_bytes));
  text += fmt::format("On-chip memory remaining for caching model parameters: {}\n", size_text(file.remaining_bytes));
  text +=
      fmt::format("Off-chip memory used for streaming uncached model parameters: {}\n", size_text(file.streamed_bytes));
  text += fmt::format("Number of Edge TPU subgraphs: {}\n", file.ops.size());
  text += fmt::format("Total number of operations: {}\n", all);
  text += fmt::format("Operation log: {}\n", file.log);
  if (on_chip < all) {
    text += '\n';
    text += kSomeOnCpu;
    text += fmt::format("Number of operations that will run on Edge TPU: {}\n", on_chip);
    text += fmt::format("Number of operations that will run on CPU: {}\n", all - on_chip);
  }
  if (!show_operations) return text + "See the operation log file for individual operation details.\n";
  text += '\n';
  return text + table_text(file);
}

std::string nothing_text(const CompileRun& run) {
  std::vector<std::string> names;
  for (const CompiledFile& file : run.files) {
    if (file.ops.empty()) names.push_back(file.input);
  }
  return fmt::format("NOTHING runs on the Edge TPU: {}: all operations stay on the CPU.", fmt::join(names, ", "));
}

std::string run_text(const CompileOptions& options, const CompileRun& run, bool show_operations, bool has_nothing) {
  std::string text;
  if (options.search) {
    for (const CompiledFile& file : run.files) {
      text += search_text(options, file.attempts);
      if (const Attempt* found = longest_success(file.attempts)) text += attempt_lines(*found);
    }
  }
  text += timer_line(options);
  const auto milliseconds = static_cast<std::int64_t>(std::llround(run.milliseconds));
  if (has_nothing) text += fmt::format("\n{} ({} ms)\n", nothing_text(run), milliseconds);
  if (!has_nothing) {
    text +=
        fmt::format("\nModel{} compiled successfully in {} ms.\n", options.models.size() > 1 ? "s" : "", milliseconds);
  }
  for (const CompiledFile& file : run.files) text += file_text(file, show_operations);
  return text + (has_nothing ? "Compilation found nothing for the Edge TPU! \n" : std::string(kSucceeded));
}

std::string refusal_text(const CompileOptions& options, const Refusal& refusal) {
  switch (refusal.kind) {
    case Refusal::Kind::kNotParsed:
      return fmt::format("Invalid model: {}\nModel could not be parsed\n", refusal.model);
    case Refusal::Kind::kNotQuantized:
      return fmt::format("Invalid model: {}\nModel not quantized\n", refusal.model);
    case Refusal::Kind::kAlreadyCompiled:
      return fmt::format("Invalid model: {}\nModel already compiled\n", refusal.model);
    case Refusal::Kind::kTimeout:
      return timer_line(options) +
             "Compilation timeout. This is usually caused by large activations.\nCompilation failed! \n";
    case Refusal::Kind::kFailed:
      if (options.search) return search_text(options, refusal.attempts);
      return timer_line(options) + std::string(kFailed);
    case Refusal::Kind::kRequest:
      return "Compilation failed! \n";
  }
  return "";
}

}  // namespace

std::string version_line() { return fmt::format("Edge TPU Compiler version {}\n", kCompatibleVersion); }

std::string size_text(std::int64_t bytes) {
  const auto size = static_cast<double>(bytes);
  if (bytes < 1024) return fmt::format("{:.2f}B", size);
  if (bytes < 1024 * 1024) return fmt::format("{:.2f}KiB", size / 1024);
  return fmt::format("{:.2f}MiB", size / (1024 * 1024));
}

std::string log_text(const CompiledFile& file) {
  return version_line() + fmt::format("Input: {}\nOutput: {}\n\n", file.input, file.output) + table_text(file);
}

std::string console_text(const CompileOptions& options, const CompileResult& result, bool show_operations,
                         bool reports_nothing) {
  std::string text;
  if (result.ok()) {
    const bool has_nothing = reports_nothing && result.has_file_without_chip();
    for (const CompileRun& run : result.runs) {
      const auto is_empty = [](const CompiledFile& file) { return file.ops.empty(); };
      const bool is_of_nothing = has_nothing && std::any_of(run.files.begin(), run.files.end(), is_empty);
      text += run_text(options, run, show_operations, is_of_nothing);
    }
    return text;
  }
  for (const Refusal& refusal : result.refusals) text += refusal_text(options, refusal);
  return text;
}

}  // namespace reef::compiler
