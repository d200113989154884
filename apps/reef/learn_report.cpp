// SPDX-License-Identifier: Apache-2.0
#include "learn_report.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/shell_word.h"
#include "console.h"
#include "report/summary.h"

namespace reef::app {
namespace {

std::string counted_pictures(std::int64_t count) { return fmt::format("{} picture{}", count, count == 1 ? "" : "s"); }

constexpr std::size_t kShownRejected = 20;
constexpr std::size_t kNameColumns = 14;

std::string shortened(std::string name, std::size_t columns) {
  if (name.size() <= columns) return name;
  std::size_t end = columns - 1;
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0) == 0x80) --end;  // not inside a UTF-8 character
  return name.substr(0, end) + "~";
}

void print_confusion(const compiler::LearnResult& result) {
  const std::vector<std::size_t> seen = result.confusion.classes_seen();
  const auto name = [&](std::size_t c) { return shortened(result.class_names[c], kNameColumns); };
  const double share = result.confusion.accuracy(), total = static_cast<double>(result.confusion.total());
  print_text("{} of {} right: {:.1f} % (standard error {:.1f} %), measured on {}\n", result.confusion.right(),
             result.confusion.total(), 100 * share, 100 * std::sqrt(share * (1 - share) / total), result.tested_on);
  print_text("  {:<{}}", "truth \\ answer", kNameColumns);
  for (const std::size_t c : seen) print_text(" {:>{}}", name(c), kNameColumns);
  print_text("\n");
  for (const std::size_t truth : seen) {
    const std::vector<std::int64_t>& row = result.confusion.counts[truth];
    if (std::all_of(row.begin(), row.end(), [](std::int64_t count) { return count == 0; })) continue;
    print_text("  {:<{}}", name(truth), kNameColumns);
    for (const std::size_t answer : seen) print_text(" {:>{}}", row[answer], kNameColumns);
    print_text("\n");
  }
}

void print_curve(const std::vector<learn::CurvePoint>& curve) {
  if (curve.size() < 2) return;
  print_text("pictures of each class, and how many are right then (means over draws):\n ");
  for (const learn::CurvePoint& point : curve) print_text(" {}: {:.1f} %", point.images, 100 * point.accuracy);
  print_text("\n");
}

report::Summary learned_summary(const compiler::LearnResult& result, const std::string& output,
                                const std::string& labels) {
  report::Summary summary;
  summary.add("accuracy",
              result.confusion.total() > 0
                  ? fmt::format("{} of {} right, {:.1f} % (measured on {})", result.confusion.right(),
                                result.confusion.total(), 100 * result.confusion.accuracy(), result.tested_on)
                  : "not measured: there are too few pictures to hold any back");
  summary.add("classes", fmt::format("{}", result.class_names.size()));
  summary.add("files", fmt::format("{}, {}", output, labels));
  summary.add("next", fmt::format("reef run {} --image PICTURE", shell_word(output)));
  return summary;
}

}  // namespace

void print_learned(const compiler::LearnOptions& options, const compiler::LearnResult& result,
                   const std::string& output, const std::string& labels) {
  print_text("head found: {}; embeddings of {} numbers from {}\n", learn::to_string(result.found), result.dimension,
             result.data);
  if (!result.preprocess.empty()) print_text("preprocessing {}\n", result.preprocess);
  for (std::size_t i = 0; i < std::min(kShownRejected, result.rejected.size()); ++i) {
    print_text("left out: {} {}\n", result.rejected[i].name, result.rejected[i].reason);
  }
  if (result.rejected.size() > kShownRejected) {
    print_text("left out: {} more (--json lists all)\n", result.rejected.size() - kShownRejected);
  }
  if (result.kept > 0) print_text("kept {} classes\n", result.kept);
  constexpr int kShownClasses = 40;
  int shown = 0;
  for (std::size_t c = 0; c < result.class_names.size(); ++c) {
    if (result.images[c] == 0) continue;
    if (++shown > kShownClasses) continue;
    print_text("  {:>4}  {:<24} {}\n", c, result.class_names[c], counted_pictures(result.images[c]));
  }
  if (shown > kShownClasses) print_text("  ... {} more classes (--json lists all)\n", shown - kShownClasses);
  if (result.class_names.size() == 1) {
    print_text(
        "note: there is one class alone: whatever it is shown, the model says '{}'. Add a folder of pictures that show "
        "something else\n",
        result.class_names[0]);
  }
  if (result.mirror_test) {
    const learn::MirrorTest& test = *result.mirror_test;
    print_text("mirrored pictures {}: {} of {} are taken for their class, {} as they are (each left out)\n",
               result.is_mirrored ? "learned from as well" : "left alone", test.mirrored_right, test.pictures,
               test.right);
  }
  print_text("embedding {:.1f} s on {}, training {:.3f} s (measured)", result.embedding_seconds,
             options.embed.place.description(), result.training_seconds);
  if (options.method == compiler::LearnMethod::kSoftmax) {
    print_text("; {} iterations{}, l2 {:g}", result.iterations, result.has_stopped_early ? " (stopped early)" : "",
               result.l2);
  } else {
    print_text("; factor {:.1f}", result.factor);
  }
  print_text("\n");
  if (result.confusion.total() > 0) print_confusion(result);
  print_curve(result.curve);
  for (const std::string& note : result.notes) print_text("note: {}\n", note);
  print_exact("{}", report::closing_lines(learned_summary(result, output, labels), has_colour()));
}

}  // namespace reef::app
