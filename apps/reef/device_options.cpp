// SPDX-License-Identifier: Apache-2.0
#include "device_options.h"

#include <algorithm>

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

bool is_compiled(const ir::Model& model) {
  for (const ir::Subgraph& graph : model.subgraphs) {
    if (std::any_of(graph.operators.begin(), graph.operators.end(), darwinn::is_edge_tpu_op)) return true;
  }
  return false;
}

DeviceArguments settled_for(const ir::Model& model, DeviceArguments arguments) {
  if (arguments.device.empty()) arguments.device = is_compiled(model) ? "auto" : "cpu";
  return arguments;
}

Result<ChosenDevice> ChosenDevice::choose(const DeviceArguments& arguments) {
  driver::SessionSettings settings;
  if (!arguments.clock.empty()) {
    REEF_ASSIGN_OR_RETURN(settings.clock, driver::parse_clock(arguments.clock));
  }
  settings.firmware_file = arguments.firmware;
  REEF_ASSIGN_OR_RETURN(runtime::Placement place, runtime::find_placement(arguments.device, settings));
  if (place.device != nullptr) print_error("reef: {}\n", place.description());
  for (const std::string& note : place.notes) print_error("reef: note: {}\n", note);
  return ChosenDevice(std::move(place));
}

ChosenDevice::~ChosenDevice() {
  if (place_.device == nullptr) return;
  for (const std::string& note : place_.device->take_notes()) print_error("reef: note: {}: {}\n", place_.name, note);
}

}  // namespace reef::app
