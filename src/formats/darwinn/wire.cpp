// SPDX-License-Identifier: Apache-2.0
#include "formats/darwinn/wire.h"

#include <bit>

namespace reef::darwinn {

static_assert(std::endian::native == std::endian::little,
              "the format is little endian and values are loaded as they are");

namespace {
constexpr std::size_t kMaxNotes = 20;
}

bool ReadState::charge(std::uint64_t bytes) {
  if (bytes <= budget) {
    budget -= bytes;
    return status.ok();
  }
  budget = 0;
  fail(make_error(StatusCode::kResourceExhausted,
                  "the package's {} bytes describe many times that much, which only a damaged or malicious file does",
                  input_bytes));
  return false;
}

void ReadState::note(std::string sentence) {
  if (notes.size() < kMaxNotes) notes.push_back(std::move(sentence));
}

void FlatBuffer::fail(std::size_t at, const std::string& what) const {
  state_->fail(invalid_input("{}, byte {} of the custom options: {}", place_, base_ + at, what));
}

Table FlatBuffer::root(const char* kind, std::string_view identifier, FieldSet& written_defaults) const {
  if (!has(0, 4)) {
    fail(0, fmt::format("{} bytes are too few for a {}", bytes_.size(), kind));
    return Table(*this, 0, kind, written_defaults);
  }
  if (!identifier.empty() &&
      (!has(4, identifier.size()) || std::memcmp(bytes_.data() + 4, identifier.data(), identifier.size()) != 0)) {
    fail(4, fmt::format("the identifier {} is missing: this is no {}", identifier, kind));
  }
  return Table(*this, load<std::uint32_t>(0), kind, written_defaults);
}

Table::Table(const FlatBuffer& buffer, std::size_t at, const char* kind, FieldSet& written_defaults)
    : buffer_(&buffer), at_(at), kind_(kind), written_defaults_(&written_defaults) {
  if (buffer.ok()) find_vtable();
}

void Table::find_vtable() {
  const FlatBuffer& buffer = *buffer_;
  if (at_ % 4 != 0 || !buffer.has(at_, 4)) {
    return buffer.fail(at_, fmt::format("table {} would lie outside of the {} bytes there are, or misaligned", kind_,
                                        buffer.bytes().size()));
  }
  const std::int64_t vtable = static_cast<std::int64_t>(at_) - buffer.load<std::int32_t>(at_);
  if (vtable < 0 || vtable % 2 != 0 || !buffer.has(static_cast<std::size_t>(vtable), 4)) {
    return buffer.fail(at_, fmt::format("the vtable of table {} would lie outside, or misaligned", kind_));
  }
  const auto position = static_cast<std::size_t>(vtable);
  const std::size_t vtable_bytes = buffer.load<std::uint16_t>(position);
  const std::size_t table_bytes = buffer.load<std::uint16_t>(position + 2);
  if (vtable_bytes < 4 || vtable_bytes % 2 != 0 || !buffer.has(position, vtable_bytes)) {
    return buffer.fail(position, fmt::format("the vtable of table {} claims {} bytes", kind_, vtable_bytes));
  }
  if (table_bytes < 4 || !buffer.has(at_, table_bytes)) {
    return buffer.fail(at_, fmt::format("table {} claims {} bytes", kind_, table_bytes));
  }
  // Looking for newer fields takes as long as the vtable is, which any number of tables may share.
  if (!buffer.state().charge(vtable_bytes)) return;
  vtable_ = position;
  vtable_bytes_ = vtable_bytes;
  table_bytes_ = table_bytes;
}

void Table::fail_field(int slot, const char* name, const std::string& what) const {
  const std::size_t offset = field_offset(slot);
  buffer_->fail(at_ + offset, fmt::format("table {}, field {}: {}", kind_, name, what));
}

void Table::note_newer_fields(int known_slots) const {
  for (int slot = known_slots; slot < static_cast<int>(vtable_bytes_ / 2) - 2; ++slot) {
    if (field_offset(slot) == 0) continue;
    return buffer_->state().note(
        fmt::format("table {} at byte {} of the custom options has fields newer than this version knows; those are not "
                    "kept when saving",
                    kind_, buffer_->base() + at_));
  }
}

std::size_t Table::field_offset(int slot) const {
  const std::size_t entry = 4 + 2 * static_cast<std::size_t>(slot);
  if (entry + 2 > vtable_bytes_) return 0;
  return buffer_->load<std::uint16_t>(vtable_ + entry);
}

std::size_t Table::field(int slot, const char* name, std::size_t size) const {
  const std::size_t offset = field_offset(slot);
  if (offset == 0 || !ok()) return 0;
  if (offset < 4 || offset + size > table_bytes_) {
    fail_field(slot, name, fmt::format("it would lie outside of the table's {} bytes", table_bytes_));
    return 0;
  }
  return at_ + offset;
}

bool Table::flag(int slot, const char* name) {
  const auto value = number<std::uint8_t>(slot, name);
  if (value > 1) fail_field(slot, name, fmt::format("{} is neither 0 nor 1", value));
  return value == 1;
}

std::int32_t Table::size(int slot, const char* name, std::int32_t fallback) {
  const auto value = number<std::int32_t>(slot, name, fallback);
  if (value >= 0) return value;
  fail_field(slot, name, fmt::format("{} is negative", value));
  return 0;
}

std::size_t Table::target(int slot, const char* name, std::size_t field_at) const {
  const std::uint64_t position = field_at + std::uint64_t{buffer_->load<std::uint32_t>(field_at)};
  if (position == field_at || position % 4 != 0 || position > buffer_->bytes().size() ||
      !buffer_->has(static_cast<std::size_t>(position), 4)) {
    fail_field(slot, name,
               fmt::format("it points at byte {}, which is outside or misaligned", buffer_->base() + position));
    return 0;
  }
  return static_cast<std::size_t>(position);
}

Table::Extent Table::vector_at(int slot, const char* name, std::size_t at, std::size_t element_size) const {
  const std::uint64_t count = buffer_->load<std::uint32_t>(at);
  if (count * element_size > buffer_->bytes().size() - at - 4) {
    fail_field(slot, name,
               fmt::format("its {} elements at byte {} would not fit in the {} bytes that are left", count,
                           buffer_->base() + at, buffer_->bytes().size() - at - 4));
    return {};
  }
  return {at + 4, static_cast<std::size_t>(count)};
}

Table::Extent Table::vector(int slot, const char* name, std::size_t element_size) {
  const std::size_t field_at = field(slot, name, 4);
  if (field_at == 0) return remember_default(slot, false), Extent{};
  const std::size_t at = target(slot, name, field_at);
  if (at == 0) return {};
  const Extent extent = vector_at(slot, name, at, element_size);
  if (extent.count == 0) remember_default(slot, true);
  return extent;
}

bool Table::check_end_of_text(int slot, const char* name, Extent extent) const {
  if (!ok()) return false;
  const std::size_t end = extent.at + extent.count;
  if (buffer_->has(end, 1) && buffer_->load<std::uint8_t>(end) == 0) return true;
  fail_field(slot, name, "the text does not end with a zero byte");
  return false;
}

std::string Table::text(int slot, const char* name) {
  const Extent extent = vector(slot, name, 1);
  if (extent.at == 0 || !check_end_of_text(slot, name, extent) || !buffer_->state().charge(extent.count)) return {};
  return std::string(reinterpret_cast<const char*>(buffer_->bytes().data()) + extent.at, extent.count);
}

Bytes Table::bytes(int slot, const char* name) {
  const Extent extent = vector(slot, name, 1);
  if (extent.count == 0 || !buffer_->state().charge(extent.count)) return {};
  return buffer_->bytes().slice(extent.at, extent.count);
}

std::optional<std::size_t> Table::child(int slot, const char* name) {
  const std::size_t field_at = field(slot, name, 4);
  if (field_at == 0) return std::nullopt;
  const std::size_t at = target(slot, name, field_at);
  return at == 0 ? std::nullopt : std::optional(at);
}

std::vector<std::size_t> Table::children(int slot, const char* name, std::size_t bytes_each) {
  const Extent extent = vector(slot, name, 4);
  if (!buffer_->state().charge(extent.count * (bytes_each + sizeof(std::size_t)))) return {};
  std::vector<std::size_t> result;
  result.reserve(extent.count);
  for (std::size_t i = 0; i < extent.count; ++i) {
    const std::size_t at = target(slot, name, extent.at + 4 * i);
    if (at == 0) return {};
    result.push_back(at);
  }
  return result;
}

std::vector<Bytes> Table::byte_lists(int slot, const char* name) {
  std::vector<Bytes> result;
  for (const std::size_t at : children(slot, name, sizeof(Bytes))) {
    const Extent extent = vector_at(slot, name, at, 1);
    if (!check_end_of_text(slot, name, extent) || !buffer_->state().charge(extent.count)) return {};
    result.push_back(buffer_->bytes().slice(extent.at, extent.count));
  }
  return result;
}

}  // namespace reef::darwinn
