// SPDX-License-Identifier: Apache-2.0
// A reader for the part of FlexBuffers that custom ops use, written for hostile bytes. The format is described at
// https://flatbuffers.dev/internals: values are found by offsets that point backwards; the last two bytes give the
// root's type and width. The library's own verifier does not check that keys end and that a map has as many keys as
// values.
#include "ops/custom_options.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace reef::ops {
namespace {

// Numbers of the format's types.
enum FlexType {
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
  kVectorInt = 11,
  kVectorUInt = 12,
  kVectorFloat = 13,
  kBool = 26,
  kVectorBool = 36
};

constexpr std::size_t kMaxOptions = 1024;

Status broken(std::string_view what) {
  return invalid_input("the op's custom options are no FlexBuffers map: {}", what);
}

class FlexReader {
 public:
  explicit FlexReader(std::span<const std::uint8_t> bytes) : bytes_(bytes), budget_(bytes.size()) {}

  // A value's place: `at` and `width` of the slot that holds it or its offset, and what it is.
  struct Slot {
    std::size_t at = 0, width = 1;
    int type = 0;
    std::size_t own_width = 1;  // of what the offset points to
  };

  Result<ir::Attributes> read_map() {
    const std::size_t size = bytes_.size();
    const std::size_t root_width = bytes_[size - 1];
    if (!is_width(root_width) || size - 2 < root_width) return broken("its end is damaged");
    const Slot root = slot(size - 2 - root_width, root_width, bytes_[size - 2]);
    if (root.type != kMap) return broken("the root is something else");
    REEF_ASSIGN_OR_RETURN(const std::size_t values, follow(root));
    REEF_ASSIGN_OR_RETURN(const std::size_t count, vector_size(values, root.own_width, true));
    if (count > kMaxOptions) return broken("it has too many entries");
    REEF_ASSIGN_OR_RETURN(const std::vector<std::string> keys, read_keys(values, root.own_width, count));
    ir::Attributes result;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t at = values + i * root.own_width;
      REEF_RETURN_IF_ERROR(
          read_value(slot(at, root.own_width, bytes_[values + count * root.own_width + i]), keys[i], result));
    }
    return result;
  }

 private:
  static bool is_width(std::uint64_t width) { return width == 1 || width == 2 || width == 4 || width == 8; }
  static Slot slot(std::size_t at, std::size_t width, std::uint8_t packed_type) {
    return {at, width, packed_type >> 2, std::size_t{1} << (packed_type & 3)};
  }

  // Little-endian; [at, at + width) is inside.
  std::uint64_t unsigned_at(std::size_t at, std::size_t width) const {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < width; ++i) value |= std::uint64_t{bytes_[at + i]} << (8 * i);
    return value;
  }
  std::int64_t signed_at(std::size_t at, std::size_t width) const {
    const unsigned shift = static_cast<unsigned>(64 - 8 * width);
    return static_cast<std::int64_t>(unsigned_at(at, width) << shift) >> shift;
  }
  std::optional<double> real_at(std::size_t at, std::size_t width) const {
    if (width == 4) return std::bit_cast<float>(static_cast<std::uint32_t>(unsigned_at(at, 4)));
    if (width == 8) return std::bit_cast<double>(unsigned_at(at, 8));
    return std::nullopt;  // 16-bit reals are not used by any op
  }
  bool inside(std::size_t at, std::size_t length) const { return at <= bytes_.size() && length <= bytes_.size() - at; }

  // Where a slot's offset points to.
  Result<std::size_t> follow(const Slot& slot) const {
    const std::uint64_t offset = unsigned_at(slot.at, slot.width);
    if (offset > slot.at) return broken("an offset leads outside");
    return slot.at - static_cast<std::size_t>(offset);
  }
  // Number of elements of the vector at `at`; they, and their types if it has any, are inside.
  Result<std::size_t> vector_size(std::size_t at, std::size_t width, bool with_types) const {
    if (at < width) return broken("a vector has no size");
    const std::uint64_t count = unsigned_at(at - width, width);
    if (count > bytes_.size() || !inside(at, static_cast<std::size_t>(count) * (width + (with_types ? 1 : 0)))) {
      return broken("a vector leads outside");
    }
    return static_cast<std::size_t>(count);
  }

  Result<std::vector<std::string>> read_keys(std::size_t values, std::size_t width, std::size_t count) {
    if (values < 3 * width) return broken("a map has no keys");
    REEF_ASSIGN_OR_RETURN(const std::size_t keys, follow(slot(values - 3 * width, width, 0)));
    const std::uint64_t key_width = unsigned_at(values - 2 * width, width);
    if (!is_width(key_width)) return broken("its keys are damaged");
    REEF_ASSIGN_OR_RETURN(const std::size_t key_count, vector_size(keys, static_cast<std::size_t>(key_width), false));
    if (key_count != count) return broken("it has more keys than values, or fewer");
    std::vector<std::string> result;
    for (std::size_t i = 0; i < count; ++i) {
      const auto step = static_cast<std::size_t>(key_width);
      REEF_ASSIGN_OR_RETURN(const std::size_t at, follow(slot(keys + i * step, step, 0)));
      const void* end = std::memchr(bytes_.data() + at, 0, bytes_.size() - at);
      if (end == nullptr) return broken("a key has no end");
      const auto length = static_cast<std::size_t>(static_cast<const std::uint8_t*>(end) - (bytes_.data() + at));
      REEF_RETURN_IF_ERROR(spend(length + 1));
      result.emplace_back(reinterpret_cast<const char*>(bytes_.data() + at), length);
    }
    return result;
  }

  // Shared parts are read once for each mention; this bounds what comes of it.
  Status spend(std::size_t amount) {
    constexpr std::size_t kFactor = 16;
    spent_ += amount;
    return spent_ <= kFactor * budget_ ? ok_status() : broken("it repeats its parts too often");
  }

  Status read_value(const Slot& s, const std::string& key, ir::Attributes& result) {
    switch (s.type) {
      case kInt:
        result.set(key, signed_at(s.at, s.width));
        return ok_status();
      case kUInt:
        result.set(key, static_cast<std::int64_t>(unsigned_at(s.at, s.width)));
        return ok_status();
      case kBool:
        result.set(key, unsigned_at(s.at, s.width) != 0);
        return ok_status();
      case kFloat:
        if (const auto real = real_at(s.at, s.width)) result.set(key, *real);
        return ok_status();
      case kIndirectInt:
      case kIndirectUInt:
      case kIndirectFloat:
        return read_indirect(s, key, result);
      case kString:
        return read_string(s, key, result);
      case kVector:
      case kVectorInt:
      case kVectorUInt:
      case kVectorFloat:
      case kVectorBool:
        return read_vector(s, key, result);
      default:
        return ok_status();
    }
  }

  Status read_indirect(const Slot& s, const std::string& key, ir::Attributes& result) {
    REEF_ASSIGN_OR_RETURN(const std::size_t at, follow(s));
    if (!inside(at, s.own_width)) return broken("a number leads outside");
    const int type = s.type == kIndirectInt ? kInt : s.type == kIndirectUInt ? kUInt : kFloat;
    return read_value({at, s.own_width, type, s.own_width}, key, result);
  }

  Status read_string(const Slot& s, const std::string& key, ir::Attributes& result) {
    REEF_ASSIGN_OR_RETURN(const std::size_t at, follow(s));
    if (at < s.own_width) return broken("a string has no size");
    const std::uint64_t length = unsigned_at(at - s.own_width, s.own_width);
    if (length > bytes_.size() || !inside(at, static_cast<std::size_t>(length)))
      return broken("a string leads outside");
    REEF_RETURN_IF_ERROR(spend(static_cast<std::size_t>(length)));
    result.set(key, std::string(reinterpret_cast<const char*>(bytes_.data() + at), static_cast<std::size_t>(length)));
    return ok_status();
  }

  // Vectors of integers, or of reals as soon as one element is real. Elements that are no numbers make it be left out.
  Status read_vector(const Slot& s, const std::string& key, ir::Attributes& result) {
    REEF_ASSIGN_OR_RETURN(const std::size_t at, follow(s));
    const bool with_types = s.type == kVector;
    REEF_ASSIGN_OR_RETURN(const std::size_t count, vector_size(at, s.own_width, with_types));
    REEF_RETURN_IF_ERROR(spend(count));
    std::vector<std::int64_t> integers;
    std::vector<double> reals;
    for (std::size_t i = 0; i < count; ++i) {
      Slot element{at + i * s.own_width, s.own_width, kInt, s.own_width};
      if (with_types) element = slot(element.at, s.own_width, bytes_[at + count * s.own_width + i]);
      if (s.type == kVectorFloat) element.type = kFloat;
      if (s.type == kVectorUInt || s.type == kVectorBool) element.type = kUInt;
      ir::Attributes one;
      REEF_RETURN_IF_ERROR(element.type <= kIndirectFloat && element.type != kKey && element.type != kString
                               ? read_value(element, "", one)
                               : ok_status());
      const ir::AttributeValue* value = one.find("");
      if (value == nullptr) return ok_status();
      if (const auto* integer = std::get_if<std::int64_t>(value)) integers.push_back(*integer);
      reals.push_back(option_real(one, ""));
    }
    if (integers.size() == reals.size()) {
      result.set(key, std::move(integers));
    } else {
      result.set(key, std::move(reals));
    }
    return ok_status();
  }

  std::span<const std::uint8_t> bytes_;
  std::size_t budget_ = 0, spent_ = 0;
};

}  // namespace

Result<ir::Attributes> read_flexbuffer_map(std::span<const std::uint8_t> bytes) {
  if (bytes.empty()) return ir::Attributes();
  if (bytes.size() < 3) return broken("it is too short");
  return FlexReader(bytes).read_map();
}

std::int64_t option_int(const ir::Attributes& options, std::string_view name, std::int64_t fallback) {
  const ir::AttributeValue* value = options.find(name);
  if (value == nullptr) return fallback;
  if (const auto* integer = std::get_if<std::int64_t>(value)) return *integer;
  if (const auto* flag = std::get_if<bool>(value)) return *flag ? 1 : 0;
  const auto* real = std::get_if<double>(value);
  if (real == nullptr || std::isnan(*real)) return fallback;
  if (*real >= 9.2e18) return std::numeric_limits<std::int64_t>::max();
  if (*real <= -9.2e18) return std::numeric_limits<std::int64_t>::min();
  return static_cast<std::int64_t>(*real);
}

double option_real(const ir::Attributes& options, std::string_view name, double fallback) {
  const ir::AttributeValue* value = options.find(name);
  if (value == nullptr) return fallback;
  if (const auto* real = std::get_if<double>(value)) return *real;
  if (const auto* integer = std::get_if<std::int64_t>(value)) return static_cast<double>(*integer);
  if (const auto* flag = std::get_if<bool>(value)) return *flag ? 1 : 0;
  return fallback;
}

bool option_bool(const ir::Attributes& options, std::string_view name, bool fallback) {
  return options.find(name) == nullptr ? fallback : option_real(options, name) != 0;
}

}  // namespace reef::ops
