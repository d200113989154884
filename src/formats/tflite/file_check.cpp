// SPDX-License-Identifier: Apache-2.0
#include "formats/tflite/file_check.h"

#include <cstring>
#include <string_view>

#include "formats/foreign/foreign_file.h"
#include "formats/tflite/reader.h"
#include "formats/tflite/schema_generated.h"

namespace reef::tflite {
namespace {

constexpr std::string_view kIdentifier = "TFL3";  // at byte 4
constexpr flatbuffers::uoffset_t kMaxDepth = 64;  // the schema nests 8 deep
constexpr flatbuffers::uoffset_t kMaxTables = 4'000'000;

}  // namespace

Status check_identifier(const Bytes& file, const std::string& path) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  REEF_REQUIRE(!text.empty(), "not a TFLite model: it is empty");
  if (text.size() >= 8 && text.substr(4, 4) == kIdentifier) return ok_status();
  const formats::ForeignFile foreign = formats::recognize_foreign(file, path);
  if (!foreign.advice.empty()) return invalid_input("not a TFLite model: {}", foreign.advice);
  REEF_REQUIRE(text.size() >= 8, "not a TFLite model: {} bytes are too few", text.size());
  return invalid_input("not a TFLite model: the identifier 'TFL3' at byte 4 is missing");
}

Status check_file(const Bytes& file) {
  REEF_RETURN_IF_ERROR(check_identifier(file, "FILE"));
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
