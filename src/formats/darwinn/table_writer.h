// SPDX-License-Identifier: Apache-2.0
// Writes tables into a FlatBufferBuilder with control over which default values are written.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <flatbuffers/flatbuffers.h>

#include "base/bytes.h"
#include "formats/darwinn/package.h"

namespace reef::darwinn {

// Where something was put, as the builder counts: bytes from the end. 0: nowhere.
using Place = flatbuffers::uoffset_t;

// Executables, and the parameters in them, start on pages, so that a driver can map them for the chip.
inline constexpr std::size_t kPageBytes = 4096;

class BufferWriter {
 public:
  flatbuffers::FlatBufferBuilder& builder() { return builder_; }

  Place bytes(const Bytes& data, std::size_t alignment = 1);
  Place text(const std::string& text) { return builder_.CreateString(text).o; }
  // A list of bytes in the form of a string, on a page of its own.
  Place page_text(std::span<const std::uint8_t> data);
  template <typename T>
  Place values(const std::vector<T>& values) {
    static_assert(sizeof(T) % 4 == 0 && alignof(T) == 4);
    builder_.StartVector(values.size() * sizeof(T) / 4, 4);
    builder_.PushBytes(reinterpret_cast<const std::uint8_t*>(values.data()), values.size() * sizeof(T));
    return builder_.EndVector(values.size());
  }
  Place list(const std::vector<Place>& places);
  // Empty names are written once and shared; other texts are not.
  Place shared_empty_text();

  std::vector<std::uint8_t> finish(Place root, const char* identifier = nullptr);

 private:
  flatbuffers::FlatBufferBuilder builder_{1024};
  Place empty_text_ = 0;
};

// One table. Everything it refers to must have been written before; fields are given in any order and written as
// generated code does: large ones first, and from the last slot to the first.
class TableWriter {
 public:
  TableWriter(BufferWriter& buffer, FieldSet written_defaults) : buffer_(buffer), written_defaults_(written_defaults) {}

  // Whether an empty list or text in this slot is written.
  bool writes_default(int slot) const { return (written_defaults_ & field_set(slot)) != 0; }

  template <typename T>
  void number(int slot, T value, T fallback = 0) {
    if (value == fallback && !writes_default(slot)) return;
    Field field{slot, sizeof(T), 0};
    std::memcpy(&field.bits, &value, sizeof(T));
    fields_.push_back(field);
  }
  template <typename E>
  void enumeration(int slot, E value) {
    number(slot, static_cast<std::int16_t>(value));
  }
  void flag(int slot, bool value) { number(slot, static_cast<std::uint8_t>(value)); }
  void reference(int slot, Place place) {
    if (place != 0) fields_.push_back({slot, kReference, place});
  }
  Place finish();

 private:
  static constexpr std::size_t kReference = 0;  // as Field::size: 4 bytes that depend on where they are
  struct Field {
    int slot;
    std::size_t size;
    std::uint64_t bits;
  };

  BufferWriter& buffer_;
  FieldSet written_defaults_;
  std::vector<Field> fields_;
};

}  // namespace reef::darwinn
