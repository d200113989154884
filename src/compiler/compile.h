// SPDX-License-Identifier: Apache-2.0
// From quantized models to compiled files. compiler/pipeline.h is the way from any model; this is its second half.
//
//   load -> plan (rewrite, assess, cost, partition) -> generate code -> emit -> verify -> write
//
// Several models are compiled together: they share one caching token and the chip's memory for parameters, which goes
// where it is predicted to save most time (or, as Google's compiler does it, to the first that asks). Parameters of one
// must not lie where another has scratch: everything is generated twice, when it is known where scratch begins.
// With `segments`, one model is cut into several; each has a chip and a token of its own, so that they also take turns
// on one chip without harm. Nothing is written unless everything could be compiled. Same files and options, same bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/budget.h"
#include "base/bytes.h"
#include "base/file.h"
#include "base/status.h"
#include "compiler/code_generator.h"
#include "compiler/file_verification.h"
#include "compiler/part_search.h"
#include "compiler/plan.h"
#include "compiler/refusal.h"

namespace reef::compiler {

// What becomes of operators that the chip could run but that there is no code for.
enum class NoCode : std::uint8_t {
  kCpu,      // they stay on the CPU, with the reason
  kPackage,  // they are mapped as Google's compiler would; the file has a package without code, which says so
  kFail,     // nothing is written
};

// Whether the result runs on the virtual device, against the chip reference, before it is written
// (file_verification.h).
enum class Verify : std::uint8_t {
  kWhenQuick,  // where that is estimated to take kQuickSeconds at most
  kAlways,
  kNever,
};
inline constexpr double kQuickSeconds = 5;

struct CompiledFile;

// A model that is in no file yet.
struct GivenModel {
  Bytes file;                              // as it will be written; decides the caching token
  std::shared_ptr<const ir::Model> model;  // what `file` says, after admit_model (front_end.h); null: read from `file`
};

struct CompileOptions {
  std::vector<std::string> models;              // files
  std::map<std::string, GivenModel> in_memory;  // models that are in no file yet, by name
  std::string out_dir;  // folder, or the compiled file (compile_names.h); empty: the current folder
  PlanOptions plan;     // -m, -i, -a; rewrites, link, which part
  int segments = 1;     // -n
  bool search = false;  // -d
  int search_step = 1;  // -k
  // -t: of each attempt (-d makes several), and of each segment; of everything that is done for it, trying it out
  // included.
  double timeout_seconds = 180;
  Budget budget = {};  // of everything together
  bool keep_signatures = false;
  NoCode no_code = NoCode::kCpu;
  tiled::Level level = tiled::kDefaultLevel;  // -O0, -O1
  // Whose parameters stay on the chip where not all have room there. Among models and parts: plan.costs.cache_policy.
  schedule::CacheOrder cache_order = schedule::CacheOrder::kOfLevel;
  Verify verify = Verify::kWhenQuick;
  bool write = true;  // else everything is done but that
  CodeGenerator generate = generate_part;
  // Asked about every file before anything is written: whether what it is for takes it. Empty: yes.
  std::function<Status(const CompiledFile& file)> admit;
  // Told what is being done for which file, and how much of all is done, from 0 to 1; never less than before.
  std::function<void(std::string_view stage, std::string_view file, double done)> progress;
};

// A part of a model that became a custom op.
struct CompiledOp {
  partition::Part part;
  bool has_code = false;
  std::optional<MemoryUse> memory;       // of its code; nothing: estimates are all there is
  std::shared_ptr<const PartCode> code;  // null: there is none
  std::string why_no_code;
};

// What became of trying a file out: each part against the chip reference, then the file's own bytes as a whole.
struct Verified {
  bool done = false;          // the bytes of the whole file were run, and every output compared
  std::string why_not;        // unless done
  FileComparison comparison;  // what was compared, in each round
  int rounds = 0;
  bool rests_on_timing = false;  // in one place, as Google's programs do (audit::is_googles_gather)
  double seconds = 0;            // measured
};

// One file that was made: of a model, or of a segment of one.
struct CompiledFile {
  std::string source;  // the file that the user gave
  std::string input;   // the same; for a segment "<stem>_segment_0_of_2.tflite", which is not written
  std::int64_t input_bytes = 0;
  std::string output, log;                                   // files
  std::shared_ptr<const std::vector<std::uint8_t>> content;  // of `output`
  std::string log_content;
  std::int64_t output_bytes = 0;
  std::shared_ptr<const ir::Model> given;  // as read, or as cut
  Plan plan;
  std::vector<CompiledOp> ops;
  // Operators of plan.model that stay on the CPU only because there is no code for them.
  std::vector<lower::RefusedOp> without_code;
  PartSearchReport search;  // how the parts were found that have code
  std::vector<Attempt> attempts;
  Verified verified;
  // Bytes of the chip's memory that hold parameters, whole lines of it; what is left; parameters that are sent with
  // every inference. What the code does; estimates for parts that have none.
  std::int64_t cached_bytes = 0, remaining_bytes = 0, streamed_bytes = 0;
};

// What ran under one timer.
struct CompileRun {
  std::vector<CompiledFile> files;
  double milliseconds = 0;  // measured
};

struct CompileResult {
  std::vector<CompileRun> runs;   // one, or one for each segment
  std::vector<Refusal> refusals;  // not empty: nothing was written

  bool ok() const { return refusals.empty(); }
  bool has_all_code() const;
  // A file was made in which nothing runs on the chip. (A segment may have nothing, if another one has.)
  bool has_file_without_chip() const;
};

CompileResult compile(const CompileOptions& options);

// The files that compile() writes. The spans point into `result`.
std::vector<FileContent> contents_of(const CompileResult& result);

// One of `options.models`, read and admitted (front_end.h).
struct LoadedModel {
  Bytes file;
  std::shared_ptr<const ir::Model> model;
  std::string shape_note;  // for the user: declared shapes that were replaced; empty: none
};
Result<LoadedModel> load_given(const CompileOptions& options, const std::string& path);

}  // namespace reef::compiler
