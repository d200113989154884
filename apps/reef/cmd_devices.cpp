// SPDX-License-Identifier: Apache-2.0
// reef devices: the virtual Edge TPUs that programs find.
#include <cstdio>
#include <memory>

#include <nlohmann/json.hpp>

#include "commands.h"
#include "console.h"
#include "runtime/virtual_devices.h"

namespace reef::app {
namespace {

using Json = nlohmann::ordered_json;

Status list_devices(bool json) {
  REEF_ASSIGN_OR_RETURN(const runtime::DeviceList devices, runtime::virtual_devices());
  if (json) {
    Json list = Json::array();
    for (const auto& device : devices) {
      list.push_back({{"number", device->index()},
                      {"selector", device->selector()},
                      {"type", runtime::connection_name(device->connection())},
                      {"path", device->path()},
                      {"kind", "virtual"}});
    }
    print_exact("{}\n", Json({{"devices", list}}).dump(2));
    return ok_status();
  }
  for (const auto& device : devices) {
    print_text(":{}  {}  {}\n", device->index(), device->selector(), device->path());
  }
  if (devices.empty()) print_text("no device (REEF_DEVICES=usb,pci makes two)\n");
  return ok_status();
}

}  // namespace

void add_devices(CLI::App& app, Action& action) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand(
      "devices", "List the virtual Edge TPUs that Reef's library and TFLite delegate offer to programs");
  command->add_flag("--json", *json, "Print one JSON object (documented in docs/json.md)");
  command->footer(
      "Number, selector and path of each; programs choose one by any of them. REEF_DEVICES says which there are, such\n"
      "as usb,usb,pci, or none.\n"
      "Example:\n  REEF_DEVICES=usb,pci reef devices");
  command->callback([json, &action] { action = [json] { return list_devices(*json); }; });
}

}  // namespace reef::app
