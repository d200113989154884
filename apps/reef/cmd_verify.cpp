// SPDX-License-Identifier: Apache-2.0
// reef verify: a compiled model against the model that it was compiled from.
//
// Both get the same inputs. The compiled one runs on the virtual device or a real one (its other operators on the CPU).
// The source runs on the CPU: operators that were compiled in the chip's arithmetic, in which results must be equal to
// the last bit, or, with --against tflite, all of it as TFLite's reference kernels compute it, which rounds otherwise.
// Rewrites that the compiler made are made here too. A model that remembers something runs several times. Where results
// differ, the verdict says whether the file was made from another source or its program is wrong, and where.
#include <cstdio>
#include <limits>
#include <map>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/shell_word.h"
#include "commands.h"
#include "compiler/difference.h"
#include "compiler/front_end.h"
#include "compiler/index_inputs.h"
#include "compiler/source_of_compiled.h"
#include "compiler/verification.h"
#include "console.h"
#include "device_options.h"
#include "execute/cpu/evaluate.h"
#include "formats/darwinn/reader.h"
#include "ir/op.h"
#include "ir/pseudo_random.h"
#include "json_output.h"
#include "limit_flags.h"
#include "runtime/edge_tpu_op.h"
#include "tensor_io.h"
#include "usage.h"

namespace reef::app {
namespace {

using Json = nlohmann::ordered_json;
using Tensors = compiler::TensorList;

constexpr int kRunsWithState = 3;  // inferences of a model that remembers something from one to the next

struct VerifyArguments {
  std::string source, compiled;
  std::vector<std::string> inputs;
  std::string against = "chip";
  double tolerance = 0;
  DeviceArguments device = {"virtual", "", ""};
  std::uint32_t seed = 1;
  int threads = 1;
  bool json = false;
  LimitFlags limits;
};

cpu::InterpreterOptions interpreter_options(const VerifyArguments& arguments, const Budget& budget) {
  cpu::InterpreterOptions options;
  options.threads = arguments.threads;
  options.budget = budget;
  options.max_memory_bytes = std::numeric_limits<std::int64_t>::max();  // the budget limits it
  return options;
}

bool remembers(const ir::Model& model) {
  for (const ir::Subgraph& graph : model.subgraphs) {
    for (const ir::Tensor& tensor : graph.tensors) {
      if (tensor.is_variable) return true;
    }
    for (const ir::Operator& op : graph.operators) {
      if (op.type == Op::ASSIGN_VARIABLE) return true;
    }
  }
  return false;
}

Result<Tensors> made_inputs(const VerifyArguments& arguments, const ir::Model& model, cpu::Interpreter& source,
                            std::uint32_t seed) {
  REEF_REQUIRE(static_cast<int>(arguments.inputs.size()) <= source.input_count(),
               "{} --in files are given, but the model's number of inputs is {}", arguments.inputs.size(),
               source.input_count());
  Tensors inputs;
  for (int i = 0; i < source.input_count(); ++i) {
    const ops::Tensor& tensor = source.input(i);
    std::vector<std::uint8_t>& bytes = inputs.emplace_back(source.input_bytes(i).size());
    const auto target = std::as_writable_bytes(std::span(bytes));
    if (static_cast<std::size_t>(i) < arguments.inputs.size()) {
      REEF_RETURN_IF_ERROR(fill_from_file(arguments.inputs[at(i)], tensor, target));
    } else {
      compiler::fill_made_up_input(model, i, tensor.type, seed + static_cast<std::uint32_t>(i), target);
    }
  }
  return inputs;
}

Result<Tensors> run_with(cpu::Interpreter& interpreter, const Tensors& inputs) {
  REEF_ASSIGN_OR_RETURN(std::vector<cpu::Value> values, cpu::run_once(interpreter, inputs));
  Tensors results;
  for (cpu::Value& value : values) results.push_back(std::move(value.bytes));
  return results;
}

// Compilers keep a model's inputs and outputs: a file that has others was made from another source.
Status check_border(const VerifyArguments& arguments, const cpu::Interpreter& source,
                    const cpu::Interpreter& compiled) {
  const std::string verdict = fmt::format("{} was not compiled from {}", arguments.compiled, arguments.source);
  const auto check = [&](const char* what, int i, const ops::Tensor& found, const ops::Tensor& expected,
                         bool has_size) -> Status {
    if (found.type == expected.type && (!has_size || found.shape == expected.shape)) return ok_status();
    const auto words = [&](const ops::Tensor& tensor) {
      return fmt::format("{}{}", ir::type_name(tensor.type), has_size ? tensor.shape.to_string() : "");
    };
    return invalid_input("{}: its {} {} is {}, the source's is {}", verdict, what, i, words(found), words(expected));
  };
  REEF_REQUIRE(compiled.input_count() == source.input_count(), "{}: it has {} inputs, the source has {}", verdict,
               compiled.input_count(), source.input_count());
  REEF_REQUIRE(compiled.output_count() == source.output_count(), "{}: it has {} outputs, the source has {}", verdict,
               compiled.output_count(), source.output_count());
  for (int i = 0; i < source.input_count(); ++i) {
    REEF_RETURN_IF_ERROR(check("input", i, compiled.input(i), source.input(i), true));
  }
  // Sizes of outputs may be known after a run only.
  for (int i = 0; i < source.output_count(); ++i) {
    REEF_RETURN_IF_ERROR(check("output", i, compiled.output(i), source.output(i), false));
  }
  return ok_status();
}

struct Verdict {
  std::vector<compiler::TensorComparison> outputs;
  bool is_equal = true;
  compiler::Difference difference;  // where they are not equal, in the chip's arithmetic
};

// All runs: the outputs of the first that is not equal, else of the last.
Result<Verdict> compare(const ir::Model& source, const std::vector<Tensors>& found,
                        const std::vector<Tensors>& expected, double tolerance) {
  Verdict verdict;
  for (std::size_t run = 0; run < found.size() && verdict.is_equal; ++run) {
    REEF_REQUIRE(found[run].size() == expected[run].size(), "the compiled model has {} outputs, the source has {}",
                 found[run].size(), expected[run].size());
    verdict.outputs.clear();
    for (std::size_t i = 0; i < found[run].size(); ++i) {
      const auto tensor = static_cast<std::size_t>(source.subgraphs[0].outputs[i]);
      REEF_ASSIGN_OR_RETURN(auto comparison, compiler::compare_tensors(source.subgraphs[0].tensors[tensor],
                                                                       found[run][i], expected[run][i], tolerance));
      verdict.is_equal = verdict.is_equal && comparison.different == 0;
      verdict.outputs.push_back(std::move(comparison));
    }
  }
  return verdict;
}

Result<std::vector<Tensors>> run_all(cpu::Interpreter& interpreter, const std::vector<Tensors>& inputs) {
  std::vector<Tensors> results;
  for (const Tensors& each : inputs) {
    REEF_ASSIGN_OR_RETURN(Tensors result, run_with(interpreter, each));
    results.push_back(std::move(result));
  }
  return results;
}

// Compares what Edge TPU ops gave in the last run with what they should have given, and returns those that differ.
// Operators that follow may hide a difference, as decoders do that find nobody in a random picture.
Result<std::vector<compiler::TensorComparison>> compare_parts(const compiler::SourceView& view,
                                                              const compiler::PartwiseEvaluation& expected,
                                                              const ir::Model& compiled, const cpu::Interpreter& found,
                                                              double tolerance) {
  std::vector<compiler::TensorComparison> differing;
  std::size_t part = 0;
  for (const ir::Operator& op : compiled.subgraphs[0].operators) {
    if (!darwinn::is_edge_tpu_op(op)) continue;
    std::map<std::string, int> names;
    for (const std::int32_t t : op.outputs) ++names[compiled.subgraphs[0].tensors[at(t)].name];
    for (const std::int32_t t : op.outputs) {
      const std::string& name = compiled.subgraphs[0].tensors[at(t)].name;
      for (const auto& [index, bytes] : expected.part_outputs()[part]) {
        if (index < 0) continue;  // a variable's new value
        const ir::Tensor& tensor = view.model->subgraphs[0].tensors[at(index)];
        const ops::Tensor& given = found.tensor(t);
        if (tensor.name != name || given.bytes != bytes.size()) continue;
        if (names[name] != 1) continue;  // two results of one name cannot be told apart here
        const auto* first = reinterpret_cast<const std::uint8_t*>(given.data);
        REEF_ASSIGN_OR_RETURN(auto comparison,
                              compiler::compare_tensors(tensor, {first, first + given.bytes}, bytes, tolerance));
        if (comparison.different > 0) differing.push_back(std::move(comparison));
      }
    }
    ++part;
  }
  return differing;
}

// One view of the source after the other, until one gives what the compiled model gave.
Result<Verdict> compare_with_chip(const VerifyArguments& arguments, const std::shared_ptr<const ir::Model>& source,
                                  const ir::Model& compiled, const cpu::Interpreter& on_chip,
                                  const std::vector<Tensors>& inputs, const std::vector<Tensors>& found,
                                  const Budget& budget) {
  const compiler::SourceViews views = compiler::views_of_source(source, compiled);
  if (views.views.empty()) {
    return views.why.in(fmt::format("{} was not compiled from {}", arguments.compiled, arguments.source));
  }
  std::optional<Verdict> first;
  Status problem;
  for (const compiler::SourceView& view : views.views) {
    auto evaluation = compiler::PartwiseEvaluation::create(view.model, view.parts, view.generations,
                                                           interpreter_options(arguments, budget));
    auto expected = evaluation.ok() ? run_all((*evaluation)->interpreter(), inputs) : evaluation.status();
    if (!expected.ok()) {
      if (problem.ok()) problem = expected.status();
      continue;
    }
    REEF_ASSIGN_OR_RETURN(Verdict verdict, compare(*view.model, found, *expected, arguments.tolerance));
    if (verdict.is_equal) {
      REEF_ASSIGN_OR_RETURN(const auto hidden,
                            compare_parts(view, **evaluation, compiled, on_chip, arguments.tolerance));
      if (hidden.empty()) return verdict;
      verdict.outputs.insert(verdict.outputs.end(), hidden.begin(), hidden.end());
      verdict.is_equal = false;
    }
    if (first) continue;
    verdict.difference = compiler::explain_difference(view, **evaluation, arguments.threads);
    first = std::move(verdict);
  }
  if (first) return *first;
  if (problem.code() == StatusCode::kResourceExhausted) return problem;
  return problem.in("in the chip's arithmetic (--against tflite goes without)");
}

void print_verdict(const VerifyArguments& arguments, const Verdict& verdict) {
  if (arguments.json) {
    Json json = {{"source", arguments.source},       {"compiled", arguments.compiled}, {"against", arguments.against},
                 {"tolerance", arguments.tolerance}, {"equal", verdict.is_equal},      {"outputs", Json::array()}};
    for (const compiler::TensorComparison& output : verdict.outputs) {
      json["outputs"].push_back({{"name", output.name},
                                 {"values", output.elements},
                                 {"different", output.different},
                                 {"largest_difference", output.largest}});
    }
    json["made_from_this_source"] = !verdict.difference.is_other_source;
    json["explanation"] = verdict.difference.sentences;
    print_json(json);
    return;
  }
  for (const compiler::TensorComparison& output : verdict.outputs) {
    print_text("output {}{}\n", output.to_string(),
               output.different == 0 && output.largest > 0 ? fmt::format(", within {}", output.largest) : "");
  }
  for (const std::string& sentence : verdict.difference.sentences) print_text("{}\n", sentence);
}

Result<std::shared_ptr<const ir::Model>> loaded(const std::string& path) {
  REEF_ASSIGN_OR_RETURN(compiler::FrontEndResult result, compiler::load_tflite_model(path));
  if (!result.shape_note.empty()) print_error("reef: {}: {}\n", path, result.shape_note);
  return std::make_shared<const ir::Model>(std::move(result.model));
}

Status verify(const VerifyArguments& arguments) {
  const Budget budget = budget_of(arguments.limits);
  REEF_ASSIGN_OR_RETURN(const auto given, loaded(arguments.source));
  REEF_ASSIGN_OR_RETURN(const auto compiled, loaded(arguments.compiled));
  REEF_REQUIRE(!given->subgraphs.empty() && !compiled->subgraphs.empty(), "a model has no graph");
  REEF_REQUIRE(!is_compiled(*given) || is_compiled(*compiled),
               "{} is compiled and {} is not: the source comes first, `reef verify {} {}`", arguments.source,
               arguments.compiled, shell_word(arguments.compiled), shell_word(arguments.source));
  REEF_REQUIRE(is_compiled(*compiled), "{} is not compiled for the Edge TPU: the compiled model comes second",
               arguments.compiled);
  const auto source = compiler::with_border_of(given, *compiled);
  // Prepared in any case: that checks shapes and attributes, which the chip reference relies on.
  auto on_cpu = cpu::prepared(source, interpreter_options(arguments, budget));
  if (!on_cpu.ok()) return on_cpu.status().in(arguments.source);
  std::vector<Tensors> inputs;
  const int runs = arguments.inputs.empty() && remembers(*source) ? kRunsWithState : 1;
  for (int run = 0; run < runs; ++run) {
    const auto seed = arguments.seed + static_cast<std::uint32_t>(run * (*on_cpu)->input_count());
    REEF_ASSIGN_OR_RETURN(Tensors made, made_inputs(arguments, *source, **on_cpu, seed));
    inputs.push_back(std::move(made));
  }
  REEF_ASSIGN_OR_RETURN(const ChosenDevice chosen, ChosenDevice::choose(arguments.device));
  REEF_REQUIRE(chosen.place().has_edge_tpu(), "the compiled model needs an Edge TPU: --device virtual, usb, ...");
  cpu::InterpreterOptions with_chip = interpreter_options(arguments, budget);
  with_chip.keeps_all_tensors = arguments.against == "chip";  // for compare_parts
  if (chosen.is_emulated()) {
    const device::Options how{.threads = arguments.threads, .budget = budget};
    with_chip.foreign_ops.push_back(runtime::edge_tpu_op(std::make_shared<device::Device>(how)));
  } else {
    with_chip.foreign_ops.push_back(runtime::edge_tpu_op(chosen.place().device));
  }
  auto on_chip = cpu::prepared(compiled, with_chip);
  if (!on_chip.ok()) return on_chip.status().in(arguments.compiled);
  REEF_RETURN_IF_ERROR(check_border(arguments, **on_cpu, **on_chip));
  const auto found = run_all(**on_chip, inputs);
  if (!found.ok()) return found.status().in(arguments.compiled);
  Result<Verdict> verdict = Verdict{};
  if (arguments.against == "chip") {
    verdict = compare_with_chip(arguments, given, *compiled, **on_chip, inputs, *found, budget);
  } else {
    const auto expected = run_all(**on_cpu, inputs);
    if (!expected.ok()) return expected.status().in(arguments.source);
    verdict = compare(*source, *found, *expected, arguments.tolerance);
  }
  if (!verdict.ok()) return verdict.status();
  print_verdict(arguments, *verdict);
  std::fflush(stdout);
  if (verdict->is_equal) return ok_status();
  if (verdict->difference.is_other_source) {
    return invalid_input("{} was not compiled from {}: it has other weights", arguments.compiled, arguments.source);
  }
  return invalid_input("{} does not compute what {} does{}", arguments.compiled, arguments.source,
                       verdict->difference.is_wrong_program
                           ? ", though it has its weights: the program is wrong, or what Reef knows of the chip is"
                           : "");
}

}  // namespace

void add_verify(Command& app, Action& action) {
  auto arguments = std::make_shared<VerifyArguments>();
  Command command = app.add_subcommand(
      "verify", "Run a compiled model on an Edge TPU, virtual or real, and its source on the CPU; compare the results");
  command.add_option("source", arguments->source, "The .tflite file that was compiled").required();
  command.add_option("compiled", arguments->compiled, "What was made of it").required();
  command.add_option("--in", arguments->inputs, "Raw little-endian file for the next input; others are pseudo-random")
      .allow_extra_args(false);
  command.add_option("--seed", arguments->seed, "Seed of the pseudo-random inputs").capture_default_str();
  command
      .add_option("--tolerance", arguments->tolerance,
                  "How far values may be apart: in steps of quantized outputs, in numbers of others")
      .check(not_negative())
      .capture_default_str();
  command
      .add_option("--against", arguments->against,
                  "chip: compiled operators in the chip's arithmetic, where results are equal to the last bit; tflite: "
                  "TFLite's reference kernels, which round otherwise")
      .transform(one_of({"chip", "tflite"}))
      .capture_default_str();
  add_device_options(command, arguments->device);
  command.add_option("--threads", arguments->threads, "Threads").check(between(1, 256)).capture_default_str();
  command.add_flag("--json", arguments->json, "Print one JSON object (documented in docs/json.md)");
  add_limit_flags(command, arguments->limits);
  command.footer(
      "Exit code 0: every output is within the tolerance; 1: not, or one of the two does not run. Where values "
      "differ,\n"
      "it is reported whether the file was made from another source, or which instructions computed them.\n"
      "Examples:\n  reef verify model.tflite model_edgetpu.tflite\n"
      "  reef verify model.tflite model_edgetpu.tflite --against tflite --tolerance 2 --in picture.bin");
  command.callback([arguments, &action] { action = [arguments] { return verify(*arguments); }; });
}

}  // namespace reef::app
