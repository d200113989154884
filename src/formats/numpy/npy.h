// SPDX-License-Identifier: Apache-2.0
// Arrays in NumPy's format .npy: a line of text that gives type, order and shape, then the elements.
//
// Versions 1 to 3, all numeric types, either byte order, C and Fortran order are read; the result is always
// little-endian and in C order (the last dimension varies fastest). Strings, records and objects (pickles, which can
// run code) are refused. The bytes are foreign: sizes are checked before anything is allocated.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "ir/type.h"

namespace reef::numpy {

struct Array {
  ir::DataType type = ir::DataType::kFloat32;
  std::vector<std::int64_t> shape;
  Bytes data;  // elements() * element_bytes() of them

  std::int64_t elements() const;
  std::int64_t element_bytes() const { return ir::bits_per_element(type) / 8; }
  std::string describe() const;  // "uint8 [2000, 32, 32, 3]"
};

// The contents of the header's line of text.
struct Header {
  ir::DataType type = ir::DataType::kFloat32;
  std::vector<std::int64_t> shape;
  bool is_big_endian = false;
  bool is_fortran_order = false;
  std::uint64_t data_at = 0;     // first byte of the elements
  std::uint64_t data_bytes = 0;  // of all elements
};
// `file` need hold only the header: kMaxHeaderBytes are enough for any that is read.
inline constexpr std::uint64_t kMaxHeaderBytes = 1 << 16;
Result<Header> read_npy_header(std::span<const std::uint8_t> file);

// The elements are a slice of `file` unless they have to be put in order.
Result<Array> read_npy(const Bytes& file);
// The same with what is known of the header, which may describe fewer rows than the file's own does.
Result<Array> read_npy_elements(const Bytes& file, const Header& header);
Result<Array> load_npy(const std::string& path);

// A file of version 1.0, aligned as NumPy does. Fails for types that NumPy lacks and for data of another size than
// type and shape say.
Result<std::vector<std::uint8_t>> write_npy(ir::DataType type, std::span<const std::int64_t> shape,
                                            std::span<const std::uint8_t> data);
Status save_npy(const std::string& path, ir::DataType type, std::span<const std::int64_t> shape,
                std::span<const std::uint8_t> data);

}  // namespace reef::numpy
