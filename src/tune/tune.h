// SPDX-License-Identifier: Apache-2.0
// `reef tune`: the search, the work and the files together.
//
//   survey -> float bodies (sizes, pruning) -> predicted front -> build a few -> look again ... -> report
//
// Points are chosen by one half of the samples that nothing was fitted to, and reported on by the other. Accuracy is
// measured with the int8 model on the CPU's kernels; times are simulated on the virtual Edge TPU, and what stays on the
// CPU is estimated. Nothing here has run on a real one.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tune/search.h"
#include "tune/workbench.h"

namespace reef::tune {

struct TuneRequest {
  Subject subject;
  SearchOptions search;
  std::string output;       // folder
  double time_limit_s = 0;  // after which no point is begun; 0: none
  // Told before each task how many are done, of how many about.
  std::function<void(const Task& task, int done, int expected)> progress;
};

struct TuneOutcome {
  Survey survey;
  std::vector<Point> points;  // by time
  std::vector<Refused> refused;
  int chosen = -1;          // for the goal, or the most useful one
  std::string missed;       // why the goal is not met; empty: it is, or there is none
  bool ran_out = false;     // the time limit ended the search
  int done = 0, found = 0;  // tasks of this run, and results that were there already
  double seconds = 0;       // measured
};

// Searches, and writes tune.svg and tune.json beside the files of the points.
Result<TuneOutcome> tune(const TuneRequest& request);

// For work that is spread over processes. Every process gets the same request, but for `output` and paths.
struct PendingTask {
  std::string task;
  std::vector<std::string> needs;  // files in the output folder that must be there
  std::string record;              // file that says it is done
};
struct Pending {
  std::vector<PendingTask> tasks;                    // without which the search cannot go on; none: it is done
  std::vector<std::string> model_files, data_files;  // that are read
  int done = 0, expected = 0;
};
Result<Pending> pending_tasks(const TuneRequest& request, bool only_reports);
// Does one of them. The result: files in the output folder that were made, the record first.
Result<std::vector<std::string>> do_task(const TuneRequest& request, const std::string& text);

Json outcome_json(const TuneRequest& request, const TuneOutcome& outcome);

}  // namespace reef::tune
