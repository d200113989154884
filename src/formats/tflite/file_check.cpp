// SPDX-License-Identifier: Apache-2.0
#include "formats/tflite/file_check.h"

#include <cstring>
#include <string_view>

#include "formats/tflite/reader.h"
#include "formats/tflite/schema_generated.h"

namespace reef::tflite {
namespace {

constexpr std::string_view kIdentifier = "TFL3";  // at byte 4
constexpr flatbuffers::uoffset_t kMaxDepth = 64;  // the schema nests 8 deep
constexpr flatbuffers::uoffset_t kMaxTables = 4'000'000;

// What people hand over instead of a TFLite file, and what they should do. Empty: no idea.
std::string_view guess_what_it_is(std::string_view text) {
  using namespace std::string_view_literals;
  struct Row {
    std::string_view start, meaning;
  };
  static constexpr Row kRows[] = {
      {"PK\x03\x04", "it is a zip archive: unpack it first"},
      {"\x1f\x8b", "it is compressed with gzip: unpack it first"},
      {"version https://git-lfs", "it is a Git LFS pointer, not the file itself: run 'git lfs pull'"},
      {"\x89HDF", "it is an HDF5 file, as Keras writes: convert it to TFLite first"},
      {"\x08\x01\x12"sv, "it looks like a TensorFlow SavedModel: convert it to TFLite first"},
      {"{", "it looks like JSON"},
  };
  for (const Row& row : kRows) {
    if (text.starts_with(row.start)) return row.meaning;
  }
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != text.npos && text[first] == '<') return "it is a web page or XML: download the raw file instead";
  // ONNX is a protobuf message that starts with field 1, its version, followed by field 2 or 7 (producer, graph).
  if (text.size() > 3 && text[0] == 0x08 && text[1] >= 2 && text[1] < 32 && (text[2] == 0x12 || text[2] == 0x3a)) {
    return "it looks like an ONNX model, which this version does not read: convert it to TFLite first";
  }
  if (text.size() >= 8 && text.substr(4, 4) == "DWN1") {
    return "it is an Edge TPU executable taken out of a model: give the model";
  }
  if (text.size() >= 12 && text.substr(8, 4) == kIdentifier) {
    return "4 bytes too many stand in front of the model: cut them off";
  }
  return {};
}

}  // namespace

Status check_file(std::span<const std::uint8_t> file) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  REEF_REQUIRE(!file.empty(), "not a TFLite model: it is empty");
  if (text.size() < 8 || text.substr(4, 4) != kIdentifier) {
    const std::string_view guess = guess_what_it_is(text.substr(0, 256));
    if (!guess.empty()) return invalid_input("not a TFLite model: {}", guess);
    REEF_REQUIRE(text.size() >= 8, "not a TFLite model: {} bytes are too few", text.size());
    return invalid_input("not a TFLite model: the identifier 'TFL3' at byte 4 is missing");
  }
  // The verifier asserts on the very largest size.
  REEF_REQUIRE(file.size() < kMaxFileBytes, "{} bytes are too many; TFLite models are below 2 GiB", file.size());
  flatbuffers::Verifier verifier(file.data(), file.size(), kMaxDepth, kMaxTables);
  if (tflite_schema::VerifyModelBuffer(verifier)) return ok_status();
  std::uint32_t root = 0;
  std::memcpy(&root, file.data(), sizeof root);
  REEF_REQUIRE(root < file.size(), "the model is cut short: it starts at byte {}, but there are only {} bytes", root,
               file.size());
  // This includes values that are not aligned as FlatBuffers requires, which no known writer makes: to look at them in
  // place, even to tell the two cases apart, is undefined behaviour in C++.
  return invalid_input(
      "the model is cut short or damaged: its FlatBuffers structure is broken. Fetch or export it again");
}

}  // namespace reef::tflite
