// SPDX-License-Identifier: Apache-2.0
// main.cc of an exported program.
#pragma once

#include <string>

#include "micro/project.h"

namespace reef::micro {

// How the results are read.
enum class Task : std::uint8_t { kClassification, kDetection, kOther };
Task task_of(const ir::Model& model);

Result<std::string> project_main(const ir::Model& model, const Assessment& assessment, const ProjectOptions& options);

}  // namespace reef::micro
