// SPDX-License-Identifier: Apache-2.0
// WebP pictures, decoded by libwebp. The library is loaded when the first such picture is met: nothing else needs it,
// and a machine without it loses WebP and nothing more.
#pragma once

#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "base/status.h"
#include "formats/image/image.h"

namespace reef::image {

bool is_webp(std::span<const std::uint8_t> file);

// As decode(). Where the library is missing the error says how to get it. Of animations the first picture is taken.
Result<Image> decode_webp(const Bytes& file, int channels);

}  // namespace reef::image
