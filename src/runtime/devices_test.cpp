// SPDX-License-Identifier: Apache-2.0
// Real devices as programs find them, with virtual sticks on a bus in the place of the machine's.
#include "runtime/devices.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include <gtest/gtest.h>

#include "driver/virtual_stick.h"
#include "driver_packages.h"
#include "runtime/placement.h"
#include "runtime/virtual_devices.h"

namespace reef::runtime {
namespace {

using driver::StickOptions;
using driver::VirtualBus;

std::shared_ptr<VirtualBus> plugged_in;  // what the finder shows

driver::FoundDevices find_plugged_in() {
  driver::FoundDevices found;
  const auto devices = plugged_in->list();
  for (const driver::UsbDeviceInfo& device : *devices) {
    found.devices.push_back(driver::attach_usb(plugged_in, device.path));
  }
  return found;
}

class RealDevicesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    plug_in(2);
    set_finder(find_plugged_in);
    ASSERT_TRUE(set_devices("auto").ok());
    ::unsetenv("REEF_DEVICES");
  }
  void TearDown() override {
    set_finder(nullptr);
    plugged_in.reset();
    ASSERT_TRUE(set_devices("usb,usb,pci,pci").ok());
  }
  static void plug_in(std::size_t count, driver::UsbSpeed speed = driver::UsbSpeed::kSuper) {
    StickOptions stick;
    stick.has_firmware = true;
    stick.speed = speed;
    const std::vector<StickOptions> sticks(count, stick);
    plugged_in = std::make_shared<VirtualBus>(sticks);
  }
  static void expect_echo(EdgeTpu& device, unsigned seed) {
    const auto loaded = device.load(testing::echo_package());
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    const std::vector<std::uint8_t> input = testing::echo_input(seed);
    const auto outputs = device.run(*loaded, {input});
    ASSERT_TRUE(outputs.ok()) << outputs.status().message();
    EXPECT_EQ((*outputs)[0], testing::echo_output(input, 1));
  }
};

TEST_F(RealDevicesTest, AreWhatProgramsFindIfThereAreAny) {
  const DeviceList list = devices().value();
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[1]->selector(), "usb:1");
  EXPECT_EQ(list[1]->path(), "/sys/bus/usb/devices/1-2");
  EXPECT_FALSE(list[0]->is_virtual());
  for (const char* selector : {"", "auto", "usb", "usb:0", ":0", "/sys/bus/usb/devices/1-1"}) {
    const auto device = open_device(selector);
    ASSERT_TRUE(device.ok()) << device.status().message();
    EXPECT_EQ((*device)->selector(), "usb:0") << selector;
  }
  EXPECT_TRUE(open_device("virtual").value()->is_virtual());
  EXPECT_EQ(open_device("virtual:1").value()->selector(), "usb:1");
  EXPECT_EQ(open_device("virtual/pci/0").value()->path(), "virtual/pci/0");
  EXPECT_FALSE(open_device("pci").ok());
}

TEST_F(RealDevicesTest, VirtualOnesStandInWhereThereIsNone) {
  plug_in(0);
  EXPECT_EQ(devices().value().size(), 4u);
  EXPECT_TRUE(open_device("usb:1").value()->is_virtual());
  ASSERT_TRUE(set_devices("real").ok());
  EXPECT_TRUE(devices().value().empty());
  plug_in(1);
  EXPECT_EQ(devices().value().size(), 1u) << "a stick that is plugged in later is found";
}

TEST_F(RealDevicesTest, KeepTheirNumberWhenAnotherIsUnplugged) {
  ASSERT_EQ(devices().value().size(), 2u);
  plugged_in->stick(0).unplug();
  const DeviceList list = devices().value();
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[1]->path(), "/sys/bus/usb/devices/1-2");
  const auto* const gone = dynamic_cast<RealDevice*>(list[0].get());
  EXPECT_EQ(gone->condition().state, driver::DeviceState::kUnusable);
  expect_echo(*open_device("usb:1").value(), 1);
}

TEST_F(RealDevicesTest, RunAndAreClosedAfterTheLastUser) {
  {
    const auto first = open_device("usb:0").value();
    const auto second = open_device("usb:0").value();
    EXPECT_EQ(first, second);
    expect_echo(*first, 1);
    expect_echo(*second, 2);
    EXPECT_EQ(first->use().runs, 2);
    EXPECT_FALSE(plugged_in->open("1-1").ok()) << "nobody else can have it meanwhile";
  }
  EXPECT_TRUE(plugged_in->open("1-1").ok()) << "it was given back";
  const auto again = open_device("usb:0").value();
  expect_echo(*again, 3);
  EXPECT_EQ(again->use().runs, 3);
  EXPECT_EQ(again->use().parameter_loads, 3) << "each echo is a package of its own";
}

TEST_F(RealDevicesTest, WhatAnotherProgramHoldsIsNamedAsSuch) {
  auto other = plugged_in->open("1-1");
  ASSERT_TRUE((*other)->claim(0).ok());
  const auto device = open_device("usb:0");
  ASSERT_FALSE(device.ok());
  EXPECT_NE(device.status().message().find("in use by another program"), std::string::npos)
      << device.status().message();
  const DeviceList list = devices().value();
  EXPECT_EQ(dynamic_cast<RealDevice*>(list[0].get())->condition().state, driver::DeviceState::kInUse);
  EXPECT_EQ(dynamic_cast<RealDevice*>(list[1].get())->condition().state, driver::DeviceState::kRunning);
  expect_echo(*open_device("usb:1").value(), 1);
}

TEST_F(RealDevicesTest, OneClockAtATime) {
  driver::SessionSettings low;
  low.clock = driver::Clock::kLow;
  {
    const auto first = open_device("usb:0", low);
    ASSERT_TRUE(first.ok());
    EXPECT_TRUE(open_device("usb:0").ok()) << "who does not ask for a clock takes what there is";
    driver::SessionSettings high;
    high.clock = driver::Clock::kHigh;
    const auto second = open_device("usb:0", high);
    ASSERT_FALSE(second.ok());
    EXPECT_NE(second.status().message().find("in use at clock 'low'"), std::string::npos);
  }
  EXPECT_TRUE(open_device("usb:0").ok());
}

TEST_F(RealDevicesTest, AMendedFailureIsNotedAndTheDeviceIsNamedInOthers) {
  const auto device = open_device("usb:0").value();
  plugged_in->stick(0).inject(driver::StickFault::kTimeout, plugged_in->stick(0).operations() + 3);
  expect_echo(*device, 1);
  EXPECT_FALSE(device->take_notes().empty());
  EXPECT_TRUE(device->take_notes().empty()) << "they are told once";
  plugged_in->stick(0).unplug();
  const auto loaded = device->load(testing::echo_package());
  const std::vector<std::uint8_t> input = testing::echo_input(1);
  const auto outputs = device->run(*loaded, {input});
  ASSERT_FALSE(outputs.ok());
  EXPECT_NE(outputs.status().message().find("usb:0"), std::string::npos) << outputs.status().message();
}

TEST_F(RealDevicesTest, AChildOfForkDoesNotTouchTheParentsSession) {
  const auto device = open_device("usb:0").value();
  expect_echo(*device, 1);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto loaded = device->load(testing::echo_package());
    const std::vector<std::uint8_t> input = testing::echo_input(1);
    const auto outputs = device->run(*loaded, {input});
    ::_exit(outputs.ok() ? 1 : outputs.status().message().find("in use") == std::string::npos ? 2 : 0);
  }
  int ended = 0;
  ASSERT_EQ(::waitpid(child, &ended, 0), child);
  EXPECT_EQ(WEXITSTATUS(ended), 0) << "1: it ran, 2: another error than that the device is in use";
  expect_echo(*device, 2);
}

TEST_F(RealDevicesTest, WordsOfCommands) {
  EXPECT_FALSE(find_placement("cpu").value().has_edge_tpu());
  EXPECT_TRUE(find_placement("virtual").value().is_emulated);
  {
    const Placement place = find_placement("auto").value();
    EXPECT_EQ(place.name, "usb:0");
    EXPECT_EQ(place.description(), "Edge TPU usb:0 (/sys/bus/usb/devices/1-1)");
    EXPECT_TRUE(place.notes.empty());
  }
  EXPECT_EQ(find_placement("usb:1").value().name, "usb:1");
  const auto missing = find_placement("usb:2");
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.status().message().find("usb:0, usb:1"), std::string::npos) << missing.status().message();
  plug_in(0);
  set_finder(find_plugged_in);
  const Placement fallback = find_placement("auto").value();
  EXPECT_TRUE(fallback.is_emulated);
  EXPECT_EQ(fallback.notes.at(0), "there is no real Edge TPU: a virtual one is used");
  EXPECT_FALSE(find_placement("usb").ok()) << "a virtual device is not taken for a real one unasked";
  plug_in(1, driver::UsbSpeed::kHigh);
  const Placement slow = find_placement("auto").value();
  EXPECT_NE(slow.notes.at(0).find("USB 2"), std::string::npos);
  for (const char* word : {"usb:", "usb:x", "tpu", "usb:0:1", ""}) EXPECT_FALSE(check_placement(word).ok()) << word;
}

TEST(Clocks, HaveNames) {
  for (const char* word : {"max", "High", "MEDIUM", "low"}) EXPECT_TRUE(driver::parse_clock(word).ok()) << word;
  EXPECT_EQ(driver::parse_clock("High").value(), driver::Clock::kHigh);
  EXPECT_EQ(driver::megahertz(driver::Clock::kLow), 63);
  EXPECT_FALSE(driver::parse_clock("fast").ok());
}

}  // namespace
}  // namespace reef::runtime
