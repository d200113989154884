// SPDX-License-Identifier: Apache-2.0
// What `reef run` says about a run, for people and as JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "device_options.h"
#include "execute/cpu/interpreter.h"
#include "findings_report.h"
#include "front_end_flags.h"
#include "layer_report.h"
#include "limit_flags.h"
#include "time_report.h"

namespace reef::app {

// The first words of an input's source if nobody gave the input.
inline constexpr std::string_view kMadeUp = "pseudo-random";

struct RunOptions {
  std::string model;
  std::vector<std::string> inputs;
  std::string image;
  std::string text, vocabulary;
  std::vector<double> mean_std;
  std::string preprocess;
  std::uint32_t seed = 12345;
  FrontEndFlags front_end;
  std::string out;
  std::string labels;
  FindingFlags findings;
  int top = 5;
  DeviceArguments device;
  bool throughput = false;  // of several devices, instead of one run
  std::int64_t max_cycles = 0;
  TimeOptions time;
  std::string stop_at, dump_tile;
  LayerOptions layers;
  int threads = 1;
  int bench = 0;
  bool profile = false;
  LimitFlags limits;
  std::string tflite_release = "current";
  bool fused_floats = false;
  bool json = false;
};

struct BenchResult {
  int runs = 0;
  double median_ms = 0, min_ms = 0, max_ms = 0;
};

// What a run gave, as far as the report needs it. Everything must outlive the report.
struct RunOutcome {
  const runtime::Placement& place;
  const cpu::Interpreter& interpreter;
  const std::vector<std::string>& sources;  // of the inputs
  const BenchResult& bench;
  const data::FoundNames& labels;
  const std::optional<FindingsReport>& findings;
  double edge_tpu_ms = 0;  // simulated; 0: nothing was
};

nlohmann::ordered_json report_json(const RunOptions& options, const RunOutcome& outcome);
void print_report(const RunOptions& options, const RunOutcome& outcome);
// The aligned lines at the end.
void print_run_summary(const RunOptions& options, const RunOutcome& outcome);

}  // namespace reef::app
