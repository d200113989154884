// SPDX-License-Identifier: Apache-2.0
#include "report/documents.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/registry.h"
#include "partition/check.h"

namespace reef::report {
namespace {

std::string arity_text(ops::Arity arity) {
  if (arity.min == arity.max) return fmt::format("{}", arity.min);
  if (arity.max >= ops::kAnyNumber) return fmt::format("{} or more", arity.min);
  return fmt::format("{} to {}", arity.min, arity.max);
}

// Where GitHub and most others put a heading of one word.
std::string anchor(std::string_view name) {
  std::string text(name);
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// With a period, if it has none.
std::string sentence(std::string_view text) { return fmt::format("{}{}", text, text.ends_with('.') ? "" : "."); }

std::string chip_column(const ops::ChipSupport& chip) {
  if (chip.first_runtime == 0) return "CPU only";
  if (chip.first_runtime == ops::kOldestRuntime) return "all runtimes";
  return fmt::format("from runtime {}", chip.first_runtime);
}

std::string summary_row(const ops::OpDef& op) {
  std::vector<std::string> rules;
  for (const ops::ChipRule& rule : op.chip.rules) rules.push_back(fmt::format("`{}`", rule.id));
  const std::string rewrite = op.chip.rewrite.empty() ? "" : fmt::format("rewrite `{}`", op.chip.rewrite);
  return fmt::format("| [{}](#{}) | {} | {} |\n", op.name, anchor(op.name), chip_column(op.chip),
                     rules.empty() ? rewrite : fmt::format("{}", fmt::join(rules, ", ")));
}

std::string rule_item(const ops::ChipRule& rule) {
  std::string text = fmt::format("- `{}`: {}", rule.id, rule.says);
  if (rule.runtimes.from != ops::kOldestRuntime || rule.runtimes.to != ops::kNewestRuntime) {
    text += rule.runtimes.to == ops::kNewestRuntime
                ? fmt::format(" (From runtime {}.)", rule.runtimes.from)
                : fmt::format(" (Runtimes {} to {}.)", rule.runtimes.from, rule.runtimes.to);
  }
  text += fmt::format("\n  - Otherwise: {}", rule.suggestion);
  if (!rule.rewrite.empty()) text += fmt::format(" Rewrite: `{}`.", rule.rewrite);
  text += fmt::format("\n  - Known from: {}. {}\n  - Google's status: \"{}\"\n", to_string(rule.source),
                      sentence(rule.evidence), to_string(rule.status));
  return text;
}

std::string chip_text(const ops::ChipSupport& chip) {
  if (chip.first_runtime == 0) {
    std::string text = fmt::format("\nEdge TPU: CPU only. {}", chip.instead);
    if (!chip.rewrite.empty()) text += fmt::format(" Rewrite: `{}`.", chip.rewrite);
    return text + "\n";
  }
  std::string text = fmt::format("\nEdge TPU: {}.", chip_column(chip));
  if (chip.newest_version > 0) text += fmt::format(" Versions of the op up to {}.", chip.newest_version);
  if (!chip.if_newer.empty()) text += fmt::format(" {}", chip.if_newer);
  if (!chip.newer_rewrite.empty()) text += fmt::format(" Rewrite: `{}`.", chip.newer_rewrite);
  if (!chip.evidence.empty()) text += fmt::format(" {}", sentence(chip.evidence));
  text += "\n";
  if (!chip.rules.empty()) text += "\n";
  for (const ops::ChipRule& rule : chip.rules) text += rule_item(rule);
  return text;
}

std::string op_section(const ops::OpDef& op) {
  std::string text =
      fmt::format("### {}\n\n{}{} Inputs: {}. Outputs: {}. Types: {}.\n", op.name, op.is_custom ? "(Custom op.) " : "",
                  op.summary, arity_text(op.inputs), arity_text(op.outputs), op.types);
  if (!op.attributes.empty()) text += "\n| attribute | meaning |\n| --- | --- |\n";
  for (const ops::AttributeDoc& row : op.attributes) text += fmt::format("| `{}` | {} |\n", row.name, row.meaning);
  return text + chip_text(op.chip) + "\n";
}

constexpr std::string_view kOpsIntroduction =
    "# Operations\n\n"
    "Generated from `src/ops/*.cpp` by `make docs`; a test fails when it is stale. {} operations run on the CPU, "
    "integers\n"
    "bit for bit as TFLite's reference kernels; {} of them also run on the Edge TPU. \"hybrid\" means float32 "
    "activations\n"
    "with integer weights.\n\n"
    "## What the Edge TPU runs\n\n"
    "Rules say what Google's compilers accept. Nobody has published why; where a limit lies between two observations, "
    "the\n"
    "rule says so. A runtime is the version that a compiled file asks for (`-m`, {} to {}); the evidence for Coral's "
    "table\n"
    "is cited as \"Table 1\", users' reports as \"edgetpu#number\", issues of google-coral/edgetpu.\n\n"
    "| op | Edge TPU | rules |\n| --- | --- | --- |\n";

constexpr std::string_view kUnpredicted =
    "\nSome things no rule here predicts. Google's compiler gives up on some models as a whole although each of their\n"
    "operators fits, because of large activations between them, and it does so unevenly: YOLOv5s at 352 and 480 "
    "pixels\n"
    "fails where 384 and 512 compile (edgetpu#512). A PAD that feeds an ADD made it crash in a feature pyramid. And "
    "it\n"
    "leaves single operators on the CPU that stand between others that do not fit.\n";

}  // namespace

std::string ops_reference() {
  std::vector<const ops::OpDef*> ops(ops::all_ops().begin(), ops::all_ops().end());
  std::sort(ops.begin(), ops.end(), [](const auto* a, const auto* b) { return a->name < b->name; });
  const auto on_chip = std::count_if(ops.begin(), ops.end(), [](const auto* op) { return op->chip.first_runtime > 0; });
  std::string text =
      fmt::format(fmt::runtime(kOpsIntroduction), ops.size(), on_chip, ops::kOldestRuntime, ops::kNewestRuntime);
  for (const ops::OpDef* op : ops) text += summary_row(*op);
  text += "\n## Rules for every operation\n\n";
  for (const ops::ChipRule& rule : partition::model_rules()) text += rule_item(rule);
  text += kUnpredicted;
  text += "\n## Each operation\n\n";
  for (const ops::OpDef* op : ops) text += op_section(*op);
  text.pop_back();  // one newline at the end of the file
  return text;
}

}  // namespace reef::report
