// SPDX-License-Identifier: Apache-2.0
// Augmentation of pictures: crop, shift, mirror, colour. Every number is drawn from a key alone (seed, epoch, sample,
// step), with the project's own generator, so that a sample is varied alike on every machine and in every thread.
//
// Boxes move along; those of which less than a quarter is left are dropped.
#pragma once

#include <cstdint>
#include <optional>

#include "base/status.h"
#include "data/dataset.h"
#include "data/preprocess.h"
#include "formats/image/image.h"

namespace reef::data {

struct Resize {
  int width = 0, height = 0;
  Fit fit = Fit::kStretch;
  double crop = 1, pad = 114;  // as in Preprocess
};
// Boxes in fractions of the picture (shape [n, 5]) move along.
Status resize(const Resize& how, image::Image& picture, std::optional<Truth>& truth);

struct Variation {
  double crop = 1;        // least share of the area that stays; the part is drawn, and so is its form (3:4 to 4:3)
  double shift = 0;       // by up to this share of width and height, whole pixels; the border is repeated
  double flip = 0;        // probability of a mirrored picture, left to right
  double brightness = 0;  // up to so much of 255 is added or taken away
  double contrast = 0;    // distances from middle grey times 1 - contrast to 1 + contrast
  double saturation = 0;  // distances from the pixel's brightness times 1 - saturation to 1 + saturation

  bool is_none() const { return *this == Variation(); }
  friend bool operator==(const Variation&, const Variation&) = default;
};
Status check(const Variation& how);

// What a random choice depends on.
struct VariationKey {
  std::uint64_t seed = 0;
  std::int64_t epoch = 0;
  std::int64_t sample = 0;  // its number in the store
  int step = 0;             // place of the step among those of the pipeline
};

// Random numbers of a key: SplitMix64 behind a hash of the key. Uniform numbers have 53 bits.
class KeyedRandom {
 public:
  explicit KeyedRandom(const VariationKey& key);
  std::uint64_t next();
  double uniform();  // [0, 1)
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  std::int64_t below(std::int64_t count);  // [0, count)
  double beta(double alpha);               // Beta(alpha, alpha), alpha > 0

 private:
  std::uint64_t state_;
};

// A truth that is neither a number nor boxes in fractions of the picture (a mask, another picture) cannot move along:
// then only colours may vary.
Status vary(const Variation& how, const VariationKey& key, image::Image& picture, std::optional<Truth>& truth);

}  // namespace reef::data
