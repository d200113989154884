// SPDX-License-Identifier: Apache-2.0
// A model checked for a microcontroller: what of it would run on the Edge TPU, if there is one, and whether TFLite
// Micro runs the rest (micro/assess.h).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "compiler/check_file.h"
#include "compiler/compile.h"
#include "micro/assess.h"

namespace reef::compiler {

struct MicroCheckedFile {
  std::string path;
  std::optional<CheckedFile> chip;         // for kMicro: the plan of a model that is not compiled yet
  std::shared_ptr<const ir::Model> model;  // as TFLite Micro would get it
  Bytes file;                              // its bytes; empty where there is no such file yet
  std::vector<passes::Application> rewrites;
  micro::Assessment assessment;
};

// kTflm: the file itself and, where TFLite Micro does not run that, what rewrites make of it. kMicro: a compiled file,
// or what `reef compile --target micro` would make of another. `board` says what the model is for; what it says of the
// file is filled in.
Result<MicroCheckedFile> check_for_micro(const std::string& path, const micro::AssessOptions& board,
                                         const PlanOptions& options, const FrontEndOptions& front_end = {});

// The model that `--write-rewritten` writes: the one that was checked, with the shapes that its operators give; of a
// model that is not compiled yet the one with its rewrites.
Result<ir::Model> model_to_write(const MicroCheckedFile& checked);

// `options` for a target: what TFLite Micro lacks is rewritten, and times are predicted for the board's link.
PlanOptions for_micro(PlanOptions options);

// For compile(): whether the compiled file runs on the board.
Status admit_for_micro(const CompiledFile& file);

}  // namespace reef::compiler
