// SPDX-License-Identifier: Apache-2.0
// The firmware of a stick. It belongs to Google and is not part of Reef: it is taken from a file, or from an installed
// libedgetpu.so.1, which holds it as a constant. Found by its hash: nothing else is ever sent to a stick.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"

namespace reef::driver {

struct FirmwareImage {
  std::size_t bytes = 0;
  std::string_view sha256;
  std::array<std::uint8_t, 8> begins{};
};
// For one endpoint: the only image that is known to be in use, unchanged for years.
inline constexpr FirmwareImage kFirmware = {10783,
                                            "3b07311b174b81fd14fd2c887f40d646c0ebf2f140cc5ee5cf8befa0f3e3dc7f",
                                            {0x02, 0x1e, 0x57, 0x02, 0x14, 0xfa, 0xc2, 0x2f}};

// Where an image is in other bytes; nothing: nowhere.
std::optional<std::size_t> find_image(std::span<const std::uint8_t> bytes, const FirmwareImage& image);

// Looks in `file`, which may be the image itself or a library that holds it; if no file is given, in the libraries
// `places`. An error says in one sentence what to do.
Result<Bytes> find_firmware(const std::string& file, std::span<const std::string> places,
                            const FirmwareImage& image = kFirmware);

// libedgetpu.so.1 in the folders where packages of it put it.
std::vector<std::string> usual_libraries();

}  // namespace reef::driver
