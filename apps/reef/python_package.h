// SPDX-License-Identifier: Apache-2.0
// Reef's Python package and library, found beside the program: in a build, or where `make install` puts them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/status.h"

namespace reef::app {

// The folder of this program.
std::filesystem::path program_folder();

struct PythonPackage {
  std::filesystem::path folder;   // for PYTHONPATH
  std::filesystem::path library;  // libreef.so.0, for REEF_LIBRARY
};
Result<PythonPackage> find_python_package();

// A module of the package that a command becomes, and what it cannot do without.
struct PythonStart {
  std::string module;   // "reef.train"
  std::string needs;    // the message's beginning: "training needs PyTorch, NumPy and ONNX"
  std::string imports;  // names of modules, separated by spaces
  std::string install;  // what pip is to install
  std::string command;  // "reef train ...", to be typed again
};
// The program for `python3 -c`: it says what is missing before the package is imported, which needs NumPy itself.
std::string start_program(const PythonStart& start);

// `value` before what the environment variable holds.
void put_in_front(const char* name, const std::string& value);

// The process becomes the program `words` names; what this process ignores, others need not. Returns only to say why
// it could not be started.
Status become(std::vector<std::string> words);

}  // namespace reef::app
