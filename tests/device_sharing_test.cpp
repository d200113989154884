// SPDX-License-Identifier: Apache-2.0
// Several packages on one device, several devices at once, and one device used ten thousand times.
#include <future>
#include <memory>
#include <random>

#include <gtest/gtest.h>

#include "execute/device/device.h"
#include "formats/darwinn/reader.h"
#include "formats/tflite/reader.h"
#include "handwritten_packages.h"
#include "process_memory.h"
#include "zoo.h"

namespace reef::testing {
namespace {

using Loaded = std::shared_ptr<const device::LoadedPackage>;
using Tensors = std::vector<std::vector<std::uint8_t>>;

Loaded must_load(Result<darwinn::Package> package) {
  EXPECT_TRUE(package.ok()) << package.status().message();
  if (!package.ok()) return nullptr;
  auto loaded = device::LoadedPackage::load(std::move(*package));
  EXPECT_TRUE(loaded.ok()) << loaded.status().message();
  return loaded.ok() ? *loaded : nullptr;
}

Result<darwinn::Package> zoo_package(const std::string& zoo, const std::string& name) {
  REEF_ASSIGN_OR_RETURN(const ir::Model model, tflite::load_model(zoo + "/pairs/" + name + "_edgetpu.tflite"));
  for (const ir::Operator& op : model.subgraphs[0].operators) {
    if (!darwinn::is_edge_tpu_op(op)) continue;
    REEF_ASSIGN_OR_RETURN(darwinn::CustomOptions options, darwinn::read_custom_options(op.custom_options));
    return std::move(options.package);
  }
  return invalid_input("'{}' has no Edge TPU op", name);
}

Tensors noise_for(const Loaded& package, unsigned seed) {
  std::mt19937 random(seed);
  Tensors tensors;
  for (const darwinn::Layer& layer : package->inputs()) {
    auto& bytes = tensors.emplace_back(static_cast<std::size_t>(device::tensor_bytes(layer)));
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  }
  return tensors;
}

Tensors must_run(device::Device& device, const Loaded& package, const Tensors& inputs = {}) {
  auto result = device.run(package, {inputs.begin(), inputs.end()});
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result.ok() ? *result : Tensors();
}

Tensors eight(int byte) { return {std::vector<std::uint8_t>(8, static_cast<std::uint8_t>(byte))}; }

// ---- Parameter caching ----

TEST(DeviceSharing, PackagesWithOneTokenStaySideBySide) {
  const Loaded a = must_load(caching_package(7, 5, 0x11)), b = must_load(caching_package(7, 9, 0x22));
  device::Device device;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(must_run(device, a), eight(0x11));
    EXPECT_EQ(must_run(device, b), eight(0x22));
  }
  EXPECT_EQ(device.parameter_loads(), 2);
}

TEST(DeviceSharing, AnotherTokenEvicts) {
  // Both keep their line in the same place.
  const Loaded a = must_load(caching_package(7, 5, 0x11)), b = must_load(caching_package(8, 5, 0x22));
  device::Device device;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(must_run(device, a), eight(0x11));
    EXPECT_EQ(must_run(device, a), eight(0x11));
    EXPECT_EQ(must_run(device, b), eight(0x22));
  }
  EXPECT_EQ(device.parameter_loads(), 6);
}

// As in libedgetpu: a program that brings its own parameters may overwrite anything.
TEST(DeviceSharing, AStandAloneProgramEvicts) {
  const Loaded cached = must_load(caching_package(7, 5, 0x11));
  const Loaded alone = must_load(stand_alone_package(
      joined({kAskForEightBytes, "mesh_north tiles=0 fill fill_value=0x33333333\n  out narrow word 0: for x2 +1\n",
              kFence, kPackLine, kFence, kSendLineAndEnd})));
  device::Device device;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(must_run(device, cached), eight(0x11));
    EXPECT_EQ(must_run(device, alone), eight(0x33));
  }
  EXPECT_EQ(device.parameter_loads(), 2);
}

TEST(DeviceSharing, CachingNeedsAToken) {
  device::Device device;
  const auto result = device.run(must_load(caching_package(0, 5, 0x11)), {});
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.status().message().find("token"), std::string::npos) << result.status().message();
}

TEST(DeviceSharing, AFailureMakesCachedParametersInvalid) {
  const Loaded good = must_load(caching_package(7, 5, 0x11));
  darwinn::Package broken_package = caching_package(7, 9, 0x22);
  broken_package.executables[0] = with_output(
      assembled(std::string(kAskForEightBytes) + "halt code=16\nend\n", darwinn::ExecutableType::kExecutionOnly));
  broken_package.executables[0].parameter_caching_token = 7;
  const Loaded broken = must_load(std::move(broken_package));
  device::Device device;
  EXPECT_EQ(must_run(device, good), eight(0x11));
  EXPECT_FALSE(device.run(broken, {}).ok());
  EXPECT_EQ(must_run(device, good), eight(0x11));
  EXPECT_EQ(device.parameter_loads(), 3);
}

TEST(DeviceSharing, CoCompiledNetworksStaySideBySide) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  const Loaded a = must_load(zoo_package(zoo, "mobilenet_v1_0.25_128_quant/v15_cocompiled_with_0.5_160"));
  const Loaded b = must_load(zoo_package(zoo, "mobilenet_v1_0.5_160_quant/v15_cocompiled_with_0.25_128"));
  const Loaded other = must_load(zoo_package(zoo, "mobilenet_v1_0.25_128_quant/v15"));
  const Loaded alone = must_load(zoo_package(zoo, "op_model_padding_64x64x3/v1"));
  ASSERT_NE(a->caching(), nullptr);
  ASSERT_EQ(a->caching()->parameter_caching_token, b->caching()->parameter_caching_token);
  ASSERT_NE(a->caching()->parameter_caching_token, other->caching()->parameter_caching_token);
  ASSERT_EQ(alone->caching(), nullptr);
  const Tensors small = noise_for(a, 1), large = noise_for(b, 2), tiny = noise_for(alone, 3);
  device::Device first, second;
  const Tensors of_a = must_run(first, a, small), of_b = must_run(second, b, large);
  device::Device device;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(must_run(device, a, small), of_a);
    EXPECT_EQ(must_run(device, b, large), of_b);
  }
  EXPECT_EQ(device.parameter_loads(), 2);
  EXPECT_EQ(must_run(device, other, small), of_a) << "the same network, compiled by itself";
  EXPECT_EQ(device.parameter_loads(), 3);
  EXPECT_EQ(must_run(device, a, small), of_a);
  EXPECT_EQ(device.parameter_loads(), 4);
  must_run(device, alone, tiny);
  EXPECT_EQ(must_run(device, b, large), of_b);
  EXPECT_EQ(device.parameter_loads(), 5);
}

// ---- Several devices ----

// Each thread has its device; the packages are shared.
TEST(DeviceSharing, DevicesOfSeveralThreadsDoNotDisturbEachOther) {
  const std::string zoo = zoo_folder();
  const Loaded cached = must_load(caching_package(7, 5, 0x11)), beside = must_load(caching_package(7, 9, 0x22));
  const Loaded network = zoo.empty() ? nullptr : must_load(zoo_package(zoo, "dense_256/v16"));
  constexpr int kThreads = 4, kRuns = 25;
  Tensors right;
  if (network != nullptr) {
    device::Device device;
    right = must_run(device, network, noise_for(network, 1));
  }
  std::vector<std::future<std::int64_t>> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.push_back(std::async(std::launch::async, [&] {
      device::Device device, another;
      for (int i = 0; i < kRuns; ++i) {
        EXPECT_EQ(must_run(device, cached), eight(0x11));
        EXPECT_EQ(must_run(device, beside), eight(0x22));
        if (network == nullptr) continue;
        EXPECT_EQ(must_run(another, network, noise_for(network, 1)), right);
      }
      return device.parameter_loads();
    }));
  }
  for (auto& thread : threads) EXPECT_EQ(thread.get(), 2);
}

// ---- For long ----

void expect_steady(const Loaded& package, const Tensors& inputs) {
  constexpr int kInvocations = 10'000, kWarmUp = 500;
  device::Device device;
  const Tensors right = must_run(device, package, inputs);
  double warm = 0;
  for (int i = 1; i < kInvocations; ++i) {
    if (i == kWarmUp) warm = resident_mib();
    ASSERT_EQ(must_run(device, package, inputs), right) << "invocation " << i;
  }
  const double end = resident_mib();
  fmt::print("{} invocations: {:.2f} MiB after {}, {:.2f} MiB at the end\n", kInvocations, warm, kWarmUp, end);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // these keep freed memory
  EXPECT_LT(end - warm, 1) << "MiB";
#endif
  EXPECT_LE(device.parameter_loads(), 1);
}

TEST(DeviceSharing, TenThousandInvocationsOfASmallProgram) {
  expect_steady(must_load(caching_package(7, 5, 0x11)), {});
}

TEST(DeviceSharing, TenThousandInvocationsOfANetwork) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  const Loaded network = must_load(zoo_package(zoo, "dense_256/v16"));
  expect_steady(network, noise_for(network, 1));
}

}  // namespace
}  // namespace reef::testing
