// SPDX-License-Identifier: Apache-2.0
// New classes for a model, from files to a model: find the head, embed the pictures with the rest of the model (on the
// CPU or a virtual Edge TPU), train, measure what was made on pictures it was not trained with, join.
//
// A compiled extractor is taken over as it is. Nothing is written here; learned_files gives what to write, so that a
// run that ends early leaves the old files as they were.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "compiler/front_end.h"
#include "compiler/learn_data.h"
#include "ir/model.h"
#include "learn/advice.h"
#include "learn/head.h"
#include "learn/mirror.h"
#include "learn/softmax_regression.h"

namespace reef::compiler {

enum class LearnMethod { kImprinting, kSoftmax };

// Are pictures learned from in a mirror as well? kAuto: where they show the same then (learn/mirror.h).
enum class Mirroring { kAuto, kOn, kOff };

struct LearnOptions {
  LearnMethod method = LearnMethod::kImprinting;
  std::string model;  // file: classifier, extractor or learned model, compiled or not
  FrontEndOptions front_end;
  std::string embedding;  // tensor to cut at; empty: found
  bool compile = false;   // the extractor, for the Edge TPU, before anything else
  data::DatasetOptions data;
  std::string test;        // data to measure with; empty: the .npz's own test arrays, or a part of `data`
  double held_back = 0.2;  // that part
  std::uint32_t seed = 1;
  Mirroring mirroring = Mirroring::kAuto;
  bool keep_classes = false;              // imprinting: the model's classes stay
  bool resume = false;                    // imprinting: and those of the same name are trained further
  std::vector<std::string> model_labels;  // names of the model's classes, where it does not tell them itself
  learn::SoftmaxOptions softmax;
  bool has_curve = true;
  bool compares_methods = false;  // the curve of the other method as well
  EmbedOptions embed;
};

struct LearnResult {
  ir::Model model;
  learn::HeadKind found = learn::HeadKind::kNone;  // in the model given
  std::int32_t dimension = 0;
  std::vector<std::string> class_names;  // of the result, by number
  std::size_t kept = 0;                  // classes that were there before
  std::vector<std::int64_t> images;      // trained with, in this run, of each class
  std::string data, preprocess;          // in words; the latter empty where samples are no pictures
  std::vector<RejectedSample> rejected;
  bool is_mirrored = false;                      // mirrored pictures were learned from, too
  std::optional<learn::MirrorTest> mirror_test;  // nothing: not pictures, or not asked
  std::string tested_on;                         // in words; empty: nothing could be held back
  learn::Confusion confusion;
  std::vector<learn::CollapsedPair> collapsed;  // by class number of the result
  std::vector<learn::CurvePoint> curve, other_curve;
  double chance = 0;  // share that guessing gets right among the classes of the data
  std::vector<std::string> notes;
  double embedding_seconds = 0, training_seconds = 0;  // measured
  double factor = 0;                                   // imprinting: between cosines and SOFTMAX
  double l2 = 0;                                       // softmax
  int iterations = 0;
  bool has_stopped_early = false;
};

Result<LearnResult> learn_classes(const LearnOptions& options);

// "<output without .tflite>_labels.txt".
std::string learned_labels_path(const std::string& output);

// The model and its labels, to be written together.
struct LearnedFiles {
  std::string model_path, labels_path;
  std::vector<std::uint8_t> model, labels;
};
Result<LearnedFiles> learned_files(const LearnResult& result, const std::string& output);

}  // namespace reef::compiler
