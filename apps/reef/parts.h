// SPDX-License-Identifier: Apache-2.0
// Where the other parts of Reef are: libraries, Python modules, models. A program finds them from its own place, so
// that a build folder, an installation under any prefix, an unpacked tarball and a Python environment all work as they
// are.
#pragma once

#include <filesystem>

#include "base/status.h"

namespace reef::app {

enum class Part {
  kLibrary,     // libreef.so.0
  kCoral,       // the delegate under the names of Coral's library
  kPython,      // the folder of the package `reef`, for PYTHONPATH
  kModels,      // the small models that come with Reef
  kVirtualUsb,  // what `reef virtual-usb` puts into programs
};

// The folder that holds the part. An error names the places where it was looked for.
Result<std::filesystem::path> find_part(Part part);

// The same, for a program in the folder `here`.
Result<std::filesystem::path> find_part(Part part, const std::filesystem::path& here);

}  // namespace reef::app
