// SPDX-License-Identifier: Apache-2.0
// What the virtual device's timeline found, for people and as JSON.
#pragma once

#include <span>
#include <string>

#include <nlohmann/json.hpp>

#include "base/status.h"
#include "execute/device/timeline.h"

namespace reef::app {

struct TimeOptions {
  std::string link;     // name of a profile; empty: the first
  std::string clock;    // megahertz, or the word for a real device's clock; empty: full speed
  std::string reading;  // name of a TimingReading; empty: the usual one
  std::string trace;    // file; empty: none
  bool races = false;
};

Result<device::TimelineOptions> timeline_options(const TimeOptions& options);
// "usb3, usb2, ..." with their meanings, one a line.
std::string describe_links();
// The same for readings of what is known about time on the chip.
std::string describe_readings();

void print_times(std::span<const device::ProgramRecord> records, const device::TimingOptions& timing);
nlohmann::ordered_json times_json(std::span<const device::ProgramRecord> records, const device::TimingOptions& timing);

// Says on standard error what is not ordered, and fails if simulated time contradicts the order that was executed.
Status judge_races(std::span<const device::ProgramRecord> records);

}  // namespace reef::app
