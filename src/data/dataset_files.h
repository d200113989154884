// SPDX-License-Identifier: Apache-2.0
// Which files a dataset is read from, for those who must not write over them.
#pragma once

#include <string>
#include <vector>

#include "data/dataset.h"

namespace reef::data {

// All that opening and reading may look at; names may be empty or name no file. Nothing is decoded.
std::vector<std::string> dataset_files(const DatasetOptions& options);

}  // namespace reef::data
