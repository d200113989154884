// SPDX-License-Identifier: Apache-2.0
#include "formats/darwinn/table_writer.h"

#include <algorithm>

namespace reef::darwinn {
namespace {

constexpr std::size_t kReferenceBytes = sizeof(flatbuffers::uoffset_t);

template <typename T>
void add(flatbuffers::FlatBufferBuilder& builder, flatbuffers::voffset_t slot, std::uint64_t bits) {
  builder.AddElement<T>(slot, static_cast<T>(bits));
}

}  // namespace

Place BufferWriter::bytes(const Bytes& data, std::size_t alignment) {
  builder_.PreAlign(data.size(), kReferenceBytes);
  builder_.PreAlign(data.size(), alignment);
  // Newer FlatBuffers libraries leave empty lists alone; Google's files have them aligned too.
  if (data.empty()) builder_.Align(alignment);
  return builder_.CreateVector(data.data(), data.size()).o;
}

Place BufferWriter::page_text(std::span<const std::uint8_t> data) {
  builder_.PreAlign(data.size() + 1, kPageBytes);
  return builder_.CreateString(reinterpret_cast<const char*>(data.data()), data.size()).o;
}

Place BufferWriter::list(const std::vector<Place>& places) {
  builder_.StartVector(places.size(), kReferenceBytes);
  for (std::size_t i = places.size(); i > 0; --i) builder_.PushElement(flatbuffers::Offset<void>(places[i - 1]));
  return builder_.EndVector(places.size());
}

Place BufferWriter::shared_empty_text() {
  if (empty_text_ == 0) empty_text_ = text("");
  return empty_text_;
}

std::vector<std::uint8_t> BufferWriter::finish(Place root, const char* identifier) {
  builder_.Finish(flatbuffers::Offset<void>(root), identifier);
  return {builder_.GetBufferPointer(), builder_.GetBufferPointer() + builder_.GetSize()};
}

Place TableWriter::finish() {
  const auto size_of = [](const Field& field) { return field.size == kReference ? kReferenceBytes : field.size; };
  std::sort(fields_.begin(), fields_.end(), [&](const Field& a, const Field& b) {
    return size_of(a) != size_of(b) ? size_of(a) > size_of(b) : a.slot > b.slot;
  });
  flatbuffers::FlatBufferBuilder& builder = buffer_.builder();
  const Place start = builder.StartTable();
  for (const Field& field : fields_) {
    const auto slot = static_cast<flatbuffers::voffset_t>(4 + 2 * field.slot);
    if (field.size == kReference) builder.AddOffset(slot, flatbuffers::Offset<void>(static_cast<Place>(field.bits)));
    if (field.size == 1) add<std::uint8_t>(builder, slot, field.bits);
    if (field.size == 2) add<std::uint16_t>(builder, slot, field.bits);
    if (field.size == 4) add<std::uint32_t>(builder, slot, field.bits);
    if (field.size == 8) add<std::uint64_t>(builder, slot, field.bits);
  }
  return builder.EndTable(start);
}

}  // namespace reef::darwinn
