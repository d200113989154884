// SPDX-License-Identifier: Apache-2.0
// The compiled files of the model collection with their sources, made-up inputs for them, and TFLite's results.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "base/status.h"
#include "chip_reference.h"
#include "formats/darwinn/package.h"
#include "ir/model.h"

namespace reef::testing {

struct Pair {
  std::string name;  // folder/file
  std::string compiled, source;
  int generation = 0;  // of the compiler: the number after the "v" of the file's name
};

std::vector<Pair> pairs_of(const std::string& zoo);

// Which operators of a source Google's compiler took, as truth/mapping.json has it.
struct Mapping {
  std::string compiled_file;  // below the collection
  std::string compiled_sha256;
  int runtime = 0;  // that the compiled file needs at least
  std::vector<std::int32_t> ops;
};
std::vector<Mapping> mappings_of(const std::string& truth);

// The package of the Edge TPU op in a compiled file.
Result<darwinn::Package> package_of(const std::string& compiled);

enum class Picture { kNoise, kSmooth, kExtremes };
inline constexpr Picture kPictures[] = {Picture::kNoise, Picture::kSmooth, Picture::kExtremes};

// Dark is the lowest code of the tensor's type. Tensors of 16 bits, which are states, get noise always.
std::vector<std::uint8_t> picture(Picture kind, const darwinn::Layer& layer, std::mt19937& random);

// A state at rest: the zero point.
std::vector<std::uint8_t> state_at_rest(const ir::Tensor& tensor);

// Null where the first graph has no tensor of that name.
const ir::Tensor* find_tensor(const ir::Model& model, const std::string& name);

// The values of `wanted` from those of `given`, by Reef's CPU runtime, which equals TFLite's reference kernels. Names
// that are no tensors (a variable's new value) are left out.
Result<NamedBytes> evaluate_as_tflite(const ir::Model& source, const NamedBytes& given,
                                      const std::vector<std::string>& wanted);

// Elements as numbers whose differences mean something.
std::vector<int> elements(const ir::Tensor& tensor, const std::vector<std::uint8_t>& bytes);

// How many values are equal, one apart, two apart, and further; and the furthest.
struct Differences {
  std::int64_t counts[4] = {0, 0, 0, 0};
  int largest = 0;

  void add(int a, int b);
  void add(const Differences& others);
  std::int64_t all() const { return counts[0] + counts[1] + counts[2] + counts[3]; }
  double share(int at_most) const;  // of values that are at most so far apart
  std::string to_string() const;    // "  98.80   0.90   0.10   0.20   6": percentages, and the furthest
};

}  // namespace reef::testing
