// SPDX-License-Identifier: Apache-2.0
// reef learn: new classes from a handful of pictures (imprint, softmax); models taken apart and put together (split,
// join).
#include <memory>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "commands.h"
#include "compiler/front_end.h"
#include "compiler/learn_json.h"
#include "compiler/output_check.h"
#include "console.h"
#include "data/labels.h"
#include "data_options.h"
#include "device_options.h"
#include "formats/tflite/writer.h"
#include "front_end_flags.h"
#include "json_output.h"
#include "learn/head.h"
#include "learn_report.h"
#include "limit_flags.h"
#include "output_name.h"
#include "progress.h"
#include "usage.h"

namespace reef::app {
namespace {

using Json = nlohmann::ordered_json;

struct LearnArguments {
  compiler::LearnOptions options;
  FrontEndFlags front_end;
  DataArguments data;
  DeviceArguments device = {"", "", ""};  // empty: virtual where the extractor is compiled, else cpu
  std::string output, plot, model_labels, solver = "lbfgs", mirror = "auto";
  double l2 = -1;
  int threads = 0;
  bool json = false;
  LimitFlags limits = LimitFlags::for_data();
};

Status learn(LearnArguments arguments) {
  compiler::LearnOptions& options = arguments.options;
  arguments.output = output_file(arguments.output, options.model, "_learned.tflite");
  options.data = arguments.data.dataset;
  options.data.budget = options.embed.budget = budget_of(arguments.limits);
  REEF_ASSIGN_OR_RETURN(options.front_end, front_end_options(arguments.front_end));
  if (!arguments.model_labels.empty()) {
    REEF_ASSIGN_OR_RETURN(options.model_labels, data::load_class_names(arguments.model_labels));
  }
  if (arguments.l2 >= 0) options.softmax.l2 = arguments.l2;
  options.softmax.solver = arguments.solver == "sgd" ? learn::Solver::kSgd : learn::Solver::kLbfgs;
  options.softmax.seed = options.seed;
  REEF_ASSIGN_OR_RETURN(options.mirroring, compiler::mirroring_from(arguments.mirror));
  REEF_ASSIGN_OR_RETURN(arguments.device.device,
                        compiler::device_for_learning(arguments.device.device, options.compile));
  REEF_ASSIGN_OR_RETURN(const ChosenDevice chosen, ChosenDevice::choose(arguments.device));
  options.embed.place = chosen.place();
  options.embed.threads =
      arguments.threads > 0 ? arguments.threads : static_cast<int>(std::thread::hardware_concurrency());
  options.softmax.threads = options.embed.threads;
  options.compares_methods = !arguments.plot.empty();
  REEF_REQUIRE(arguments.plot.empty() || options.has_curve, "--plot needs the curve: leave out --no-curve");
  Progress progress("pictures embedded");
  options.embed.progress = [&](std::int64_t done, std::int64_t all) { progress.show(done, all); };
  const compiler::LearnRequest request{options, arguments.output, arguments.plot, arguments.model_labels};
  REEF_ASSIGN_OR_RETURN(const compiler::LearnedReport report, compiler::learn_and_write(request));
  const compiler::LearnedFiles& files = report.files;
  if (arguments.json) {
    const Json json = compiler::learned_json(options, report.result, files.model_path, files.labels_path);
    print_json(json);
  } else {
    print_learned(options, report.result, files.model_path, files.labels_path);
  }
  return ok_status();
}

void add_common(Command& command, LearnArguments& arguments) {
  compiler::LearnOptions& options = arguments.options;
  command
      .add_option("--model,model", options.model,
                  "What to build on: a classifier, an embedding extractor or a learned model; float, quantized or "
                  "compiled for the Edge TPU")
      .required();
  add_front_end_flags(command, arguments.front_end);
  add_data_options(command, arguments.data, /*is_required=*/true);
  command
      .add_option("-o,--output", arguments.output,
                  "The learned model, or folder for it; class names go to ..._labels.txt beside it")
      .required()
      .writes();
  command
      .add_option("--test", options.test,
                  "Data of their own to measure with. Default: test arrays of the .npz, or a part of --data")
      .option_text("FOLDER");
  command
      .add_option("--hold-back,--held-back", options.held_back,
                  "Share of --data to measure with instead of to learn from")
      .check(between(0.0, 0.9))
      .capture_default_str();
  command
      .add_option("--embedding", options.embedding,
                  "Name of the tensor that holds the embedding. Default: what the last layer reads")
      .option_text("NAME");
  add_device_options(command, arguments.device);
  add_devices_option(command, arguments.device);
  command.add_flag("--compile", options.compile,
                   "Compile the extractor for the Edge TPU first; only the new last layers run on the CPU then");
  command
      .add_option("--mirror", arguments.mirror,
                  "Learn from each picture in a mirror as well: on, off, or auto, where mirrored pictures are still "
                  "recognised as their class")
      .transform(one_of({"auto", "on", "off"}))
      .capture_default_str();
  command.add_option("--seed", options.seed, "Draws what is held back").capture_default_str();
  command.add_flag_callback(
      "--no-curve", [&options] { options.has_curve = false; },
      "Do not measure how accuracy grows with the number of pictures");
  command
      .add_option("--plot", arguments.plot,
                  "Page (HTML) that shows accuracy against the number of pictures, for both methods")
      .writes();
  command.add_option("--threads", arguments.threads, "Threads; results do not depend on it. Default: all cores")
      .check(between(1, 256));
  add_limit_flags(command, arguments.limits);
  command.add_flag("--json", arguments.json, "Print one JSON object (documented in docs/json.md)");
}

void add_imprint(Command& parent, Action& action) {
  auto arguments = std::make_shared<LearnArguments>();
  Command command =
      parent.add_subcommand("imprint", "Add classes at once from one picture each or more (weight imprinting)");
  add_common(command, *arguments);
  compiler::LearnOptions& options = arguments->options;
  options.method = compiler::LearnMethod::kImprinting;
  command.add_flag("--keep-classes", options.keep_classes, "The model's classes stay, and no bit of them changes");
  command.add_flag("--resume", options.resume,
                   "Keep classes, and train those further that have the name of a sub-folder");
  command
      .add_option("--model-labels", arguments->model_labels,
                  "Names of the model's classes, one a line, where it does not tell them itself")
      .option_text("FILE");
  command.footer(
      "Examples:\n"
      "  reef learn imprint models/reef_creatures_int8.tflite --data pictures -o mine.tflite\n"
      "  reef learn imprint mine.tflite --data more_pictures --resume -o more.tflite\n"
      "  reef learn imprint extractor_edgetpu.tflite --data pictures --device virtual -o mine_edgetpu.tflite\n"
      "  reef learn imprint extractor_edgetpu.tflite --data shards/*.tar --device virtual --devices 4 -o mine.tflite");
  command.callback([arguments, &action] { action = [arguments] { return learn(*arguments); }; });
}

void add_softmax(Command& parent, Action& action) {
  auto arguments = std::make_shared<LearnArguments>();
  Command command = parent.add_subcommand(
      "softmax", "Train a last layer on all pictures of all classes (softmax regression); better with many pictures");
  add_common(command, *arguments);
  learn::SoftmaxOptions& softmax = arguments->options.softmax;
  arguments->options.method = compiler::LearnMethod::kSoftmax;
  command.add_option("--solver", arguments->solver, "lbfgs or sgd (mini-batches with momentum)")
      .transform(one_of({"lbfgs", "sgd"}))
      .capture_default_str();
  command
      .add_option("--l2", arguments->l2,
                  "Strength of regularization, for embeddings of mean length 1. Default: tried out by cross-validation")
      .check(not_negative());
  command.add_option("--iterations", softmax.max_iterations, "At most: steps of lbfgs, passes of sgd")
      .check(between(1, 1000000))
      .capture_default_str();
  command.add_option("--learning-rate", softmax.learning_rate, "sgd").check(positive()).capture_default_str();
  command.add_option("--batch", softmax.batch_size, "sgd: pictures a step")
      .check(between(1, 1000000))
      .capture_default_str();
  command
      .add_option("--patience", softmax.patience,
                  "With --l2, or sgd: stop after so many iterations without progress on a part held back")
      .check(between(1, 1000000))
      .capture_default_str();
  command.add_flag("--balanced", softmax.are_classes_balanced, "Classes count alike, however many pictures they have");
  command.add_option("--class-weights", softmax.class_weights, "How much each class counts, in the order of classes")
      .delimiter(',');
  command.footer(
      "Examples:\n"
      "  reef learn softmax models/reef_creatures_int8.tflite --data pictures -o mine.tflite\n"
      "  reef learn softmax extractor.tflite --data new.npz --compile --device virtual -o mine_edgetpu.tflite");
  command.callback([arguments, &action] { action = [arguments] { return learn(*arguments); }; });
}

struct SplitArguments {
  std::string model, extractor, head, embedding;
  FrontEndFlags front_end;
  bool json = false;
};

Status split_file(const SplitArguments& arguments) {
  REEF_RETURN_IF_ERROR(compiler::check_files({{arguments.extractor, arguments.head}, {arguments.model}, {}, {}}));
  for (const std::string& part : {arguments.extractor, arguments.head}) {
    REEF_RETURN_IF_ERROR(compiler::check_ending(part, compiler::Content::kModel));
  }
  REEF_ASSIGN_OR_RETURN(const compiler::FrontEndOptions front_end, front_end_options(arguments.front_end));
  REEF_ASSIGN_OR_RETURN(const compiler::FrontEndResult loaded, compiler::load_any_model(arguments.model, front_end));
  auto head = learn::find_head(loaded.model, arguments.embedding);
  if (!head.ok()) return head.status().in(arguments.model);
  auto parts = learn::split(loaded.model, *head);
  if (!parts.ok()) return parts.status().in(arguments.model);
  REEF_REQUIRE(!parts->head.subgraphs.empty(), "'{}' is an extractor already: nothing follows its embedding",
               arguments.model);
  REEF_ASSIGN_OR_RETURN(const auto extractor, tflite::write_model(parts->extractor));
  REEF_ASSIGN_OR_RETURN(const auto rest, tflite::write_model(parts->head));
  const FileContent contents[] = {{arguments.extractor, extractor}, {arguments.head, rest}};
  REEF_RETURN_IF_ERROR(write_files(contents));
  const ir::Subgraph& graph = loaded.model.subgraphs[0];
  const ir::Tensor& embedding = graph.tensors[at(head->embedding)];
  const std::size_t below = parts->extractor.subgraphs[0].operators.size();
  if (arguments.json) {
    const Json json = {
        {"model", arguments.model},
        {"head_found", learn::to_string(head->kind)},
        {"embedding",
         {{"name", embedding.name}, {"type", ir::type_name(embedding.type)}, {"dimension", head->dimension}}},
        {"classes", head->classes},
        {"extractor", {{"path", arguments.extractor}, {"operators", below}}},
        {"head", {{"path", arguments.head}, {"operators", graph.operators.size() - below}}}};
    print_json(json);
    return ok_status();
  }
  print_text("cut at '{}' {} {}: head {}, {} classes\n", printable(embedding.name), ir::type_name(embedding.type),
             embedding.shape.to_string(), learn::to_string(head->kind), head->classes);
  print_text("wrote {} ({} operators) and {} ({} operators)\n", arguments.extractor, below, arguments.head,
             graph.operators.size() - below);
  return ok_status();
}

void add_split(Command& parent, Action& action) {
  auto arguments = std::make_shared<SplitArguments>();
  Command command =
      parent.add_subcommand("split", "Take a classifier apart: extractor for the chip, last layers for the CPU");
  command.add_option("model", arguments->model, "A classifier").required();
  add_front_end_flags(command, arguments->front_end);
  command.add_option("--extractor", arguments->extractor, "Where picture -> embedding goes")
      .option_text("FILE")
      .required()
      .writes();
  command.add_option("--head", arguments->head, "Where embedding -> scores goes")
      .option_text("FILE")
      .required()
      .writes();
  command.add_option("--embedding", arguments->embedding, "Name of the tensor to cut at. Default: found")
      .option_text("NAME");
  command.add_flag("--json", arguments->json, "Print one JSON object (documented in docs/json.md)");
  command.footer(
      "Example:\n  reef learn split models/reef_creatures_int8.tflite --extractor extractor.tflite --head head.tflite");
  command.callback([arguments, &action] { action = [arguments] { return split_file(*arguments); }; });
}

struct JoinArguments {
  std::string extractor, head, output;
};

Status join_files(JoinArguments arguments) {
  arguments.output = output_file(arguments.output, arguments.extractor, "_joined.tflite");
  REEF_RETURN_IF_ERROR(compiler::check_files({{arguments.output}, {arguments.extractor, arguments.head}, {}, {}}));
  REEF_RETURN_IF_ERROR(compiler::check_ending(arguments.output, compiler::Content::kModel));
  REEF_ASSIGN_OR_RETURN(const compiler::FrontEndResult extractor, compiler::load_tflite_model(arguments.extractor));
  REEF_ASSIGN_OR_RETURN(const compiler::FrontEndResult head, compiler::load_tflite_model(arguments.head));
  auto joined = learn::join(extractor.model, head.model);
  if (!joined.ok()) return joined.status().in(fmt::format("{} + {}", arguments.extractor, arguments.head));
  REEF_RETURN_IF_ERROR(tflite::save_model(*joined, arguments.output));
  print_text("wrote {} ({} operators)\n", arguments.output, joined->subgraphs[0].operators.size());
  return ok_status();
}

void add_join(Command& parent, Action& action) {
  auto arguments = std::make_shared<JoinArguments>();
  Command command = parent.add_subcommand("join", "Put an extractor, compiled or not, and a head together");
  command.add_option("extractor", arguments->extractor, "A .tflite file that gives an embedding, or other results")
      .required();
  command.add_option("head", arguments->head, "A .tflite file that takes them").required();
  command.add_option("-o,--output", arguments->output, "The whole model").required().writes();
  command.footer("Example:\n  reef learn join extractor_edgetpu.tflite head.tflite -o classifier_edgetpu.tflite");
  command.callback([arguments, &action] { action = [arguments] { return join_files(*arguments); }; });
}

}  // namespace

void add_learn(Command& app, Action& action) {
  Command command = app.add_subcommand(
      "learn", "Teach a model new classes from a handful of pictures: only the last layer is learned, on the host");
  command.require_subcommand();
  command.footer(
      "The folder of pictures has a sub-folder for each class.\n"
      "Example:\n  reef learn imprint models/reef_creatures_int8.tflite --data pictures -o mine.tflite");
  add_imprint(command, action);
  add_softmax(command, action);
  add_split(command, action);
  add_join(command, action);
}

}  // namespace reef::app
