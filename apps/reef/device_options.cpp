// SPDX-License-Identifier: Apache-2.0
#include "device_options.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "command_help.h"
#include "console.h"
#include "formats/darwinn/reader.h"
#include "usage.h"

namespace reef::app {

void add_device_options(Command& command, DeviceArguments& arguments, bool has_clock) {
  const OptionGroup group(command, "Device");
  const Validator is_device = {[](std::string& text) {
                                 for (char& c : text) {
                                   if (text.find('/') == std::string::npos && c >= 'A' && c <= 'Z')
                                     c = static_cast<char>(c - 'A' + 'a');
                                 }
                                 const Status status = runtime::check_placement(text);
                                 return status.ok() ? std::string() : status.message();
                               },
                               ""};
  command
      .add_option(
          "--device", arguments.device,
          "Where the compiled part of an _edgetpu.tflite runs: cpu (nowhere), virtual (a virtual Edge TPU), usb, "
          "usb:1, pci:0 or a path of 'reef devices' (a real one), auto (a real one if there is one, else virtual; the "
          "default). Reef's driver is tested against the traffic of Google's runtime and logs of real sticks, not yet "
          "on a stick")
      .transform(is_device);
  if (has_clock) {
    command
        .add_option("--clock", arguments.clock, "Clock of a real Edge TPU: max (500 MHz, default), high, medium, low")
        .transform(one_of({"max", "high", "medium", "low"}));
  }
  command
      .add_option("--firmware", arguments.firmware,
                  "Firmware for a stick that waits for it: the image, or a libedgetpu.so.1 that holds it. Default: "
                  "REEF_FIRMWARE, or the library that is installed")
      .option_text("FILE");
}

void add_devices_option(Command& command, DeviceArguments& arguments) {
  const OptionGroup group(command, "Device");
  command
      .add_option("--devices", arguments.devices,
                  "How many Edge TPUs work on the samples together; results do not depend on it. One that fails is "
                  "left out, and its samples go to the others")
      .check(between(1, 64))
      .capture_default_str();
}

namespace {

struct Latencies {
  double p50 = 0, p90 = 0, p99 = 0;  // ms
};
Latencies latencies_of(const runtime::DealerReport& report) {
  std::vector<double> sorted = report.latencies;
  if (sorted.empty()) return {};
  std::sort(sorted.begin(), sorted.end());
  return {1e3 * runtime::percentile(sorted, 0.5), 1e3 * runtime::percentile(sorted, 0.9),
          1e3 * runtime::percentile(sorted, 0.99)};
}

}  // namespace

void print_shares(const runtime::DealerReport& report, bool is_verbose) {
  if (report.devices.size() < 2 && !is_verbose) return;
  const Latencies ms = latencies_of(report);
  print_text("latency of a sample: {:.2f} ms in the middle, {:.2f} at 90 %, {:.2f} at 99 % (measured on this host)\n",
             ms.p50, ms.p90, ms.p99);
  for (const runtime::DeviceShare& device : report.devices) {
    print_text("  {:<10} {:>7} samples{}{}{}\n", device.name, device.samples,
               device.failures > 0 ? fmt::format(", {} failures", device.failures) : "",
               device.repeated > 0 ? fmt::format(", {} came too late", device.repeated) : "",
               device.is_lost ? ", lost" : "");
    if (is_verbose) {
      print_text("  {:<10} busy {:.2f} s, waited {:.2f} s for samples and {:.2f} s for room (measured)\n", "",
                 device.busy, device.waited_for_samples, device.waited_for_room);
    }
  }
}

nlohmann::ordered_json shares_json(const runtime::DealerReport& report) {
  const Latencies ms = latencies_of(report);
  nlohmann::ordered_json devices = nlohmann::ordered_json::array();
  for (const runtime::DeviceShare& device : report.devices) {
    devices.push_back({{"name", device.name},
                       {"samples", device.samples},
                       {"failures", device.failures},
                       {"repeated", device.repeated},
                       {"is_lost", device.is_lost},
                       {"busy_s", device.busy},
                       {"waited_for_samples_s", device.waited_for_samples},
                       {"waited_for_room_s", device.waited_for_room}});
  }
  return {{"devices", std::move(devices)},
          {"latency_ms", {{"kind", "measured"}, {"p50", ms.p50}, {"p90", ms.p90}, {"p99", ms.p99}}}};
}

bool is_compiled(const ir::Model& model) {
  for (const ir::Subgraph& graph : model.subgraphs) {
    if (std::any_of(graph.operators.begin(), graph.operators.end(), darwinn::is_edge_tpu_op)) return true;
  }
  return false;
}

DeviceArguments settled_for(const ir::Model& model, DeviceArguments arguments) {
  if (arguments.device.empty()) arguments.device = is_compiled(model) || arguments.devices > 1 ? "auto" : "cpu";
  return arguments;
}

Result<ChosenDevice> ChosenDevice::choose(const DeviceArguments& arguments) {
  driver::SessionSettings settings;
  if (!arguments.clock.empty()) {
    REEF_ASSIGN_OR_RETURN(settings.clock, driver::parse_clock(arguments.clock));
  }
  settings.firmware_file = arguments.firmware;
  REEF_ASSIGN_OR_RETURN(runtime::Placement place,
                        runtime::find_placements(arguments.device, arguments.devices, settings));
  if (place.device != nullptr) print_error("reef: {}\n", place.description());
  for (const std::string& note : place.notes) print_error("reef: note: {}\n", note);
  return ChosenDevice(std::move(place));
}

ChosenDevice::~ChosenDevice() {
  const auto tell = [](runtime::EdgeTpu& device) {
    for (const std::string& note : device.take_notes()) print_error("reef: note: {}: {}\n", device.selector(), note);
  };
  for (const auto& device : place_.replicas) tell(*device);
  if (place_.replicas.empty() && place_.device != nullptr) tell(*place_.device);
}

}  // namespace reef::app
