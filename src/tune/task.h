// SPDX-License-Identifier: Apache-2.0
// The work of `reef tune` in pieces. A piece depends on nothing but its text, the model and the samples, so that it can
// be done in any process and on any machine, and its result be kept (store.h).
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "tune/choices.h"

namespace reef::tune {

enum class TaskKind {
  kSurvey,    // what the model and the samples are: metric, sizes to try
  kFloat,     // the float model at a size: loads, accuracy, estimated time
  kStudy,     // what can be pruned at a size: one float model for each cut
  kBody,      // accuracy of a pruned float model
  kQuantize,  // an int8 model and its accuracy on the samples to choose by
  kCompile,   // compiled and verified files and their simulated time
  kReport,    // accuracy of an int8 model (or, with the quantizer "float", of the float model) on the other samples
};

struct Task {
  TaskKind kind = TaskKind::kSurvey;
  Choices choices;  // those that matter to the kind; all others as by default
};

// Leaves out what does not matter to the kind: tasks with equal results have equal texts.
Task task(TaskKind kind, const Choices& choices = {});
std::string to_text(const Task& task);  // "compile size=given cut=0.45 ..."
Result<Task> parse_task(std::string_view text);

}  // namespace reef::tune
