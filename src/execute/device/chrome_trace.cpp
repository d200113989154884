// SPDX-License-Identifier: Apache-2.0
#include "execute/device/chrome_trace.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "execute/device/program.h"

namespace reef::device {
namespace {

// Process numbers: tiles from 1 on, so that they are sorted behind the link and the scalar core.
constexpr int kLinkProcess = 0, kCoreProcess = 1, kFirstTileProcess = 2;

int process_of(int agent) {
  return agent >= kFirstHostAgent ? kCoreProcess : kFirstTileProcess + agent / kAgentsPerTile;
}
int thread_of(int agent) { return agent >= kFirstHostAgent ? agent - kFirstHostAgent : agent % kAgentsPerTile; }

// With quotation marks around it.
std::string json_text(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Microseconds as the format wants them, from whole nanoseconds.
std::string microseconds(std::int64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }

class Writer {
 public:
  void name_process(int process, std::string_view name) {
    event(R"({{"ph":"M","name":"process_name","pid":{},"args":{{"name":{}}}}})", process, json_text(name));
    event(R"({{"ph":"M","name":"process_sort_index","pid":{},"args":{{"sort_index":{}}}}})", process, process);
  }
  void name_thread(int process, int thread, std::string_view name) {
    event(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":{}}}}})", process, thread,
          json_text(name));
  }
  // From `begin` to `end`, in nanoseconds. Both ends are rounded, and the duration is what lies between them: durations
  // that are rounded by themselves make slices overlap by a nanosecond, and Perfetto drops those. `arguments` is JSON.
  void slice(int process, int thread, std::string_view name, std::string_view category, double begin, double end,
             std::string_view arguments) {
    const std::int64_t from = std::llround(std::max(begin, 0.0)), to = std::max<std::int64_t>(from, std::llround(end));
    event(R"({{"ph":"X","name":{},"cat":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}}}})", json_text(name),
          json_text(category), process, thread, microseconds(from), microseconds(to - from), arguments);
  }
  template <typename... Args>
  void event(fmt::format_string<Args...> format, Args&&... args) {
    text_ += is_first_ ? "\n" : ",\n";
    is_first_ = false;
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
  }
  std::string finish() && { return std::move(text_) + "\n]}\n"; }

 private:
  std::string text_ = R"({"displayTimeUnit":"ns","otherData":{"times":"simulated"},"traceEvents":[)";
  bool is_first_ = true;
};

void name_tracks(Writer& writer) {
  writer.name_process(kLinkProcess, "link to the host");
  writer.name_thread(kLinkProcess, 0, "to the chip");
  writer.name_thread(kLinkProcess, 1, "to the host");
  writer.name_process(kCoreProcess, "scalar core");
  for (int agent = kFirstHostAgent; agent < kCoreAgent; ++agent) {
    writer.name_thread(kCoreProcess, thread_of(agent), agent_name(agent));
  }
  for (int tile = 0; tile < chip::kTiles; ++tile) {
    writer.name_process(kFirstTileProcess + tile, fmt::format("tile {}", tile));
    for (int unit = 0; unit < chip::kTileUnits; ++unit) {
      writer.name_thread(kFirstTileProcess + tile, unit, agent_name(unit));
    }
  }
}

}  // namespace

std::string chrome_trace(std::span<const ProgramRecord> records) {
  Writer writer;
  name_tracks(writer);
  double start = 0;  // nanoseconds
  for (const ProgramRecord& record : records) {
    const double ns = 1e9 / record.time.clock_hz;
    for (const LinkSlice& slice : record.link_slices) {
      writer.slice(kLinkProcess, slice.kind == Spent::kOutput ? 1 : 0, kSpentNames[at(slice.kind)], "link",
                   start + slice.begin * ns, start + slice.end * ns, fmt::format(R"("bytes":{})", slice.bytes));
    }
    const std::string program = json_text(darwinn::name_of(record.program->type));
    for (const Slice& slice : record.slices) {
      writer.slice(process_of(slice.agent), thread_of(slice.agent), record.program->describe(slice.index),
                   agent_name(slice.agent), start + slice.begin * ns, start + slice.end * ns,
                   fmt::format(R"("program":{},"busy_cycles":{:.0f},"waiting_cycles":{:.0f})", program, slice.busy,
                               std::max(0.0, slice.end - slice.begin - slice.busy)));
    }
    start += record.time.ms() * 1e6;
  }
  return std::move(writer).finish();
}

}  // namespace reef::device
