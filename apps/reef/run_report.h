// SPDX-License-Identifier: Apache-2.0
// What `reef run` says about a run, for people and as JSON.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "device_options.h"
#include "execute/cpu/interpreter.h"
#include "front_end_flags.h"
#include "layer_report.h"
#include "limit_flags.h"
#include "time_report.h"

namespace reef::app {

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
  int top = 5;
  DeviceArguments device;
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

nlohmann::ordered_json report_json(const RunOptions& options, const runtime::Placement& place,
                                   const cpu::Interpreter& interpreter, const std::vector<std::string>& sources,
                                   const BenchResult& bench, const std::vector<std::string>& labels);
void print_report(const RunOptions& options, const runtime::Placement& place, const cpu::Interpreter& interpreter,
                  const std::vector<std::string>& sources, const BenchResult& bench,
                  const std::vector<std::string>& labels);

}  // namespace reef::app
