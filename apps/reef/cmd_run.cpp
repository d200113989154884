// SPDX-License-Identifier: Apache-2.0
// reef run: inputs in, one inference (or a benchmark of many), outputs out.
#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <optional>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "commands.h"
#include "compiler/front_end.h"
#include "compiler/output_check.h"
#include "console.h"
#include "data/model_card.h"
#include "data_options.h"
#include "device_options.h"
#include "execute/cpu/interpreter.h"
#include "execute/device/chrome_trace.h"
#include "formats/darwinn/reader.h"
#include "ir/op.h"
#include "ir/pseudo_random.h"
#include "json_output.h"
#include "result_files.h"
#include "run_report.h"
#include "runtime/edge_tpu_op.h"
#include "stop_dump.h"
#include "tensor_io.h"
#include "throughput.h"
#include "usage.h"

namespace reef::app {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kMostModelBytes = std::uint64_t{1} << 33;

// TFLite's interpreter resizes: sizes that depend on values are found in the run.
Status resize(const compiler::InputShapes& shapes, cpu::Interpreter& interpreter) {
  for (const auto& [name, sizes] : shapes) {
    int input = -1;
    for (int i = 0; i < interpreter.input_count(); ++i) {
      if (interpreter.input(i).name == name || (name.empty() && interpreter.input_count() == 1)) input = i;
    }
    REEF_REQUIRE(input >= 0, "--input-shape: the model has no input '{}'; give it as name:1,2,3", name);
    std::vector<std::int32_t> dims;
    for (const std::int64_t size : sizes) {
      REEF_REQUIRE(size >= 0 && size <= 999'999'999, "--input-shape: {} is not a size", size);
      dims.push_back(static_cast<std::int32_t>(size));
    }
    REEF_RETURN_IF_ERROR(interpreter.resize_input(input, ir::Shape(dims)));
  }
  return ok_status();
}

// How the picture for input `index` is preprocessed, said on standard error where nobody said it.
Result<data::Preprocess> preprocess_of(const RunOptions& options, const ir::Model& model, int index) {
  if (options.mean_std.size() == 2)
    return data::Preprocess{.mean = {options.mean_std[0]}, .std = {options.mean_std[1]}};
  REEF_ASSIGN_OR_RETURN(const data::ChosenPreprocess chosen, data::choose_preprocess(options.preprocess, model, index));
  const bool is_usual = chosen.preprocess.pixels_are_codes;
  if (options.preprocess.empty() && !is_usual) {
    print_error("reef: preprocessing {} ({})\n", data::to_string(chosen.preprocess), chosen.origin);
  }
  return chosen.preprocess;
}

// The file of --vocabulary, or what the model carries.
Result<data::Vocabulary> vocabulary_of(const RunOptions& options) {
  if (!options.vocabulary.empty()) return data::Vocabulary::load(options.vocabulary);
  REEF_ASSIGN_OR_RETURN(const Bytes file, read_file(options.model, kMostModelBytes));
  auto found = data::Vocabulary::of_model_file(file);
  if (!found.ok()) return found.status().in(options.model);
  return found;
}

// All inputs without a file take the text: tokens, and where a model asks for them which of these count.
Status fill_with_text(const RunOptions& options, cpu::Interpreter& interpreter, std::vector<std::string>& sources) {
  REEF_ASSIGN_OR_RETURN(const data::Vocabulary vocabulary, vocabulary_of(options));
  for (int i = static_cast<int>(sources.size()); i < interpreter.input_count(); ++i) {
    REEF_RETURN_IF_ERROR(fill_from_text(options.text, vocabulary, interpreter.input(i), interpreter.input_bytes(i)));
    sources.push_back("--text");
  }
  return ok_status();
}

// `shown`: how the picture became the first input, if it did.
Status fill_inputs(const RunOptions& options, const ir::Model& model, cpu::Interpreter& interpreter,
                   std::vector<std::string>& sources, std::optional<data::Preprocess>& shown) {
  REEF_REQUIRE(static_cast<int>(options.inputs.size()) <= interpreter.input_count(),
               "{} --in files are given, but the model's number of inputs is {}", options.inputs.size(),
               interpreter.input_count());
  for (int i = 0; i < interpreter.input_count(); ++i) {
    const ops::Tensor& tensor = interpreter.input(i);
    const std::span<std::byte> target = interpreter.input_bytes(i);
    if (static_cast<std::size_t>(i) < options.inputs.size()) {
      const std::string& path = options.inputs[at(i)];
      REEF_RETURN_IF_ERROR(fill_from_file(path, tensor, target));
      sources.push_back(path);
    } else if (!options.text.empty()) {
      return fill_with_text(options, interpreter, sources);
    } else if (!options.image.empty() && static_cast<std::size_t>(i) == options.inputs.size()) {
      REEF_ASSIGN_OR_RETURN(const data::Preprocess preprocess, preprocess_of(options, model, i));
      REEF_RETURN_IF_ERROR(fill_from_image(options.image, preprocess, tensor, i, target));
      sources.push_back(options.image);
      if (i == 0) shown = preprocess;
    } else {
      const auto seed = options.seed + static_cast<std::uint32_t>(i);
      ir::fill_pseudo_random(tensor.type, seed, target);
      sources.push_back(fmt::format("{}, seed {}", kMadeUp, seed));
    }
  }
  return ok_status();
}

Result<BenchResult> run_bench(int runs, cpu::Interpreter& interpreter) {
  std::vector<double> times;
  for (int i = 0; i < runs; ++i) {
    const auto start = std::chrono::steady_clock::now();
    REEF_RETURN_IF_ERROR(interpreter.invoke());
    times.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  std::sort(times.begin(), times.end());
  return BenchResult{runs, times[times.size() / 2], times.front(), times.back()};
}

void add_outputs(const std::string& folder, const cpu::Interpreter& interpreter, ResultFiles& results) {
  for (int i = 0; i < interpreter.output_count(); ++i) {
    const ops::Tensor& tensor = interpreter.output(i);
    const auto* data = reinterpret_cast<const std::uint8_t*>(tensor.data);
    results.add(fmt::format("{}/out{}.bin", folder, i), std::vector<std::uint8_t>(data, data + tensor.bytes));
  }
}

Status check_run_files(const RunOptions& options) {
  std::vector<std::string> inputs = options.inputs;
  inputs.insert(inputs.end(), {options.image, options.labels, options.vocabulary, options.layers.source});
  REEF_REQUIRE(options.findings.draw.empty() || !options.image.empty(),
               "--draw needs --image: it draws onto that picture");
  REEF_REQUIRE(options.findings.draw.empty() || options.findings.draw.ends_with(".png"),
               "--draw writes a PNG: give it a name that ends with .png");
  REEF_RETURN_IF_ERROR(
      compiler::check_files({{options.time.trace, options.findings.draw}, {options.model}, {}, inputs}));
  inputs.push_back(options.model);
  return check_result_folder(options.out, inputs);
}

Result<std::unique_ptr<device::StopAt>> stop_of(const RunOptions& options, const ir::Model& model,
                                                const device::Device* device) {
  std::unique_ptr<device::StopAt> stop;
  REEF_REQUIRE(options.dump_tile.empty() || !options.stop_at.empty(), "--dump-tile needs --stop-at");
  if (options.stop_at.empty()) return stop;
  REEF_REQUIRE(device != nullptr && is_compiled(model),
               "--stop-at needs a model compiled for the Edge TPU and --device virtual");
  auto point = device::parse_stop_point(options.stop_at);
  if (!point.ok()) return point.status().in("--stop-at");
  REEF_ASSIGN_OR_RETURN(const std::uint32_t tiles, parse_tiles(options.dump_tile));
  stop = std::make_unique<device::StopAt>(device->chip(), *point, tiles);
  return stop;
}

// Runs until `stop` has what it waits for.
Status run_to_stop(const RunOptions& options, cpu::Interpreter& interpreter, const device::StopAt& stop) {
  const Status ended = interpreter.invoke();
  if (!stop.snapshot()) {
    const Status status = stop.status().in("--stop-at " + options.stop_at);
    return ended.ok() || !stop.was_found() ? status : ended;
  }
  if (!options.out.empty()) REEF_RETURN_IF_ERROR(write_dump(stop, options.out));
  if (!options.json) {
    print_dump(stop);
    if (!options.out.empty()) print_text("written to {}/dump.json and the files it names\n", options.out);
    return ok_status();
  }
  const Json json = {{"model", options.model}, {"device", "virtual"}, {"stopped_at", dump_json(stop, options.out)}};
  print_json(json);
  return ok_status();
}

// Options that mean nothing without the virtual device are mistakes.
Status check_device_options(const RunOptions& options, const runtime::Placement& place) {
  const TimeOptions& time = options.time;
  const bool are_used = !time.link.empty() || !time.reading.empty() || !time.trace.empty() || time.races;
  REEF_REQUIRE(place.is_emulated || !are_used, "--link, --timing, --trace and --races need --device virtual");
  REEF_REQUIRE(place.has_edge_tpu() || time.clock.empty(), "--clock needs --device, such as --device virtual");
  REEF_REQUIRE(place.is_emulated || !options.layers.are_wanted(), "--layers needs --device virtual");
  REEF_REQUIRE(options.layers.are_wanted() || options.layers.source.empty(), "--source needs --layers");
  REEF_REQUIRE(!options.layers.are_wanted() || (options.stop_at.empty() && time.trace.empty() && !time.races),
               "--layers watches the run and goes without --stop-at, --trace and --races");
  return ok_status();
}

// A word of a real device's clock, or a number.
Validator clock_word() {
  const Validator is_word = one_of({"max", "high", "medium", "low"}), is_number = between(1.0, 10000.0);
  return {[is_word, is_number](std::string& text) {
            const bool looks_like_number = !text.empty() && text.find_first_not_of("0123456789.") == std::string::npos;
            return looks_like_number ? is_number(text) : is_word(text);
          },
          ""};
}

cpu::InterpreterOptions interpreter_options_of(const RunOptions& options, const Budget& budget) {
  cpu::InterpreterOptions result;
  result.threads = options.threads;
  result.profile = options.profile;
  result.budget = budget;
  result.max_memory_bytes = std::numeric_limits<std::int64_t>::max();  // the budget limits it
  result.tflite_release = options.tflite_release == "2.9" ? ops::TfliteRelease::k2_9 : ops::TfliteRelease::kCurrent;
  result.float_sums = options.fused_floats ? ops::FloatSums::kFused : ops::FloatSums::kAsTflite;
  return result;
}

// Names of classes, for the model's output as it is declared.
Result<data::FoundNames> labels_for(const RunOptions& options, const ir::Model& model) {
  std::size_t classes = 0;
  const ir::Subgraph& graph = model.subgraphs[0];
  if (graph.outputs.size() == 1 && graph.outputs[0] >= 0) {
    const ir::Shape& shape = graph.tensors[at(graph.outputs[0])].shape;
    if (shape.rank() == 2 || shape.rank() == 4) classes = static_cast<std::size_t>(std::max(shape.last(), 0));
  }
  REEF_ASSIGN_OR_RETURN(data::FoundNames found, data::find_class_names(options.labels, options.model, model, classes));
  const std::size_t names = found.names.size();
  if (!options.labels.empty() && classes > 1 && names != classes) {
    print_error("reef: WARNING: {} names {} classes, but the model has {}: names may be wrong{}\n", options.labels,
                names, classes,
                classes == names + 1 ? ". Perhaps its first class is the background: put a line for it first" : "");
  }
  return found;
}

// The simulated time of one inference. Parameter caching is left out because it happens once.
double simulated_ms(std::span<const device::ProgramRecord> records) {
  double ms = 0;
  for (const device::ProgramRecord& record : records) {
    if (record.program->type != darwinn::ExecutableType::kParameterCaching) ms += record.time.ms();
  }
  return ms;
}

Status run(const RunOptions& options) {
  const Budget budget = budget_of(options.limits);
  REEF_RETURN_IF_ERROR(check_run_files(options));
  REEF_REQUIRE(options.mean_std.empty() || options.mean_std[1] != 0, "--mean-std: the second number must not be 0");
  REEF_ASSIGN_OR_RETURN(compiler::FrontEndOptions front_end, front_end_options(options.front_end));
  front_end.resizes_tflite = false;
  front_end.may_resize = true;
  REEF_ASSIGN_OR_RETURN(compiler::FrontEndResult loaded, compiler::load_any_model(options.model, front_end));
  if (!loaded.shape_note.empty()) print_error("reef: {}: {}\n", options.model, loaded.shape_note);
  const bool is_tflite = loaded.format == compiler::ModelFormat::kTflite;
  const auto shared_model = std::make_shared<const ir::Model>(std::move(loaded.model));
  const ir::Model& model = *shared_model;
  if (options.throughput || options.device.devices > 1) return run_throughput(options, shared_model);
  REEF_ASSIGN_OR_RETURN(const data::FoundNames labels, labels_for(options, model));
  DeviceArguments wanted = settled_for(model, options.device);
  if (driver::parse_clock(options.time.clock).ok()) wanted.clock = options.time.clock;
  REEF_ASSIGN_OR_RETURN(const ChosenDevice chosen, ChosenDevice::choose(wanted));
  const runtime::Placement& place = chosen.place();
  REEF_RETURN_IF_ERROR(check_device_options(options, place));
  REEF_REQUIRE(place.device == nullptr || wanted.clock == options.time.clock,
               "--clock {}: a real Edge TPU runs at max, high, medium or low", options.time.clock);
  REEF_ASSIGN_OR_RETURN(const device::TimelineOptions timing, timeline_options(options.time));
  device::Timeline timeline(timing);
  cpu::InterpreterOptions interpreter_options = interpreter_options_of(options, budget);
  std::shared_ptr<device::Device> virtual_device;
  if (place.is_emulated) {
    device::Options device_options;
    device_options.threads = options.threads;
    device_options.budget = budget;
    if (options.max_cycles > 0) device_options.max_cycles = options.max_cycles;
    virtual_device = std::make_shared<device::Device>(device_options);
  }
  REEF_ASSIGN_OR_RETURN(const auto stop, stop_of(options, model, virtual_device.get()));
  REEF_ASSIGN_OR_RETURN(const auto layers, LayerReport::create(options.layers, model, options.max_cycles, budget));
  if (place.has_edge_tpu() && !is_compiled(model)) {
    print_error("reef: note: the model is not compiled for the Edge TPU: all of it runs on the CPU\n");
  }
  if (place.device != nullptr) interpreter_options.foreign_ops.push_back(runtime::edge_tpu_op(place.device));
  if (virtual_device != nullptr) {
    virtual_device->set_observer(stop.get());
    interpreter_options.foreign_ops.push_back(runtime::edge_tpu_op(virtual_device));
  }
  auto created = cpu::Interpreter::create(shared_model, interpreter_options);
  if (!created.ok()) return created.status().in(options.model);
  cpu::Interpreter& interpreter = **created;
  if (is_tflite) REEF_RETURN_IF_ERROR(resize(front_end.input_shapes, interpreter));
  REEF_RETURN_IF_ERROR(interpreter.prepare().in(options.model));
  for (const std::string& note : interpreter.notes()) {
    print_error("reef: note: {}; without --tflite 2.9 it is computed as current releases do\n", note);
  }
  std::vector<std::string> sources;
  std::optional<data::Preprocess> shown;
  REEF_RETURN_IF_ERROR(fill_inputs(options, model, interpreter, sources, shown));
  if (stop != nullptr) return run_to_stop(options, interpreter, *stop);
  // The first run computes what is written out; stateful models would give other results later. It is also the one
  // whose time is simulated: that depends on the program alone.
  if (virtual_device != nullptr) {
    virtual_device->set_observer(layers != nullptr ? &layers->observer() : &timeline);
    virtual_device->set_queue_depths(device::kShallowQueues);
  }
  REEF_ASSIGN_OR_RETURN(BenchResult bench, run_bench(1, interpreter));
  const std::vector<device::ProgramRecord> records = timeline.take_records();
  if (virtual_device != nullptr) {
    virtual_device->set_observer(nullptr);
    virtual_device->set_queue_depths({});
  }
  REEF_ASSIGN_OR_RETURN(const auto findings,
                        FindingsReport::create(options.findings, model, interpreter, shown ? options.image : "",
                                               shown.value_or(data::Preprocess()), labels.names));
  REEF_REQUIRE(options.findings.draw.empty() || findings,
               "--draw: the model finds no places in pictures (or not in a form that is known, docs/evaluate.md)");
  ResultFiles results;
  if (!options.findings.draw.empty()) REEF_RETURN_IF_ERROR(findings->draw(options.findings.draw, results));
  if (!options.time.trace.empty()) results.add(options.time.trace, device::chrome_trace(records));
  if (!options.out.empty()) add_outputs(options.out, interpreter, results);
  if (layers != nullptr) REEF_RETURN_IF_ERROR(layers->take(options.out, results));
  REEF_RETURN_IF_ERROR(results.write(options.out));
  if (options.bench > 0) {
    REEF_ASSIGN_OR_RETURN(bench, run_bench(options.bench, interpreter));
  }
  const RunOutcome outcome{place, interpreter, sources, bench, labels, findings, simulated_ms(records)};
  if (options.json) {
    Json json = report_json(options, outcome);
    if (!records.empty()) json["edge_tpu"] = times_json(records, timing.timing);
    if (layers != nullptr) json["layers"] = layers->json();
    print_json(std::move(json));
  } else {
    print_report(options, outcome);
    print_times(records, timing.timing);
    if (layers != nullptr) layers->print();
    print_run_summary(options, outcome);
  }
  return judge_races(records);
}

}  // namespace

void add_run(Command& app, Action& action) {
  auto options = std::make_shared<RunOptions>();
  Command command = app.add_subcommand("run", "Run a model: raw tensors, a picture or text in, results out");
  command.add_option("model", options->model, "A .tflite, _edgetpu.tflite or .onnx file").required();
  command.add_option("--in", options->inputs, "Raw little-endian file for the next input; repeat for several inputs")
      .allow_extra_args(false);
  command.add_option("--image", options->image, "Picture (JPEG, PNG, BMP, WebP) for the first input without a file");
  command.add_option("--text", options->text, "Text for all inputs without a file, as the numbers of its tokens");
  command
      .add_option("--vocabulary", options->vocabulary,
                  "With --text: a file with one token a line; default: the one that the model carries")
      .option_text("FILE");
  command
      .add_option("--draw", options->findings.draw,
                  "Write the picture with what was found in it, boxes, masks or keypoints, to this PNG file")
      .writes();
  command.add_option("--min-score", options->findings.least_score, "Show detections from this score on")
      .check(between(0.0, 1.0))
      .capture_default_str();
  add_anchors_option(command, options->findings.anchors);
  command.add_flag("--raw", options->findings.raw, "Show a detector's outputs as the numbers they are");
  command.add_option("--mean-std", options->mean_std, "Pixels become (sample - MEAN) / STD before quantization")
      .expected(2);
  add_preprocess_option(command, options->preprocess);
  command.add_option("--seed", options->seed, "Seed of the pseudo-random fill of inputs without a file")
      .capture_default_str();
  add_front_end_flags(command, options->front_end);
  command.add_option("--out", options->out, "Folder for out0.bin, out1.bin, ... (raw little-endian)").writes();
  command.add_option("--labels", options->labels,
                     "Text file with one label a line (default: names in the model, or a *_labels.txt beside it)");
  command.add_option("--top", options->top, "How many of the largest values to show")
      .check(not_negative())
      .capture_default_str();
  add_device_options(command, options->device, /*has_clock=*/false);
  add_devices_option(command, options->device);
  command.add_flag("--throughput", options->throughput,
                   "Predict how many samples a second --devices do together, as copies of the model or cut into "
                   "segments, and with --bench run that many");
  command
      .add_option("--max-cycles", options->max_cycles,
                  "Cycles after which the virtual device gives up (steps of all units together)")
      .check(positive());
  command.add_option("--link", options->time.link, "Link and host whose speed is simulated: " + describe_links());
  command.add_option("--timing", options->time.reading,
                     "Which reading of what is known about the chip's speed is simulated: " + describe_readings());
  command
      .add_option(
          "--clock", options->time.clock,
          "Clock of the Edge TPU: max (500 MHz, default), high (250), medium (125) or low (63); of the simulated "
          "chip, also a number of MHz")
      .transform(clock_word());
  command
      .add_option("--trace", options->time.trace,
                  "Write what every unit did when (simulated) as a trace for ui.perfetto.dev")
      .writes();
  command.add_flag("--races", options->time.races,
                   "Find accesses that no wait orders; fails if simulated time contradicts the order executed");
  command
      .add_option("--stop-at", options->stop_at,
                  "Stop the virtual device when the instruction at this row of the execution program is finished and "
                  "show its state: ROW as 'reef disasm' numbers them, CHUNK:ROW, ROW@3 for the third time")
      .option_text("ROW");
  command
      .add_option("--dump-tile", options->dump_tile,
                  "With --stop-at: show the memories of this tile (0 to 15, or all); --out gets them whole, as .npy")
      .option_text("TILE");
  command.add_option("--source", options->layers.source, "With --layers: the model that was compiled");
  command
      .add_option("--layers", options->layers.layers,
                  "Show tensors of the source model as the chip computed them: names with commas between them, or "
                  "all; --out gets them as .npy")
      .option_text("NAMES");
  command.add_option("--threads", options->threads, "Threads").check(between(1, 256)).capture_default_str();
  command.add_option("--bench", options->bench, "Then time this many further runs").check(not_negative());
  command.add_flag("--profile", options->profile, "Show the time of every op");
  add_limit_flags(command, options->limits);
  command
      .add_option("--tflite", options->tflite_release,
                  "Release whose reference kernels to equal where releases differ (docs/numerics.md)")
      .transform(one_of({"2.9", "current"}))
      .capture_default_str();
  command.add_flag("--fused-floats", options->fused_floats,
                   "Add float products with one rounding: faster on most CPUs, not TFLite's bits (docs/numerics.md)");
  command.add_flag("--json", options->json, "Print one JSON object (documented in docs/json.md)");
  command.footer(
      "Examples:\n  reef run models/reef_creatures_int8.tflite --image models/images/crab_1.jpg \\\n"
      "      --labels models/reef_creatures_labels.txt --top 3\n"
      "  reef run sentiment_edgetpu.tflite --device virtual --text 'a fine film' --vocabulary vocab.txt\n"
      "  reef run models/reef_detector_int8.tflite --image models/scenes/scene_1.jpg --draw out.png\n"
      "  reef run compiled_edgetpu.tflite --device virtual\n"
      "  reef run compiled_edgetpu.tflite --device usb --clock high\n"
      "  reef run model_int8.tflite --devices 4 --throughput --link usb3 --bench 100\n"
      "  reef run compiled_edgetpu.tflite --device virtual --stop-at 228 --dump-tile 3 --out state\n"
      "  reef run compiled_edgetpu.tflite --device virtual --source model.tflite --layers all --out layers");
  command.callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace reef::app
