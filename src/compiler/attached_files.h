// SPDX-License-Identifier: Apache-2.0
// Files that a .tflite model carries in the archive at its end (names of classes, a vocabulary), as TFLite's metadata
// writer puts them there: `reef run` finds them there, and so do clients of TFLite.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"

namespace reef::compiler {

// `file`, a model without an archive, with one behind it: what the model at the path `source` carries, if it is a
// .tflite that carries something, and the files `paths` by their names, which take the place of members of the same
// name. What cannot be read of the source's archive is left out.
Result<Bytes> with_attached_files(std::span<const std::uint8_t> file, const std::string& source,
                                  const std::vector<std::string>& paths);

// The .tflite file at `path` with `paths` in its archive.
Result<Bytes> model_file_with(const std::string& path, const std::vector<std::string>& paths);

}  // namespace reef::compiler
