// SPDX-License-Identifier: Apache-2.0
// reef.h: compiling and checking.

#include <nlohmann/json.hpp>

#include "chip/links.h"
#include "compiler/check_file.h"
#include "compiler/compile_json.h"
#include "compiler/pipeline.h"
#include "guard.h"
#include "options.h"

using namespace reef;
using namespace reef::c_api;

namespace reef::c_api {

Result<compiler::PlanOptions> plan_options(const reef_compile_options& options) {
  compiler::PlanOptions plan;
  if (options.min_runtime_version != 0) plan.runtime = options.min_runtime_version;
  REEF_REQUIRE(plan.runtime >= ops::kOldestRuntime && plan.runtime <= ops::kNewestRuntime,
               "there is no Edge TPU runtime {}; versions are {} to {}", plan.runtime, ops::kOldestRuntime,
               ops::kNewestRuntime);
  plan.host_is_assumed = options.link == nullptr;
  plan.costs.link = options.link == nullptr ? chip::link_profiles().data() : chip::find_link(options.link);
  REEF_REQUIRE(plan.costs.link != nullptr, "there is no link '{}'; reef check --help lists them", options.link);
  plan.costs.cache_policy = partition::CachePolicy::kLeastTime;
  plan.rewrites.none = options.rewrites == 0;
  using Choice = partition::PartitionOptions::Choice;
  plan.partition.choice = plan.rewrites.none ? Choice::kFirst : Choice::kBest;
  plan.partition.several_parts = options.several_parts != 0;
  if (options.intermediate_tensors != nullptr) {
    plan.partition.intermediate_tensors = split(options.intermediate_tensors, ',');
  }
  return plan;
}

}  // namespace reef::c_api

namespace {

Result<compiler::CompileOptions> compile_options(const char* const* models, std::size_t count,
                                                 const reef_compile_options& options) {
  compiler::CompileOptions how;
  for (std::size_t i = 0; i < count; ++i) {
    REEF_RETURN_IF_ERROR(require(models[i], "models"));
    how.models.emplace_back(models[i]);
  }
  REEF_REQUIRE(!how.models.empty(), "no model is given");
  REEF_REQUIRE(options.num_segments >= 1 && options.num_segments <= 1024, "a model cannot be cut into {} segments",
               options.num_segments);
  constexpr int kHighestLevel = static_cast<int>(tiled::Level::kFast);
  REEF_REQUIRE(options.level >= 0 && options.level <= kHighestLevel, "there is no level {}; there are 0 to {}",
               options.level, kHighestLevel);
  REEF_REQUIRE(options.timeout_seconds > 0, "a timeout of {} seconds leaves no time", options.timeout_seconds);
  if (options.out_dir != nullptr) how.out_dir = options.out_dir;
  REEF_ASSIGN_OR_RETURN(how.plan, plan_options(options));
  how.segments = options.num_segments;
  how.search = options.search != 0;
  how.timeout_seconds = options.timeout_seconds;
  how.level = static_cast<tiled::Level>(options.level);
  using compiler::Verify;
  how.verify = options.verify < 0 ? Verify::kWhenQuick : options.verify == 0 ? Verify::kNever : Verify::kAlways;
  if (options.progress != nullptr) {
    how.progress = [options](std::string_view stage, std::string_view file, double done) {
      options.progress(options.progress_user, std::string(stage).c_str(), std::string(file).c_str(), done);
    };
  }
  return how;
}

// Makes the request for models that are to be quantized first.
Result<compiler::QuantizeRequest> quantizing(const reef_compile_options& options) {
  const reef_convert_options loading = known_options(options.convert, reef_convert_options_init);
  const reef_quantize_options given = known_options(options.quantize, reef_quantize_options_init);
  REEF_ASSIGN_OR_RETURN(compiler::QuantizeRequest request, quantize_request(given));
  REEF_REQUIRE(request.how.mode == quantize::Mode::kInt8, "the Edge TPU takes mode int8 only, not '{}'", given.mode);
  REEF_ASSIGN_OR_RETURN(request.front_end, front_end_options(loading));
  return request;
}

}  // namespace

void reef_compile_options_init(reef_compile_options* options) {
  if (options == nullptr) return;
  *options = {};
  options->struct_size = sizeof(reef_compile_options);
  options->num_segments = 1;
  options->level = static_cast<std::int32_t>(tiled::kDefaultLevel);
  options->rewrites = 1;
  options->verify = -1;
  options->timeout_seconds = compiler::CompileOptions().timeout_seconds;
}

reef_status reef_compile(const char* const* models, size_t count, const reef_compile_options* options, char** json) {
  return guarded([&]() -> Status {
    if (json != nullptr) *json = nullptr;
    REEF_RETURN_IF_ERROR(require(models, "models"));
    const reef_compile_options known = known_options(options, reef_compile_options_init);
    compiler::PipelineRequest request;
    REEF_ASSIGN_OR_RETURN(request.compile, compile_options(models, count, known));
    REEF_ASSIGN_OR_RETURN(request.quantize, quantizing(known));
    REEF_ASSIGN_OR_RETURN(const compiler::PipelineResult result, compiler::run_pipeline(request));
    if (json != nullptr) *json = give_away(text_of(compiler::pipeline_json(result)));
    if (result.compiled.ok()) return ok_status();
    return Status(StatusCode::kInvalidInput, result.compiled.refusals.front().explanation);
  });
}

reef_status reef_check(const char* model, const reef_compile_options* options, char** json, char** text) {
  return guarded([&]() -> Status {
    if (json != nullptr) *json = nullptr;
    if (text != nullptr) *text = nullptr;
    REEF_RETURN_IF_ERROR(require(model, "model"));
    REEF_ASSIGN_OR_RETURN(const compiler::PlanOptions plan,
                          plan_options(known_options(options, reef_compile_options_init)));
    REEF_ASSIGN_OR_RETURN(const compiler::CheckedFile checked, compiler::check_file(model, plan));
    const std::string as_json = text_of(report::check_json(checked.subject()));
    const std::string as_text = report::check_text(checked.subject(), {});
    if (json != nullptr) *json = give_away(as_json);
    if (text != nullptr) *text = give_away(as_text);
    return ok_status();
  });
}
