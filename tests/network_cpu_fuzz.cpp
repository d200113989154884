// SPDX-License-Identifier: Apache-2.0
// Any bytes as a small quantized network: plain loops, vector targets, joined operators and threads give the same
// bytes on the CPU.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "network_trial.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace reef;
  const testing::RandomNetwork network = testing::network_from_bytes({data, size});
  const testing::Trial trial = testing::compute_on_cpu(network, static_cast<unsigned>(size));
  if (trial.failed) {
    std::fprintf(stderr, "%s\n%s\n", network.to_string().c_str(), trial.message.c_str());
    std::abort();
  }
  return 0;
}
