// SPDX-License-Identifier: Apache-2.0
// Findings drawn onto the picture that they were found in: boxes with names, masks, keypoints, classes as colours.
#pragma once

#include <string>
#include <vector>

#include "evaluate/findings.h"
#include "formats/image/image.h"

namespace reef::evaluate {

// `picture` must have 3 channels. `names`: of classes, by number; may be shorter than there are classes.
void draw(const Findings& findings, const std::vector<std::string>& names, image::Image& picture);

// Each pixel as a square of `times` x `times`: names are not legible on a picture of 100 pixels.
image::Image enlarged(const image::Image& picture, int times);

// The name of a class, or its number as text.
std::string class_name(int label, const std::vector<std::string>& names);

}  // namespace reef::evaluate
