// SPDX-License-Identifier: Apache-2.0
// Checked reading of FlatBuffers that lie inside something larger.
//
// The generated accessors need a verified and aligned buffer, and the verifier of the library says only yes or no. A
// package lies at an odd place of a FlexBuffer, which lies in a .tflite file, and a damaged one should be reported with
// the field and the byte. So every read is checked here, at any alignment, and nothing is copied but what is kept.
//
// The first failure is sticky: readers carry on with empty values, and the caller asks status() between tables.
// FlatBuffers lets any number of offsets point at the same bytes, so a small file can describe huge structures;
// everything read is charged to a budget proportional to the input (ReadState).
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "formats/darwinn/package.h"

namespace reef::darwinn {

// Shared by all buffers read in one call.
struct ReadState {
  // A layer without content takes 8 bytes in the file and some 400 in memory; nothing else is as unequal.
  explicit ReadState(std::size_t input_bytes)
      : input_bytes(input_bytes), budget(64 * std::uint64_t{input_bytes} + 65536) {}

  bool charge(std::uint64_t bytes);
  void fail(Status failure) {
    if (status.ok()) status = std::move(failure);
  }
  void note(std::string sentence);

  std::size_t input_bytes;
  std::uint64_t budget;
  Status status;
  std::vector<std::string> notes;
};

class Table;

class FlatBuffer {
 public:
  // `base` is where `bytes` start in what the user knows (the custom options); `place` names the buffer in messages.
  FlatBuffer(Bytes bytes, std::size_t base, std::string place, ReadState& state)
      : bytes_(std::move(bytes)), base_(base), place_(std::move(place)), state_(&state) {}

  // The root table, after checking that the four bytes behind its offset are `identifier` (if not empty).
  Table root(const char* kind, std::string_view identifier, FieldSet& written_defaults) const;

  const Bytes& bytes() const { return bytes_; }
  std::size_t base() const { return base_; }
  ReadState& state() const { return *state_; }
  bool ok() const { return state_->status.ok(); }
  void fail(std::size_t at, const std::string& what) const;

  bool has(std::size_t at, std::size_t count) const { return at <= bytes_.size() && count <= bytes_.size() - at; }
  // Precondition: has(at, sizeof(T)).
  template <typename T>
  T load(std::size_t at) const {
    T value;
    std::memcpy(&value, bytes_.data() + at, sizeof(T));
    return value;
  }

 private:
  Bytes bytes_;
  std::size_t base_;
  std::string place_;
  ReadState* state_;
};

// A table whose vtable has been checked. After a failure: a table without fields.
class Table {
 public:
  // `written_defaults` must hold what a new structure has, and outlive the table. Per field read: if its value is the
  // default, the bit becomes whether it is in the file; otherwise the bit stays.
  Table(const FlatBuffer& buffer, std::size_t at, const char* kind, FieldSet& written_defaults);

  const FlatBuffer& buffer() const { return *buffer_; }
  bool ok() const { return buffer_->ok(); }
  bool has(int slot) const { return field_offset(slot) != 0; }
  // Fails with "<place>: table <kind> at byte N: field <name>: <what>".
  void fail_field(int slot, const char* name, const std::string& what) const;
  // Adds a note if the table has fields in slots from `known_slots` on.
  void note_newer_fields(int known_slots) const;

  template <typename T>
  T number(int slot, const char* name, T fallback = 0) {
    const std::size_t at = field(slot, name, sizeof(T));
    if (at == 0) return remember_default(slot, false), fallback;
    const T value = buffer_->load<T>(at);
    if (value == fallback) remember_default(slot, true);
    return value;
  }
  bool flag(int slot, const char* name);
  // A number that may not be negative: a size, an offset or a count.
  std::int32_t size(int slot, const char* name, std::int32_t fallback = 0);
  // An enum whose members are the bits set in `members`.
  template <typename E>
  E enumeration(int slot, const char* name, std::uint32_t members) {
    const auto value = number<std::int16_t>(slot, name);
    if (value < 0 || value >= 32 || (members >> value & 1) == 0) {
      fail_field(slot, name, fmt::format("{} is not a value this version knows", value));
      return E{};
    }
    return static_cast<E>(value);
  }

  std::string text(int slot, const char* name);
  Bytes bytes(int slot, const char* name);  // no copy
  template <typename T>                     // int32 or a struct of int32s
  std::vector<T> values(int slot, const char* name) {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) == 4);
    std::vector<T> result;
    const Extent extent = vector(slot, name, sizeof(T));
    if (extent.count == 0 || !buffer_->state().charge(extent.count * sizeof(T))) return result;
    result.resize(extent.count);
    std::memcpy(result.data(), buffer_->bytes().data() + extent.at, extent.count * sizeof(T));
    return result;
  }
  // Position of the table behind an offset field; nothing if the field is absent.
  std::optional<std::size_t> child(int slot, const char* name);
  // Positions of the tables in a list. Each costs `bytes_each` of the budget.
  std::vector<std::size_t> children(int slot, const char* name, std::size_t bytes_each);
  // A list of byte lists in the form of strings.
  std::vector<Bytes> byte_lists(int slot, const char* name);

 private:
  struct Extent {
    std::size_t at = 0, count = 0;
  };
  void find_vtable();
  std::size_t field_offset(int slot) const;
  std::size_t field(int slot, const char* name, std::size_t size) const;  // position; 0: absent or failed
  std::size_t target(int slot, const char* name, std::size_t field_at) const;
  Extent vector_at(int slot, const char* name, std::size_t at, std::size_t element_size) const;
  Extent vector(int slot, const char* name, std::size_t element_size);
  bool check_end_of_text(int slot, const char* name, Extent extent) const;
  void remember_default(int slot, bool is_written) {
    *written_defaults_ = (*written_defaults_ & ~field_set(slot)) | (is_written ? field_set(slot) : 0);
  }

  const FlatBuffer* buffer_;
  std::size_t at_;
  const char* kind_;
  FieldSet* written_defaults_;
  std::size_t vtable_ = 0, vtable_bytes_ = 4, table_bytes_ = 4;
};

}  // namespace reef::darwinn
