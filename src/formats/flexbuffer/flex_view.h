// SPDX-License-Identifier: Apache-2.0
// Checked reading of FlexBuffers: the format of custom operators' options.
//
// The format is read here rather than by FlexBuffers' own header, whose verifier lets keys without an end pass and
// whose conversions pull in its library. A FlexView is a place in the buffer with a type; nothing behind it has been
// looked at yet. Every step is checked against the buffer and gives nothing (or an error) where it would leave it.
// Steps lead anywhere: whoever walks more than one level must limit the depth, as references can form circles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace reef::flexbuffer {

struct FlexEntry;

class FlexView {
 public:
  // The root value. The view refers to `data`, which must outlive it.
  static Result<FlexView> root(std::span<const std::uint8_t> data);

  bool is_null() const { return type_ == kNull; }
  bool is_map() const { return type_ == kMap; }
  // Where the value is stored, from the start of the buffer.
  std::size_t offset() const { return at_; }

  // A number or truth value stored in any width, directly or behind an offset. Nothing if it is something else.
  std::optional<double> as_double() const;
  // The same for integers and truth values, where the value fits.
  std::optional<std::int64_t> as_int() const;

  struct Range {
    std::size_t offset = 0, size = 0;  // in bytes
  };
  // Where the bytes of a string or blob are. A string's are followed by a zero byte, which is checked.
  std::optional<Range> as_bytes() const;

  // Elements of a vector, typed or not. A map counts as the vector of its values.
  Result<std::vector<FlexView>> elements(std::size_t max_elements) const;
  // Keys (of less than 256 bytes) and values of a map.
  Result<std::vector<FlexEntry>> entries(std::size_t max_entries) const;

 private:
  // Type numbers of the format.
  enum Type : std::uint8_t {
    kNull = 0,
    kInt = 1,
    kUInt = 2,
    kFloat = 3,
    kKey = 4,
    kString = 5,
    kIndirectInt = 6,
    kIndirectUInt = 7,
    kIndirectFloat = 8,
    kMap = 9,
    kVector = 10,
    kVectorInt = 11,  // up to kVectorString: vectors of one type, kInt up to kString
    kVectorString = 15,
    kVectorInt2 = 16,  // up to kVectorFloat4: 2, 3 or 4 elements (without a count) of kInt, kUInt or kFloat
    kVectorFloat4 = 24,
    kBlob = 25,
    kBool = 26,
    kVectorBool = 36
  };
  struct Number {
    std::uint8_t type = kInt;  // kInt, kUInt, kFloat or kBool
    std::uint8_t width = 0;    // in bytes
    std::uint64_t bits = 0;    // sign-extended for kInt
  };
  FlexView(std::span<const std::uint8_t> data, std::size_t at, std::size_t width, std::uint8_t packed_type)
      : data_(data),
        at_(at),
        width_(width),
        child_width_(std::size_t{1} << (packed_type & 3)),
        type_(static_cast<std::uint8_t>(packed_type >> 2)) {}

  bool has(std::size_t at, std::size_t count) const { return at <= data_.size() && count <= data_.size() - at; }
  std::optional<std::uint64_t> unsigned_at(std::size_t at, std::size_t width) const;
  std::optional<std::size_t> target_of(std::size_t at, std::size_t width) const;
  std::optional<Number> number() const;
  Status malformed() const;

  std::span<const std::uint8_t> data_;
  std::size_t at_;           // of the value, or of the offset to it
  std::size_t width_;        // bytes of the value or offset
  std::size_t child_width_;  // bytes of a number in what the offset leads to
  std::uint8_t type_;
};

struct FlexEntry {
  std::string_view key;
  FlexView value;
};

}  // namespace reef::flexbuffer
