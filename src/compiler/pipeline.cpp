// SPDX-License-Identifier: Apache-2.0
#include "compiler/pipeline.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <utility>

#include "base/file.h"
#include "compiler/attached_files.h"
#include "compiler/compile_names.h"
#include "compiler/front_end.h"
#include "compiler/output_check.h"
#include "ir/op.h"
#include "quantize/fold_quantization.h"

namespace reef::compiler {
namespace {

bool is_tflite(const std::string& path) { return std::filesystem::path(path).extension() == ".tflite"; }

// The numbers that a model computes with, which say how it must be treated.
enum class Numbers { kQuantized, kCarriesScales, kFloat };

Numbers numbers_of(const ir::Model& model) {
  if (quantize::computes_in_16_bits(model)) return Numbers::kFloat;  // no scales that the chip could use
  const ir::Subgraph& graph = model.subgraphs[0];
  bool has_scales = false, computes_floats = false;
  for (const ir::Operator& op : graph.operators) {
    const bool converts = op.type == Op::QUANTIZE || op.type == Op::DEQUANTIZE;
    has_scales = has_scales || converts || op.type == Op::FAKE_QUANT;
    computes_floats = computes_floats || (!converts && std::any_of(op.outputs.begin(), op.outputs.end(), [&](auto t) {
                        return graph.tensors[at(t)].type == ir::DataType::kFloat32;
                      }));
  }
  if (!computes_floats) return Numbers::kQuantized;
  return has_scales ? Numbers::kCarriesScales : Numbers::kFloat;
}

class Pipeline {
 public:
  explicit Pipeline(const PipelineRequest& request) : request_(request) { result_.compile = request.compile; }

  Status front_half() {
    if (!quantizes_any()) {
      // Told as the compiler tells its refusals: in Google's words under Google's name, and in JSON.
      const Status status = check_compile_request(compile());
      if (!status.ok()) result_.compiled.refusals.push_back({Refusal::Kind::kRequest, "", status.message(), {}});
      if (!status.ok()) return ok_status();
      REEF_RETURN_IF_ERROR(check_all_files());
      return attach_to_given();
    }
    REEF_RETURN_IF_ERROR(check_names());
    REEF_RETURN_IF_ERROR(load_all());
    REEF_RETURN_IF_ERROR(check_all_files());
    for (ToQuantize& one : to_quantize_) REEF_RETURN_IF_ERROR(quantize(one));
    return attach_to_given();
  }

  Status back_half() {
    if (!result_.compiled.ok()) return ok_status();
    CompileOptions how = compile();
    how.write = false;
    result_.compiled = compiler::compile(how);
    return result_.compiled.ok() && compile().write ? write() : ok_status();
  }

  PipelineResult take() { return std::move(result_); }

 private:
  struct ToQuantize {
    std::string model, output;
    FrontEndResult loaded;
  };

  CompileOptions& compile() { return result_.compile; }
  bool has_data() const { return !request_.quantize.data.path.empty(); }
  // The compiler judges a .tflite file itself, unless there are samples to quantize it with.
  bool is_taken_as_it_is(const std::string& model) const { return is_tflite(model) && !has_data(); }
  bool quantizes_any() const {
    const auto& models = request_.compile.models;
    return !std::all_of(models.begin(), models.end(), [&](const std::string& m) { return is_taken_as_it_is(m); });
  }

  // Checks what is known before the models are read.
  Status check_names() {
    CompileOptions names_only = compile();
    names_only.write = false;
    REEF_RETURN_IF_ERROR(check_compile_request(names_only));
    if (!compile().write || !names_a_file(compile())) return ok_status();
    return check_files({planned_outputs(compile()), request_.compile.models, {request_.quantize.data}, {}});
  }

  Status load_all() {
    for (std::string& model : compile().models) {
      if (is_taken_as_it_is(model)) continue;
      REEF_ASSIGN_OR_RETURN(FrontEndResult loaded, load_any_model(model, request_.quantize.front_end));
      const Numbers numbers = numbers_of(loaded.model);
      if (numbers == Numbers::kQuantized && is_tflite(model)) continue;
      REEF_REQUIRE(numbers != Numbers::kFloat || has_data(),
                   "{} is a float model, and the Edge TPU computes with 8-bit integers: give typical samples with "
                   "--data FOLDER, .npz or .npy (see reef quantize --help)",
                   model);
      const std::filesystem::path folder = compile().out_dir.empty() ? "" : output_folder(compile());
      std::string output = (folder / (std::filesystem::path(model).stem().string() + "_int8.tflite")).string();
      to_quantize_.push_back({model, output, std::move(loaded)});
      model = std::move(output);
    }
    return ok_status();
  }

  // All files are known now, and no work has been done but reading the models.
  Status check_all_files() {
    REEF_RETURN_IF_ERROR(check_compile_request(compile()));
    if (!compile().write) return ok_status();
    std::vector<std::string> written;
    for (const ToQuantize& one : to_quantize_) written.push_back(one.output);
    for (const std::string& path : planned_outputs(compile())) {
      written.push_back(path);
      if (!path.ends_with(".tflite") || !request_.beside_names) continue;
      for (std::string& name : request_.beside_names(path)) written.push_back(std::move(name));
    }
    return check_files({written, request_.compile.models, {request_.quantize.data}, {}});
  }

  // What is compiled as it is carries the attached files as well.
  Status attach_to_given() {
    if (request_.quantize.attached.empty()) return ok_status();
    for (const std::string& model : compile().models) {
      if (compile().in_memory.contains(model)) continue;
      REEF_ASSIGN_OR_RETURN(compile().in_memory[model].file, model_file_with(model, request_.quantize.attached));
    }
    return ok_status();
  }

  Status quantize(ToQuantize& one) {
    QuantizeRequest how = request_.quantize;
    how.model = one.model;
    how.output = compile().write ? one.output : "not written";
    how.report.clear();
    auto outcome = quantize_loaded(how, std::move(one.loaded));
    if (outcome.ok() && leaves_nothing_for_the_chip(how, *outcome)) outcome = quantize_whole(how);
    if (!outcome.ok()) return outcome.status().in(one.model);
    GivenModel& given = compile().in_memory[one.output];
    given.file = outcome->file;
    ir::Model model = outcome->result.model;
    REEF_RETURN_IF_ERROR(admit_model(model).status().in(one.output));
    given.model = std::make_shared<const ir::Model>(std::move(model));
    result_.quantized.push_back({one.model, one.output, std::move(outcome).value()});
    if (request_.quantized) request_.quantized(how, result_.quantized.back());
    return ok_status();
  }

  // Everything stayed float to save an output. There would be nothing to compile, and whoever asks what becomes of the
  // model on the chip, perhaps with weights that are not trained yet, would not learn it: all of it in integers
  // instead, with the verdict that the output is lost.
  static bool leaves_nothing_for_the_chip(const QuantizeRequest& how, const QuantizeOutcome& outcome) {
    return how.how.mode == quantize::Mode::kInt8 && outcome.result.integer_ops == 0 &&
           !outcome.result.float_ops.empty() && how.how.keep_sensitive_float == quantize::Choice::kAutomatic;
  }
  static Result<QuantizeOutcome> quantize_whole(QuantizeRequest how) {
    REEF_ASSIGN_OR_RETURN(FrontEndResult loaded, load_any_model(how.model, how.front_end));
    how.how.keep_sensitive_float = quantize::Choice::kOff;
    REEF_ASSIGN_OR_RETURN(QuantizeOutcome outcome, quantize_loaded(how, std::move(loaded)));
    outcome.notes.push_back(
        "an output is lost in integers, and only float operators would save it, which the Edge TPU does not run: all "
        "operators are in integers");
    return outcome;
  }

  Status write() {
    std::vector<FileContent> contents = contents_of(result_.compiled);
    for (const QuantizedModel& model : result_.quantized) {
      contents.push_back({model.output, model.outcome.file.span()});
    }
    std::vector<FileBeside> beside;
    for (const CompileRun& run : result_.compiled.runs) {
      for (const CompiledFile& file : run.files) {
        if (!request_.beside) continue;
        REEF_ASSIGN_OR_RETURN(std::vector<FileBeside> more, request_.beside(file, result_));
        std::move(more.begin(), more.end(), std::back_inserter(beside));
      }
    }
    for (const FileBeside& file : beside) contents.push_back({file.path, bytes_of(file.text)});
    return write_files(contents);
  }

  const PipelineRequest& request_;
  PipelineResult result_;
  std::vector<ToQuantize> to_quantize_;
};

}  // namespace

bool PipelineResult::is_usable() const {
  return std::all_of(quantized.begin(), quantized.end(),
                     [](const QuantizedModel& model) { return model.outcome.result.lost.empty(); });
}

const passes::PassLog* PipelineResult::float_log(const CompiledFile& file) const {
  const auto found = std::find_if(quantized.begin(), quantized.end(),
                                  [&](const QuantizedModel& model) { return model.output == file.input; });
  return found == quantized.end() ? nullptr : &found->outcome.log;
}

bool is_quantized(const ir::Model& model) { return numbers_of(model) == Numbers::kQuantized; }

Result<PipelineResult> run_front_half(const PipelineRequest& request) {
  Pipeline pipeline(request);
  REEF_RETURN_IF_ERROR(pipeline.front_half());
  return pipeline.take();
}

Result<PipelineResult> run_pipeline(const PipelineRequest& request) {
  Pipeline pipeline(request);
  REEF_RETURN_IF_ERROR(pipeline.front_half());
  REEF_RETURN_IF_ERROR(pipeline.back_half());
  return pipeline.take();
}

}  // namespace reef::compiler
