// SPDX-License-Identifier: Apache-2.0
// Layers that move bytes: matrices of zeros and ones, which the compiler makes up when a tensor's bytes must change
// place in a way that addresses alone cannot express (RESHAPE, CONCATENATION, SPLIT and the time steps of an LSTM).
//
// Narrow memory is addressed in words of 4 bytes. A tensor with one channel per pixel keeps each value in a word of its
// own; other layouts pack 4. Between the two, and to pick bytes out of words, a 1x1 layer of weight zero point 0 is run
// in which every output is a copy of one input:
//   gather   output j takes a byte of word j, or the next byte of the same word    RESHAPE, CONCATENATION, SPLIT, LSTM
//   spread   output 4j takes input j: each byte into a word of its own             LSTM
//   align    output 4j takes input 4j: the first byte of each word                 LSTM
// Biases, where there are any, are zero. The layers are stored like any other (layer_parameters.h).
//
// How it is known: all bytes in 8 packages that no operator of the source explains are such chunks, and the programs of
// an LSTM and of a split that use them were read. Which of them a model needs depends on how the compiler places
// tensors: not derived, so they are recognized here rather than predicted.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "formats/darwinn/parameters/layer_parameters.h"

namespace reef::darwinn {

struct SelectionMatrix {
  LayerKind kind = LayerKind::kFullyConnected;  // or kConvolution: up to 4 outputs are then stored 4 wide instead of 16
  std::int32_t input_channels = 0;
  std::vector<std::int32_t> sources;  // [output]: the input it copies, or -1: stays zero
  bool has_biases = false;

  // `count` words, the first byte of each. Up to 4 outputs: of kind `narrow`.
  static SelectionMatrix gather(std::int32_t count, bool has_biases, LayerKind narrow = LayerKind::kFullyConnected);
  static SelectionMatrix spread(std::int32_t count, bool has_biases);
  static SelectionMatrix align(std::int32_t count, bool has_biases);

  LayerShape shape() const { return LayerShape{kind, 1, 1, input_channels, static_cast<std::int32_t>(sources.size())}; }
  Presence presence() const { return {false, has_biases, false}; }
  friend bool operator==(const SelectionMatrix&, const SelectionMatrix&) = default;
};

std::string describe(const SelectionMatrix& selection);  // "gather 16 (64 -> 16, zero biases)"

// Refused: sources outside the inputs, no or more than 4096 outputs or inputs.
Result<LayerParameters> selection_layer(const SelectionMatrix& selection);

// Finds the longest selection matrix at an offset of a blob. Made once per blob: the search is then cheap at every
// offset, whatever the bytes are.
class SelectionFinder {
 public:
  explicit SelectionFinder(std::span<const std::uint8_t> blob);

  struct Found {
    SelectionMatrix selection;
    std::size_t size = 0;  // bytes of the chunk
  };
  // Gathers, spreads and aligns of at most 256 words.
  std::optional<Found> longest_at(std::size_t offset) const;

 private:
  struct Storage {
    LayerKind kind;
    bool has_biases;
    std::int32_t cells, groups;
  };
  // hopeless: no larger number of words can succeed either.
  std::optional<SelectionMatrix> parse(std::size_t offset, std::size_t size, const Storage& storage, std::int32_t words,
                                       bool& hopeless) const;

  std::size_t rows_ = 0;
  std::vector<std::size_t> ones_;             // offsets of bytes equal to 1, ascending
  std::vector<std::size_t> ones_before_;      // [i]: how many of them lie in the first i rows
  std::vector<std::uint32_t> others_before_;  // [i]: bytes other than 0 and 1 in the first i rows
};

}  // namespace reef::darwinn
