// SPDX-License-Identifier: Apache-2.0
#include "runtime/replicas.h"

#include <atomic>

#include <gtest/gtest.h>

#include "runtime/sample_runnable.h"
#include "runtime/virtual_devices.h"

namespace reef::runtime {
namespace {

constexpr std::int64_t kSamples = 40;

// Fails from its n-th run on, as a stick that is pulled out.
class FailingDevice final : public EdgeTpu {
 public:
  FailingDevice(std::shared_ptr<EdgeTpu> device, int runs) : device_(std::move(device)), left_(runs) {}
  Connection connection() const override { return device_->connection(); }
  bool is_virtual() const override { return true; }
  const std::string& selector() const override { return device_->selector(); }
  const std::string& path() const override { return device_->path(); }
  Result<Loaded> load(const darwinn::Package& package) const override { return device_->load(package); }
  Result<Tensors> run(const Loaded& package, const Inputs& inputs) override {
    if (left_-- <= 0) return make_error(StatusCode::kIoError, "it was pulled out");
    return device_->run(package, inputs);
  }
  Use use() const override { return device_->use(); }

 private:
  const std::shared_ptr<EdgeTpu> device_;
  std::atomic<int> left_;
};

PipelineTensors inputs_of(std::int64_t sample) {
  std::vector<std::byte> data(4);
  for (std::size_t i = 0; i < 4; ++i) data[i] = static_cast<std::byte>(sample * 37 + static_cast<std::int64_t>(i) * 11);
  return {{"in", ir::DataType::kUInt8, {1, 4}, data}};
}

ReplicaOptions options_for(DeviceList devices) {
  ReplicaOptions options;
  options.segments = {std::make_shared<const ir::Model>(testing::compiled_from(testing::sample_weights()))};
  options.devices = std::move(devices);
  options.samples = kSamples;
  return options;
}

std::vector<std::vector<std::byte>> results_of(const ReplicaOptions& options, DealerReport& report) {
  std::vector<std::vector<std::byte>> results;
  const auto run = run_replicas(
      options, [](std::int64_t sample) -> Result<PipelineTensors> { return inputs_of(sample); },
      [&](std::int64_t sample, const PipelineTensors& outputs) {
        EXPECT_EQ(sample, std::ssize(results)) << "results come in order";
        results.push_back(outputs[0].data);
        return ok_status();
      });
  EXPECT_TRUE(run.ok()) << run.status().message();
  if (run.ok()) report = *run;
  return results;
}

TEST(Replicas, ResultsDoNotDependOnTheirNumber) {
  DealerReport report;
  const auto one = results_of(options_for(*make_devices("usb")), report);
  ASSERT_EQ(one.size(), static_cast<std::size_t>(kSamples));
  EXPECT_NE(one[0], one[1]);
  EXPECT_EQ(results_of(options_for(*make_devices("usb,usb,pci,pci")), report), one);
  EXPECT_EQ(std::ssize(report.latencies), kSamples);
}

TEST(Replicas, DeviceThatFailsInTheMiddleLosesNoSample) {
  DealerReport report;
  const auto right = results_of(options_for(*make_devices("usb")), report);
  DeviceList devices = *make_devices("usb,usb,usb");
  devices[1] = std::make_shared<FailingDevice>(devices[1], 5);
  EXPECT_EQ(results_of(options_for(devices), report), right);
  EXPECT_TRUE(report.devices[1].is_lost || report.devices[1].samples <= 5);
}

TEST(Replicas, AllDevicesMayFail) {
  DeviceList devices = *make_devices("usb,usb");
  for (auto& device : devices) device = std::make_shared<FailingDevice>(device, 3);
  const auto run = run_replicas(
      options_for(devices), [](std::int64_t sample) -> Result<PipelineTensors> { return inputs_of(sample); },
      [](std::int64_t, const PipelineTensors&) { return ok_status(); });
  ASSERT_FALSE(run.ok());
  EXPECT_NE(run.status().message().find("it was pulled out"), std::string::npos) << run.status().message();
}

TEST(Replicas, WhatDoesNotFitIsRefused) {
  ReplicaOptions options = options_for(*make_devices("usb,usb,usb"));
  options.segments.push_back(options.segments[0]);
  const auto run = run_replicas(options, nullptr, nullptr);
  EXPECT_NE(run.status().message().find("3 devices cannot hold whole copies"), std::string::npos);
}

}  // namespace
}  // namespace reef::runtime
