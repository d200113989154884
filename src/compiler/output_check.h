// SPDX-License-Identifier: Apache-2.0
// What every command and every function of the library that writes files asks before it begins: may these results be
// written, given what is read? (base/output_place.h has the rules.)
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "data/dataset.h"

namespace reef::compiler {

// All that one command reads and writes. Empty names count as not given.
struct CommandFiles {
  std::vector<std::string> outputs;
  std::vector<std::string> models;         // files of any format, with what they refer to; SavedModel folders
  std::vector<data::DatasetOptions> data;  // with labels and truth
  std::vector<std::string> others;         // read as well: labels, tensors, pictures
};

// What a result holds. Its name may not promise something else: a TFLite model that is called x.onnx is taken for an
// ONNX model by every program that meets it, and by its owner.
enum class Content { kModel, kPage, kJson };

// An error if the name ends as files of another kind do (x.onnx, x.png for a model). Names without an ending and
// endings that are not known are left alone; so are empty names and folders.
Status check_ending(const std::string& path, Content content);

// An error names the result and says what to do. Nothing is read but what the answer depends on.
Status check_files(const CommandFiles& files);

}  // namespace reef::compiler
