// SPDX-License-Identifier: Apache-2.0
// What `reef learn` tells of a run, as text.
#pragma once

#include <string>

#include "compiler/learn_driver.h"

namespace reef::app {

void print_learned(const compiler::LearnOptions& options, const compiler::LearnResult& result,
                   const std::string& output, const std::string& labels);

}  // namespace reef::app
