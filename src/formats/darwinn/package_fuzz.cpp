// SPDX-License-Identifier: Apache-2.0
// Any bytes as custom options, as a package and as an executable, and damaged ones made by our own writer: reading must
// not crash, and what could be read must be written as something that reads as the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "formats/darwinn/reader.h"
#include "formats/darwinn/sample_packages.h"
#include "formats/darwinn/writer.h"

namespace {

using reef::Bytes;
using Buffer = std::vector<std::uint8_t>;

template <typename Value, typename Write, typename Read>
void check(const reef::Result<Value>& value, Write write, Read read) {
  if (!value.ok()) return;
  const auto bytes = write(*value);
  if (!bytes.ok()) return;
  const auto again = read(Bytes(*bytes));
  if (!again.ok()) std::abort();
  const auto bytes_again = write(*again);  // compared as bytes: a factor may be no number, which equals nothing
  if (!bytes_again.ok() || *bytes_again != *bytes) std::abort();
}

void check_all(const Bytes& bytes) {
  using namespace reef::darwinn;
  check(read_custom_options(bytes), write_custom_options, [](const Bytes& b) { return read_custom_options(b); });
  check(read_package(bytes), write_package, [](const Bytes& b) { return read_package(b); });
  check(read_executable(bytes), write_executable, [](const Bytes& b) { return read_executable(b); });
}

// Each 5 bytes of `edits`: where (3) and what (2).
Buffer damaged(Buffer bytes, std::span<const std::uint8_t> edits) {
  for (; edits.size() >= 5 && bytes.size() > 1; edits = edits.subspan(5)) {
    const std::size_t at = (edits[0] | std::size_t{edits[1]} << 8 | std::size_t{edits[2]} << 16) % (bytes.size() - 1);
    bytes[at] = edits[3];
    bytes[at + 1] = edits[4];
  }
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace reef::darwinn;
  static const CustomOptions full = testing::make_full_options();
  static const Buffer samples[] = {write_custom_options(full).value(), write_package(full.package).value(),
                                   write_executable(full.package.executables[0]).value()};
  if (size == 0) return 0;
  const std::span<const std::uint8_t> rest(data + 1, size - 1);
  const std::size_t mode = data[0] % 4;
  check_all(Bytes(mode == 3 ? Buffer(rest.begin(), rest.end()) : damaged(samples[mode], rest)));
  return 0;
}
