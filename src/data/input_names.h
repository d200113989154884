// SPDX-License-Identifier: Apache-2.0
// What data may call a model's inputs: how arrays, features and members of archives find theirs.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/status.h"
#include "data/dataset.h"

namespace reef::data {

std::string lower(std::string text);

// `model` may be null: then there is one input without a name.
std::size_t input_count(const ir::Model* model);
// In small letters: the input's name, the same without what exporters add, its names in signatures.
std::vector<std::string> input_names(const ir::Model* model, std::size_t input);
// What --array names, one for each input; empty: it names nothing.
Result<std::vector<std::string>> named_inputs(const DatasetOptions& options, const ir::Model* model);

}  // namespace reef::data
