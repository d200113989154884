// SPDX-License-Identifier: Apache-2.0
// Recognizes, by their content, files that people hand over instead of a model that Reef reads, and says what to do.
#pragma once

#include <cstdint>
#include <string>

#include "base/bytes.h"

namespace reef::formats {

enum class ForeignKind : std::uint8_t {
  kUnknown,
  kPytorch,      // torch.save: a checkpoint or a whole module
  kTorchScript,  // torch.jit.save
  kTorchExport,  // torch.export.save (.pt2)
  kUltralytics,  // a YOLO checkpoint
  kKeras,        // .keras: a zip archive
  kHdf5,         // Keras' older format
  kSavedModel,   // the saved_model.pb of a SavedModel folder
  kFrozenGraph,  // TensorFlow 1's GraphDef
  kBundle,       // a zip archive with .tflite files, as MediaPipe's .task
  kOther,        // recognized, and nothing Reef or a converter could use
};

struct ForeignFile {
  ForeignKind kind = ForeignKind::kUnknown;
  std::string advice;  // "it is ...: " and what to do, the command included; empty: not recognized
};

// `path` is what commands in the advice are told to read. Only a part of the file may be given if it is large; a zip
// archive is recognized by its members only if it is whole.
ForeignFile recognize_foreign(const Bytes& file, const std::string& path);

// The same for a folder. Unknown if it is none, or none that a converter reads.
ForeignFile recognize_folder(const std::string& path);

}  // namespace reef::formats
