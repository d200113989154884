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
#include "ops/table_functions.h"
#include "partition/segments.h"

namespace reef::compiler {

Result<Bytes> content_of(const CompileOptions& options, const std::string& model) {
  const auto given = options.in_memory.find(model);
  return given != options.in_memory.end() ? Result<Bytes>(given->second) : read_file(model, tflite::kMaxFileBytes);
}

bool Compilation::load(const std::string& path, Source& source) {
  source.given = source.path = path;
  source.stem = std::filesystem::path(path).stem().string();
  auto file = content_of(options_, path);
  if (!file.ok()) return refuse(not_parsed(path, file.status()));
  source.file = std::move(file).value();
  source.bytes = static_cast<std::int64_t>(source.file.size());
  auto read = read_tflite_model(source.file);
  if (!read.ok()) return refuse(not_parsed(path, read.status().in(path)));
  source.model = std::make_shared<const ir::Model>(std::move(read->model));
  source.shape_note = std::move(read->shape_note);
  const auto& operators = source.model->subgraphs.front().operators;
  const bool is_compiled = std::any_of(operators.begin(), operators.end(), darwinn::is_edge_tpu_op);
  return is_compiled ? refuse(already_compiled(path)) : true;
}

bool Compilation::plan(const Source& source, const PlanOptions& how, Plan& result) {
  PlanOptions options = how;
  options.partition.explain = false;
  options.budget = attempt_;
  auto plan = make_plan(source.model, options);
  if (is_late()) return refuse_late(source.path, "planning");
  if (!plan.ok()) return refuse_request(source.path, plan.status().in(source.path).message());
  result = std::move(plan).value();
  return true;
}

bool Compilation::plan_one(const Source& source, const PlanOptions& how, CompiledFile& file) {
  file.source = source.given;
  file.input = source.path;
  file.input_bytes = source.bytes;
  file.output = compiled_path(options_, source.stem);
  file.log = log_path(options_, source.stem);
  file.given = source.model;
  tell("plan", file.input);
  if (!plan(source, how, file.plan)) return false;
  if (!source.shape_note.empty()) file.plan.partition.notes.push_back(source.shape_note);
  if (options_.segments > 1) {
    file.plan.rewrites = std::exchange(rewrites_, {});  // of the whole model: with its first segment
  } else if (file.plan.assessment.is_float()) {         // a segment may well lie behind the last operator of 8 bits
    return refuse(not_quantized(source.path, *file.plan.model, file.plan.assessment));
  }
  return true;
}

bool Compilation::cut(const Source& source, std::vector<Source>& segments) {
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
    segment.stem = segment_stem(source.stem, i, cuts->size());
    segment.path = segment.stem + ".tflite";
    ir::Model model =
        ops::without_marks(partition::extract_model(*whole.model, piece.ops, piece.inputs, piece.outputs));
    const Status status = ir::verify(model);
    const auto written = tflite::write_model(model);
    if (!status.ok()) return refuse_request(source.path, status.in(segment.path).message());
    if (!written.ok()) return refuse_request(source.path, written.status().in(segment.path).message());
    segment.bytes = static_cast<std::int64_t>(written->size());
    segment.model = std::make_shared<const ir::Model>(std::move(model));
  }
  return true;
}

std::uint64_t Compilation::token_of(const std::vector<Source>& sources) {
  std::string digests;
  for (const Source& source : sources) digests += sha256_hex(source.file.span());
  const auto* data = reinterpret_cast<const std::uint8_t*>(digests.data());
  const std::string digest = sha256_hex(std::span(data, digests.size()));
  return std::stoull(digest.substr(0, 16), nullptr, 16) | 1;
}

}  // namespace reef::compiler
