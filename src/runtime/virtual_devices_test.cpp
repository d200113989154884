// SPDX-License-Identifier: Apache-2.0
#include "runtime/virtual_devices.h"

#include <atomic>
#include <future>

#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "formats/darwinn/reader.h"
#include "formats/darwinn/without_code.h"
#include "formats/darwinn/writer.h"
#include "runtime/devices.h"
#include "runtime/edge_tpu_op.h"
#include "runtime/sample_runnable.h"

namespace reef::runtime {
namespace {

std::string found(const DeviceList& devices, std::string_view selector) {
  const auto device = find_device(devices, selector);
  return device.ok() ? (*device)->selector() : device.status().message();
}

TEST(VirtualDevices, SelectorsAreThoseOfCoral) {
  const DeviceList devices = make_devices("usb, pci,usb").value();
  ASSERT_EQ(devices.size(), 3u);
  EXPECT_EQ(found(devices, ""), "usb:0");
  EXPECT_EQ(found(devices, ":0"), "usb:0");
  EXPECT_EQ(found(devices, ":1"), "pci:0");
  EXPECT_EQ(found(devices, ":2"), "usb:1");
  EXPECT_EQ(found(devices, "usb"), "usb:0");
  EXPECT_EQ(found(devices, "usb:1"), "usb:1");
  EXPECT_EQ(found(devices, "pci"), "pci:0");
  EXPECT_EQ(found(devices, devices[2]->path()), "usb:1");
}

TEST(VirtualDevices, WhatIsNotThereIsRefused) {
  const DeviceList devices = make_devices("usb,pci").value();
  for (const char* selector : {":2", "usb:1", "pci:1", ":1000", "usb:99999", ":123456789012345678901234567890"}) {
    EXPECT_NE(found(devices, selector).find("there are usb:0, pci:0"), std::string::npos) << selector;
  }
  for (const char* selector : {"x", "usb:", "usb:a", ":-1", "usb:0:0", "tpu:0"}) {
    EXPECT_NE(found(devices, selector).find("is no device"), std::string::npos) << selector;
  }
  EXPECT_NE(found({}, "").find("there is no Edge TPU"), std::string::npos);
  EXPECT_TRUE(make_devices("none").value().empty());
  EXPECT_FALSE(make_devices("usb,,pci").ok());
  EXPECT_FALSE(make_devices("gpu").ok());
}

ir::Model sample() { return testing::compiled_from(testing::sample_weights()); }

Result<std::unique_ptr<cpu::Interpreter>> interpreter_on(const std::shared_ptr<EdgeTpu>& device, ir::Model model) {
  cpu::InterpreterOptions options;
  options.foreign_ops.push_back(edge_tpu_op(device));
  auto created = cpu::Interpreter::create(std::make_shared<const ir::Model>(std::move(model)), options);
  if (!created.ok()) return created.status();
  const Status status = (*created)->prepare();
  if (!status.ok()) return status;
  return created;
}

// As in libedgetpu: a second interpreter of the same model brings its parameters once, then both stay.
TEST(VirtualDevices, InterpretersOfOneTokenShareADevice) {
  const auto device = make_devices("usb").value()[0];
  auto first = interpreter_on(device, sample()), second = interpreter_on(device, sample());
  ASSERT_TRUE(first.ok()) << first.status().message();
  ASSERT_TRUE(second.ok());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE((*first)->invoke().ok());
    ASSERT_TRUE((*second)->invoke().ok());
  }
  EXPECT_EQ(device->use().runs, 6);
  EXPECT_EQ(device->use().parameter_loads, 2);
}

TEST(VirtualDevices, EightThreadsOnOneDevice) {
  const auto device = make_devices("usb").value()[0];
  std::vector<std::future<bool>> threads;
  for (int t = 0; t < 8; ++t) {
    threads.push_back(std::async(std::launch::async, [&] {
      auto interpreter = interpreter_on(device, sample());
      for (int i = 0; interpreter.ok() && i < 20; ++i) {
        if (!(*interpreter)->invoke().ok()) return false;
      }
      return interpreter.ok();
    }));
  }
  for (auto& thread : threads) EXPECT_TRUE(thread.get());
  EXPECT_EQ(device->use().runs, 160);
}

// The parent's device is in the middle of a run nearly always; the child's is a device of its own.
TEST(VirtualDevices, AChildOfForkRunsWhileTheParentsThreadsDo) {
  ASSERT_TRUE(set_devices("usb").ok());
  const auto device = devices().value()[0];
  std::atomic<bool> stops = false;
  const auto keep_running = [&] {
    auto interpreter = interpreter_on(device, sample());
    while (interpreter.ok() && !stops) {
      if (!(*interpreter)->invoke().ok()) return false;
    }
    return interpreter.ok();
  };
  auto one = std::async(std::launch::async, keep_running), two = std::async(std::launch::async, keep_running);
  for (int i = 0; i < 20; ++i) {
    ::usleep(1000);
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);  // seconds; a child that hangs is ended
      auto interpreter = interpreter_on(devices().value()[0], sample());
      const bool runs = interpreter.ok() && (*interpreter)->invoke().ok() && (*interpreter)->invoke().ok();
      ::_exit(runs && device->use().runs == 2 && device->use().parameter_loads == 1 ? 0 : 1);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  stops = true;
  EXPECT_TRUE(one.get());
  EXPECT_TRUE(two.get());
}

TEST(VirtualDevices, APackageWithoutCodeIsRefusedByNameAndReason) {
  ir::Model model = sample();
  ir::Operator& op = model.subgraphs[0].operators[0];
  darwinn::CustomOptions options = darwinn::read_custom_options(op.custom_options).value();
  options.package = darwinn::package_without_code(14, "reef test", "no code for TRANSPOSE_CONV");
  op.custom_options = Bytes(darwinn::write_custom_options(options).value());
  const auto interpreter = interpreter_on(make_devices("usb").value()[0], std::move(model));
  ASSERT_FALSE(interpreter.ok());
  EXPECT_EQ(interpreter.status().code(), StatusCode::kUnsupported);
  EXPECT_NE(interpreter.status().message().find("edgetpu-custom-op"), std::string::npos);
  EXPECT_NE(interpreter.status().message().find("no code for TRANSPOSE_CONV"), std::string::npos)
      << interpreter.status().message();
}

}  // namespace
}  // namespace reef::runtime
