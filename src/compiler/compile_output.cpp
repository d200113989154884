// SPDX-License-Identifier: Apache-2.0
// Compiled files: put together, tried out on the virtual device, and written all at once.
#include <algorithm>

#include "base/file.h"
#include "compiler/compile_run.h"
#include "compiler/google_text.h"
#include "compiler/recorded_rewrites.h"
#include "formats/darwinn/reader.h"
#include "formats/tflite/exported_writer.h"
#include "formats/zip/appended_archive.h"

namespace reef::compiler {

Status Compilation::emit(const Source& source, const Generated& generated, CompiledFile& file) {
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
  zip::carry_archive(source.loaded.file.span(), *data);
  file.output_bytes = static_cast<std::int64_t>(data->size());
  FileToVerify& unverified = unverified_.emplace_back();
  unverified.data = Bytes(*data);
  unverified.model = file.plan.model;
  for (const emit::CompiledPart& part : generated.parts) {
    unverified.parts.push_back({part.ops, part.inputs, part.outputs});
  }
  file.content = std::make_shared<const std::vector<std::uint8_t>>(std::move(data).value());
  file.log_content = log_text(file);
  if (!options_.admit) return ok_status();
  const Status admitted = options_.admit(file);
  return admitted.ok() ? ok_status() : refuse_request(file.input, admitted.in(file.input).message());
}

std::string Compilation::why_not_verified(const CompiledFile& file) const {
  if (options_.verify == Verify::kNever) return "not asked for";
  double seconds = 0;
  for (const CompiledOp& op : file.ops) seconds += estimated_verification_seconds(*file.plan.costs, op.part.ops);
  if (file.ops.empty()) return "there is no machine code to try";
  const auto lacks_code = [](const CompiledOp& op) { return !op.has_code; };
  if (std::any_of(file.ops.begin(), file.ops.end(), lacks_code)) return "not all of it has machine code";
  if (options_.verify == Verify::kAlways) return "";
  if (seconds > attempt_.seconds_left()) {
    return fmt::format("it would take about {:.0f} s (estimated), and {:.0f} s are left; --verify does it", seconds,
                       attempt_.seconds_left());
  }
  if (seconds <= kQuickSeconds) return "";
  return fmt::format("it would take about {:.0f} s (estimated); --verify does it", seconds);
}

Status Compilation::verify_together(std::vector<CompiledFile>& files) {
  FileVerifier verifier(attempt_);
  std::vector<std::size_t> tried;  // files that are tried out, by their number in `verifier`
  std::size_t parts = 0;
  for (std::size_t i = 0; i < files.size(); ++i) {
    CompiledFile& file = files[i];
    file.verified.why_not = why_not_verified(file);
    file.verified.done = file.verified.why_not.empty();
    if (!file.verified.done) continue;
    tell("verify", file.input);
    const Status status = verifier.add(unverified_[i]);
    if (is_late()) return refuse_late(file.input, "verifying the compiled code");
    if (!status.ok()) return refuse_wrong(file, status);
    tried.push_back(i);
    parts += file.ops.size();
  }
  const std::uint32_t rounds = parts > 1 ? 2 : 1;
  for (std::uint32_t round = 1; round <= rounds; ++round) {
    for (std::size_t k = 0; k < tried.size(); ++k) {
      CompiledFile& file = files[tried[k]];
      if (!file.verified.done) continue;
      REEF_RETURN_IF_ERROR(verify_round(verifier, k, round, file));
    }
  }
  return ok_status();
}

Status Compilation::verify_round(FileVerifier& verifier, std::size_t number, std::uint32_t round, CompiledFile& file) {
  const Clock::time_point start = Clock::now();
  auto compared = verifier.run(number, round);
  Verified& verified = file.verified;
  verified.seconds += milliseconds_since(start) / 1000;
  verified.rests_on_timing = verifier.rests_on_timing();
  verified.rounds = static_cast<int>(round);
  if (compared.ok()) verified.comparison = std::move(compared).value();
  verified.done = compared.ok() && verified.comparison.is_whole;
  if (verified.done) return ok_status();
  if (compared.ok()) {
    verified.why_not = fmt::format(
        "the whole file cannot be run and compared here ({}); each part by itself computes what the model says",
        verified.comparison.why_not_whole);
    return ok_status();
  }
  if (is_late()) return refuse_late(file.input, "verifying the compiled code");
  const StatusCode code = compared.status().code();
  if (code != StatusCode::kUnsupported && code != StatusCode::kResourceExhausted) {
    return refuse_wrong(file, compared.status());
  }
  verified.why_not = compared.status().message();
  return ok_status();
}

Status Compilation::refuse_wrong(const CompiledFile& file, const Status& status) {
  return refuse({Refusal::Kind::kFailed,
                 file.input,
                 fmt::format("{}: {}. Nothing was written. This is a mistake in Reef: please report it with the model "
                             "(--no-verify writes the file nevertheless)",
                             file.input, status.message()),
                 {}});
}

std::vector<FileContent> contents_of(const CompileResult& result) {
  std::vector<FileContent> contents;
  for (const CompileRun& run : result.runs) {
    for (const CompiledFile& file : run.files) {
      contents.push_back({file.output, *file.content});
      contents.push_back({file.log, bytes_of(file.log_content)});
    }
  }
  return contents;
}

Status Compilation::write_files() { return reef::write_files(contents_of(result_)); }

std::vector<std::string> Compilation::remarks_on(const CompiledFile& file) const {
  std::vector<std::string> remarks;
  if (const std::string rewrites = rewrites_remark(file.plan.rewrites, options_.plan); !rewrites.empty()) {
    remarks.push_back(rewrites);
  }
  for (std::size_t i = 0; i < file.ops.size(); ++i) {
    if (file.ops[i].has_code) continue;
    remarks.push_back(
        fmt::format("{}: Edge TPU op {} has no machine code and cannot run: {}", maker(), i, file.ops[i].why_no_code));
  }
  return remarks;
}

}  // namespace reef::compiler
