// SPDX-License-Identifier: Apache-2.0
// TensorFlow's own models (SavedModel folders, .keras, .h5) by TensorFlow's own converter, if Python has it.
#pragma once

#include <string>

#include "base/status.h"

namespace reef::app {

bool is_tensorflow_model(const std::string& path);

// Runs $REEF_PYTHON (default python3) with tensorflow. The output appears whole or not at all.
Status convert_tensorflow_model(const std::string& path, const std::string& output);

}  // namespace reef::app
