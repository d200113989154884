// SPDX-License-Identifier: Apache-2.0
// What a model file says about itself: its task and the names of its classes.
//
// Ultralytics' exporters write both, into an ONNX model's properties or a .tflite's archive; TFLite's metadata writer
// packs a label file. Reef keeps them in the model it makes of such a file (metadata "reef.card"), so that a compiled
// model still knows what it sees. All of it is foreign text: what cannot be read is taken as not said.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "ir/model.h"

namespace reef::data {

struct ModelCard {
  std::string task;  // Ultralytics' word: detect, segment, pose, classify, obb; empty: not said
  std::vector<std::string> names;
  int keypoints = 0, keypoint_numbers = 0;  // of a pose

  bool is_empty() const { return task.empty() && names.empty() && keypoints == 0; }
};

inline constexpr std::string_view kCardMetadata = "reef.card";

// Properties of an ONNX model as Ultralytics writes them: "names" is {0: 'person', 1: 'bicycle'}.
ModelCard card_of_properties(const std::vector<std::pair<std::string, std::string>>& properties);
// A .tflite file's archive: Ultralytics' metadata.json, else a text file of labels.
ModelCard card_of_archive(const Bytes& file);

// Nothing for an empty card.
void store_card(const ModelCard& card, ir::Model& model);
ModelCard stored_card(const ir::Model& model);

// Class names for a model, and where they were found: `wanted` if it is not empty; else what the model has stored; else
// its file's archive; else a file NAME_labels.txt beside it, for a model NAME.tflite, NAME_int8_edgetpu.tflite ...;
// else the only file there that is called labels.txt or *_labels.txt, unless it has another number of names than there
// are `classes` (0: not known). Nothing found: no names.
struct FoundNames {
  std::vector<std::string> names;
  std::string origin;  // words; empty: none were found
};
Result<FoundNames> find_class_names(const std::string& wanted, const std::string& model_path, const ir::Model& model,
                                    std::size_t classes = 0);

}  // namespace reef::data
