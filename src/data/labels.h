// SPDX-License-Identifier: Apache-2.0
// Text files about classes: their names, which picture shows which, boxes in a picture.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
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
// class. Keypoints behind the box are skipped; of polygons and turned boxes, "class x1 y1 x2 y2 x3 y3 ...", the upright
// box around them counts.
Result<Truth> load_boxes(const std::string& path);
// The same from a text; `name` is for messages.
Result<Truth> read_boxes(std::string_view text, const std::string& name);

// What a text beside a picture says: the number of a class, a name of `class_names`, or boxes.
Result<Truth> read_truth(std::string_view text, const std::vector<std::string>& class_names, const std::string& name);
Truth class_truth(std::int64_t label);

// A number at the beginning of a name, as a word of its own: "3_crab", "12.jpg".
std::optional<std::int64_t> leading_number(std::string_view text);

// Named pictures with what is right for each, so far as names tell it.
struct NamedPicture {
  std::string name;       // with folders: "crab/1.jpg"
  std::size_t place = 0;  // whatever the caller finds it by
  Truth right;
};
std::string first_folder(const std::string& name);  // empty: none
// All pictures are in sub-folders, which are classes (by the file of class names, by the folder's own number, or by the
// order of folder names). Afterwards the classes take turns, so that the first N pictures are of all classes. Returns
// the folders' names by number.
Result<std::map<std::int64_t, std::string>> label_by_folder(std::vector<NamedPicture>& pictures,
                                                            const std::vector<std::string>& class_names);
// By "name, label" lines of a file.
Status label_by_file(const std::string& path, std::vector<NamedPicture>& pictures,
                     const std::vector<std::string>& class_names);

}  // namespace reef::data
