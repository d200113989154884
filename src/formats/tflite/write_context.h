// SPDX-License-Identifier: Apache-2.0
// State that the parts of the writer share.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <flatbuffers/flatbuffers.h>

#include "base/status.h"
#include "formats/tflite/opaque.h"
#include "ir/model.h"

namespace reef::tflite {

struct WriteContext {
  explicit WriteContext(std::size_t expected_bytes) : builder(expected_bytes) {}

  flatbuffers::FlatBufferBuilder builder;
  // Where each opaque table was put. Only looked up, never iterated.
  std::unordered_map<const ir::OpaqueTable*, flatbuffers::uoffset_t> opaque;

  // 0, which generated builders leave out, for an empty one.
  template <typename T>
  flatbuffers::Offset<flatbuffers::Vector<T>> vector_if_any(const std::vector<T>& values) {
    if (values.empty()) return 0;
    return builder.CreateVector(values);
  }
  flatbuffers::Offset<flatbuffers::String> string_if_any(std::string_view text) {
    if (text.empty()) return 0;
    return builder.CreateString(text.data(), text.size());
  }
  flatbuffers::Offset<flatbuffers::Vector<std::uint8_t>> bytes(const Bytes& data, std::size_t alignment) {
    static constexpr std::uint8_t kNothing = 0;  // the builder wants a pointer even to no bytes
    builder.ForceVectorAlignment(data.size(), 1, alignment);
    return builder.CreateVector(data.empty() ? &kNothing : data.data(), data.size());
  }
  flatbuffers::Offset<flatbuffers::Vector<std::uint8_t>> bytes_if_any(const Bytes& data, std::size_t alignment) {
    if (data.empty()) return 0;
    return bytes(data, alignment);
  }
  flatbuffers::Offset<void> opaque_at(const ir::OpaqueTable& table) const { return opaque.at(&table); }
};

}  // namespace reef::tflite
