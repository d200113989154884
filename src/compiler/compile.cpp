// SPDX-License-Identifier: Apache-2.0
#include "compiler/compile.h"

#include <algorithm>

#include "compiler/compile_names.h"
#include "compiler/compile_run.h"

namespace reef::compiler {

CompileResult Compilation::run() {
  Status status = compile_all();
  if (status.ok() && options_.write) status = write_files();
  if (!status.ok() && result_.ok()) status = refuse_request("", status.message());
  if (status.ok() && options_.progress) options_.progress("done", "", 1);
  return std::move(result_);
}

void Compilation::tell(std::string_view stage, const std::string& file) {
  if (!options_.progress) return;
  const auto files = std::max(options_.models.size(), static_cast<std::size_t>(options_.segments));
  const auto all = static_cast<double>(4 * files);
  options_.progress(stage, file, std::min(static_cast<double>(steps_++) / all, 1.0));
}

Status Compilation::compile_all() {
  start_ = Clock::now();
  begin_attempt();
  if (const Status status = check_compile_request(options_); !status.ok()) return refuse_request("", status.message());
  std::vector<Source> sources;
  for (const std::string& path : options_.models) {
    REEF_ASSIGN_OR_RETURN(sources.emplace_back(), load(path));
  }
  caching_token_ = token_of(sources);
  if (options_.segments == 1) return compile_together(sources, options_.plan);
  REEF_ASSIGN_OR_RETURN(std::vector<Source> segments, cut(sources.front()));
  PlanOptions plan = options_.plan;  // rewrites have been made
  plan.rewrites = {};
  plan.rewrites.none = true;
  for (Source& segment : segments) {
    std::vector<Source> one;
    one.push_back(std::move(segment));
    // The driver takes parameters of equal tokens for lying side by side on the chip, which those of segments do not.
    ++caching_token_;
    REEF_RETURN_IF_ERROR(compile_together(one, plan));
    start_ = Clock::now();
    begin_attempt();
  }
  return ok_status();
}

Status Compilation::compile_together(const std::vector<Source>& sources, const PlanOptions& how) {
  CompileRun run;
  unverified_.clear();
  for (const Source& source : sources) {
    REEF_ASSIGN_OR_RETURN(run.files.emplace_back(), plan_one(source, how));
  }
  const std::vector<std::int64_t> rooms = share_memory(run.files, how.costs.cache_policy);
  std::vector<Generated> generated;
  std::int64_t left = 0;
  chip_ = {};
  chip_.is_shared = sources.size() > 1;
  chip_.room.order = options_.cache_order;
  // Scratch that begins lower than what others were told makes them compile again, with less room.
  for (std::int32_t end = chip::kWideLines + 1; chip_.room.end_line < end;) {
    end = chip_.room.end_line;
    chip_.lowest_scratch_line = end;
    chip_.room.first_line = {};
    left = 0;
    generated.assign(sources.size(), {});
    for (std::size_t i = 0; i < sources.size(); ++i) {
      std::int64_t room = rooms[i];
      run.files[i].attempts.clear();
      tell("generate", run.files[i].input);
      REEF_ASSIGN_OR_RETURN(generated[i], choose(room, run.files[i]));
      left += std::max<std::int64_t>(room, 0);
    }
    if (chip_.is_shared) chip_.room.end_line = chip_.lowest_scratch_line;
  }
  for (std::size_t i = 0; i < sources.size(); ++i) {
    tell("emit", run.files[i].input);
    REEF_RETURN_IF_ERROR(emit(sources[i], generated[i], run.files[i]));
  }
  // As Google's compiler prints it: what is left in the end, the same for all.
  const std::int64_t remaining = remaining_bytes(run.files).value_or(left + unshared_bytes_);
  for (CompiledFile& file : run.files) file.remaining_bytes = remaining;
  run.milliseconds = milliseconds_since(start_);
  REEF_RETURN_IF_ERROR(verify_together(run.files));
  result_.runs.push_back(std::move(run));
  return ok_status();
}

bool CompileResult::has_all_code() const {
  for (const CompileRun& run : runs) {
    for (const CompiledFile& file : run.files) {
      if (!std::all_of(file.ops.begin(), file.ops.end(), [](const CompiledOp& op) { return op.has_code; }))
        return false;
    }
  }
  return true;
}

bool CompileResult::has_file_without_chip() const {
  std::map<std::string, bool> uses_chip;  // by the file that was given
  for (const CompileRun& run : runs) {
    for (const CompiledFile& file : run.files) uses_chip[file.source] |= !file.ops.empty();
  }
  return std::any_of(uses_chip.begin(), uses_chip.end(), [](const auto& one) { return !one.second; });
}

CompileResult compile(const CompileOptions& options) { return Compilation(options).run(); }

}  // namespace reef::compiler
