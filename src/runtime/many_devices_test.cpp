// SPDX-License-Identifier: Apache-2.0
// Several Edge TPUs at work on one set of samples, each behind Reef's driver and a virtual stick, with sticks that fail
// in the middle.
#include <map>
#include <mutex>
#include <thread>

#include <gtest/gtest.h>

#include "driver/virtual_stick.h"
#include "driver_packages.h"
#include "runtime/dealer.h"
#include "runtime/devices.h"
#include "runtime/placement.h"

namespace reef::runtime {
namespace {

using driver::VirtualBus;

std::shared_ptr<VirtualBus> plugged_in;  // what the finder shows

driver::FoundDevices find_plugged_in() {
  driver::FoundDevices found;
  const auto devices = plugged_in->list();
  for (const driver::UsbDeviceInfo& device : *devices)
    found.devices.push_back(driver::attach_usb(plugged_in, device.path));
  return found;
}

class ReplicasTest : public ::testing::Test {
 protected:
  static constexpr std::int64_t kSamples = 60;
  void SetUp() override { set_finder(find_plugged_in); }
  void TearDown() override {
    set_finder(nullptr);
    plugged_in.reset();
    ASSERT_TRUE(set_devices("usb,usb,pci,pci").ok());
  }

  using Outputs = std::map<std::int64_t, std::vector<std::uint8_t>>;
  // The outputs of all samples, which two threads for each device compute; `report` gets what the devices did.
  static Outputs outputs(const Placement& place, DealerReport& report) {
    DealerOptions options;
    options.samples = kSamples;
    for (const auto& device : place.replicas) {
      const int number = static_cast<int>(options.devices.size());
      options.devices.push_back(device->selector());
      options.device_of.insert(options.device_of.end(), {number, number});
    }
    Dealer dealer(options);
    Outputs results;
    std::mutex mutex;
    std::vector<std::thread> threads;
    for (int worker = 0; worker < 2 * static_cast<int>(options.devices.size()); ++worker) {
      threads.emplace_back([&, worker] {
        EdgeTpu& device = *place.replicas[at(worker / 2)];
        const auto loaded = device.load(testing::echo_package());
        ASSERT_TRUE(loaded.ok()) << loaded.status().message();
        while (const auto sample = dealer.take(worker)) {
          const std::vector<std::uint8_t> input = testing::echo_input(static_cast<unsigned>(*sample));
          auto output = device.run(*loaded, {input});
          if (!output.ok()) {
            dealer.fail(worker, *sample, output.status());
            continue;
          }
          dealer.hand_in(worker, *sample, [&] {
            const std::lock_guard lock(mutex);
            EXPECT_EQ((*output)[0], testing::echo_output(input, 1)) << "sample " << *sample;
            EXPECT_TRUE(results.emplace(*sample, (*output)[0]).second) << "sample " << *sample << " counts twice";
            return ok_status();
          });
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_TRUE(dealer.result().ok()) << dealer.result().message();
    report = dealer.report();
    return results;
  }
  static Placement sticks(int count) {
    driver::StickOptions stick;
    stick.has_firmware = true;
    plugged_in =
        std::make_shared<VirtualBus>(std::vector<driver::StickOptions>(static_cast<std::size_t>(count), stick));
    set_finder(find_plugged_in);  // forgets those of before
    EXPECT_TRUE(set_devices("auto").ok());
    auto place = find_placements("usb", count);
    EXPECT_TRUE(place.ok()) << place.status().message();
    if (place.ok() && place->replicas.empty()) place->replicas = {place->device};
    return place.ok() ? *place : Placement{};
  }
};

TEST_F(ReplicasTest, ResultsDoNotDependOnTheirNumber) {
  DealerReport report;
  const auto one = outputs(sticks(1), report);
  ASSERT_EQ(one.size(), static_cast<std::size_t>(kSamples));
  EXPECT_NE(one.at(0), one.at(1));
  for (const int count : {2, 4}) {
    EXPECT_EQ(outputs(sticks(count), report), one);
    std::int64_t all = 0;
    for (const DeviceShare& device : report.devices) all += device.samples;
    EXPECT_EQ(all, kSamples);
    EXPECT_EQ(std::ssize(report.devices), count);
  }
  EXPECT_EQ(outputs(*find_placements("virtual", 3), report), one);
}

// Every fault that a stick can suffer, in the middle of the work.
TEST_F(ReplicasTest, FaultsLoseNoSample) {
  DealerReport report;
  const auto right = outputs(sticks(1), report);
  for (const driver::StickFaultInfo& fault : driver::stick_faults()) {
    const Placement place = sticks(3);
    VirtualBus& bus = *plugged_in;
    bus.stick(1).inject(fault.fault, bus.stick(1).operations() + 40);
    EXPECT_EQ(outputs(place, report), right) << fault.name;
  }
}

// It is gone and does not come back: the others do its samples.
TEST_F(ReplicasTest, StickThatIsPulledOutIsLeftOut) {
  DealerReport report;
  const auto right = outputs(sticks(1), report);
  const Placement place = sticks(3);
  plugged_in->stick(2).unplug();
  EXPECT_EQ(outputs(place, report), right);
  EXPECT_EQ(report.devices[2].samples, 0);
}

TEST_F(ReplicasTest, WordsThatDoNotFitAreRefused) {
  const auto refusal = [](const char* word, int count) {
    const auto place = find_placements(word, count);
    return place.ok() ? std::string("it was taken") : place.status().message();
  };
  (void)sticks(2);
  EXPECT_NE(refusal("cpu", 2).find("leave out --device cpu"), std::string::npos);
  EXPECT_NE(refusal("usb:1", 2).find("is one device"), std::string::npos);
  EXPECT_NE(refusal("usb", 3).find("3 Edge TPUs are wanted, 2 can be used"), std::string::npos) << refusal("usb", 3);
  EXPECT_NE(refusal("virtual", 0).find("1 to 64"), std::string::npos);
}

}  // namespace
}  // namespace reef::runtime
