// SPDX-License-Identifier: Apache-2.0
// Any bytes as a tar archive: every member that is listed lies within the file, and none has a name that leads out.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "formats/tar/tar.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace reef;
  const auto file = RandomFile::over(Bytes(std::vector<std::uint8_t>(data, data + size)), "fuzzed");
  const auto index = tar::read_index(*file);
  if (!index.ok()) return 0;
  for (const tar::Member& member : index->members) {
    if (!file->read(member.at, member.bytes).ok()) std::abort();
    if (member.name.empty() || member.name[0] == '/' || member.name.starts_with("../")) std::abort();
  }
  return 0;
}
