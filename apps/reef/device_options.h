// SPDX-License-Identifier: Apache-2.0
// --device, --clock and --firmware: where the Edge TPU ops of a model run. One set of options for all commands.
#pragma once

#include <string>

#include "command.h"

#include <nlohmann/json_fwd.hpp>

#include "base/status.h"
#include "ir/model.h"
#include "runtime/dealer.h"
#include "runtime/placement.h"

namespace reef::app {

struct DeviceArguments {
  std::string device;    // empty: not said
  std::string clock;     // max, high, medium, low; empty: not said
  std::string firmware;  // file; empty: not said
  int devices = 1;       // at work on the same model
};

// --devices, for commands that run many samples.
void add_devices_option(Command& command, DeviceArguments& arguments);
// `has_clock`: also --clock, for commands that have none of their own.
void add_device_options(Command& command, DeviceArguments& arguments, bool has_clock = true);

// Prints how many samples each of several devices did, and with `is_verbose` how long it waited. Prints nothing for one
// device.
void print_shares(const runtime::DealerReport& report, bool is_verbose);
nlohmann::ordered_json shares_json(const runtime::DealerReport& report);

bool is_compiled(const ir::Model& model);  // has operators for an Edge TPU
// With a device: the one that was asked for; else "auto" for a compiled model and "cpu" for others.
DeviceArguments settled_for(const ir::Model& model, DeviceArguments arguments);

// The place that was chosen. Says on standard error which device it is, and with its end what happened to it.
class ChosenDevice {
 public:
  static Result<ChosenDevice> choose(const DeviceArguments& arguments);
  ~ChosenDevice();
  ChosenDevice(ChosenDevice&&) = default;
  ChosenDevice& operator=(ChosenDevice&&) = delete;

  const runtime::Placement& place() const { return place_; }
  bool is_emulated() const { return place_.is_emulated; }

 private:
  explicit ChosenDevice(runtime::Placement place) : place_(std::move(place)) {}
  runtime::Placement place_;
};

}  // namespace reef::app
