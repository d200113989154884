// SPDX-License-Identifier: Apache-2.0
// Any bytes, as an archive and as an array: reading must not crash, and what could be read must read back after
// writing.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "formats/numpy/npz.h"

namespace {

bool is_same(const reef::numpy::Array& a, const reef::numpy::Array& b) {
  return a.type == b.type && a.shape == b.shape && a.data == b.data;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace reef;
  const Bytes file(std::vector<std::uint8_t>(data, data + size));
  if (const auto array = numpy::read_npy(file); array.ok()) {
    const auto written = numpy::write_npy(array->type, array->shape, array->data.span());
    if (!written.ok()) std::abort();
    const auto again = numpy::read_npy(Bytes(*written));
    if (!again.ok() || !is_same(*again, *array)) std::abort();
  }
  const auto npz = numpy::Npz::open(file);
  if (!npz.ok()) return 0;
  for (const std::string& name : npz->names()) {
    (void)npz->header(name);
    const auto array = npz->read(name);
    if (!array.ok()) continue;
    for (const bool deflate : {false, true}) {
      const numpy::NamedArray named{name, *array};
      const auto written = numpy::write_npz({&named, 1}, deflate);
      if (!written.ok()) std::abort();
      const auto again = numpy::Npz::open(Bytes(*written));
      if (!again.ok()) std::abort();
      const auto read = again->read(name);
      if (!read.ok() || !is_same(*read, *array)) std::abort();
    }
  }
  return 0;
}
