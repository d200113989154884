// SPDX-License-Identifier: Apache-2.0
// Small quantized networks made of numbers, so that they can be generated, written in a line, read again and shrunk.
//
// A network is an input and layers. Each layer names an operator, one or two values that it reads (0 is the input, i is
// the result of layer i) and a few numbers from which its sizes and options follow; smaller numbers mean simpler
// operators. A layer that makes no sense (an operator that does not fit its operand's shape) passes its operand on, so
// that every such description is a network: layers and numbers may be taken away at will.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/model.h"

namespace reef::testing {

struct RandomLayer {
  std::string op;
  int a = 0, b = 0;  // values, from the first on; taken modulo those that there are
  std::array<int, 5> numbers{};
  friend bool operator==(const RandomLayer&, const RandomLayer&) = default;
};

struct RandomNetwork {
  bool is_signed = true;  // int8, else uint8
  int height = 1, width = 1, channels = 1;
  int zero_point = 0;  // 0..255
  std::vector<RandomLayer> layers;
  friend bool operator==(const RandomNetwork&, const RandomNetwork&) = default;

  // Of operators that `is_usable`.
  static RandomNetwork generate(unsigned seed, const std::function<bool(std::string_view)>& is_usable);
  // "int8 7x5x20 zero 3; CONV_2D 0 0 3 1 0 0 24; ADD 1 1 0 0 0 0 0"
  std::string to_string() const;
  static std::optional<RandomNetwork> parse(const std::string& text);

  // Every value that nobody reads is a result. Nothing: no layer of it makes sense.
  std::optional<ir::Model> build() const;

  // A network for which `fails` still holds and from which nothing can be taken away any more.
  RandomNetwork shrunk(const std::function<bool(const RandomNetwork&)>& fails) const;
};

// Layers that are several operators.
inline constexpr std::string_view kAttentionBlock = "attention", kNormBlock = "norm";

// Every operator that layers can be, and these blocks.
const std::vector<std::string>& random_network_ops();

}  // namespace reef::testing
