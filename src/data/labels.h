// SPDX-License-Identifier: Apache-2.0
// Text files about classes: their names, which picture shows which, boxes in a picture.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "data/dataset.h"

namespace reef::data {

// One name a line; a line may begin with the class's number ("3 crab", "3: crab").
Result<std::vector<std::string>> load_class_names(const std::string& path);

// Lines "picture.jpg 3" or "picture.jpg,crab": a number, or a name of `class_names`.
Result<std::map<std::string, std::int64_t>> load_label_map(const std::string& path,
                                                           const std::vector<std::string>& class_names);

// Lines "class cx cy w h" in fractions of the picture (Ultralytics' form), as a truth of shape [n, 5]: cx, cy, w, h,
// class.
Result<Truth> load_boxes(const std::string& path);

}  // namespace reef::data
