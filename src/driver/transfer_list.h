// SPDX-License-Identifier: Apache-2.0
// A package's list of transfers beside what its program asks for.
//
// Google's compiler joins transfers of scratch memory that follow each other and adjoin, in one public file (a YOLOv8
// of 640 x 640 pixels) also one to the device with one from it: the list then has 512,000 bytes for the device where
// the program takes 409,600 and sends 102,400. Sent as listed, the stick would wait for ever. What a program of
// straight code asks for can be read off its instructions, so such an entry is taken apart.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "driver/model.h"

namespace reef::driver {

// The steps with entries that join both directions taken apart. Unchanged if there are none, if the program is not
// straight, or if the two lists do not match otherwise either.
std::vector<Step> with_directions_apart(std::vector<Step> steps, std::span<const std::vector<std::uint8_t>> chunks);

}  // namespace reef::driver
