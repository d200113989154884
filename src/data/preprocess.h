// SPDX-License-Identifier: Apache-2.0
// The steps between a picture and a model's input: fit it to the input's size, choose colours, turn 8-bit pixels into
// numbers. Most wrong results of right models come from here, so the recipe has a name, a text form for the command
// line that prints back the same, and travels in the model's metadata from calibration to every later run.
//
//   value = (pixel * scale - mean[channel]) / std[channel]
//
// Text: fields with commas between them, or a preset, optionally followed by fields that change it:
//   mean=127.5,std=127.5      mean=0.485:0.456:0.406,std=0.229:0.224:0.225,scale=1/255,crop=0.875 imagenet,letterbox
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "data/sample_source.h"
#include "ir/model.h"

namespace reef::data {

enum class Fit {
  kStretch,    // to the input's size, whatever the aspect ratio
  kCrop,       // shorter side to the input's size / crop, then the middle
  kLetterbox,  // whole picture, aspect ratio kept, the rest filled with `pad`
};
enum class Colours {
  kRgb,
  kBgr,
  kGrey,  // brightness, in every channel
};
enum class Layout {
  kByShape,  // channels are the dimension of size 1, 3 or 4; last, if both could be
  kNhwc,
  kNchw,
};

struct Preprocess {
  // The pixel is the stored number itself (minus 128 for int8), whatever the input's quantization says: how models with
  // 8-bit inputs are fed pictures. Then scale, mean and std mean nothing.
  bool pixels_are_codes = false;
  double scale = 1;
  std::vector<double> mean = {0}, std = {1};  // one number for all channels, or one each, in the order the model sees
  Fit fit = Fit::kStretch;
  double crop = 1;   // share of the shorter side that kCrop keeps, 0 < crop <= 1
  double pad = 114;  // pixel value around a letterboxed picture
  Colours colours = Colours::kRgb;
  Layout layout = Layout::kByShape;

  friend bool operator==(const Preprocess&, const Preprocess&) = default;
};

// The error says which field is wrong and lists what there is.
Result<Preprocess> parse_preprocess(std::string_view text);
// Text that parse_preprocess reads back as the same recipe: "none" or the fields that differ from "none", in a fixed
// order.
std::string to_string(const Preprocess& preprocess);
// "imagenet (...), tf (...), ...", for help texts.
std::string describe_presets();

// JSON, as stored in a model's metadata under this name (docs/evaluate.md).
inline constexpr std::string_view kPreprocessMetadata = "reef.preprocess";
std::string to_json(const Preprocess& preprocess);
Result<Preprocess> preprocess_from_json(std::string_view json);
// Replaces what is stored already.
void store_preprocess(const Preprocess& preprocess, ir::Model& model);
// nullopt: the model has none. An error: it has one that cannot be read.
Result<std::optional<Preprocess>> stored_preprocess(const ir::Model& model);

// The recipe to use and why, in words for the user: `text` if it is not empty, else what the model has stored, else
// what suits the type and range of input `index`.
struct ChosenPreprocess {
  Preprocess preprocess;
  std::string origin;
  bool is_guess = false;  // neither said, nor stored, nor seen in what the model does with its input
};
Result<ChosenPreprocess> choose_preprocess(std::string_view text, const ir::Model& model, int index);

// The recipe for a model that scales its input itself (scaling_in_model.h). Ask before the model is simplified: then
// its scaling is part of its first convolution. nullopt: it does not.
std::optional<ChosenPreprocess> preprocess_of_scaling(const ir::Model& model, int index);

// The recipe that turns pixels into the values whose codes in a quantized 8-bit input are the pixels themselves, for
// feeding the float version of that model. nullopt if the input is not of that kind.
std::optional<ChosenPreprocess> preprocess_of_codes(const ir::Model& quantized, int index);

// value = pixel * factor + offset for a channel; what pixels_are_codes means follows from the input's quantization.
struct PixelMap {
  double factor = 1, offset = 0;
};
PixelMap pixel_map(const Preprocess& preprocess, const InputSpec& input, int channel);

}  // namespace reef::data
