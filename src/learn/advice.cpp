// SPDX-License-Identifier: Apache-2.0
#include "learn/advice.h"

#include <algorithm>
#include <cmath>

#include "learn/imprinting.h"
#include "learn/random.h"
#include "learn/vector_math.h"

namespace reef::learn {
namespace {

constexpr std::int64_t kRowsToCompare = 4;
// A class with fewer than this share of the largest's pictures is said to be short of them.
constexpr double kFewShare = 0.34;
constexpr double kNoticeablePoints = 1.0;

std::string words(const std::vector<std::string>& names, std::size_t c) {
  return c < names.size() && !names[c].empty() ? fmt::format("'{}'", names[c]) : fmt::format("class {}", c);
}

// Sums of normalized rows, by class.
std::vector<ImprintedClass> sums_of(const Embeddings& embeddings, int classes) {
  std::vector<ImprintedClass> sums(static_cast<std::size_t>(classes));
  for (ImprintedClass& each : sums) each.sum.resize(static_cast<std::size_t>(embeddings.dimension));
  for (std::size_t i = 0; i < embeddings.size(); ++i) {
    ImprintedClass& own = sums[at(embeddings.labels[i])];
    const std::vector<float> direction = embeddings.direction(i);
    for (std::size_t k = 0; k < direction.size(); ++k) own.sum[k] += direction[k];
    ++own.images;
  }
  return sums;
}

// Rows on the right side of the middle between two classes.
struct Side {
  double right = 0, total = 0;
};
void judge_rows(const Embeddings& embeddings, const std::vector<ImprintedClass>& sums,
                const std::vector<std::vector<float>>& weights, std::vector<std::vector<Side>>& sides) {
  for (std::size_t i = 0; i < embeddings.size(); ++i) {
    const auto own = static_cast<std::size_t>(embeddings.labels[i]);
    if (sums[own].images < kRowsToCompare) continue;
    const std::vector<float> row = normalized(embeddings.row(i));
    const double without = cosine_left_out(sums[own].sum, sums[own].sum_length(), row, embeddings.direction(i));
    for (std::size_t other = 0; other < sums.size(); ++other) {
      if (other == own || sums[other].images < kRowsToCompare) continue;
      Side& side = sides[std::min(own, other)][std::max(own, other)];
      side.right += without > dot(weights[other], row) ? 1 : 0;
      side.total += 1;
    }
  }
}

std::vector<int> usual_steps(std::int64_t most) {
  std::vector<int> steps;
  for (std::int64_t decade = 1; decade <= most; decade *= 10) {
    for (const std::int64_t step : {decade, 2 * decade, 5 * decade}) {
      if (step <= most) steps.push_back(static_cast<int>(step));
    }
  }
  if (!steps.empty() && steps.back() < most && steps.back() * 1.25 > static_cast<double>(most)) steps.pop_back();
  if (steps.empty() || steps.back() < most) steps.push_back(static_cast<int>(most));
  return steps;
}

// n rows of each class.
std::vector<std::size_t> draw(const Embeddings& embeddings, int classes, int n, std::uint32_t seed) {
  std::vector<std::size_t> rows(embeddings.size());
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = i;
  Random random(seed);
  random.shuffle(rows);
  std::vector<int> taken(static_cast<std::size_t>(classes));
  std::vector<std::size_t> result;
  for (const std::size_t row : rows) {
    if (taken[at(embeddings.labels[row])]++ < n) result.push_back(row);
  }
  std::sort(result.begin(), result.end());
  return result;
}

}  // namespace

std::int64_t Confusion::total() const {
  std::int64_t sum = 0;
  for (const auto& row : counts) {
    for (const std::int64_t count : row) sum += count;
  }
  return sum;
}

std::int64_t Confusion::right() const {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) sum += counts[i][i];
  return sum;
}

double Confusion::accuracy() const {
  return total() > 0 ? static_cast<double>(right()) / static_cast<double>(total()) : 0;
}

std::vector<std::size_t> Confusion::classes_seen() const {
  std::vector<std::size_t> seen;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    bool is_seen = false;
    for (std::size_t k = 0; k < counts.size(); ++k) is_seen |= counts[i][k] > 0 || counts[k][i] > 0;
    if (is_seen) seen.push_back(i);
  }
  return seen;
}

Confusion confusion(const std::vector<std::int32_t>& truth, const std::vector<std::int32_t>& answers, int classes) {
  Confusion result;
  const auto size = static_cast<std::size_t>(classes);
  result.counts.assign(size, std::vector<std::int64_t>(size));
  for (std::size_t i = 0; i < truth.size(); ++i) {
    ++result.counts[at(truth[i])][at(answers[i])];
  }
  return result;
}

std::vector<CollapsedPair> collapsed_pairs(const Embeddings& embeddings, int classes) {
  const std::vector<ImprintedClass> sums = sums_of(embeddings, classes);
  std::vector<std::vector<float>> weights;
  for (const ImprintedClass& each : sums) weights.push_back(each.weights());
  std::vector<std::vector<Side>> sides(sums.size(), std::vector<Side>(sums.size()));
  judge_rows(embeddings, sums, weights, sides);
  std::vector<CollapsedPair> pairs;
  for (std::size_t a = 0; a < sums.size(); ++a) {
    for (std::size_t b = a + 1; b < sums.size(); ++b) {
      const Side& side = sides[a][b];
      if (side.total == 0 || side.right / side.total >= kCollapsedBelow) continue;
      pairs.push_back({static_cast<int>(a), static_cast<int>(b), side.right / side.total, dot(weights[a], weights[b])});
    }
  }
  std::stable_sort(pairs.begin(), pairs.end(), [](const auto& x, const auto& y) { return x.right < y.right; });
  return pairs;
}

std::vector<std::string> imbalance_notes(const std::vector<std::int64_t>& images,
                                         const std::vector<std::string>& class_names) {
  std::vector<std::string> notes;
  if (images.empty()) return notes;
  const std::int64_t most = *std::max_element(images.begin(), images.end());
  for (std::size_t c = 0; c < images.size(); ++c) {
    if (static_cast<double>(images[c]) >= kFewShare * static_cast<double>(most)) continue;
    notes.push_back(
        fmt::format("{} has {} picture{}, the largest class {}: it will be recognised less often than it "
                    "should (softmax: --balanced makes up for some of it)",
                    words(class_names, c), images[c], images[c] == 1 ? "" : "s", most));
  }
  return notes;
}

Result<std::vector<std::int32_t>> imprint_and_answer(const Embeddings& train, const Embeddings& test, int classes) {
  std::vector<std::vector<float>> weights;
  for (const ImprintedClass& each : sums_of(train, classes)) weights.push_back(each.weights());
  std::vector<std::int32_t> answers;
  for (std::size_t i = 0; i < test.size(); ++i) answers.push_back(nearest_class(weights, test.row(i)));
  return answers;
}

Result<std::vector<CurvePoint>> learning_curve(const Embeddings& train, const Embeddings& test, int classes,
                                               const Learner& learner, const CurveOptions& options) {
  REEF_RETURN_IF_ERROR(check_embeddings(train, classes));
  REEF_RETURN_IF_ERROR(check_embeddings(test, classes));
  REEF_REQUIRE(!test.empty(), "a learning curve needs pictures to test with");
  const std::vector<std::int64_t> counts = images_per_class(train, classes);
  const std::int64_t most = *std::min_element(counts.begin(), counts.end());
  std::vector<CurvePoint> curve;
  for (const int n : options.steps.empty() ? usual_steps(most) : options.steps) {
    if (n < 1 || n > most) continue;
    CurvePoint point{n, 0, 0, n == most ? 1 : options.draws};
    double squares = 0;
    for (int i = 0; i < point.draws; ++i) {
      const auto rows = draw(train, classes, n, options.seed + static_cast<std::uint32_t>(i));
      REEF_ASSIGN_OR_RETURN(const std::vector<std::int32_t> answers, learner(chosen(train, rows), test));
      const double accuracy = confusion(test.labels, answers, classes).accuracy();
      point.accuracy += accuracy / point.draws;
      squares += accuracy * accuracy / point.draws;
    }
    point.spread = std::sqrt(std::max(0.0, squares - point.accuracy * point.accuracy));
    curve.push_back(point);
  }
  return curve;
}

std::string curve_advice(const std::vector<CurvePoint>& curve, std::size_t test_samples) {
  if (curve.size() < 2) return {};
  const CurvePoint& last = curve.back();
  const CurvePoint* before = &curve[curve.size() - 2];
  for (const CurvePoint& point : curve) {
    if (2 * point.images <= last.images) before = &point;
  }
  const double points = 100 * (last.accuracy - before->accuracy);
  const std::string from = fmt::format("from {} to {} pictures of each class", before->images, last.images);
  if (last.accuracy >= 0.995)
    return fmt::format("{:.1f} % are right: more pictures have little to add", 100 * last.accuracy);
  const double share = std::clamp(last.accuracy, 0.05, 0.95);
  const double error =
      100 * std::sqrt(share * (1 - share) / static_cast<double>(std::max<std::size_t>(1, test_samples)));
  if (points >= kNoticeablePoints && points < error) {
    return fmt::format("{} accuracy rose by {:.1f} points, but {} pictures to test with cannot tell that from chance",
                       from, points, test_samples);
  }
  if (points >= kNoticeablePoints) {
    return fmt::format("{} accuracy rose by {:.1f} points: more pictures would probably help", from, points);
  }
  return fmt::format(
      "{} accuracy changed by {:+.1f} points: more pictures of this kind would probably not help much; "
      "other views, a better extractor or softmax regression might",
      from, points);
}

}  // namespace reef::learn
