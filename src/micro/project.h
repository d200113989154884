// SPDX-License-Identifier: Apache-2.0
// The files of a small program that runs a model with TFLite Micro: `reef export micro`.
//
// For Coral's Dev Board Micro: a folder to put below the SDK's `apps` or beside a checkout of it, with the model as a
// file for the board's file system and as a C array. For other boards: the same without camera and Edge TPU, and with
// one function left to write, which fills the input. The program is Reef's own text; it includes headers of TFLite
// Micro and of Coral's SDK and copies nothing of them.
//
// Models of pictures on boards without a camera look at a picture that the folder holds, so that the program does
// something that can be compared with `reef run` before anything is changed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "data/picture.h"
#include "data/preprocess.h"
#include "ir/model.h"
#include "micro/assess.h"

namespace reef::micro {

struct ProjectOptions {
  std::string name;                  // of the program and of the model's file: "mobilenet_v2_edgetpu"
  std::vector<std::string> labels;   // may be empty
  data::Preprocess preprocess;       // of input 0
  bool embeds_model = false;         // the program uses the C array instead of the file
  std::vector<std::uint8_t> sample;  // a picture for programs without a camera, as picture_of_program() describes it;
                                     // empty: a black one
};

struct ProjectFile {
  std::string path;  // below the folder
  Bytes content;
};

// The picture that a program for `target` takes for `model`; nothing where its input is no picture.
struct ProgramPicture {
  data::PictureLayout input;  // how the model holds it
  int channels = 3;           // of the picture that the program is given: 3 (RGB) or 1 (brightness)
};
std::optional<ProgramPicture> picture_of_program(const ir::Model& model, const data::Preprocess& preprocess);

// `assessment` must have accepted `model`, and `file` must be its bytes.
Result<std::vector<ProjectFile>> project_files(const ir::Model& model, const Bytes& file, const Assessment& assessment,
                                               const ProjectOptions& options);

// A name for programs, files and CMake targets: letters, digits and underscores of `text`.
std::string project_name(std::string_view text);

}  // namespace reef::micro
