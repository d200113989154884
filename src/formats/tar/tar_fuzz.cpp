// SPDX-License-Identifier: Apache-2.0
// Any bytes as a tar archive, as they are and with right checksums in what look like headers: every member that is
// listed lies within the file, and none has a name that leads out.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "formats/tar/tar.h"

namespace {

using namespace reef;

void read(std::vector<std::uint8_t> bytes) {
  const auto file = RandomFile::over(Bytes(std::move(bytes)), "fuzzed");
  const auto index = tar::read_index(*file);
  if (!index.ok()) return;
  for (const tar::Member& member : index->members) {
    if (!file->read(member.at, member.bytes).ok()) std::abort();
    if (member.name.empty() || member.name[0] == '/' || member.name.starts_with("../")) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::uint8_t> bytes(data, data + size);
  read(bytes);
  for (std::size_t at = 0; at + 512 <= size; at += 512) {
    if (std::memcmp(bytes.data() + at + 257, "ustar", 5) != 0) continue;
    std::memset(bytes.data() + at + 148, ' ', 8);
    unsigned sum = 0;
    for (std::size_t i = 0; i < 512; ++i) sum += bytes[at + i];
    std::snprintf(reinterpret_cast<char*>(bytes.data() + at + 148), 8, "%06o", sum);
  }
  read(std::move(bytes));
  return 0;
}
