// SPDX-License-Identifier: Apache-2.0
// Every compiled file of the collection over USB: through the driver and a strict virtual stick, beside the virtual
// device itself.
#include <random>

#include <gtest/gtest.h>

#include "driver/usb_session.h"
#include "driver/virtual_stick.h"
#include "execute/device/device.h"
#include "formats/darwinn/reader.h"
#include "formats/tflite/reader.h"
#include "zoo.h"

namespace reef::testing {
namespace {

std::vector<Bytes> custom_options_in(const std::string& path) {
  std::vector<Bytes> found;
  const auto model = tflite::load_model(path);
  if (!model.ok()) return found;
  for (const ir::Subgraph& subgraph : model->subgraphs) {
    for (const ir::Operator& op : subgraph.operators) {
      if (darwinn::is_edge_tpu_op(op)) found.push_back(op.custom_options);
    }
  }
  return found;
}

TEST(ZooDriver, EveryCompiledFileGivesTheSameOverUsb) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  driver::StickOptions stick;
  stick.has_firmware = true;
  stick.threads = 2;
  int packages = 0, served = 0, refused = 0;
  std::mt19937 random(1);
  for (const std::string& path : tflite_files(zoo + "/pairs")) {
    driver::VirtualBus bus({&stick, 1});
    const auto session = driver::UsbSession::open(bus, {});
    ASSERT_TRUE(session.ok()) << session.status().message();
    for (const Bytes& bytes : custom_options_in(path)) {
      auto options = darwinn::read_custom_options(bytes);
      if (!options.ok()) continue;
      const auto loaded = device::LoadedPackage::load(options->package);
      if (!loaded.ok()) continue;  // the virtual device refuses it as well
      std::vector<std::vector<std::uint8_t>> inputs;
      for (const darwinn::Layer& layer : (*loaded)->inputs()) {
        auto& input = inputs.emplace_back(static_cast<std::size_t>(device::tensor_bytes(layer)));
        for (std::uint8_t& byte : input) byte = static_cast<std::uint8_t>(random());
      }
      device::Device device;
      const auto expected = device.run(*loaded, {inputs.begin(), inputs.end()});
      if (!expected.ok()) continue;
      ++packages;
      const auto model = driver::Model::load(options->package);
      if (!model.ok()) {
        ++refused;
        fmt::print("{}: refused: {}\n", path, model.status().message());
        continue;
      }
      served += (*model)->needs_reports() ? 1 : 0;
      const auto outputs = (*session)->run(*model, {inputs.begin(), inputs.end()});
      ASSERT_TRUE(outputs.ok()) << path << ": " << outputs.status().message() << "; " << bus.stick(0).diagnosis();
      EXPECT_TRUE(*outputs == *expected) << path;
      EXPECT_TRUE((*session)->notes().empty()) << path << ": " << (*session)->notes().front();
    }
  }
  fmt::print("{} packages, {} of them served by reports of the device, {} refused\n", packages, served, refused);
  EXPECT_GT(packages, 50);
  EXPECT_EQ(refused, 0);
}

}  // namespace
}  // namespace reef::testing
