// SPDX-License-Identifier: Apache-2.0
#include "time_report.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "console.h"
#include "driver/attachment.h"
#include "execute/device/program.h"
#include "ir/describe.h"

namespace reef::app {
namespace {

using Json = nlohmann::ordered_json;

bool is_caching(const device::ProgramRecord& record) {
  return record.program->type == darwinn::ExecutableType::kParameterCaching;
}

double ms_of(double cycles, const device::TimeReport& time) { return cycles / time.clock_hz * 1e3; }

void print_critical_path(const device::TimeReport& time) {
  print_text("  where the time goes (critical path):\n");
  std::vector<std::size_t> kinds;
  for (std::size_t k = 0; k < device::kSpentKinds; ++k) {
    if (time.critical_path[k] > 0) kinds.push_back(k);
  }
  std::stable_sort(kinds.begin(), kinds.end(),
                   [&](std::size_t a, std::size_t b) { return time.critical_path[a] > time.critical_path[b]; });
  for (const std::size_t k : kinds) {
    const double share = time.critical_path[k] / time.cycles;
    if (share < 0.001) continue;
    print_text("    {:<26} {:>8.3f} ms {:>5.1f}% {}\n", device::kSpentNames[k], ms_of(time.critical_path[k], time),
               100 * share, std::string(static_cast<std::size_t>(share * 40 + 0.5), '#'));
  }
}

void print_units(const device::TimeReport& time) {
  print_text("  units at work:");
  for (const device::UnitTime& unit : time.units) {
    const double share = unit.busy / unit.instances / time.cycles;
    if (share >= 0.001) print_text(" {} {:.1f}%", unit.name, 100 * share);
  }
  print_text("\n");
}

}  // namespace

std::string describe_links() {
  std::vector<std::string> lines;
  for (const chip::LinkProfile& link : chip::link_profiles()) {
    lines.push_back(fmt::format("{} ({})", link.name, link.meaning));
  }
  return fmt::format("{}", fmt::join(lines, ", "));
}

std::string describe_readings() {
  std::vector<std::string> lines;
  for (const device::TimingReading& reading : device::timing_readings()) {
    lines.push_back(fmt::format("{} ({})", reading.name, reading.meaning));
  }
  return fmt::format("{}", fmt::join(lines, ", "));
}

Result<device::TimelineOptions> timeline_options(const TimeOptions& options) {
  device::TimelineOptions timeline;
  timeline.timing.link = chip::link_profiles().data();
  if (!options.link.empty()) timeline.timing.link = chip::find_link(options.link);
  REEF_REQUIRE(timeline.timing.link != nullptr, "--link {}: no such link; there are {}", options.link,
               describe_links());
  if (!options.clock.empty()) {
    const auto word = driver::parse_clock(options.clock);
    timeline.timing.clock_hz = (word.ok() ? driver::megahertz(*word) : std::stod(options.clock)) * 1e6;
  }
  if (!options.reading.empty()) {
    const device::TimingReading* reading = device::find_reading(options.reading);
    REEF_REQUIRE(reading != nullptr, "--timing {}: no such reading; there are {}", options.reading,
                 describe_readings());
    timeline.timing.reading = *reading;
  }
  timeline.keep_slices = !options.trace.empty();
  timeline.find_races = options.races;
  return timeline;
}

void print_times(std::span<const device::ProgramRecord> records, const device::TimingOptions& timing) {
  for (const device::ProgramRecord& record : records) {
    const device::TimeReport& time = record.time;
    if (is_caching(record)) {
      print_text("parameters loaded once in {:.3f} ms (simulated), {}\n", time.ms(),
                 ir::describe_bytes(static_cast<std::int64_t>(time.parameter_bytes)));
      continue;
    }
    const bool is_usual = timing.reading.name == device::timing_readings().front().name;
    print_text("Edge TPU {:.3f} ms (simulated, {:.0f} MHz, {}{})\n", time.ms(), time.clock_hz / 1e6,
               timing.link->meaning, is_usual ? "" : fmt::format("; if {}", timing.reading.meaning));
    print_critical_path(time);
    print_units(time);
    print_text("  over the link: instructions {}, input {}, parameters {}, output {}\n",
               ir::describe_bytes(static_cast<std::int64_t>(time.instruction_bytes)),
               ir::describe_bytes(static_cast<std::int64_t>(time.input_bytes)),
               ir::describe_bytes(static_cast<std::int64_t>(time.parameter_bytes)),
               ir::describe_bytes(static_cast<std::int64_t>(time.output_bytes)));
  }
}

Json times_json(std::span<const device::ProgramRecord> records, const device::TimingOptions& timing) {
  Json programs = Json::array();
  for (const device::ProgramRecord& record : records) {
    const device::TimeReport& time = record.time;
    Json json = {{"program", std::string(darwinn::name_of(record.program->type))},
                 {"kind", "simulated"},
                 {"ms", time.ms()},
                 {"cycles", time.cycles},
                 {"clock_hz", time.clock_hz},
                 {"link", std::string(timing.link->name)},
                 {"timing", std::string(timing.reading.name)},
                 {"instruction_bytes", time.instruction_bytes},
                 {"input_bytes", time.input_bytes},
                 {"parameter_bytes", time.parameter_bytes},
                 {"output_bytes", time.output_bytes}};
    for (std::size_t k = 0; k < device::kSpentKinds; ++k) {
      json["critical_path_ms"][std::string(device::kSpentNames[k])] = ms_of(time.critical_path[k], time);
    }
    for (const device::UnitTime& unit : time.units) {
      json["utilisation"][unit.name] = unit.busy / unit.instances / time.cycles;
    }
    for (const device::Race& race : record.races) {
      json["races"].push_back({{"what", record.describe(race)},
                               {"slack_cycles", race.slack},
                               {"times", race.times},
                               {"tiles", race.tiles},
                               {"breaks_the_order", race.breaks_the_order()}});
    }
    programs.push_back(std::move(json));
  }
  return programs;
}

Status judge_races(std::span<const device::ProgramRecord> records) {
  constexpr int kShown = 8;
  std::string worst;
  for (const device::ProgramRecord& record : records) {
    int shown = 0;
    for (const device::Race& race : record.races) {
      if (race.breaks_the_order() && worst.empty()) worst = record.describe(race);
      if (shown++ < kShown) {
        print_error("reef: {}: {}: {}\n", race.breaks_the_order() ? "race" : "note",
                    darwinn::name_of(record.program->type), record.describe(race));
      }
    }
    if (shown > kShown) print_error("reef: note: and {} more (all are in --json)\n", shown - kShown);
  }
  REEF_REQUIRE(worst.empty(), "{}", worst);
  return ok_status();
}

}  // namespace reef::app
