// SPDX-License-Identifier: Apache-2.0
// The quantizer's options, for every command that can quantize: quantize, convert and compile.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "command.h"

#include "base/status.h"
#include "compiler/quantize_driver.h"
#include "front_end_flags.h"
#include "limit_flags.h"
#include "progress.h"

namespace reef::app {

struct QuantizeArguments {
  compiler::QuantizeRequest request;
  FrontEndFlags front_end;
  quantize::IoType io = quantize::IoType::kInt8;
  std::string calibration = "auto";
  bool no_equalization = false, no_bias_correction = false, no_float = false, adaptive_rounding = false;
  bool keep_structure = false;
  std::string shuffle, shard;  // as written; request.data has the numbers
  bool verbose = false;        // everything that was tried is listed
  passes::LogRequest log;      // for simplification
  LimitFlags limits = LimitFlags::for_data();

  bool has_data() const { return !request.data.path.empty(); }
};

void add_data_options(Command& command, QuantizeArguments& arguments);
void add_quantizer_options(Command& command, QuantizeArguments& arguments);
void add_mode_option(Command& command, QuantizeArguments& arguments);
void add_threads_option(Command& command, QuantizeArguments& arguments);
void add_verbose_option(Command& command, QuantizeArguments& arguments);

// One line of progress on standard error for each phase of quantizing.
class PhaseProgress {
 public:
  void show(std::string_view phase, std::int64_t done, std::int64_t all);
  void finish() { line_.reset(); }
  // For QuantizeOptions::progress. This must outlive it.
  std::function<void(std::string_view, std::int64_t, std::int64_t)> callback() {
    return [this](std::string_view phase, std::int64_t done, std::int64_t all) { show(phase, done, all); };
  }

 private:
  std::string phase_;
  std::unique_ptr<Progress> line_;
};

// What the options say, put into arguments.request.
Status settle(QuantizeArguments& arguments);
// settle() and compiler::quantize_file, with progress on standard error if wanted. Errors name the model.
Result<compiler::QuantizeOutcome> quantize_with_progress(QuantizeArguments& arguments, bool shows_progress);

}  // namespace reef::app
