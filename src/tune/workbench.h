// SPDX-License-Identifier: Apache-2.0
// Does tasks: loads, prunes, quantizes, compiles and measures, in memory, with the stages that the other commands use.
//
// A task whose choices cannot be built (an operator does not take the size, nothing can be pruned) has a result, too:
// {"error": sentence}. Only what nothing can be done about ends the search: no model, no samples, no memory.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "chip/links.h"
#include "compiler/float_subject.h"
#include "quantize/quantize.h"
#include "tune/store.h"
#include "tune/task.h"

namespace reef::tune {

// What is tuned, with which samples, for what. Everything here decides results.
struct Subject {
  std::string model;
  compiler::FrontEndOptions front_end;
  data::DatasetOptions data;
  std::string metric;  // empty: what suits the model
  const chip::LinkProfile* link = nullptr;
  bool host_is_assumed = true;
  std::int64_t fit_samples = 512, judge_samples = 4000;  // at most; half of the latter choose, the others report
  std::vector<double> cuts = {0.15, 0.3, 0.45, 0.6, 0.8};
  // These do not.
  int threads = 1;
  Budget budget = {};
  std::function<void(std::string_view phase, std::int64_t done, std::int64_t all)> progress;
};

class Workbench {
 public:
  Workbench(const Subject& subject, Store& store) : subject_(subject), store_(store) {}

  // Does the task and saves its result.
  Status run(const Task& task);

 private:
  using Model = std::shared_ptr<const ir::Model>;
  struct Made {
    Json result;
    std::vector<Store::File> files;
  };
  struct Measured {
    double value = 0, standard_error = 0;
  };

  Result<Made> make(const Task& task);
  Result<Made> survey();
  Result<Made> try_float(const Choices& choices);
  Result<Made> study(const Choices& choices);
  Result<Made> body(const Choices& choices);
  Result<Made> quantize(const Choices& choices);
  Result<Made> compile(const Task& task);
  Result<Made> report(const Choices& choices);

  Status open();  // model and samples, once
  Result<compiler::FrontEndResult> load(const Choices& choices);
  Result<compiler::FrontEndResult> load_body(const Choices& choices);
  Result<Model> load_quantized(const Choices& choices);
  Status check_outputs_alike(const ir::Model& model) const;
  std::vector<std::pair<int, int>> sizes_to_try() const;
  std::span<const std::int64_t> samples_to_choose() const;
  std::span<const std::int64_t> samples_to_report() const;
  Result<Measured> accuracy(const Model& model, std::span<const std::int64_t> samples);
  Result<Measured> agreement(const Model& model, std::span<const std::int64_t> samples);
  std::string stem() const;

  const Subject& subject_;
  Store& store_;
  compiler::FrontEndResult original_;
  Model model_;
  data::DatasetOptions data_;  // with the preprocessing that was settled
  compiler::SampleParts parts_;
  std::string metric_, unit_;  // "agreement" and "outputs" where samples do not say what is right
  std::map<std::int64_t, quantize::Outputs> outputs_;  // of the original, by first sample
};

}  // namespace reef::tune
