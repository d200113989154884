// SPDX-License-Identifier: Apache-2.0
// State that the parts of the reader share: the file, the memory budget and the notes.
//
// FlatBuffers lets any number of tables and vectors lie on the same bytes, so a small file can describe a huge model.
// Everything that a reader allocates, or that a writer would have to repeat, is charged to a budget proportional to the
// file's size. The first refusal is sticky: readers carry on with empty values and the caller asks status() between
// tables.
#pragma once

#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <flatbuffers/flatbuffers.h>

#include "base/bytes.h"
#include "base/status.h"
#include "formats/tflite/opaque.h"
#include "formats/tflite/option_schema.h"

namespace reef::tflite {

class ReadContext {
 public:
  explicit ReadContext(const Bytes& file) : file_(file), budget_(32 * std::uint64_t{file.size()} + (1u << 20)) {}

  const Bytes& file() const { return file_; }
  OpaqueFinder& opaque_finder() { return opaque_finder_; }

  // False, and status() is an error from then on, when `bytes` exceed what is left.
  bool charge(std::uint64_t bytes) {
    if (bytes <= budget_) {
      budget_ -= bytes;
      return true;
    }
    budget_ = 0;
    if (status_.ok()) {
      status_ =
          make_error(StatusCode::kResourceExhausted,
                     "the file's {} bytes describe a model many times that size, which only a damaged or malicious "
                     "file does",
                     file_.size());
    }
    return false;
  }
  const Status& status() const { return status_; }

  // Remembers that a table of type `kind` at `place` has fields that are not kept.
  void check_newer_fields(const flatbuffers::Table& table, std::string_view kind) {
    auto found = kinds_.find(kind);
    if (found == kinds_.end()) found = kinds_.emplace(std::string(kind), Kind{known_vtable_bytes(kind)}).first;
    Kind& row = found->second;
    if (count_newer_fields(table, row.known_vtable_bytes) == 0) return;
    if (row.tables_with_newer_fields++ == 0) row.first_place = place_;
  }
  template <typename T>
  void check_newer_fields(const T* table, std::string_view kind) {
    check_newer_fields(*reinterpret_cast<const flatbuffers::Table*>(table), kind);
  }
  void add_note(std::string_view note) {
    if (notes_.size() < kMaxNotes) notes_.push_back(fmt::format("{}: {}", place_, note));
  }
  void set_place(std::string place) { place_ = std::move(place); }
  const std::string& place() const { return place_; }

  std::vector<std::string> take_notes() {
    for (const auto& [kind, row] : kinds_) {
      if (row.tables_with_newer_fields == 0) continue;
      notes_.push_back(
          fmt::format("{} {} table(s), first at {}, have fields newer than this version knows; those are "
                      "not kept when saving",
                      row.tables_with_newer_fields, kind, row.first_place));
    }
    return std::move(notes_);
  }

  // Elements are copied bytewise: the FlatBuffers verifier does not promise that they are aligned.
  template <typename To, typename Wire>
  std::vector<To> copy(const flatbuffers::Vector<Wire>* source) {
    static_assert(FLATBUFFERS_LITTLEENDIAN);
    std::vector<To> result;
    if (source == nullptr || !charge(std::uint64_t{source->size()} * sizeof(To))) return result;
    result.resize(source->size());
    for (std::size_t i = 0; i < result.size(); ++i) {
      Wire element;
      std::memcpy(&element, source->Data() + i * sizeof(Wire), sizeof(Wire));
      result[i] = static_cast<To>(element);
    }
    return result;
  }
  std::string copy(const flatbuffers::String* source) {
    if (source == nullptr || !charge(sizeof(std::string) + source->size())) return {};
    return source->str();
  }
  // No copy, but charged: whoever writes the model pays for every slice.
  Bytes slice(const flatbuffers::Vector<std::uint8_t>* source) {
    if (source == nullptr || source->size() == 0 || !charge(source->size())) return {};
    return file_.slice(static_cast<std::size_t>(source->Data() - file_.data()), source->size());
  }

 private:
  static constexpr std::size_t kMaxNotes = 100;
  struct Kind {
    std::uint16_t known_vtable_bytes = 4;
    int tables_with_newer_fields = 0;
    std::string first_place{};
  };

  const Bytes& file_;
  std::uint64_t budget_;
  Status status_;
  OpaqueFinder opaque_finder_;
  std::string place_ = "model";
  std::map<std::string, Kind, std::less<>> kinds_;
  std::vector<std::string> notes_;
};

}  // namespace reef::tflite
