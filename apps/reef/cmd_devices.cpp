// SPDX-License-Identifier: Apache-2.0
// reef devices: the Edge TPUs that programs find, real and virtual.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "console.h"
#include "device_trial_report.h"
#include "json_output.h"
#include "runtime/devices.h"

namespace reef::app {
namespace {

using Json = nlohmann::ordered_json;

// A line for one device: what it is, where, and in which state.
struct Row {
  const runtime::EdgeTpu* device;
  std::string bus, state, detail;
};

Row row_of(const runtime::EdgeTpu& device) {
  const auto* const real = dynamic_cast<const runtime::RealDevice*>(&device);
  if (real == nullptr)
    return {&device, device.connection() == runtime::Connection::kUsb ? "USB" : "PCIe", "virtual", ""};
  const driver::DeviceCondition condition = real->condition();
  const bool is_usb = condition.speed != driver::UsbSpeed::kUnknown;
  return {&device, std::string(is_usb ? driver::name_of(condition.speed) : driver::name_of(real->attachment().kind())),
          std::string(driver::name_of(condition.state)), condition.detail};
}

Json row_json(const Row& row, std::size_t number, bool is_offered) {
  const runtime::EdgeTpu& device = *row.device;
  Json json = {{"number", is_offered ? Json(number) : Json()},
               {"selector", device.selector()},
               {"type", runtime::connection_name(device.connection())},
               {"path", device.path()},
               {"kind", device.is_virtual() ? "virtual" : "real"}};
  if (!device.is_virtual()) {
    json["bus"] = row.bus;
    json["state"] = row.state;
    json["detail"] = row.detail;
  }
  return json;
}

// Lists the devices that programs find, and the real ones that REEF_DEVICES hides from them.
Status list_devices(bool json) {
  REEF_ASSIGN_OR_RETURN(const runtime::DeviceList offered, runtime::devices());
  const runtime::RealDevices real = runtime::real_devices();
  const auto is_offered = [&](const auto& device) {
    return std::find(offered.begin(), offered.end(), device) != offered.end();
  };
  Json list = Json::array();
  std::vector<Row> rows;
  for (const auto& device : offered) rows.push_back(row_of(*device));
  for (const auto& device : real.devices) {
    if (!is_offered(device)) rows.push_back(row_of(*device));
  }
  if (json) {
    for (std::size_t i = 0; i < rows.size(); ++i) list.push_back(row_json(rows[i], i, i < offered.size()));
    print_json(Json({{"devices", list}, {"notes", real.notes}}));
    return ok_status();
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const runtime::EdgeTpu& device = *rows[i].device;
    print_text("{:<4} {:<7} {:<12} {:<21} {}\n", i < offered.size() ? fmt::format(":{}", i) : "-", device.selector(),
               rows[i].bus, rows[i].state, device.path());
    if (!rows[i].detail.empty()) print_text("             {}\n", rows[i].detail);
  }
  if (rows.empty()) print_text("no device (REEF_DEVICES=usb,pci makes two virtual ones)\n");
  if (real.devices.empty()) print_text("no real Edge TPU is attached: programs run on virtual ones\n");
  for (const std::string& note : real.notes) print_text("note: {}\n", note);
  return ok_status();
}

}  // namespace

void add_devices(Command& app, Action& action) {
  auto json = std::make_shared<bool>(false);
  auto test = std::make_shared<DeviceTestArguments>();
  Command command = app.add_subcommand(
      "devices", "List Edge TPUs: real ones with their state, and the virtual ones that programs find without them");
  command.add_flag("--json", *json, "Print one JSON object (documented in docs/json.md)");
  add_device_test_options(command, *test);
  command.footer(
      "Number, selector, bus, state and path of each; programs choose one by number, selector or path. REEF_DEVICES "
      "says\n"
      "which they find: auto (real ones if there are any, else virtual ones), real, none, or virtual ones such as "
      "usb,pci.\n"
      "Reef's driver has been tested against recordings of Google's runtime and published logs of real sticks, not "
      "yet\n"
      "on a stick itself (docs/driver.md).\n"
      "Examples:\n  REEF_DEVICES=usb,pci reef devices\n"
      "  reef devices --test --device usb:0 --report silicon.json\n"
      "  reef virtual-usb --ready -- reef devices --test");
  command.callback([json, test, &action] {
    action = [json, test]() -> Ending { return test->is_wanted ? test_devices(*test, *json) : list_devices(*json); };
  });
}

}  // namespace reef::app
