// SPDX-License-Identifier: Apache-2.0
// Identifies the results of each tensor instruction: which element of which tensor it is follows from the elements and
// weights that went into it.
//
// Matching (retarget/matching.h) says which operator an instruction computes and where its parameters lie in the blob.
// A rule says the rest for one operator: an input element and the weight it is multiplied with fix the result's place.
// Nothing is derived from loop nests or from the order of instructions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "execute/device/tag_follower.h"
#include "retarget/open_template.h"
#include "runtime/element_map.h"

namespace reef::runtime {

using device::Tag;

// A run of tags and what they stand for.
struct TagRange {
  Tag base = 0;
  std::uint32_t size = 0;
  const std::vector<std::int32_t>* places = nullptr;  // by number of the tag; null: the number itself
  bool holds(Tag tag) const { return tag - base < size; }
};

// An operand of an operator: its elements' places, wherever they were computed.
struct OperandPlaces {
  std::vector<TagRange> ranges;
  std::vector<Tag> constants;  // of elements that depend on no input (Rule::constant_tag)
  bool is_constant(Tag tag) const {
    return tag == device::kFillTag || std::find(constants.begin(), constants.end(), tag) != constants.end();
  }
  // Negative: the tag is none of its elements, or stands for several.
  std::int32_t of(Tag tag) const {
    for (const TagRange& range : ranges) {
      if (!range.holds(tag)) continue;
      return range.places == nullptr ? static_cast<std::int32_t>(tag - range.base) : (*range.places)[tag - range.base];
    }
    return ElementMaps::kNowhere;
  }
};

// Sizes of a sliding window, batch aside.
struct Geometry {
  std::int64_t in_height = 1, in_width = 1, in_depth = 1, out_height = 1, out_width = 1, out_depth = 1;
  std::int64_t kernel_height = 1, kernel_width = 1;
  std::int64_t stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1, pad_top = 0, pad_left = 0;
};

// The input elements that a result was made of.
struct WindowSpan {
  std::int64_t batch = -1, channel = -1;  // -1: none yet
  std::int64_t top = 0, bottom = 0, left = 0, right = 0;
  bool is_contradictory = false;
};

struct Rule {
  enum class Kind : std::uint8_t {
    kUnknown,   // no rule
    kCopy,      // results are bytes that were read
    kLayer,     // sums of products with weights
    kElements,  // element by element
    kWindow,    // average or maximum of a window
  };
  static constexpr std::int64_t kOutside = -1, kContradiction = -2;

  Kind kind = Kind::kUnknown;
  struct Weight {
    std::int64_t out = 0, ky = 0, kx = 0, in = 0;
  };
  std::int32_t op = -1;
  std::int32_t tensor = -1;  // that the results belong to; -1: to none, or to a step in between
  Tag base = 0;              // of the results' tags; 0: they get none
  std::int64_t elements = 0;
  std::string reason;  // of kUnknown
  std::vector<OperandPlaces> operands;
  Geometry geometry;
  // Layers: the bytes of the blob that are its weights. Places are indices into LayerParameters::weights, -1: padding.
  TagRange weights;
  std::shared_ptr<const std::vector<std::int32_t>> weight_places;
  darwinn::LayerShape shape;
  // Windows that reduce whole axes (MEAN): the result's place for each input place.
  std::vector<std::int32_t> reduced;

  // Layers: which input elements depend on no input of the model (ElementMaps::constants). Their bytes have one tag.
  const std::vector<bool>* constants = nullptr;

  // The tag of results that are made of nothing but constants.
  Tag constant_tag() const { return base + static_cast<Tag>(elements); }

  // The result that the product of an input element and a weight belongs to.
  std::int64_t result_of(std::int32_t place, std::int32_t weight) const;
  // Whether the input that a result multiplies with this weight is padding or another constant.
  bool takes_constant(std::int64_t result, std::int32_t weight) const;
  // Identifies a result that reads nothing but constants; it is known if the result's channel is all there is to know.
  std::int64_t result_of_constants(std::int32_t weight) const;
  Weight weight_at(std::int32_t index) const;
  void widen(WindowSpan& span, std::int32_t place) const;
  std::int64_t result_of(const WindowSpan& span) const;
};

class Rules {
 public:
  // `explained` and `maps` must outlive this.
  static Result<Rules> create(const retarget::Explanation& explained, ElementMaps& maps);

  // By index of an instruction of the execution program; null: it is no tensor instruction.
  const Rule* rule(std::size_t instruction) const {
    return instruction < by_instruction_.size() && by_instruction_[instruction] >= 0
               ? &rules_[at(by_instruction_[instruction])]
               : nullptr;
  }
  const std::vector<Rule>& all() const { return rules_; }
  // Tags of parameters and inputs, by number of the byte; 0: it has none.
  Tag cached(std::uint64_t offset) const { return cached_.size > offset ? cached_.base + static_cast<Tag>(offset) : 0; }
  Tag streamed(std::uint64_t offset) const {
    return streamed_.size > offset ? streamed_.base + static_cast<Tag>(offset) : 0;
  }
  Tag input(std::size_t layer, std::uint64_t offset) const {
    return layer < inputs_.size() && inputs_[layer].size > offset ? inputs_[layer].base + static_cast<Tag>(offset) : 0;
  }

 private:
  friend class RuleMaker;
  std::vector<Rule> rules_;
  std::vector<std::int32_t> by_instruction_;
  TagRange cached_, streamed_;
  std::vector<TagRange> inputs_;
  std::vector<std::unique_ptr<const std::vector<std::int32_t>>> kept_;  // places that only rules know
};

}  // namespace reef::runtime
