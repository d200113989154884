// SPDX-License-Identifier: Apache-2.0
// Any bytes as a picture. What could be decoded has as many samples as it says, and survives being written as PNG.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "formats/image/image.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace reef;
  const Bytes file(std::vector<std::uint8_t>(data, data + size));
  constexpr std::size_t kMostSamples = std::size_t{1} << 18;  // a larger one is only decoded
  for (const int channels : {1, 3, 4}) {
    const auto picture = image::decode(file, channels);
    if (!picture.ok()) continue;
    const std::size_t samples = static_cast<std::size_t>(picture->width) * static_cast<std::size_t>(picture->height) *
                                static_cast<std::size_t>(channels);
    if (picture->channels != channels || picture->samples.size() != samples || samples == 0) std::abort();
    if (samples > kMostSamples) return 0;
    const auto written = image::encode_png(*picture);
    if (!written.ok()) std::abort();
    const auto again = image::decode(Bytes(*written), channels);
    if (!again.ok() || again->samples != picture->samples) std::abort();
  }
  return 0;
}
