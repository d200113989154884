// SPDX-License-Identifier: Apache-2.0
#include "execute/device/chrome_trace.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "execute/device/program.h"

namespace reef::device {
namespace {

// Process numbers: tiles from 1 on, so that they are sorted behind the link and the scalar core.
constexpr int kLinkProcess = 0, kCoreProcess = 1, kFirstTileProcess = 2;

int process_of(int agent) {
  return agent >= kFirstHostAgent ? kCoreProcess : kFirstTileProcess + agent / kAgentsPerTile;
}
int thread_of(int agent) { return agent >= kFirstHostAgent ? agent - kFirstHostAgent : agent % kAgentsPerTile; }

class Writer {
 public:
  void name_process(int process, std::string_view name) {
    event(R"({{"ph":"M","name":"process_name","pid":{},"args":{{"name":"{}"}}}})", process, name);
    event(R"({{"ph":"M","name":"process_sort_index","pid":{},"args":{{"sort_index":{}}}}})", process, process);
  }
  void name_thread(int process, int thread, std::string_view name) {
    event(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":"{}"}}}})", process, thread, name);
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
  double start = 0;  // microseconds
  for (const ProgramRecord& record : records) {
    const double us = 1e6 / record.time.clock_hz;
    for (const LinkSlice& slice : record.link_slices) {
      writer.event(
          R"({{"ph":"X","name":"{}","cat":"link","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{{"bytes":{}}}}})",
          kSpentNames[static_cast<std::size_t>(slice.kind)], kLinkProcess, slice.kind == Spent::kOutput ? 1 : 0,
          start + slice.begin * us, (slice.end - slice.begin) * us, slice.bytes);
    }
    for (const Slice& slice : record.slices) {
      const double wall = slice.end - slice.begin;
      writer.event(
          R"({{"ph":"X","name":"{}","cat":"{}","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{{"program":"{}","busy_cycles":{:.0f},"waiting_cycles":{:.0f}}}}})",
          record.program->describe(slice.index), agent_name(slice.agent), process_of(slice.agent),
          thread_of(slice.agent), start + slice.begin * us, wall * us, darwinn::name_of(record.program->type),
          slice.busy, std::max(0.0, wall - slice.busy));
    }
    start += record.time.ms() * 1e3;
  }
  return std::move(writer).finish();
}

}  // namespace reef::device
