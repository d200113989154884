// SPDX-License-Identifier: Apache-2.0
// One way to make a compiled file of a float model: what `reef tune` chooses among. The text form names results in the
// store and tasks on other machines, so that it says everything that changes the file, and nothing else.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "quantize/options.h"
#include "tiled/program.h"

namespace reef::tune {

// A way to quantize that differs from the default in one thing.
struct QuantizerChoice {
  std::string_view name;
  std::string_view meaning;
  void (*apply)(quantize::QuantizeOptions& options);
};
const QuantizerChoice* find_quantizer(std::string_view name);
// In the place of a quantizer's name: the float model itself. Only reports are made of it.
inline constexpr std::string_view kFloatModel = "float";

struct Choices {
  int height = 0, width = 0;  // of the input picture; 0: as the model has it
  // Pruning: this share of the time that removing channels can save is saved (prune/study.h); 0: nothing is removed.
  double cut = 0;
  std::string quantizer = "default";
  std::string rewrites = "best";  // for the chip: best (where they are predicted to save time), all, none
  int segments = 1;               // each on an Edge TPU of its own
  int level = static_cast<int>(tiled::kDefaultLevel);  // -O

  friend bool operator==(const Choices&, const Choices&) = default;
};

// "size=24x24 cut=0.45 quantizer=mse rewrites=best segments=1 level=2"
std::string to_text(const Choices& choices);
Result<Choices> parse_choices(std::string_view text);
// Part of file names, only what differs from the default: "24x24_cut45_mse_n2_O2"; "default" where nothing does.
std::string tag_of(const Choices& choices);

// Of the float model alone; all else as by default.
Choices body_of(const Choices& choices);
// Of the quantized model alone.
Choices quantized_of(const Choices& choices);

}  // namespace reef::tune
