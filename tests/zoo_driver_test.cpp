// SPDX-License-Identifier: Apache-2.0
// Every compiled file of the collection over USB and PCIe: through the drivers and a strict virtual stick or a virtual
// card, beside the virtual device itself.
#include <random>

#include <gtest/gtest.h>

#include "driver/pcie_session.h"
#include "driver/usb_session.h"
#include "driver/virtual_card.h"
#include "driver/virtual_stick.h"
#include "edge_tpu_package.h"
#include "execute/device/device.h"
#include "zoo.h"

namespace reef::testing {
namespace {

using Tensors = std::vector<std::vector<std::uint8_t>>;

// Calls visit(path, package, inputs, outputs of the virtual device) for each package that the virtual device runs.
template <typename Visit>
int for_each_package(const std::string& zoo, const Visit& visit) {
  int packages = 0;
  std::mt19937 random(1);
  for (const std::string& path : tflite_files(zoo + "/pairs")) {
    for (const darwinn::Package& package : packages_in(path)) {
      const auto loaded = device::LoadedPackage::load(package);
      if (!loaded.ok()) continue;
      Tensors inputs;
      for (const darwinn::Layer& layer : (*loaded)->inputs()) {
        auto& input = inputs.emplace_back(static_cast<std::size_t>(device::tensor_bytes(layer)));
        for (std::uint8_t& byte : input) byte = static_cast<std::uint8_t>(random());
      }
      device::Device device;
      const auto expected = device.run(*loaded, {inputs.begin(), inputs.end()});
      if (!expected.ok()) continue;
      ++packages;
      visit(path, package, inputs, *expected);
    }
  }
  return packages;
}

TEST(ZooDriver, EveryCompiledFileGivesTheSameOverUsb) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  driver::StickOptions stick;
  stick.has_firmware = true;
  stick.threads = 2;
  driver::VirtualBus bus({&stick, 1});
  const auto session = driver::UsbSession::open(bus, {});
  ASSERT_TRUE(session.ok()) << session.status().message();
  int served = 0;
  const int packages = for_each_package(
      zoo, [&](const std::string& path, const darwinn::Package& package, const Tensors& inputs, const Tensors& right) {
        const auto model = driver::Model::load(package);
        ASSERT_TRUE(model.ok()) << path << ": " << model.status().message();
        served += (*model)->needs_reports() ? 1 : 0;
        const auto outputs = (*session)->run(*model, {inputs.begin(), inputs.end()});
        ASSERT_TRUE(outputs.ok()) << path << ": " << outputs.status().message() << "; " << bus.stick(0).diagnosis();
        EXPECT_TRUE(*outputs == right) << path;
      });
  fmt::print("{} packages, {} of them served by reports of the device\n", packages, served);
  EXPECT_TRUE((*session)->notes().empty()) << (*session)->notes().front();
  EXPECT_GT(packages, 50);
}

TEST(ZooDriver, EveryCompiledFileGivesTheSameOverPcie) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  driver::VirtualCard card(2);
  const auto session = driver::PcieSession::open(card, {});
  ASSERT_TRUE(session.ok()) << session.status().message();
  const int packages = for_each_package(
      zoo, [&](const std::string& path, const darwinn::Package& package, const Tensors& inputs, const Tensors& right) {
        const auto model = driver::PcieModel::load(package);
        ASSERT_TRUE(model.ok()) << path << ": " << model.status().message();
        const auto outputs = (*session)->run(*model, {inputs.begin(), inputs.end()});
        ASSERT_TRUE(outputs.ok()) << path << ": " << outputs.status().message() << "; " << card.diagnosis();
        EXPECT_TRUE(*outputs == right) << path;
      });
  fmt::print("{} packages\n", packages);
  EXPECT_TRUE((*session)->notes().empty()) << (*session)->notes().front();
  EXPECT_GT(packages, 50);
}

}  // namespace
}  // namespace reef::testing
