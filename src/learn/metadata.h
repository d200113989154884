// SPDX-License-Identifier: Apache-2.0
// Facts that a learned model keeps about its training, so that it can go on later:
//
// - its description, as Coral's ImprintingEngine writes and reads it: a line "class length" for each class that can be
//   trained further, the length being that of the sum of its normalized embeddings;
// - metadata "reef.learn", JSON: method, and for each class its name, number of pictures and the same length.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ir/model.h"

namespace reef::learn {

inline constexpr std::string_view kLearningMetadata = "reef.learn";

struct LearnedClass {
  std::string name;                  // may be empty
  std::int64_t images = 0;           // 0: not known
  std::optional<double> sum_length;  // imprinting; nothing: the class cannot be trained further
};

struct Learning {
  std::string method;  // "imprinting", "softmax"
  std::vector<LearnedClass> classes;
};

// Replaces what the model remembers.
void store_learning(const Learning& learning, ir::Model& model);
// From the metadata; lengths also from a description of Coral's form. nullopt: neither is there. An error: the metadata
// cannot be read.
Result<std::optional<Learning>> stored_learning(const ir::Model& model);

void drop_learning(ir::Model& model);
void copy_learning(const ir::Model& from, ir::Model& to);

// Coral's description; empty if it is of another kind.
std::map<int, double> parse_description(std::string_view description);

}  // namespace reef::learn
