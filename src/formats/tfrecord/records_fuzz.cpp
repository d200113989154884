// SPDX-License-Identifier: Apache-2.0
// Any bytes as a TFRecord file, and as a record: what is listed lies within the file; what is read as an example has no
// more elements than bytes. A record with right checksums around the bytes must come back as it is.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "formats/tfrecord/example.h"
#include "formats/tfrecord/records.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace reef;
  const Bytes bytes(std::vector<std::uint8_t>(data, data + size));
  const auto file = RandomFile::over(bytes, "fuzzed");
  if (const auto index = tfrecord::read_index(*file); index.ok()) {
    for (const tfrecord::Record& record : *index) (void)tfrecord::read_record(*file, record);
  }
  if (const auto example = tfrecord::read_example(bytes); example.ok()) {
    std::size_t elements = 0;
    for (const auto& [name, feature] : *example)
      elements += feature.bytes.size() + feature.floats.size() + feature.integers.size();
    if (elements > size) std::abort();
  }
  std::vector<std::uint8_t> written;
  tfrecord::append_record(bytes.span(), written);
  const auto whole = RandomFile::over(Bytes(std::move(written)), "written");
  const auto index = tfrecord::read_index(*whole);
  if (!index.ok() || index->size() != 1) std::abort();
  const auto again = tfrecord::read_record(*whole, (*index)[0]);
  if (!again.ok() || !(*again == bytes)) std::abort();
  return 0;
}
