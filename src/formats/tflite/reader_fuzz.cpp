// SPDX-License-Identifier: Apache-2.0
// Any bytes: reading must not crash, what could be read and written must read back as the same model, and FlatBuffers'
// own verifier must accept what is written.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "formats/tflite/reader.h"
#include "formats/tflite/schema_generated.h"
#include "formats/tflite/writer.h"
#include "ir/verify.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace reef;
  std::vector<std::string> notes;
  const auto model = tflite::read_model(Bytes(std::vector<std::uint8_t>(data, data + size)), &notes);
  if (!model.ok()) return 0;
  (void)ir::verify(*model);
  const auto file = tflite::write_model(*model);
  if (!file.ok()) return 0;
  flatbuffers::Verifier verifier(file->data(), file->size());
  if (!tflite_schema::VerifyModelBuffer(verifier)) std::abort();
  const auto again = tflite::read_model(Bytes(*file));
  if (!again.ok() || !(*again == *model)) std::abort();
  const auto file_again = tflite::write_model(*again);
  if (!file_again.ok() || *file_again != *file) std::abort();
  return 0;
}
