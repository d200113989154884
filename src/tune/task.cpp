// SPDX-License-Identifier: Apache-2.0
#include "tune/task.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

namespace reef::tune {
namespace {

struct KindName {
  TaskKind kind;
  std::string_view name;
};
constexpr KindName kKinds[] = {{TaskKind::kSurvey, "survey"},     {TaskKind::kFloat, "float"},
                               {TaskKind::kStudy, "study"},       {TaskKind::kBody, "body"},
                               {TaskKind::kQuantize, "quantize"}, {TaskKind::kCompile, "compile"},
                               {TaskKind::kReport, "report"}};

Choices of_size(const Choices& choices) {
  Choices size;
  size.height = choices.height;
  size.width = choices.width;
  return size;
}

}  // namespace

Task task(TaskKind kind, const Choices& choices) {
  switch (kind) {
    case TaskKind::kSurvey:
      return {kind, {}};
    case TaskKind::kFloat:
    case TaskKind::kStudy:
      return {kind, of_size(choices)};
    case TaskKind::kBody:
      return {kind, body_of(choices)};
    case TaskKind::kQuantize:
    case TaskKind::kReport:
      return {kind, quantized_of(choices)};
    case TaskKind::kCompile:
      break;
  }
  return {kind, choices};
}

std::string to_text(const Task& task) {
  const auto kind =
      std::find_if(std::begin(kKinds), std::end(kKinds), [&](const KindName& one) { return one.kind == task.kind; });
  return fmt::format("{} {}", kind->name, to_text(task.choices));
}

Result<Task> parse_task(std::string_view text) {
  const std::string_view word = text.substr(0, text.find(' '));
  const auto kind =
      std::find_if(std::begin(kKinds), std::end(kKinds), [&](const KindName& one) { return one.name == word; });
  REEF_REQUIRE(kind != std::end(kKinds), "'{}' is no task of reef tune", word);
  text.remove_prefix(std::min(word.size() + 1, text.size()));
  REEF_ASSIGN_OR_RETURN(const Choices choices, parse_choices(text));
  return task(kind->kind, choices);
}

}  // namespace reef::tune
