// SPDX-License-Identifier: Apache-2.0
// TensorFlow's own models (SavedModel folders, .keras, .h5) by TensorFlow's own converter, if Python has it.
#pragma once

#include <string>

#include "base/status.h"
#include "base/temporary_name.h"

namespace reef::app {

bool is_tensorflow_model(const std::string& path);

// What TensorFlow's converter made: a .tflite file in a folder that is removed with this.
class TensorflowConversion {
 public:
  explicit TensorflowConversion(TemporaryFolder folder) : folder_(std::move(folder)) {}

  std::string path() const { return folder_.path() + "/model.tflite"; }
  const std::string& version() const { return version_; }  // of TensorFlow
  void set_version(std::string version) { version_ = std::move(version); }

 private:
  TemporaryFolder folder_;
  std::string version_;
};

// Runs $REEF_PYTHON (default python3) with tensorflow. What that prints is shown, its end at least, if it fails.
Result<TensorflowConversion> convert_tensorflow_model(const std::string& path);

}  // namespace reef::app
