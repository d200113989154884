// SPDX-License-Identifier: Apache-2.0
// Models as they are given, planned, and cut into segments.
#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/file.h"
#include "base/sha256.h"
#include "compiler/compile_names.h"
#include "compiler/compile_run.h"
#include "compiler/front_end.h"
#include "formats/darwinn/reader.h"
#include "formats/tflite/reader.h"
#include "formats/tflite/writer.h"
#include "ir/verify.h"
#include "partition/segments.h"

namespace reef::compiler {

Result<LoadedModel> load_given(const CompileOptions& options, const std::string& path) {
  const auto given = options.in_memory.find(path);
  LoadedModel result;
  if (given != options.in_memory.end()) {
    result.file = given->second.file;
    result.model = given->second.model;
  } else {
    REEF_ASSIGN_OR_RETURN(result.file, read_file(path, tflite::kMaxFileBytes));
  }
  if (result.model != nullptr) return result;
  auto read = read_tflite_model(result.file);
  if (!read.ok()) return read.status().in(path);
  result.model = std::make_shared<const ir::Model>(std::move(read->model));
  result.shape_note = std::move(read->shape_note);
  return result;
}

Result<Source> Compilation::load(const std::string& path) {
  Source source;
  source.given = source.path = path;
  source.stem = std::filesystem::path(path).stem().string();
  auto loaded = load_given(options_, path);
  if (!loaded.ok()) return refuse(not_parsed(path, loaded.status()));
  source.loaded = std::move(loaded).value();
  source.bytes = static_cast<std::int64_t>(source.loaded.file.size());
  const auto& operators = source.loaded.model->subgraphs.front().operators;
  const bool is_compiled = std::any_of(operators.begin(), operators.end(), darwinn::is_edge_tpu_op);
  if (is_compiled) return refuse(already_compiled(path));
  return source;
}

Result<Plan> Compilation::plan(const Source& source, const PlanOptions& how) {
  PlanOptions options = how;
  options.partition.explain = false;
  options.budget = attempt_;
  auto plan = make_faster_plan(source.loaded.model, options);
  if (is_late()) return refuse_late(source.path, "planning");
  if (!plan.ok()) return refuse_request(source.path, plan.status().in(source.path).message());
  return plan;
}

Result<CompiledFile> Compilation::plan_one(const Source& source, const PlanOptions& how) {
  CompiledFile file;
  file.source = source.given;
  file.input = source.path;
  file.input_bytes = source.bytes;
  file.output = compiled_path(options_, source.stem);
  file.log = log_path(options_, source.stem);
  file.given = source.loaded.model;
  tell("plan", file.input);
  REEF_ASSIGN_OR_RETURN(file.plan, plan(source, how));
  if (!source.loaded.shape_note.empty()) file.plan.partition.notes.push_back(source.loaded.shape_note);
  if (options_.segments > 1) {
    file.plan.rewrites = std::exchange(rewrites_, {});  // of the whole model: with its first segment
  } else if (must_be_quantized(*file.plan.model,
                               file.plan.assessment)) {  // a segment may well lie behind the last operator of 8 bits
    return refuse(not_quantized(source.path, *file.plan.model, file.plan.assessment));
  }
  return file;
}

Result<std::vector<Source>> Compilation::cut(const Source& source) {
  REEF_ASSIGN_OR_RETURN(Plan whole, plan(source, options_.plan));
  if (must_be_quantized(*whole.model, whole.assessment))
    return refuse(not_quantized(source.path, *whole.model, whole.assessment));
  const auto cuts = partition::cut_segments(*whole.model, whole.assessment, *whole.costs, options_.segments);
  if (!cuts.ok()) return refuse_request(source.path, cuts.status().in(source.path).message());
  rewrites_ = std::move(whole.rewrites);
  std::vector<Source> segments;
  for (std::size_t i = 0; i < cuts->size(); ++i) {
    const partition::Segment& piece = (*cuts)[i];
    Source& segment = segments.emplace_back();
    segment.given = source.given;
    segment.stem = segment_stem(source.stem, i, cuts->size());
    segment.path = segment.stem + ".tflite";
    ir::Model model = partition::extract_model(*whole.model, piece.ops, piece.inputs, piece.outputs);
    const Status status = ir::verify(model);
    const auto written = tflite::write_model(model);
    if (!status.ok()) return refuse_request(source.path, status.in(segment.path).message());
    if (!written.ok()) return refuse_request(source.path, written.status().in(segment.path).message());
    segment.bytes = static_cast<std::int64_t>(written->size());
    segment.loaded.model = std::make_shared<const ir::Model>(std::move(model));
  }
  return segments;
}

std::uint64_t Compilation::token_of(const std::vector<Source>& sources) {
  std::string digests;
  for (const Source& source : sources) digests += sha256_hex(source.loaded.file.span());
  const std::string digest = sha256_hex(bytes_of(digests));
  return std::stoull(digest.substr(0, 16), nullptr, 16) | 1;
}

}  // namespace reef::compiler
