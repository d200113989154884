// SPDX-License-Identifier: Apache-2.0
// reef verify: a compiled model against the model that it was compiled from.
//
// Both get the same inputs. The compiled one runs on the virtual device (its other operators on the CPU). The source
// runs on the CPU: operators that were compiled in the chip's arithmetic, in which results must be equal to the last
// bit, or, with --against tflite, all of it as TFLite's reference kernels compute it, which rounds otherwise.
#include <cstdio>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "commands.h"
#include "compiler/plan.h"
#include "compiler/verification.h"
#include "console.h"
#include "execute/cpu/evaluate.h"
#include "formats/darwinn/reader.h"
#include "formats/tflite/reader.h"
#include "ir/pseudo_random.h"
#include "ir/verify.h"
#include "runtime/edge_tpu_op.h"
#include "tensor_io.h"
#include "usage.h"

namespace reef::app {
namespace {

using Json = nlohmann::ordered_json;
using Tensors = std::vector<std::vector<std::uint8_t>>;

struct VerifyArguments {
  std::string source, compiled;
  std::vector<std::string> inputs;
  std::string against = "chip";
  double tolerance = 0;
  std::uint32_t seed = 1;
  int threads = 1;
  bool json = false;
};

Result<std::unique_ptr<cpu::Interpreter>> prepared(std::shared_ptr<const ir::Model> model,
                                                   const VerifyArguments& arguments,
                                                   std::vector<cpu::ForeignOp> foreign) {
  cpu::InterpreterOptions options;
  options.threads = arguments.threads;
  options.foreign_ops = std::move(foreign);
  return cpu::prepared(std::move(model), options);
}

Result<Tensors> made_inputs(const VerifyArguments& arguments, cpu::Interpreter& source) {
  REEF_REQUIRE(static_cast<int>(arguments.inputs.size()) <= source.input_count(),
               "{} --in files are given, but the model's number of inputs is {}", arguments.inputs.size(),
               source.input_count());
  Tensors inputs;
  for (int i = 0; i < source.input_count(); ++i) {
    const ops::Tensor& tensor = source.input(i);
    std::vector<std::uint8_t>& bytes = inputs.emplace_back(source.input_bytes(i).size());
    const auto target = std::as_writable_bytes(std::span(bytes));
    if (static_cast<std::size_t>(i) < arguments.inputs.size()) {
      REEF_RETURN_IF_ERROR(fill_from_file(arguments.inputs[static_cast<std::size_t>(i)], tensor, target));
    } else {
      ir::fill_pseudo_random(tensor.type, arguments.seed + static_cast<std::uint32_t>(i), target);
    }
  }
  return inputs;
}

Result<Tensors> run_with(cpu::Interpreter& interpreter, const Tensors& inputs) {
  REEF_REQUIRE(interpreter.input_count() == static_cast<int>(inputs.size()), "it has {} inputs, the source has {}",
               interpreter.input_count(), inputs.size());
  REEF_ASSIGN_OR_RETURN(std::vector<cpu::Value> values, cpu::run_once(interpreter, inputs));
  Tensors results;
  for (cpu::Value& value : values) results.push_back(std::move(value.bytes));
  return results;
}

struct Parts {
  std::vector<compiler::VerifiedPart> parts;
  std::vector<int> generations;
};

Result<Parts> parts_of(const ir::Model& source, const ir::Model& compiled) {
  Parts result;
  for (const ir::Operator& op : compiled.subgraphs[0].operators) {
    if (!darwinn::is_edge_tpu_op(op)) continue;
    REEF_ASSIGN_OR_RETURN(const darwinn::CustomOptions options, darwinn::read_custom_options(op.custom_options));
    REEF_ASSIGN_OR_RETURN(compiler::VerifiedPart part, compiler::part_of_package(source, options.package));
    result.parts.push_back(std::move(part));
    result.generations.push_back(compiler::compiler_generation_of(options.package));
  }
  return result;
}

// The source's results, with the compiled operators in the chip's arithmetic. A model that was rewritten before it was
// compiled has tensors that the source lacks: then the rewrites that `reef compile` makes are made here too.
Result<Tensors> expected_of_chip(const std::shared_ptr<const ir::Model>& source, const ir::Model& compiled,
                                 const Tensors& inputs) {
  auto parts = parts_of(*source, compiled);
  if (parts.ok()) return compiler::evaluate_with_parts(*source, parts->parts, parts->generations, inputs);
  REEF_ASSIGN_OR_RETURN(const compiler::Plan plan, compiler::make_plan(source, {}));
  const auto rewritten = parts_of(*plan.model, compiled);
  if (!rewritten.ok()) return parts.status();
  return compiler::evaluate_with_parts(*plan.model, rewritten->parts, rewritten->generations, inputs);
}

struct Verdict {
  std::vector<compiler::TensorComparison> outputs;
  bool is_equal = true;
};

Result<Verdict> compare(const ir::Model& source, const Tensors& found, const Tensors& expected, double tolerance) {
  REEF_REQUIRE(found.size() == expected.size(), "the compiled model has {} outputs, the source has {}", found.size(),
               expected.size());
  Verdict verdict;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto tensor = static_cast<std::size_t>(source.subgraphs[0].outputs[i]);
    REEF_ASSIGN_OR_RETURN(auto comparison, compiler::compare_tensors(source.subgraphs[0].tensors[tensor], found[i],
                                                                     expected[i], tolerance));
    verdict.is_equal = verdict.is_equal && comparison.different == 0;
    verdict.outputs.push_back(std::move(comparison));
  }
  return verdict;
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
    print_exact("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
    return;
  }
  for (const compiler::TensorComparison& output : verdict.outputs) {
    print_text("output {}{}\n", output.to_string(),
               output.different == 0 && output.largest > 0 ? fmt::format(", within {}", output.largest) : "");
  }
}

Status verify(const VerifyArguments& arguments) {
  REEF_ASSIGN_OR_RETURN(ir::Model loaded, tflite::load_model(arguments.source));
  REEF_RETURN_IF_ERROR(ir::verify(loaded).in(arguments.source));
  const auto source = std::make_shared<const ir::Model>(std::move(loaded));
  REEF_ASSIGN_OR_RETURN(ir::Model other, tflite::load_model(arguments.compiled));
  REEF_RETURN_IF_ERROR(ir::verify(other).in(arguments.compiled));
  const auto compiled = std::make_shared<const ir::Model>(std::move(other));
  REEF_REQUIRE(!source->subgraphs.empty() && !compiled->subgraphs.empty(), "a model has no graph");
  // Prepared in any case: that checks shapes and attributes, which the chip reference relies on.
  auto on_cpu = prepared(source, arguments, {});
  if (!on_cpu.ok()) return on_cpu.status().in(arguments.source);
  REEF_ASSIGN_OR_RETURN(const Tensors inputs, made_inputs(arguments, **on_cpu));
  const auto chip = std::make_shared<device::Device>(device::Options{.threads = arguments.threads});
  auto on_chip = prepared(compiled, arguments, {runtime::edge_tpu_op(chip)});
  if (!on_chip.ok()) return on_chip.status().in(arguments.compiled);
  const auto found = run_with(**on_chip, inputs);
  if (!found.ok()) return found.status().in(arguments.compiled);
  auto expected =
      arguments.against == "chip" ? expected_of_chip(source, *compiled, inputs) : run_with(**on_cpu, inputs);
  if (!expected.ok()) {
    return expected.status().in(arguments.against == "chip" ? "in the chip's arithmetic (--against tflite goes without)"
                                                            : arguments.source);
  }
  REEF_ASSIGN_OR_RETURN(const Verdict verdict, compare(*source, *found, *expected, arguments.tolerance));
  print_verdict(arguments, verdict);
  std::fflush(stdout);
  if (verdict.is_equal) return ok_status();
  return invalid_input("{} does not compute what {} does", arguments.compiled, arguments.source);
}

}  // namespace

void add_verify(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<VerifyArguments>();
  CLI::App* command = app.add_subcommand(
      "verify", "Run a compiled model on the virtual device and its source on the CPU, and compare the results");
  command->add_option("source", arguments->source, "The .tflite file that was compiled")->required();
  command->add_option("compiled", arguments->compiled, "What was made of it")->required();
  command->add_option("--in", arguments->inputs, "Raw little-endian file for the next input; others are pseudo-random")
      ->allow_extra_args(false);
  command->add_option("--seed", arguments->seed, "Seed of the pseudo-random inputs")->capture_default_str();
  command
      ->add_option("--tolerance", arguments->tolerance,
                   "How far values may be apart: in steps of quantized outputs, in numbers of others")
      ->check(not_negative())
      ->capture_default_str();
  command
      ->add_option(
          "--against", arguments->against,
          "chip: compiled operators in the chip's arithmetic, where results are equal to the last bit; tflite: "
          "TFLite's reference kernels, which round otherwise")
      ->transform(one_of({"chip", "tflite"}))
      ->capture_default_str();
  command->add_option("--threads", arguments->threads, "Threads")->check(between(1, 256))->capture_default_str();
  command->add_flag("--json", arguments->json, "Print one JSON object (documented in docs/json.md)");
  command->footer(
      "Exit code 0: every output is within the tolerance; 1: not, or one of the two does not run.\n"
      "Example:\n  reef verify model.tflite model_edgetpu.tflite\n"
      "  reef verify model.tflite model_edgetpu.tflite --against tflite --tolerance 2 --in picture.bin");
  command->callback([arguments, &action] { action = [arguments] { return verify(*arguments); }; });
}

}  // namespace reef::app
