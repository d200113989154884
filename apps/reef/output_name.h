// SPDX-License-Identifier: Apache-2.0
// The file that `-o` means: commands take a file or a folder there.
#pragma once

#include <string>
#include <string_view>

namespace reef::app {

// `given` itself if it names a file. If it is a folder, or ends with a slash: a file in it with the name of `model` and
// `ending` in the place of its own, as in "out/yolo_int8.tflite". Empty stays empty.
std::string output_file(const std::string& given, const std::string& model, std::string_view ending);

}  // namespace reef::app
