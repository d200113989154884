// SPDX-License-Identifier: Apache-2.0
// Which points are worth building.
//
// A point costs a quantization and a compilation, so the search predicts first. Of every float body (a size, a degree
// of pruning) the accuracy is measured and the time estimated by shapes (partition/cost.h). What the default point lost
// by quantization and gained or lost against its estimate is taken to be the same for the others, until they are built.
// Built is what, by these predictions, no built point beats: first the front, then what lies just behind it; what the
// goal asks for comes before the rest. Points on the front whose quantization costs accuracy are quantized in other
// ways, too.
//
// The search is a function of the results that are in the store: next() names the tasks that are missing, which may be
// done in any order, anywhere, and is asked again. So a run that was killed goes on where it was, a repeated one finds
// everything, and the number of workers does not matter.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "tune/goal.h"
#include "tune/store.h"
#include "tune/task.h"

namespace reef::tune {

struct SearchOptions {
  Goal goal;
  int points = 12;  // to build, at most
  int devices = 1;  // Edge TPUs that segments may be spread over
};

struct Point {
  Choices choices;
  std::vector<std::string> files;  // in the store's folder; several where there are segments
  std::string int8;                // likewise: the quantized model that they were made of
  std::int64_t parameters = 0;
  double estimated_ms = 0, simulated_ms = 0;
  double accuracy = 0, standard_error = 0;              // of the int8 model on the samples that chose; measured
  std::optional<double> report_accuracy, report_error;  // on the others; measured
  std::int64_t cached_bytes = 0, streamed_bytes = 0;
  std::int64_t operators = 0, operators_on_edgetpu = 0;
  // What other ways to make it there could be.
  std::int64_t float_operators = 0;
  bool has_rewrites = false, is_splittable = false;
  std::string int8_hash;
  bool is_on_front = false;  // no other point is at least as fast and as accurate, and better in one of them
};

// Candidates that could not be built, and why.
struct Refused {
  std::string what, why;
};

struct Survey {
  std::string metric, unit, data, preprocess;
  std::int64_t fitted_samples = 0, choosing_samples = 0, reporting_samples = 0;
  double float_accuracy = 0, float_error = 0;
  std::optional<double> float_report;
  bool is_share() const { return unit.empty(); }
};

class Search {
 public:
  Search(const SearchOptions& options, Store& store) : options_(options), store_(store) {}

  // Tasks without which it cannot go on; each can be done on its own. None: it is done. `only_reports`: nothing more is
  // to be built, what there is shall be measured on the samples that did not choose.
  Result<std::vector<Task>> next(bool only_reports = false);

  // Valid when next() has returned nothing; those that are built, by time.
  const std::vector<Point>& points() const { return points_; }
  const std::vector<Refused>& refused() const { return refused_; }
  const Survey& survey() const { return survey_; }
  // The point for the goal (choose_point), by the samples that chose; -1: there is no point.
  int chosen() const;
  GoalFigures figures_of(const Point& point) const;
  // How many tasks there will be in all, as far as one can tell.
  int expected_tasks() const;

 private:
  struct Body {
    Choices choices;
    double accuracy = 0, estimated_ms = 0;
    std::int64_t parameters = 0, streamed_bytes = 0;
  };
  struct Candidate {
    Choices choices;
    double ms = 0, accuracy = 0;  // predicted
    bool streams = false;
  };

  // Nothing: the task is missing and was added to those, or it failed, which refused() then says.
  std::optional<Json> result_of(const Task& task, std::vector<Task>& missing);
  bool read_survey(std::vector<Task>& missing);
  void read_bodies(std::vector<Task>& missing);
  void read_cuts(const Body& body, std::vector<Task>& missing);
  // Points of the batch that are done; the tasks of the others.
  void read_points(const std::vector<Choices>& batch, std::vector<Task>& missing);
  bool add_point(const Choices& choices, const Json& quantized, const Json& compiled);
  const Body* body_with(const Choices& choices) const;
  const Point* point_with(const Choices& choices) const;
  Candidate predicted(const Choices& choices) const;
  std::vector<Choices> untried() const;
  void add_variants(const Point& point, std::vector<Choices>& choices) const;
  std::vector<Choices> next_batch() const;
  bool is_worth_building(const Candidate& candidate) const;
  bool is_preferred(const Candidate& a, const Candidate& b) const;
  double worst_accuracy() const;
  void mark_front();
  void read_reports(std::vector<Task>& missing);

  SearchOptions options_;
  Store& store_;
  Survey survey_;
  std::vector<std::pair<int, int>> sizes_;
  std::vector<Body> bodies_;
  std::vector<Choices> tried_;  // in order
  std::vector<Point> points_;
  std::vector<Refused> refused_;
};

}  // namespace reef::tune
