// SPDX-License-Identifier: Apache-2.0
// Compiled files over USB and PCIe: through the drivers and a strict virtual stick or a virtual card, beside the
// virtual device itself. Google's of the collection, others from public repositories, and what Reef compiles.
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "audit/audit.h"
#include "driver/pcie_session.h"
#include "driver/usb_session.h"
#include "driver/virtual_card.h"
#include "driver/virtual_stick.h"
#include "edge_tpu_package.h"
#include "execute/device/device.h"
#include "generated_code.h"
#include "lower/builder.h"
#include "random_network.h"
#include "zoo.h"

namespace reef::testing {
namespace {

using Tensors = std::vector<std::vector<std::uint8_t>>;

bool rests_on_timing(const darwinn::Package& package) {
  const auto report = audit::audit(package);
  return report.ok() && !report->is_sound();
}

// A stick with small FIFOs and a card, both open, and the virtual device to compare with.
class DriverComparison : public ::testing::Test {
 protected:
  DriverComparison() : bus_({&stick_, 1}), card_(2) {}
  void SetUp() override {
    auto usb = driver::UsbSession::open(bus_, {});
    ASSERT_TRUE(usb.ok()) << usb.status().message();
    usb_ = std::move(*usb);
    auto pcie = driver::PcieSession::open(card_, {});
    ASSERT_TRUE(pcie.ok()) << pcie.status().message();
    pcie_ = std::move(*pcie);
  }
  void TearDown() override {
    fmt::print("{} packages ran, {} of them served by reports of the stick; {} were refused\n", packages_, served_,
               refused_);
    EXPECT_TRUE(usb_->notes().empty()) << usb_->notes().front();
    EXPECT_TRUE(pcie_->notes().empty()) << pcie_->notes().front();
  }

  // A package that the virtual device does not run is named with the reason.
  void compare(const std::string& name, const darwinn::Package& package) {
    const auto loaded = device::LoadedPackage::load(package);
    if (!loaded.ok()) return refuse(name, loaded.status());
    Tensors inputs;
    for (const darwinn::Layer& layer : (*loaded)->inputs()) {
      auto& input = inputs.emplace_back(static_cast<std::size_t>(device::tensor_bytes(layer)));
      for (std::uint8_t& byte : input) byte = static_cast<std::uint8_t>(random_());
    }
    const driver::Session::Inputs given(inputs.begin(), inputs.end());
    device::Device device;
    const auto expected = device.run(*loaded, given);
    if (!expected.ok()) return refuse(name, expected.status());
    ++packages_;
    const auto for_usb = driver::Model::load(package);
    ASSERT_TRUE(for_usb.ok()) << name << ": " << for_usb.status().message();
    served_ += (*for_usb)->needs_reports() ? 1 : 0;
    const auto over_usb = usb_->run(*for_usb, given);
    ASSERT_TRUE(over_usb.ok()) << name << ": " << over_usb.status().message() << "; " << bus_.stick(0).diagnosis();
    EXPECT_TRUE(*over_usb == *expected) << name << " over USB"
                                        << (rests_on_timing(package) ? "; the program is ordered only by timing" : "");
    const auto for_pcie = driver::PcieModel::load(package);
    ASSERT_TRUE(for_pcie.ok()) << name << ": " << for_pcie.status().message();
    const auto over_pcie = pcie_->run(*for_pcie, given);
    ASSERT_TRUE(over_pcie.ok()) << name << ": " << over_pcie.status().message() << "; " << card_.diagnosis();
    EXPECT_TRUE(*over_pcie == *expected) << name << " over PCIe";
  }

  int packages_ = 0, served_ = 0, refused_ = 0;

 private:
  void refuse(const std::string& name, const Status& reason) {
    ++refused_;
    fmt::print("{} is refused by the virtual device: {}\n", name, reason.message());
  }
  static driver::StickOptions used_stick() {
    driver::StickOptions stick;
    stick.has_firmware = true;
    stick.threads = 2;
    return stick;
  }
  const driver::StickOptions stick_ = used_stick();
  driver::VirtualBus bus_;
  driver::VirtualCard card_;
  std::unique_ptr<driver::UsbSession> usb_;
  std::unique_ptr<driver::PcieSession> pcie_;
  std::mt19937 random_{1};
};

TEST_F(DriverComparison, EveryCompiledFileOfTheCollection) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  for (const std::string& path : tflite_files(zoo + "/pairs")) {
    for (const darwinn::Package& package : packages_in(path)) compare(path, package);
  }
  EXPECT_GT(packages_, 50);
  EXPECT_EQ(refused_, 0);
}

// Those that take seconds on the virtual device are left out unless REEF_ALL_WILD is set.
TEST_F(DriverComparison, CompiledFilesOfPublicRepositories) {
  REEF_SKIP_WITHOUT_WILD(wild);
  constexpr std::uintmax_t kQuick = 1'500'000;  // bytes of a file
  for (const std::string& path : tflite_files(wild)) {
    if (!path.ends_with("compiled_edgetpu.tflite")) continue;
    if (std::filesystem::file_size(path) > kQuick && std::getenv("REEF_ALL_WILD") == nullptr) continue;
    for (const darwinn::Package& package : packages_in(path)) compare(path, package);
  }
  EXPECT_GT(packages_, 10);
}

// Reef's programs come with complete lists of transfers, and never stall a stick.
TEST_F(DriverComparison, WhatReefCompiles) {
  const auto has_code = [](std::string_view op) { return lower::find_lowering(std::string(op)) != nullptr; };
  for (unsigned seed = 0; seed < 120 && packages_ < 60; ++seed) {
    const RandomNetwork network = RandomNetwork::generate(seed, has_code);
    const auto model = network.build();
    if (!model) continue;
    const auto level = seed % 2 == 0 ? tiled::Level::kAsGoogle : tiled::Level::kBetter;
    const auto package = compiler::generate_code_with(WholeModel(*model).part(1 + seed), {.level = level});
    if (package.ok()) compare(network.to_string(), *package);
  }
  EXPECT_EQ(packages_, 60);
  EXPECT_EQ(served_, 0);
}

}  // namespace
}  // namespace reef::testing
