// SPDX-License-Identifier: Apache-2.0
// One run of the compiler: the state that its stages share. compile.cpp has the course of it, compile_sources.cpp
// models and their segments, compile_code.cpp machine code and the chip's memory, compile_output.cpp files and their
// trial.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/version.h"
#include "compiler/compile.h"
#include "compiler/file_verification.h"
#include "emit/compiled_model.h"
#include "lower/rearrangement_cache.h"
#include "partition/search.h"

namespace reef::compiler {

using Clock = std::chrono::steady_clock;

inline double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// A model on its way.
struct Source {
  std::string given;   // the user's file
  std::string path;    // the same, or a name for a segment of it
  std::string stem;    // of the files that are made
  LoadedModel loaded;  // without bytes for a segment
  std::int64_t bytes = 0;
};

// Parts with their code, or without.
struct Generated {
  std::vector<CompiledOp> ops;
  std::vector<emit::CompiledPart> parts;
};

// The chip's memory for parameters, as those that share it fill it one after the other.
struct ChipMemory {
  bool is_shared = false;
  schedule::CacheRoom room;
  std::int32_t lowest_scratch_line = chip::kWideLines;

  void add(const MemoryUse& use) {
    if (is_shared) room.first_line = use.next_line;
    lowest_scratch_line = std::min(lowest_scratch_line, use.lowest_scratch_line);
  }
};

class Compilation {
 public:
  explicit Compilation(const CompileOptions& options) : options_(options) {}

  CompileResult run();

 private:
  // ---- Refusing ----

  // Notes the reason for the user. What is returned ends the run, as any error does.
  Status refuse(Refusal refusal) {
    result_.refusals.push_back(std::move(refusal));
    return Status(StatusCode::kInvalidInput, result_.refusals.back().explanation);
  }
  Status refuse_request(const std::string& model, std::string explanation) {
    return refuse({Refusal::Kind::kRequest, model, std::move(explanation), {}});
  }
  Status timeout() const {
    REEF_RETURN_IF_ERROR(options_.budget.check("compiling"));
    return make_error(StatusCode::kResourceExhausted, "{} seconds were not enough", options_.timeout_seconds);
  }
  // `stage`: as for Budget::check.
  Status refuse_late(const std::string& path, std::string_view stage) {
    return refuse(timed_out(path, attempt_.check(stage)));
  }
  Status refuse_failed(CompiledFile& file);
  // The time is an attempt's; the first begins with loading and planning.
  bool is_late() const { return attempt_.is_over(); }
  void begin_attempt() { attempt_ = options_.budget.within(options_.timeout_seconds, "--timeout_sec SECONDS"); }

  // ---- The course (compile.cpp) ----

  // Of each file: planning, generating, writing, verifying. What is done again counts once.
  void tell(std::string_view stage, const std::string& file);
  Status compile_all();
  // Models that share the chip's memory.
  Status compile_together(const std::vector<Source>& sources, const PlanOptions& how);

  // ---- Models (compile_sources.cpp) ----

  Result<Source> load(const std::string& path);
  Result<Plan> plan(const Source& source, const PlanOptions& how);
  Result<CompiledFile> plan_one(const Source& source, const PlanOptions& how);
  Result<std::vector<Source>> cut(const Source& source);
  // Follows from the files, so that the same command gives the same bytes. Never 0, which means "not cached".
  static std::uint64_t token_of(const std::vector<Source>& sources);

  // ---- Code and the memory for parameters (compile_code.cpp) ----

  // How many bytes of parameters each model may keep on the chip; -1: as many as there is room for, being alone.
  std::vector<std::int64_t> share_memory(const std::vector<CompiledFile>& files, partition::CachePolicy policy);
  // Where everything has code: what scratch and parameters leave of the chip's memory.
  std::optional<std::int64_t> remaining_bytes(const std::vector<CompiledFile>& files) const;
  // Generates code for what was planned; with -d, for less and less of the model until there is some.
  Result<Generated> choose(std::int64_t& room, CompiledFile& file);
  // Without a search. The number of operators does not matter then: 0 if they do not compile.
  static Result<partition::SearchResult> once(const std::function<Result<bool>()>& attempt) {
    REEF_ASSIGN_OR_RETURN(const bool compiles, attempt());
    return partition::SearchResult{compiles ? 1 : 0, 1};
  }
  // `max_ops` -1: no limit.
  Result<partition::Partition> shorter(std::int32_t max_ops, const Plan& plan) const;
  // What was planned, cut until there is code for all of it (part_search.h). `max_ops` -1: no limit.
  Result<Generated> generate_or_cut(std::int32_t max_ops, std::int64_t& room, CompiledFile& file, ChipMemory& chip);
  PartTrial trial_of(const ir::Model& model, const partition::Part& part, std::int64_t room, const Plan& plan,
                     const ChipMemory& chip);
  Result<PartCode> code_of(const ir::Model& model, const partition::Part& part, const ChipMemory& chip,
                           PartTrial& trial) const;
  // `refused` gets every operator without code; where the reason lies in no single one, all of the part.
  Result<Generated> generate(const partition::Partition& division, std::int64_t& room, const Plan& plan,
                             std::vector<lower::RefusedOp>& refused, ChipMemory& chip) const;
  static std::vector<std::string> names_of(const ir::Model& model, const std::vector<partition::Part>& parts);

  // ---- Files (compile_output.cpp) ----

  Status emit(const Source& source, const Generated& generated, CompiledFile& file);
  // Why a file is not tried out; empty: it is.
  std::string why_not_verified(const CompiledFile& file) const;
  // All files on one device, as they share one chip. Several parts run twice: the later ones must have left alone what
  // the earlier ones keep there.
  Status verify_together(std::vector<CompiledFile>& files);
  Status verify_round(FileVerifier& verifier, std::size_t number, std::uint32_t round, CompiledFile& file);
  Status refuse_wrong(const CompiledFile& file, const Status& status);
  Status write_files();
  static std::string maker() { return fmt::format("reef {}", reef_version()); }
  // What the file says about itself, where it is not what it seems.
  std::vector<std::string> remarks_on(const CompiledFile& file) const;

  const CompileOptions& options_;
  CompileResult result_;
  Clock::time_point start_;  // of what runs under one timer
  Budget attempt_;           // of what -t limits
  std::uint64_t caching_token_ = 0;
  std::int64_t unshared_bytes_ = 0;  // of the chip's memory that no model needs
  ChipMemory chip_, chip_after_;     // of what is being compiled, and after the last attempt
  Plan accepted_;                    // of the last attempt that compiled
  // Code that trials have made, by model and operators: what was tried last need not be made again.
  std::map<std::pair<const ir::Model*, std::vector<std::int32_t>>, std::shared_ptr<const PartCode>> trial_codes_;
  mutable lower::RearrangementCache movements_;  // of everything that is generated
  std::int64_t room_after_ = -1;                 // what the last attempt that compiled leaves of the parameter cache
  std::vector<passes::Application> rewrites_;    // of a model that is cut
  std::vector<FileToVerify> unverified_;         // of what is compiled together
  std::size_t steps_ = 0;                        // that progress was told of
};

}  // namespace reef::compiler
