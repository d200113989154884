// SPDX-License-Identifier: Apache-2.0
#include "throughput.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/shell_word.h"
#include "compiler/replica_time.h"
#include "console.h"
#include "ir/pseudo_random.h"
#include "json_output.h"
#include "report/summary.h"
#include "runtime/replicas.h"
#include "runtime/virtual_devices.h"

namespace reef::app {
namespace {

using Json = nlohmann::ordered_json;

// The ways to use devices, by the number of segments.
struct Ways {
  std::map<int, compiler::Split> splits;
  std::map<int, std::string> refusals;  // numbers of segments that the model cannot be cut into
};

struct Prediction {
  compiler::Throughput best;  // of all ways for so many devices
  std::vector<compiler::Throughput> others;
};

Result<Ways> find_ways(const std::shared_ptr<const ir::Model>& model, int devices, const chip::LinkProfile& link,
                       const Budget& budget) {
  Ways ways;
  for (int segments = 1; segments <= devices; ++segments) {
    if (segments > 1 && is_compiled(*model)) break;
    auto split = compiler::split_model(model, segments, link, budget);
    if (split.ok()) {
      ways.splits.emplace(segments, std::move(*split));
    } else if (segments == 1) {
      return split.status();
    } else {
      ways.refusals.emplace(segments, split.status().message());
    }
  }
  return ways;
}

// The way with the highest predicted throughput. If two are equal, the one with fewer segments wins: its latency is
// shorter.
Prediction predict(const Ways& ways, int devices, const chip::LinkProfile& link, const compiler::SharedHost& host) {
  std::vector<compiler::Throughput> all;
  for (const auto& [segments, split] : ways.splits) {
    if (devices % segments == 0)
      all.push_back(compiler::simulate_replicas(split.stages, devices / segments, link, host));
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.per_second > b.per_second * 1.001; });
  return {all.front(), {all.begin() + 1, all.end()}};
}

// "4 copies", "2 copies of 2 segments".
std::string describe(const compiler::Throughput& way) {
  const std::string copies = fmt::format("{} cop{}", way.replicas, way.replicas == 1 ? "y" : "ies");
  return way.segments == 1 ? copies : fmt::format("{} of {} segments", copies, way.segments);
}

Json json_of(const compiler::Throughput& way) {
  return {{"devices", way.devices},
          {"replicas", way.replicas},
          {"segments", way.segments},
          {"per_second", way.per_second},
          {"latency_ms", {{"p50", way.p50_ms}, {"p90", way.p90_ms}, {"p99", way.p99_ms}}},
          {"chip_share", way.chip_share},
          {"controller_share", way.controller_share},
          {"host_share", way.host_share}};
}

runtime::PipelineTensors random_inputs(const ir::Model& model, std::uint32_t seed) {
  runtime::PipelineTensors tensors;
  const ir::Subgraph& graph = model.subgraphs[0];
  for (const std::int32_t input : graph.inputs) {
    const ir::Tensor& tensor = graph.tensors[at(input)];
    const auto bits = static_cast<std::size_t>(ir::bits_per_element(tensor.type));
    std::vector<std::byte> data(static_cast<std::size_t>(tensor.shape.elements()) * bits / 8);
    ir::fill_pseudo_random(tensor.type, seed++, data);
    tensors.push_back({tensor.name, tensor.type, tensor.shape, std::move(data)});
  }
  return tensors;
}

struct Trial {
  runtime::DealerReport report;
  double seconds = 0;
};

// The same inputs again and again: every result must be that of the first.
Result<Trial> try_out(const RunOptions& options, const compiler::Split& split, runtime::DeviceList devices,
                      const Budget& budget) {
  runtime::ReplicaOptions how;
  how.segments = split.models;
  how.devices = std::move(devices);
  how.samples = options.bench;
  how.budget = budget;
  const runtime::PipelineTensors inputs = random_inputs(*split.models.front(), options.seed);
  std::optional<runtime::PipelineTensors> first;
  const auto start = std::chrono::steady_clock::now();
  REEF_ASSIGN_OR_RETURN(runtime::DealerReport report,
                        runtime::run_replicas(
                            how, [&](std::int64_t) -> Result<runtime::PipelineTensors> { return inputs; },
                            [&](std::int64_t, const runtime::PipelineTensors& outputs) -> Status {
                              if (!first) first = outputs;
                              for (std::size_t i = 0; i < outputs.size(); ++i) {
                                REEF_REQUIRE(outputs[i].data == first->at(i).data,
                                             "output '{}' differs from that of the first run with equal inputs",
                                             outputs[i].name);
                              }
                              return ok_status();
                            }));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  return Trial{std::move(report), seconds.count()};
}

void print_table(const std::vector<Prediction>& rows) {
  print_text("{:>7}  {:<24} {:>12} {:>9} {:>9} {:>6} {:>11} {:>6}\n", "devices", "best way", "a second", "p50 ms",
             "p99 ms", "chips", "controller", "host");
  for (const Prediction& row : rows) {
    const compiler::Throughput& way = row.best;
    print_text("{:>7}  {:<24} {:>12.0f} {:>9.2f} {:>9.2f} {:>4.0f} % {:>9.0f} % {:>4.0f} %\n", way.devices,
               describe(way), way.per_second, way.p50_ms, way.p99_ms, 100 * way.chip_share, 100 * way.controller_share,
               100 * way.host_share);
  }
}

// Names the resource that limits throughput at the largest number of devices.
std::string limit_of(const std::vector<Prediction>& rows, const compiler::SharedHost& host) {
  const compiler::Throughput& last = rows.back().best;
  if (last.host_share > 0.9) return fmt::format("the host's {} cores", host.cores);
  if (last.controller_share > 0.9) return "the USB controller: a second one would help";
  return "the devices: more of them do more";
}

}  // namespace

Status run_throughput(const RunOptions& options, const std::shared_ptr<const ir::Model>& model) {
  const Budget budget = budget_of(options.limits);
  const chip::LinkProfile* const link =
      options.time.link.empty() ? chip::link_profiles().data() : chip::find_link(options.time.link);
  REEF_REQUIRE(link != nullptr, "--link {}: there is no such link; reef run --help lists them", options.time.link);
  const int devices = options.device.devices;
  const compiler::SharedHost host = compiler::usual_host(*link);
  REEF_ASSIGN_OR_RETURN(const Ways ways, find_ways(model, devices, *link, budget));
  std::vector<Prediction> rows;
  for (int count = 1; count <= devices; ++count) rows.push_back(predict(ways, count, *link, host));
  const Prediction& chosen = rows.back();
  std::optional<Trial> trial;
  std::string where;
  if (options.bench > 0) {
    DeviceArguments arguments = options.device;
    if (arguments.device.empty()) arguments.device = "auto";
    REEF_ASSIGN_OR_RETURN(const ChosenDevice opened, ChosenDevice::choose(arguments));
    const runtime::Placement& place = opened.place();
    runtime::DeviceList list = place.replicas;
    if (list.empty() && place.device != nullptr) list = {place.device};
    if (list.empty()) {
      REEF_ASSIGN_OR_RETURN(list, runtime::make_devices("usb"));
    }
    where = place.is_emulated ? "virtual devices on this host's CPU: no figure of a chip" : place.description();
    REEF_ASSIGN_OR_RETURN(trial, try_out(options, ways.splits.at(chosen.best.segments), list, budget));
  }
  if (options.json) {
    Json json = {{"model", options.model},
                 {"link", link->name},
                 {"kind", "simulated"},
                 {"host_cores", host.cores},
                 {"controller_bytes_per_second", host.controller_in}};
    for (const Prediction& row : rows) json["predictions"].push_back(json_of(row.best));
    json["chosen"] = json_of(chosen.best);
    json["others"] = Json::array();
    for (const compiler::Throughput& other : chosen.others) json["others"].push_back(json_of(other));
    if (trial) {
      json["trial"] = shares_json(trial->report);
      json["trial"]["where"] = where;
      json["trial"]["per_second"] = options.bench / trial->seconds;
    }
    print_json(std::move(json));
    return ok_status();
  }
  print_text("{} devices do {:.0f} a second as {} (simulated; one does {:.0f})\n", devices, chosen.best.per_second,
             describe(chosen.best), rows.front().best.per_second);
  print_table(rows);
  for (const compiler::Throughput& other : chosen.others)
    print_text("not {}: {:.0f} a second (simulated)\n", describe(other), other.per_second);
  if (trial) {
    print_text("{} samples ran as predicted, in order, all with equal results: {:.1f} a second on {} (measured)\n",
               options.bench, options.bench / trial->seconds, where);
    print_shares(trial->report, /*is_verbose=*/true);
    for (const std::string& note : trial->report.notes) print_error("reef: note: {}\n", note);
  }
  report::Summary summary;
  summary.add("throughput",
              fmt::format("{:.0f} a second with {} devices, {:.2f} times that of one (simulated)",
                          chosen.best.per_second, devices, chosen.best.per_second / rows.front().best.per_second));
  summary.add("latency", fmt::format("{:.2f} ms in the middle, {:.2f} ms at 99 % (simulated)", chosen.best.p50_ms,
                                     chosen.best.p99_ms));
  summary.add("limit", limit_of(rows, host));
  summary.add("host", fmt::format("{}, {} cores{} (assumed)", link->meaning, host.cores,
                                  host.controller_in > 0
                                      ? fmt::format(", one USB controller of {:.0f} MB/s", host.controller_in / 1e6)
                                      : ", lanes of its own for each card"));
  if (chosen.best.segments > 1) {
    summary.add("next",
                fmt::format("reef compile {} --num_segments {}", shell_word(options.model), chosen.best.segments));
  }
  print_exact("{}", report::closing_lines(summary, has_colour()));
  return ok_status();
}

}  // namespace reef::app
