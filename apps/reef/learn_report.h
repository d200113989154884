// SPDX-License-Identifier: Apache-2.0
// What `reef learn` tells of a run: text, JSON, and the learning curve as a picture.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "compiler/learn_driver.h"

namespace reef::app {

void print_learned(const compiler::LearnOptions& options, const compiler::LearnResult& result,
                   const std::string& output, const std::string& labels);
nlohmann::ordered_json learned_json(const compiler::LearnOptions& options, const compiler::LearnResult& result,
                                    const std::string& output, const std::string& labels);

}  // namespace reef::app
