// SPDX-License-Identifier: Apache-2.0
// A small package made by hand, from its source to its layer.
#include "runtime/layer_tensors.h"

#include <cmath>

#include <gtest/gtest.h>

#include "execute/device/device.h"
#include "formats/darwinn/reader.h"
#include "runtime/sample_runnable.h"

namespace reef::runtime {
namespace {

using retarget::testing::SampleLayer;
using testing::compiled_from;
using testing::sample_weights;

TEST(LayerTensors, GivesALayerAsTheChipComputesIt) {
  const SampleLayer layer = sample_weights();
  const ir::Model compiled = compiled_from(layer), source = retarget::testing::sample_model(layer);
  const auto layers = LayerTensors::create(compiled, source);
  ASSERT_TRUE(layers.ok()) << layers.status().message();
  auto options = darwinn::read_custom_options(compiled.subgraphs[0].operators[0].custom_options);
  const auto package = device::LoadedPackage::load(std::move(options->package));
  ASSERT_TRUE(package.ok()) << package.status().message();
  device::Device device;
  device.set_observer(&(*layers)->observer());
  const std::vector<std::uint8_t> input = {10, 200, 33, 90};
  const auto returned = device.run(*package, {input});
  ASSERT_TRUE(returned.ok()) << returned.status().message();
  const std::vector<LayerTensor> found = (*layers)->tensors();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].state, LayerTensor::State::kComputed) << found[0].reason;
  std::vector<std::uint8_t> expected;
  for (std::size_t out = 0; out < 4; ++out) {
    int sum = layer.biases[out];
    for (std::size_t in = 0; in < 4; ++in) {
      sum += (input[in] - layer.input_zero) * (layer.weights[4 * out + in] - layer.weight_zero);
    }
    const double rounded = std::nearbyint(sum * (0.5 * 0.25)) + layer.output_zero;
    expected.push_back(static_cast<std::uint8_t>(std::min(std::max(rounded, 0.0), 255.0)));
  }
  EXPECT_EQ(found[0].bytes, expected);
  EXPECT_EQ((*returned)[0], expected);
}

TEST(LayerTensors, RefusesAnotherSource) {
  SampleLayer layer = sample_weights();
  const ir::Model compiled = compiled_from(layer);
  layer.weights[7] ^= 1;
  const ir::Model source = retarget::testing::sample_model(layer);
  const auto layers = LayerTensors::create(compiled, source);
  ASSERT_FALSE(layers.ok());
  EXPECT_NE(layers.status().message().find("was not made from this source"), std::string::npos)
      << layers.status().message();
}

}  // namespace
}  // namespace reef::runtime
