// SPDX-License-Identifier: Apache-2.0
// The sample package of retarget/sample_package.h as a model, for tests that run it on a device.
#pragma once

#include <gtest/gtest.h>

#include "formats/tflite/reader.h"
#include "retarget/sample_package.h"

namespace reef::runtime::testing {

using retarget::testing::SampleLayer;

inline SampleLayer sample_weights() {
  SampleLayer layer;
  for (std::size_t i = 0; i < layer.weights.size(); ++i) layer.weights[i] = static_cast<std::uint8_t>(100 + 3 * i);
  layer.biases = {5, -70, 300, 0};
  return layer;
}

// A compiled model, as a compiler could have made it of sample_model(layer).
inline ir::Model compiled_from(const SampleLayer& layer) {
  const auto file = retarget::testing::sample_compiled(layer);
  EXPECT_TRUE(file.ok()) << file.status().message();
  return tflite::read_model(Bytes(*file)).value();
}

}  // namespace reef::runtime::testing
