// SPDX-License-Identifier: Apache-2.0
#include "compiler/compile.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <limits>
#include <map>
#include <utility>

#include "base/file.h"
#include "base/sha256.h"
#include "base/shell_word.h"
#include "base/version.h"
#include "compiler/google_text.h"
#include "compiler/verification.h"
#include "emit/compiled_model.h"
#include "formats/darwinn/reader.h"
#include "formats/darwinn/without_code.h"
#include "formats/darwinn/writer.h"
#include "formats/tflite/exported_writer.h"
#include "formats/tflite/reader.h"
#include "formats/tflite/writer.h"
#include "formats/zip/appended_archive.h"
#include "ir/verify.h"
#include "partition/search.h"
#include "partition/segments.h"

namespace reef::compiler {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// A model on its way.
struct Source {
  std::string given;  // the user's file
  std::string path;   // the same, or a name for a segment of it
  std::string stem;   // of the files that are made
  Bytes file;         // empty for a segment
  std::int64_t bytes = 0;
  std::shared_ptr<const ir::Model> model;
};

// Parts with their code, or without.
struct Generated {
  std::vector<CompiledOp> ops;
  std::vector<emit::CompiledPart> parts;
};

// Code that is to be tried out.
struct PendingPart {
  std::size_t file = 0;  // of those compiled together
  VerifiedPart part;
  Bytes custom_options;
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

struct PendingFile {
  std::string path;
  std::vector<std::uint8_t> data;
};

class Compilation {
 public:
  explicit Compilation(const CompileOptions& options) : options_(options) {}

  CompileResult run() {
    if (compile_all() && result_.ok() && options_.write) write_files();
    if (result_.ok() && options_.progress) options_.progress("done", "", 1);
    return std::move(result_);
  }

 private:
  // ---- Refusing ----

  bool refuse(Refusal refusal) {
    result_.refusals.push_back(std::move(refusal));
    return false;
  }
  bool refuse_request(const std::string& model, std::string explanation) {
    return refuse({Refusal::Kind::kRequest, model, std::move(explanation), {}});
  }
  // The time is an attempt's; the first begins with loading and planning.
  bool is_late() const { return milliseconds_since(attempt_start_) > options_.timeout_seconds * 1000; }

  // Of each file: planning, generating, writing, verifying. What is done again counts once.
  void tell(std::string_view stage, const std::string& file) {
    if (!options_.progress) return;
    const auto files = std::max(options_.models.size(), static_cast<std::size_t>(options_.segments));
    const auto all = static_cast<double>(4 * files);
    options_.progress(stage, file, std::min(static_cast<double>(steps_++) / all, 1.0));
  }

  // ---- The stages ----

  bool compile_all() {
    start_ = attempt_start_ = Clock::now();
    if (!check_request()) return false;
    std::vector<Source> sources;
    for (const std::string& path : options_.models) {
      if (!load(path, sources.emplace_back())) return false;
    }
    caching_token_ = token_of(sources);
    if (options_.segments == 1) return compile_together(sources, options_.plan);
    std::vector<Source> segments;
    if (!cut(sources.front(), segments)) return false;
    PlanOptions plan = options_.plan;  // rewrites have been made
    plan.rewrites = {};
    plan.rewrites.none = true;
    for (Source& segment : segments) {
      std::vector<Source> one;
      one.push_back(std::move(segment));
      // The driver takes parameters of equal tokens for lying side by side on the chip, which those of segments do not.
      ++caching_token_;
      if (!compile_together(one, plan)) return false;
      start_ = attempt_start_ = Clock::now();
    }
    return true;
  }

  bool check_request() {
    if (options_.segments > 1 && options_.models.size() > 1) {
      return refuse_request("", "--num_segments cuts one model: give only one");
    }
    if (options_.segments > 1 && !options_.plan.partition.intermediate_tensors.empty()) {
      return refuse_request("", "--num_segments and --intermediate_tensors both say where to cut: give only one");
    }
    const fs::path folder = options_.out_dir.empty() ? "." : options_.out_dir;
    std::error_code error;
    if (!fs::is_directory(folder, error)) {
      const std::string name = folder.string();
      return refuse_request(
          "", fs::exists(folder, error)
                  ? fmt::format("--out_dir: {} is not a folder; give one", name)
                  : fmt::format("--out_dir: {} does not exist; make it first: mkdir -p {}", name, shell_word(name)));
    }
    std::map<std::string, std::string> made_from;
    for (const std::string& path : options_.models) {
      const auto [other, is_new] = made_from.emplace(fs::path(path).stem().string(), path);
      if (is_new) continue;
      return refuse_request(path, fmt::format("{} and {} would both become {}: rename one, or compile them into "
                                              "different folders",
                                              other->second, path, output_path(other->first)));
    }
    return true;
  }

  bool load(const std::string& path, Source& source) {
    source.given = source.path = path;
    source.stem = fs::path(path).stem().string();
    auto file = read_file(path, tflite::kMaxFileBytes);
    if (!file.ok()) return refuse(not_parsed(path, file.status()));
    source.file = std::move(file).value();
    source.bytes = static_cast<std::int64_t>(source.file.size());
    auto model = tflite::read_model(source.file);
    if (!model.ok()) return refuse(not_parsed(path, model.status().in(path)));
    Status status = ir::verify(*model);
    if (status.ok() && model->subgraphs.empty()) status = invalid_input("the model has no subgraph");
    if (!status.ok()) return refuse(not_parsed(path, status.in(path)));
    source.model = std::make_shared<const ir::Model>(std::move(model).value());
    const auto& operators = source.model->subgraphs.front().operators;
    const bool is_compiled = std::any_of(operators.begin(), operators.end(), darwinn::is_edge_tpu_op);
    return is_compiled ? refuse(already_compiled(path)) : true;
  }

  bool plan(const Source& source, const PlanOptions& how, Plan& result) {
    PlanOptions options = how;
    options.partition.explain = false;
    auto plan = make_plan(source.model, options);
    if (!plan.ok()) return refuse_request(source.path, plan.status().in(source.path).message());
    result = std::move(plan).value();
    return is_late() ? refuse(timed_out(source.path, options_.timeout_seconds)) : true;
  }

  bool cut(const Source& source, std::vector<Source>& segments) {
    Plan whole;
    if (!plan(source, options_.plan, whole)) return false;
    if (whole.assessment.is_float()) return refuse(not_quantized(source.path, *whole.model, whole.assessment));
    const auto cuts = partition::cut_segments(*whole.model, whole.assessment, *whole.costs, options_.segments);
    if (!cuts.ok()) return refuse_request(source.path, cuts.status().in(source.path).message());
    rewrites_ = std::move(whole.rewrites);
    for (std::size_t i = 0; i < cuts->size(); ++i) {
      const partition::Segment& piece = (*cuts)[i];
      Source& segment = segments.emplace_back();
      segment.given = source.given;
      segment.stem = fmt::format("{}_segment_{}_of_{}", source.stem, i, cuts->size());
      segment.path = segment.stem + ".tflite";
      ir::Model model = partition::extract_model(*whole.model, piece.ops, piece.inputs, piece.outputs);
      const Status status = ir::verify(model);
      const auto written = tflite::write_model(model);
      if (!status.ok()) return refuse_request(source.path, status.in(segment.path).message());
      if (!written.ok()) return refuse_request(source.path, written.status().in(segment.path).message());
      segment.bytes = static_cast<std::int64_t>(written->size());
      segment.model = std::make_shared<const ir::Model>(std::move(model));
    }
    return true;
  }

  // Models that share the chip's memory.
  bool compile_together(const std::vector<Source>& sources, const PlanOptions& how) {
    CompileRun run;
    unverified_.clear();
    emitted_files_ = 0;
    for (const Source& source : sources) {
      if (!plan_one(source, how, run.files.emplace_back())) return false;
    }
    const std::vector<std::int64_t> rooms = share_memory(run.files, how.costs.cache_policy);
    std::vector<Generated> generated;
    std::int64_t left = 0;
    chip_ = {};
    chip_.is_shared = sources.size() > 1;
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
        if (!choose(room, run.files[i], generated[i])) return false;
        left += std::max<std::int64_t>(room, 0);
      }
      if (chip_.is_shared) chip_.room.end_line = chip_.lowest_scratch_line;
    }
    for (std::size_t i = 0; i < sources.size(); ++i) {
      tell("emit", run.files[i].input);
      if (!emit(sources[i], generated[i], run.files[i])) return false;
    }
    // As Google's compiler prints it: what is left in the end, the same for all.
    const std::int64_t remaining = remaining_bytes(run.files).value_or(left + unshared_bytes_);
    for (CompiledFile& file : run.files) file.remaining_bytes = remaining;
    run.milliseconds = milliseconds_since(start_);
    if (!verify_together(run.files)) return false;
    result_.runs.push_back(std::move(run));
    return true;
  }

  // How many bytes of parameters each model may keep on the chip; -1: as many as there is room for, being alone.
  std::vector<std::int64_t> share_memory(const std::vector<CompiledFile>& files, partition::CachePolicy policy) {
    unshared_bytes_ = 0;
    if (files.size() == 1) return {-1};
    std::vector<partition::CacheModel> models;
    std::vector<std::size_t> owner;
    for (std::size_t i = 0; i < files.size(); ++i) {
      for (const partition::Part& part : files[i].plan.partition.parts) {
        models.push_back(files[i].plan.costs->cache_model(part.ops));
        owner.push_back(i);
      }
    }
    std::vector<std::int64_t> rooms(files.size());
    if (models.empty()) return rooms;
    const std::vector<partition::CacheShare> shares = partition::share_cache(models, policy);
    for (std::size_t i = 0; i < shares.size(); ++i) rooms[owner[i]] += shares[i].lines * chip::kWideLineBytes;
    unshared_bytes_ = shares.back().lines_left * chip::kWideLineBytes;
    return rooms;
  }

  bool plan_one(const Source& source, const PlanOptions& how, CompiledFile& file) {
    file.source = source.given;
    file.input = source.path;
    file.input_bytes = source.bytes;
    file.output = output_path(source.stem);
    file.log = log_path(source.stem);
    file.given = source.model;
    tell("plan", file.input);
    if (!plan(source, how, file.plan)) return false;
    if (options_.segments > 1) {
      file.plan.rewrites = std::exchange(rewrites_, {});  // of the whole model: with its first segment
    } else if (file.plan.assessment.is_float()) {         // a segment may well lie behind the last operator of 8 bits
      return refuse(not_quantized(source.path, *file.plan.model, file.plan.assessment));
    }
    return true;
  }

  // Where everything has code: what scratch and parameters leave of the chip's memory.
  std::optional<std::int64_t> remaining_bytes(const std::vector<CompiledFile>& files) const {
    std::int64_t used = 0;
    for (const CompiledFile& file : files) {
      for (const CompiledOp& op : file.ops) {
        if (!op.memory) return std::nullopt;
        used += op.memory->cached_bytes;
      }
    }
    return std::int64_t{chip::kTiles} * chip_.lowest_scratch_line * chip::kWideLineBytes - used;
  }

  // Generates code for what was planned; with -d, for less and less of the model until there is some.
  bool choose(std::int64_t& room, CompiledFile& file, Generated& generated) {
    const auto length_of = [](const partition::Partition& division) {
      return static_cast<std::int32_t>(division.parts.empty() ? 0 : division.parts.front().ops.size());
    };
    const auto attempt = [&](Result<partition::Partition> division, bool is_whole) -> Result<bool> {
      if (!division.ok()) return division.status();
      if (!file.attempts.empty()) attempt_start_ = Clock::now();
      std::int64_t left = room;
      ChipMemory chip = chip_;
      Attempt& tried = file.attempts.emplace_back();
      tried.ops = is_whole ? static_cast<std::int32_t>(division->ops.size()) : length_of(*division);
      if (!is_whole) tried.tensors = names_of(*file.plan.model, division->parts);
      partition::Partition now = std::move(division).value();
      auto made = generate_or_leave(now, is_whole ? -1 : tried.ops, left, file, chip);
      tried.is_late = is_late();
      tried.status = tried.is_late ? timeout() : made.status();
      if (!tried.status.ok()) return false;
      file.plan.partition = std::move(now);
      generated = std::move(made).value();
      room_after_ = left;
      chip_after_ = chip;
      return true;
    };
    const partition::Partition whole = file.plan.partition;
    auto found = options_.search && whole.parts.size() == 1
                     ? partition::longest_that_compiles(length_of(whole), options_.search_step,
                                                        [&](std::int32_t count) {
                                                          const bool is_whole = count == length_of(whole);
                                                          return is_whole ? attempt(whole, true)
                                                                          : attempt(shorter(count, file.plan), false);
                                                        })
                     : once([&] { return attempt(whole, true); });
    if (found.ok() && found->ops == 0 && options_.search && whole.parts.size() > 1) {
      // Several parts are given up for one, and that one shrinks.
      const auto single = shorter(std::numeric_limits<std::int32_t>::max(), file.plan);
      found = partition::longest_that_compiles(
          single.ok() ? length_of(*single) : 0, options_.search_step,
          [&](std::int32_t count) { return attempt(shorter(count, file.plan), false); });
    }
    if (!found.ok()) return refuse_request(file.input, found.status().in(file.input).message());
    if (found->ops == 0) return refuse_failed(file);
    if (options_.search) attempt_start_ = Clock::now();
    room = room_after_;
    chip_ = chip_after_;
    return true;
  }

  // Without a search. The number of operators does not matter then: 0 if they do not compile.
  static Result<partition::SearchResult> once(const std::function<Result<bool>()>& attempt) {
    REEF_ASSIGN_OR_RETURN(const bool compiles, attempt());
    return partition::SearchResult{compiles ? 1 : 0, 1};
  }

  Status timeout() const {
    return make_error(StatusCode::kResourceExhausted, "{} seconds were not enough", options_.timeout_seconds);
  }

  bool refuse_failed(CompiledFile& file) {
    if (!options_.search && file.attempts.back().is_late)
      return refuse(timed_out(file.input, options_.timeout_seconds));
    return refuse({Refusal::Kind::kFailed, file.input,
                   fmt::format("{}: {}", file.input, file.attempts.back().status.message()),
                   options_.search ? std::move(file.attempts) : std::vector<Attempt>()});
  }

  // `max_ops` -1: no limit.
  Result<partition::Partition> shorter(std::int32_t max_ops, const Plan& plan) const {
    partition::PartitionOptions how = options_.plan.partition;
    how.max_ops = max_ops;
    how.explain = false;
    return partition::partition(*plan.model, plan.assessment, *plan.costs, how);
  }

  // Operators that there is no code for are left to the CPU, one round after the other: without them, others may end up
  // in other parts. `max_ops` -1: no limit.
  Result<Generated> generate_or_leave(partition::Partition& division, std::int32_t max_ops, std::int64_t& room,
                                      CompiledFile& file, ChipMemory& chip) const {
    while (true) {
      std::int64_t left = room;
      ChipMemory filled = chip;
      std::vector<lower::RefusedOp> refused;
      auto made = generate(division, left, file.plan, refused, filled);
      if (refused.empty() || options_.no_code != NoCode::kCpu) {
        room = left;
        chip = filled;
        return made;
      }
      for (lower::RefusedOp& op : refused) {
        partition::leave_without_code(file.plan.assessment, op.op, op.reason);
        file.without_code.push_back(std::move(op));
      }
      if (is_late()) return timeout();
      REEF_ASSIGN_OR_RETURN(division, shorter(max_ops, file.plan));
    }
  }

  // `refused` gets every operator without code; where the reason lies in no single one, all of the part.
  Result<Generated> generate(const partition::Partition& division, std::int64_t& room, const Plan& plan,
                             std::vector<lower::RefusedOp>& refused, ChipMemory& chip) const {
    chip.is_shared |= division.parts.size() > 1;
    const ir::Model& model = *plan.model;
    const partition::CostModel& costs = *plan.costs;
    const int runtime = options_.plan.runtime;
    Generated result;
    if (division.parts.empty() && room < 0) room = costs.part({}, {}, {}).cache_capacity;
    for (const partition::Part& part : division.parts) {
      CompiledOp& op = result.ops.emplace_back();
      op.part = part;
      op.part.cost = costs.part(part.ops, part.inputs, part.outputs, room);
      darwinn::CustomOptions custom;
      // What nobody is predicted to need is for whoever turns out to need it.
      std::vector<lower::RefusedOp> obstacles;
      auto code =
          options_.generate({model, part.ops, part.inputs, part.outputs, runtime, caching_token_, chip.is_shared,
                             op.part.cost.cache_capacity + unshared_bytes_, chip.room, options_.level, &obstacles});
      op.has_code = code.ok();
      if (code.ok()) {
        op.code = std::make_shared<const PartCode>(std::move(code).value());
        custom.package = op.code->package;
        op.memory = op.code->memory;
        if (op.memory) chip.add(*op.memory);
      } else {
        if (code.status().code() != StatusCode::kUnsupported || options_.no_code == NoCode::kFail) {
          return code.status();
        }
        op.why_no_code = code.status().message();
        if (obstacles.empty()) {
          for (const std::int32_t each : part.ops) obstacles.push_back({each, op.why_no_code});
        }
        refused.insert(refused.end(), obstacles.begin(), obstacles.end());
        custom.package = darwinn::package_without_code(runtime, maker(), op.why_no_code);
      }
      REEF_ASSIGN_OR_RETURN(auto bytes, darwinn::write_custom_options(custom));
      result.parts.push_back({part.ops, part.inputs, part.outputs, Bytes(std::move(bytes))});
      room = std::max<std::int64_t>(0, op.part.cost.cache_capacity - op.part.cost.cache_used);
    }
    return result;
  }

  bool emit(const Source& source, const Generated& generated, CompiledFile& file) {
    file.ops = generated.ops;
    for (std::size_t i = 0; i < file.ops.size(); ++i) {
      partition::Part& part = file.plan.partition.parts[i];
      const partition::PartCost& cost = file.ops[i].part.cost;  // with the memory that others have left
      file.plan.partition.predicted_us += cost.total() - part.cost.total();
      part.cost = cost;
      const std::optional<MemoryUse>& memory = file.ops[i].memory;
      file.cached_bytes += memory ? memory->cached_bytes : cost.cache_used;
      file.streamed_bytes += memory ? memory->streamed_bytes : cost.streamed_bytes;
    }
    emit::EmitOptions how;
    how.keep_signatures = options_.keep_signatures;
    how.remarks = remarks_on(file);
    auto model = emit::compiled_model(*file.plan.model, generated.parts, how);
    if (!model.ok()) return refuse({Refusal::Kind::kFailed, file.input, model.status().in(file.input).message(), {}});
    auto data = tflite::write_exported_model(*model);
    if (!data.ok()) return refuse({Refusal::Kind::kFailed, file.input, data.status().in(file.input).message(), {}});
    for (std::size_t i = 0; i < file.ops.size(); ++i) {
      const emit::CompiledPart& part = generated.parts[i];
      if (!file.ops[i].has_code) continue;
      unverified_.push_back({emitted_files_, {part.ops, part.inputs, part.outputs}, part.custom_options});
    }
    ++emitted_files_;
    zip::carry_archive(source.file.span(), *data);
    file.output_bytes = static_cast<std::int64_t>(data->size());
    pending_.push_back({file.output, std::move(data).value()});
    const std::string log = log_text(file);
    pending_.push_back({file.log, std::vector<std::uint8_t>(log.begin(), log.end())});
    return true;
  }

  // Why a file is not tried out; empty: it is.
  std::string why_not_verified(const CompiledFile& file) const {
    if (options_.verify == Verify::kNever) return "not asked for";
    double seconds = 0;
    bool has_code = false;
    for (const CompiledOp& op : file.ops) {
      if (!op.has_code) continue;
      has_code = true;
      seconds += estimated_verification_seconds(*file.plan.costs, op.part.ops);
    }
    if (!has_code) return "there is no machine code to try";
    if (options_.verify == Verify::kAlways || seconds <= kQuickSeconds) return "";
    return fmt::format("it would take about {:.0f} s (estimated); --verify does it", seconds);
  }

  // All parts on one device, as they share one chip. Several run twice: the later ones must have left alone what the
  // earlier ones keep there.
  bool verify_together(std::vector<CompiledFile>& files) {
    for (CompiledFile& file : files) {
      file.verified.why_not = why_not_verified(file);
      file.verified.done = file.verified.why_not.empty();
    }
    PartVerifier verifier;
    const std::uint32_t rounds = unverified_.size() > 1 ? 2 : 1;
    for (std::uint32_t round = 1; round <= rounds; ++round) {
      for (const PendingPart& pending : unverified_) {
        CompiledFile& file = files[pending.file];
        if (!file.verified.done) continue;
        if (round == 1) tell("verify", file.input);
        const Clock::time_point start = Clock::now();
        const Status status = verify_part(verifier, *file.plan.model, pending, round);
        file.verified.seconds += milliseconds_since(start) / 1000;
        file.verified.rests_on_timing = verifier.rests_on_timing();
        if (status.ok()) continue;
        if (status.code() != StatusCode::kUnsupported) {
          return refuse({Refusal::Kind::kFailed,
                         file.input,
                         fmt::format("{}: {}. Nothing was written. This is a mistake in Reef: please report it with "
                                     "the model (--no-verify writes the file nevertheless)",
                                     file.input, status.message()),
                         {}});
        }
        file.verified.done = false;
        file.verified.why_not = status.message();
      }
    }
    return true;
  }

  static Status verify_part(PartVerifier& verifier, const ir::Model& model, const PendingPart& pending,
                            std::uint32_t seed) {
    REEF_ASSIGN_OR_RETURN(const darwinn::CustomOptions options, darwinn::read_custom_options(pending.custom_options));
    return verifier.verify(model, pending.part, options.package, seed);
  }

  void write_files() {
    std::vector<FileContent> contents;
    for (const PendingFile& file : pending_) contents.push_back({file.path, file.data});
    const Status status = reef::write_files(contents);
    if (!status.ok()) refuse_request("", status.message());
  }

  // ---- Small things ----

  static std::string maker() { return fmt::format("reef {}", reef_version()); }

  // What the file says about itself, where it is not what it seems.
  static std::vector<std::string> remarks_on(const CompiledFile& file) {
    std::vector<std::string> remarks;
    for (std::size_t i = 0; i < file.ops.size(); ++i) {
      if (file.ops[i].has_code) continue;
      remarks.push_back(fmt::format("{}: Edge TPU op {} has no machine code and cannot run: {}", maker(), i,
                                    file.ops[i].why_no_code));
    }
    return remarks;
  }

  static std::vector<std::string> names_of(const ir::Model& model, const std::vector<partition::Part>& parts) {
    std::vector<std::string> names;
    for (const partition::Part& part : parts) {
      for (const std::int32_t tensor : part.outputs) {
        names.push_back(model.subgraphs[0].tensors[static_cast<std::size_t>(tensor)].name);
      }
    }
    return names;
  }

  std::string path_of(const std::string& stem, std::string_view ending) const {
    return (fs::path(options_.out_dir) / fmt::format("{}_edgetpu.{}", stem, ending)).string();
  }
  std::string output_path(const std::string& stem) const { return path_of(stem, "tflite"); }
  std::string log_path(const std::string& stem) const { return path_of(stem, "log"); }

  // Follows from the files, so that the same command gives the same bytes. Never 0, which means "not cached".
  static std::uint64_t token_of(const std::vector<Source>& sources) {
    std::string digests;
    for (const Source& source : sources) digests += sha256_hex(source.file.span());
    const auto* data = reinterpret_cast<const std::uint8_t*>(digests.data());
    const std::string digest = sha256_hex(std::span(data, digests.size()));
    return std::stoull(digest.substr(0, 16), nullptr, 16) | 1;
  }

  const CompileOptions& options_;
  CompileResult result_;
  Clock::time_point start_;          // of what runs under one timer
  Clock::time_point attempt_start_;  // of what -t limits
  std::uint64_t caching_token_ = 0;
  std::int64_t unshared_bytes_ = 0;             // of the chip's memory that no model needs
  ChipMemory chip_, chip_after_;                // of what is being compiled, and after the last attempt
  std::int64_t room_after_ = -1;                // what the last attempt that compiled leaves of the parameter cache
  std::vector<rewrite::Application> rewrites_;  // of a model that is cut
  std::vector<PendingPart> unverified_;         // of what is compiled together
  std::size_t emitted_files_ = 0;               // likewise
  std::vector<PendingFile> pending_;
  std::size_t steps_ = 0;  // that progress was told of
};

}  // namespace

bool CompileResult::has_all_code() const {
  for (const CompileRun& run : runs) {
    for (const CompiledFile& file : run.files) {
      if (!std::all_of(file.ops.begin(), file.ops.end(), [](const CompiledOp& op) { return op.has_code; }))
        return false;
    }
  }
  return true;
}

CompileResult compile(const CompileOptions& options) { return Compilation(options).run(); }

}  // namespace reef::compiler
