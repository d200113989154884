// SPDX-License-Identifier: Apache-2.0
#include "run_report.h"

#include <algorithm>
#include <limits>

#include <fmt/ranges.h>

#include "console.h"
#include "evaluate/drawing.h"
#include "evaluate/outputs.h"
#include "ir/describe.h"
#include "report/summary.h"

namespace reef::app {
namespace {

using Json = nlohmann::ordered_json;

struct Ranked {
  std::size_t index;
  double value;
};

bool is_larger(const Ranked& a, const Ranked& b) { return a.value != b.value ? a.value > b.value : a.index < b.index; }

// The `most` largest, in any order.
void keep_largest(std::vector<Ranked>& ranked, std::size_t most) {
  if (ranked.size() <= most) return;
  std::nth_element(ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(most), ranked.end(), is_larger);
  ranked.resize(most);
}

// Largest values first; equal ones in index order; no more than `count`. Goes through the tensor in pieces: a list of
// all values would take many times the memory of the tensor itself, which --memory-limit has granted.
Result<std::vector<Ranked>> top_values(const ops::Tensor& tensor, int count) {
  constexpr std::size_t kPiece = 1 << 16;
  const auto most = static_cast<std::size_t>(std::max(count, 0));
  const auto all = static_cast<std::size_t>(tensor.elements());
  std::vector<Ranked> ranked;
  double least = -std::numeric_limits<double>::infinity();  // values below it are not among the largest
  for (std::size_t first = 0; first < all || first == 0; first += kPiece) {
    REEF_ASSIGN_OR_RETURN(const auto values, evaluate::real_values(tensor, first, std::min(kPiece, all - first)));
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i] >= least) ranked.push_back({first + i, values[i]});  // not those that are no numbers
    }
    if (most == 0 || ranked.size() <= most) continue;
    keep_largest(ranked, most);
    least = std::min_element(ranked.begin(), ranked.end(), [](const Ranked& a, const Ranked& b) {
              return a.value < b.value;
            })->value;
  }
  keep_largest(ranked, most);
  std::sort(ranked.begin(), ranked.end(), is_larger);
  return ranked;
}

// Labels number the last dimension; what stands before it is a batch.
std::string label_of(const ops::Tensor& tensor, std::size_t index, const std::vector<std::string>& labels) {
  if (tensor.shape.rank() > 0) index %= static_cast<std::size_t>(tensor.shape.last());
  return index < labels.size() ? labels[index] : "";
}

Json tensor_json(const ops::Tensor& tensor) {
  Json json = {
      {"name", std::string(tensor.name)}, {"type", ir::type_name(tensor.type)}, {"shape", tensor.shape.dims()}};
  if (tensor.quantization->scale.size() == 1) {
    json["scale"] = tensor.quantization->scale[0];
    json["zero_point"] = tensor.quantization->zero_point.empty() ? 0 : tensor.quantization->zero_point[0];
  }
  return json;
}

// Products a second where an op has them, else bytes a second.
std::string rate_of(const cpu::OpTiming& op) {
  if (op.least_ms <= 0 || op.kernel.empty()) return "";
  const double per_second = 1e3 / op.least_ms;
  return op.products > 0 ? fmt::format("{:.1f} GMAC/s", 1e-9 * op.products * per_second)
                         : fmt::format("{:.1f} GB/s", 1e-9 * op.bytes * per_second);
}

void print_profile(const cpu::Interpreter& interpreter) {
  std::vector<cpu::OpTiming> timings = interpreter.timings();
  if (timings.empty()) return;
  double total = 0;
  for (const cpu::OpTiming& op : timings) total += op.total_ms;
  print_text(
      "\nper op (measured, mean of {} runs; kernel: the CPU's instructions that it took, copy, or plain loops; rate: "
      "of "
      "the fastest run):\n",
      timings[0].calls);
  for (const cpu::OpTiming& op : timings) {
    const double share = total > 0 ? op.total_ms / total : 0;
    print_text("  {:>4}  {:<26} {:>9.3f} ms  {:>5.1f}%  {:<12} {:>11} {:<20} {}\n", op.op_index, op.type,
               op.total_ms / static_cast<double>(op.calls), 100 * share, op.kernel, rate_of(op),
               std::string(static_cast<std::size_t>(share * 20 + 0.5), '#'), ir::describe_name(op.output_name));
  }
}

void print_output(const cpu::Interpreter& interpreter, int i, int top, const std::vector<std::string>& labels) {
  const ops::Tensor& tensor = interpreter.output(i);
  print_text("output {} '{}' {} {}\n", i, printable(tensor.name), ir::type_name(tensor.type), tensor.shape.to_string());
  const auto ranked = top_values(tensor, top);
  if (!ranked.ok()) return;
  for (const Ranked& rank : *ranked) {
    const std::string label = label_of(tensor, rank.index, labels);
    print_text("  {:>6}  {:>12.6g}  {}\n", rank.index, rank.value, printable(label));
  }
}

}  // namespace

Json report_json(const RunOptions& options, const RunOutcome& outcome) {
  const auto& [place, interpreter, sources, bench, found_labels, findings, edge_tpu_ms] = outcome;
  const std::vector<std::string>& labels = found_labels.names;
  Json json = {{"model", options.model}, {"device", place.name}, {"threads", options.threads}};
  if (!found_labels.origin.empty()) json["labels_from"] = found_labels.origin;
  if (place.device != nullptr) json["device_path"] = place.device->path();
  for (int i = 0; i < interpreter.input_count(); ++i) {
    Json input = tensor_json(interpreter.input(i));
    input["from"] = sources[at(i)];
    json["inputs"].push_back(std::move(input));
  }
  for (int i = 0; i < interpreter.output_count(); ++i) {
    Json output = tensor_json(interpreter.output(i));
    if (!options.out.empty()) output["file"] = fmt::format("{}/out{}.bin", options.out, i);
    if (const auto ranked = top_values(interpreter.output(i), options.top); ranked.ok()) {
      for (const Ranked& rank : *ranked) {
        Json row = {{"index", rank.index}, {"value", rank.value}};
        if (const std::string label = label_of(interpreter.output(i), rank.index, labels); !label.empty()) {
          row["label"] = label;
        }
        output["top"].push_back(std::move(row));
      }
    }
    json["outputs"].push_back(std::move(output));
  }
  if (findings) json["found"] = findings->json();
  for (const std::string& note : interpreter.notes()) json["notes"].push_back(note);
  const cpu::MemoryReport memory = interpreter.memory();
  json["memory"] = {{"arena_bytes", memory.arena_bytes},
                    {"largest_live_set_bytes", memory.largest_live_set_bytes},
                    {"other_bytes", memory.other_bytes},
                    {"peak_bytes", memory.peak_bytes}};
  json["time"] = {{"kind", "measured"},
                  {"runs", bench.runs},
                  {"median_ms", bench.median_ms},
                  {"min_ms", bench.min_ms},
                  {"max_ms", bench.max_ms}};
  for (const cpu::OpTiming& op : interpreter.timings()) {
    json["ops"].push_back({{"subgraph", op.subgraph},
                           {"index", op.op_index},
                           {"type", op.type},
                           {"output", op.output_name},
                           {"mean_ms", op.total_ms / static_cast<double>(op.calls)},
                           {"least_ms", op.least_ms},
                           {"kernel", op.kernel},
                           {"products", op.products},
                           {"bytes", op.bytes}});
  }
  return json;
}

void print_report(const RunOptions& options, const RunOutcome& outcome) {
  const cpu::Interpreter& interpreter = outcome.interpreter;
  for (int i = 0; i < interpreter.input_count(); ++i) {
    const ops::Tensor& tensor = interpreter.input(i);
    print_text("input {} '{}' {} {} from {}\n", i, printable(tensor.name), ir::type_name(tensor.type),
               tensor.shape.to_string(), outcome.sources[at(i)]);
  }
  if (outcome.findings) outcome.findings->print();
  for (int i = 0; !outcome.findings && i < interpreter.output_count(); ++i) {
    print_output(interpreter, i, options.top, outcome.labels.names);
  }
  if (!options.out.empty()) print_text("outputs written to {}/out0.bin ...\n", options.out);
  const cpu::MemoryReport memory = interpreter.memory();
  const BenchResult& bench = outcome.bench;
  if (bench.runs == 1) {
    print_text("time {:.3f} ms", bench.median_ms);
  } else {
    print_text("time median {:.3f} ms, min {:.3f}, max {:.3f} of {} runs", bench.median_ms, bench.min_ms, bench.max_ms,
               bench.runs);
  }
  const bool is_observed = outcome.place.is_emulated && options.bench == 0;
  print_text(" (measured, {} on {} thread{}{}); memory peak {} (arena {}, largest live set {})\n", outcome.place.name,
             options.threads, options.threads == 1 ? "" : "s", is_observed ? ", simulating time included" : "",
             ir::describe_bytes(memory.peak_bytes), ir::describe_bytes(memory.arena_bytes),
             ir::describe_bytes(memory.largest_live_set_bytes));
  print_profile(interpreter);
}

namespace {

// "crab 1.00", "2 things: seahorse 0.95, crab 0.71", "class 3 of 10: 0.87".
std::string answer_of(const RunOutcome& outcome) {
  const bool is_any_given = std::any_of(outcome.sources.begin(), outcome.sources.end(),
                                        [](const std::string& source) { return !source.starts_with(kMadeUp); });
  const std::vector<std::string>& names = outcome.labels.names;
  if (outcome.findings && is_any_given) {
    const evaluate::Findings& findings = outcome.findings->findings();
    std::vector<std::string> parts;
    for (const evaluate::Found& found : findings.things) {
      if (parts.size() == 3) break;
      parts.push_back(fmt::format("{} {:.2f}", found.has_box ? evaluate::class_name(found.what.label, names) : "pose",
                                  found.what.score));
    }
    for (const evaluate::Segment& segment : findings.segments) {
      if (parts.size() == 3) break;
      parts.push_back(fmt::format("{} {:.0f} %", evaluate::class_name(segment.label, names), 100 * segment.share));
    }
    const std::size_t all = findings.things.size() + findings.segments.size();
    return parts.empty() ? "nothing found"
                         : fmt::format("{} found: {}{}", all, fmt::join(parts, ", "), all > parts.size() ? " ..." : "");
  }
  if (outcome.interpreter.output_count() != 1 || !is_any_given) return "";
  const ops::Tensor& tensor = outcome.interpreter.output(0);
  const bool is_row = tensor.shape.rank() == 2 && tensor.shape[0] == 1 && tensor.shape[1] > 1;
  const auto best = top_values(tensor, 1);
  if (!is_row || !best.ok() || best->empty()) return "";
  const std::string label = label_of(tensor, best->front().index, names);
  return label.empty()
             ? fmt::format("class {} of {}: {:.3g}", best->front().index, tensor.shape[1], best->front().value)
             : fmt::format("{} {:.3g}", label, best->front().value);
}

}  // namespace

void print_run_summary(const RunOptions& options, const RunOutcome& outcome) {
  report::Summary summary;
  const std::string answer = answer_of(outcome);
  summary.add("answer", answer);
  const auto made_up = std::count_if(outcome.sources.begin(), outcome.sources.end(),
                                     [](const std::string& source) { return source.starts_with(kMadeUp); });
  if (made_up > 0 && options.bench == 0) {
    summary.add("input", fmt::format("{} of {} made up, so that the answer means nothing; give --image, --text or --in",
                                     made_up, outcome.sources.size()));
  }
  if (!outcome.labels.origin.empty() && options.labels.empty()) summary.add("labels", "from " + outcome.labels.origin);
  if (outcome.labels.names.empty() && answer.starts_with("class ")) {
    summary.add("labels", "not known; --labels FILE gives names, one in each line");
  }
  if (outcome.edge_tpu_ms > 0) {
    summary.add("on the chip", fmt::format("{} (simulated from the program itself; `reef check` estimates from shapes)",
                                           report::rate_text(1000 * outcome.edge_tpu_ms)));
  }
  const bool is_cpu = !outcome.place.has_edge_tpu();
  if (is_cpu || outcome.place.device != nullptr) {
    // The first inference on a device loads parameters, too.
    const bool is_first = !is_cpu && options.bench == 0;
    summary.add(is_cpu ? "on the CPU" : "on the device",
                fmt::format("{} (measured{})", report::rate_text(1000 * outcome.bench.median_ms),
                            is_first ? ", the first inference: parameters were loaded; --bench 20 times others" : ""));
  }
  const int times = outcome.findings ? outcome.findings->enlargement() : 1;
  const bool is_enlarged = !options.findings.draw.empty() && times > 1;
  summary.add("picture", options.findings.draw + (is_enlarged ? fmt::format(" ({} times as large)", times) : ""));
  summary.add("trace", options.time.trace.empty() ? "" : options.time.trace + " (open it in ui.perfetto.dev)");
  print_exact("{}", report::closing_lines(summary, has_colour()));
}

}  // namespace reef::app
