// SPDX-License-Identifier: Apache-2.0
// Any bytes as a small quantized network: its code for the Edge TPU, at every level, computes on the virtual device
// what the chip reference says, and is sound.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "network_trial.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace reef;
  if (size == 0) return 0;
  const unsigned seed = data[0];
  const testing::RandomNetwork network = testing::network_from_bytes({data + 1, size - 1});
  const testing::Trial trial = testing::compile_and_run(network, seed);
  if (trial.failed) {
    std::fprintf(stderr, "seed %u, \"%s\"\n%s\n", seed, network.to_string().c_str(), trial.message.c_str());
    std::abort();
  }
  return 0;
}
