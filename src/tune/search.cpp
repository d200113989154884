// SPDX-License-Identifier: Apache-2.0
#include "tune/search.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace reef::tune {
namespace {

constexpr std::size_t kBatch = 4;       // points that are chosen before results are looked at again
constexpr double kHopelessShare = 0.1;  // of accuracy: without a goal that says otherwise, nobody wants to lose more
constexpr double kMarginShare = 0.02;   // beyond what a goal allows, because predictions are off by that much
constexpr double kTimeMargin = 0.02;    // likewise of time
constexpr double kPointForTime = 10;    // without a goal: one point of accuracy for a tenth of the time

bool dominates(double ms_a, double accuracy_a, double ms_b, double accuracy_b) {
  return ms_a <= ms_b && accuracy_a >= accuracy_b && (ms_a < ms_b || accuracy_a > accuracy_b);
}

Choices at_level(Choices choices, int level) {
  choices.level = level;
  return choices;
}

constexpr int kFastLevel = static_cast<int>(tiled::Level::kFast);

}  // namespace

std::optional<Json> Search::result_of(const Task& task, std::vector<Task>& missing) {
  const std::string text = to_text(task);
  std::optional<Json> result = store_.find(text);
  if (!result) {
    // Points can share a task: both levels of code are made of one int8 model.
    const bool is_there =
        std::any_of(missing.begin(), missing.end(), [&](const Task& other) { return to_text(other) == text; });
    if (!is_there) missing.push_back(task);
    return std::nullopt;
  }
  if (!result->contains("error")) return result;
  refused_.push_back({text, result->value("error", "")});
  return std::nullopt;
}

bool Search::read_survey(std::vector<Task>& missing) {
  const auto json = result_of(task(TaskKind::kSurvey), missing);
  if (!json) return false;
  survey_ = {};
  survey_.metric = json->value("metric", "");
  survey_.unit = json->value("unit", "");
  survey_.data = json->value("data", "");
  survey_.preprocess = json->value("preprocess", "");
  survey_.fitted_samples = json->value("fitted_samples", std::int64_t{0});
  survey_.choosing_samples = json->value("choosing_samples", std::int64_t{0});
  survey_.reporting_samples = json->value("reporting_samples", std::int64_t{0});
  survey_.float_accuracy = json->value("float_accuracy", 0.0);
  survey_.float_error = json->value("float_standard_error", 0.0);
  sizes_.clear();
  for (const Json& size : (*json)["sizes"]) sizes_.emplace_back(size[0].get<int>(), size[1].get<int>());
  return true;
}

// Below this nobody wants a point.
double Search::worst_accuracy() const {
  const double whole = survey_.is_share() ? 1 : std::abs(survey_.float_accuracy);
  double loss = kHopelessShare;
  if (options_.goal.drop) loss = *options_.goal.drop + kMarginShare;
  double worst = survey_.float_accuracy - loss * whole;
  if (options_.goal.accuracy) worst = std::min(worst, *options_.goal.accuracy - kMarginShare * whole);
  return worst;
}

void Search::read_bodies(std::vector<Task>& missing) {
  bodies_.clear();
  std::vector<Choices> sizes(1);
  for (const auto& [height, width] : sizes_) {
    sizes.emplace_back();
    sizes.back().height = height;
    sizes.back().width = width;
  }
  for (const Choices& size : sizes) {
    const auto json = result_of(task(TaskKind::kFloat, size), missing);
    if (!json) continue;
    bodies_.push_back({size, json->value("accuracy", 0.0), json->value("estimated_ms", 0.0),
                       json->value("parameters", std::int64_t{0}), json->value("streamed_bytes", std::int64_t{0})});
  }
  if (!missing.empty()) return;
  // The given size first: another one is studied only where it is better than pruning is.
  const std::vector<Body> whole = bodies_;
  for (const Body& body : whole) {
    if (body.accuracy < worst_accuracy()) continue;  // pruning does not make it better
    const bool is_beaten = std::any_of(bodies_.begin(), bodies_.end(), [&](const Body& other) {
      return dominates(other.estimated_ms, other.accuracy, body.estimated_ms, body.accuracy);
    });
    if (is_beaten) continue;
    read_cuts(body, missing);
    if (!missing.empty()) return;
  }
}

void Search::read_cuts(const Body& body, std::vector<Task>& missing) {
  const auto json = result_of(task(TaskKind::kStudy, body.choices), missing);
  if (!json) return;
  for (const Json& row : json->value("bodies", Json::array())) {
    Choices choices = body.choices;
    choices.cut = row.value("cut", 0.0);
    const auto figure = result_of(task(TaskKind::kBody, choices), missing);
    if (!figure) continue;
    bodies_.push_back({choices, figure->value("accuracy", 0.0), row.value("estimated_ms", 0.0),
                       row.value("parameters", std::int64_t{0}), row.value("streamed_bytes", std::int64_t{0})});
  }
}

const Search::Body* Search::body_with(const Choices& choices) const {
  const Choices body = body_of(choices);
  const auto found = std::find_if(bodies_.begin(), bodies_.end(), [&](const Body& one) { return one.choices == body; });
  return found == bodies_.end() ? nullptr : &*found;
}

const Point* Search::point_with(const Choices& choices) const {
  const auto found =
      std::find_if(points_.begin(), points_.end(), [&](const Point& point) { return point.choices == choices; });
  return found == points_.end() ? nullptr : &*found;
}

bool Search::add_point(const Choices& choices, const Json& quantized, const Json& compiled) {
  const Body* body = body_with(choices);
  if (body == nullptr) return false;
  Point point;
  point.choices = choices;
  for (const Json& file : compiled.value("files", Json::array())) point.files.push_back(file.get<std::string>());
  point.int8 = quantized.value("file", "");
  point.parameters = body->parameters;
  point.estimated_ms = body->estimated_ms;
  point.simulated_ms = compiled.value("simulated_ms", 0.0);
  point.accuracy = quantized.value("accuracy", 0.0);
  point.standard_error = quantized.value("standard_error", 0.0);
  point.cached_bytes = compiled.value("cached_bytes", std::int64_t{0});
  point.streamed_bytes = compiled.value("streamed_bytes", std::int64_t{0});
  point.operators = compiled.value("operators", std::int64_t{0});
  point.operators_on_edgetpu = compiled.value("operators_on_edgetpu", std::int64_t{0});
  point.has_rewrites = compiled.value("rewrites", std::int64_t{0}) > 0;
  point.float_operators = quantized.value("float_operators", std::int64_t{0});
  point.is_splittable = quantized.value("splittable", false);
  point.int8_hash = quantized.value("hash", "");
  points_.push_back(std::move(point));
  return true;
}

void Search::read_points(const std::vector<Choices>& batch, std::vector<Task>& missing) {
  for (const Choices& choices : batch) {
    tried_.push_back(choices);
    const auto quantized = result_of(task(TaskKind::kQuantize, choices), missing);
    if (!quantized) continue;
    const std::string hash = quantized->value("hash", "");
    const bool is_there = std::any_of(points_.begin(), points_.end(), [&](const Point& point) {
      Choices same = choices;
      same.quantizer = point.choices.quantizer;
      return point.int8_hash == hash && point.choices == same;
    });
    if (is_there) continue;  // another way to quantize gave the same bytes
    const auto compiled = result_of(task(TaskKind::kCompile, choices), missing);
    if (compiled) add_point(choices, *quantized, *compiled);
  }
}

// From what is built: time by the ratio of simulated to estimated time and by what the level gained at the default
// point, accuracy by what quantization cost there.
Search::Candidate Search::predicted(const Choices& choices) const {
  const Body* body = body_with(choices);
  const Point& usual = points_.front();
  Candidate candidate{choices, body->estimated_ms, body->accuracy, body->streamed_bytes > 0 && choices.segments == 1};
  const auto ratio_of_level = [&](int level) {
    const Point* fast = point_with(at_level({}, kFastLevel));
    return level == kFastLevel && fast != nullptr ? fast->simulated_ms / usual.simulated_ms : 1.0;
  };
  const auto of_this_body = std::find_if(points_.begin(), points_.end(), [&](const Point& point) {
    return body_of(point.choices) == body->choices && point.choices.segments == 1;
  });
  if (of_this_body != points_.end()) {
    candidate.ms = of_this_body->simulated_ms / ratio_of_level(of_this_body->choices.level);
  } else {
    candidate.ms = body->estimated_ms * usual.simulated_ms / std::max(bodies_.front().estimated_ms, 1e-9);
  }
  candidate.ms *= ratio_of_level(choices.level);
  const auto same_model = std::find_if(points_.begin(), points_.end(), [&](const Point& point) {
    return quantized_of(point.choices) == quantized_of(choices);
  });
  if (same_model != points_.end()) {
    candidate.accuracy = same_model->accuracy;
  } else if (choices.quantizer == Choices().quantizer) {
    candidate.accuracy -= bodies_.front().accuracy - usual.accuracy;
  }  // another way to quantize could win back all that was lost
  return candidate;
}

// What a point makes worth trying: only where there is something to win.
void Search::add_variants(const Point& point, std::vector<Choices>& choices) const {
  const Choices& given = point.choices;
  const auto add = [&](auto change) {
    Choices other = given;
    change(other);
    choices.push_back(other);
  };
  if (given.quantizer == Choices().quantizer) {
    const double loss = body_with(given)->accuracy - point.accuracy;
    if (loss > std::max(survey_.is_share() ? 0.001 : 0.02, point.standard_error / 4)) {
      for (const char* name : {"mse", "percentile", "minmax", "rounding"}) add([&](Choices& c) { c.quantizer = name; });
    }
    if (point.float_operators > 0) add([](Choices& c) { c.quantizer = "nofloat"; });
    if (point.is_splittable) {
      for (const char* name : {"split", "join"}) add([&](Choices& c) { c.quantizer = name; });
    }
  }
  if (given.rewrites == Choices().rewrites) {
    if (point.has_rewrites) add([](Choices& c) { c.rewrites = "none"; });
    if (point.operators_on_edgetpu < point.operators) add([](Choices& c) { c.rewrites = "all"; });
  }
  if (given.segments == 1 && point.streamed_bytes > 0) {
    for (int n = 2; n <= options_.devices; ++n) add([&](Choices& c) { c.segments = n; });
  }
}

std::vector<Choices> Search::untried() const {
  std::vector<Choices> all;
  for (const Body& body : bodies_) {
    for (const int level : {static_cast<int>(tiled::kDefaultLevel), kFastLevel})
      all.push_back(at_level(body.choices, level));
  }
  for (const Point& point : points_) {
    if (point.is_on_front) add_variants(point, all);
  }
  std::vector<Choices> result;
  for (const Choices& choices : all) {
    const auto is_same = [&](const Choices& other) { return other == choices; };
    if (std::none_of(tried_.begin(), tried_.end(), is_same) && std::none_of(result.begin(), result.end(), is_same))
      result.push_back(choices);
  }
  return result;
}

bool Search::is_worth_building(const Candidate& candidate) const {
  if (candidate.accuracy < worst_accuracy()) return false;
  return std::none_of(points_.begin(), points_.end(), [&](const Point& point) {
    return dominates(point.simulated_ms, point.accuracy, candidate.ms * (1 - kTimeMargin),
                     candidate.accuracy + point.standard_error / 4);
  });
}

bool Search::is_preferred(const Candidate& a, const Candidate& b) const {
  const auto figures = [&](const Candidate& c) {
    return GoalFigures{c.ms, c.accuracy, survey_.float_accuracy, survey_.is_share(), c.streams};
  };
  if (!options_.goal.empty()) return is_better(options_.goal, figures(a), figures(b));
  const double whole = survey_.is_share() ? 1 : std::abs(survey_.float_accuracy);
  const auto score = [&](const Candidate& c) {
    return c.ms / points_.front().simulated_ms - kPointForTime * c.accuracy / whole;
  };
  return score(a) < score(b);
}

// The front of the predictions comes first, in the order of preference; then the front of what is left.
std::vector<Choices> Search::next_batch() const {
  std::vector<Candidate> left;
  for (const Choices& choices : untried()) {
    const Candidate candidate = predicted(choices);
    if (is_worth_building(candidate)) left.push_back(candidate);
  }
  const auto room = static_cast<std::size_t>(std::max(0, options_.points - static_cast<int>(points_.size())));
  std::vector<Choices> batch;
  while (!left.empty() && batch.size() < std::min(kBatch, room)) {
    std::vector<Candidate> front;
    for (const Candidate& one : left) {
      const bool is_behind = std::any_of(left.begin(), left.end(), [&](const Candidate& other) {
        return dominates(other.ms, other.accuracy, one.ms, one.accuracy);
      });
      if (!is_behind) front.push_back(one);
    }
    std::stable_sort(front.begin(), front.end(), [&](const auto& a, const auto& b) { return is_preferred(a, b); });
    for (const Candidate& one : front) {
      if (batch.size() < std::min(kBatch, room)) batch.push_back(one.choices);
      std::erase_if(left, [&](const Candidate& other) { return other.choices == one.choices; });
    }
  }
  return batch;
}

void Search::mark_front() {
  for (Point& point : points_) {
    point.is_on_front = std::none_of(points_.begin(), points_.end(), [&](const Point& other) {
      return other.choices.segments <= point.choices.segments &&
             dominates(other.simulated_ms, other.accuracy, point.simulated_ms, point.accuracy);
    });
  }
}

void Search::read_reports(std::vector<Task>& missing) {
  Choices original;
  original.quantizer = kFloatModel;
  if (const auto json = result_of(task(TaskKind::kReport, original), missing))
    survey_.float_report = json->value("accuracy", 0.0);
  for (Point& point : points_) {
    const auto json = result_of(task(TaskKind::kReport, point.choices), missing);
    if (!json) continue;
    point.report_accuracy = json->value("accuracy", 0.0);
    point.report_error = json->value("standard_error", 0.0);
  }
}

// Goes through the whole search again, as far as there are results.
Result<std::vector<Task>> Search::next(bool only_reports) {
  std::vector<Task> missing;
  tried_.clear();
  points_.clear();
  refused_.clear();
  if (!read_survey(missing)) return missing;
  read_bodies(missing);
  if (bodies_.empty() && missing.empty()) {
    return invalid_input("{}", refused_.empty() ? "nothing can be built" : refused_.front().why);
  }
  if (!missing.empty() && !only_reports) return missing;
  std::vector<Choices> batch = {Choices(), at_level({}, kFastLevel)};
  while (!batch.empty()) {
    std::vector<Task> of_batch;
    read_points(batch, of_batch);
    if (!of_batch.empty() && !only_reports) return of_batch;
    if (points_.empty() || !(points_.front().choices == Choices())) {
      if (only_reports) break;
      return invalid_input("the model cannot be compiled: {}", refused_.empty() ? "" : refused_.back().why);
    }
    mark_front();
    if (!of_batch.empty()) break;
    batch = next_batch();
  }
  missing.clear();
  read_reports(missing);
  std::stable_sort(points_.begin(), points_.end(),
                   [](const Point& a, const Point& b) { return a.simulated_ms < b.simulated_ms; });
  return missing;
}

GoalFigures Search::figures_of(const Point& point) const {
  return {point.simulated_ms, point.accuracy, survey_.float_accuracy, survey_.is_share(), point.streamed_bytes > 0};
}

int Search::chosen() const {
  std::vector<GoalFigures> figures;
  for (const Point& point : points_) figures.push_back(figures_of(point));
  return choose_point(options_.goal, figures);
}

int Search::expected_tasks() const {
  const int sizes = static_cast<int>(sizes_.size()) + 1;
  const int bodies = std::max(static_cast<int>(bodies_.size()), 6);
  return 2 + 2 * sizes + bodies + 3 * options_.points;  // each point: quantized, compiled, reported on
}

}  // namespace reef::tune
