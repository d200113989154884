// SPDX-License-Identifier: Apache-2.0
// What `reef run` found in a picture, for people, as JSON and drawn.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/status.h"
#include "data/model_card.h"
#include "data/preprocess.h"
#include "evaluate/findings.h"
#include "execute/cpu/interpreter.h"
#include "formats/image/image.h"
#include "result_files.h"

namespace reef::app {

struct FindingFlags {
  double least_score = 0.25;
  std::string draw;     // file; empty: none
  std::string anchors;  // of raw heads; empty: the usual ones
  bool raw = false;     // numbers as they are
};

class FindingsReport {
 public:
  // After the run. Nothing where the model finds no places in pictures, or was shown none. `picture`: what it was
  // shown, and how that became input 0.
  static Result<std::optional<FindingsReport>> create(const FindingFlags& flags, const ir::Model& model,
                                                      const cpu::Interpreter& interpreter, const std::string& picture,
                                                      const data::Preprocess& preprocess,
                                                      const std::vector<std::string>& names);

  void print() const;
  nlohmann::ordered_json json() const;
  // The picture with what was found, as a file among the results; small ones become so many times as large.
  int enlargement() const;
  Status draw(const std::string& path, ResultFiles& results) const;

  const evaluate::Findings& findings() const { return findings_; }

 private:
  std::vector<std::int64_t> pixels_of(const evaluate::Box& box) const;

  evaluate::Findings findings_;
  image::Image picture_;
  std::vector<std::string> names_;
};

}  // namespace reef::app
