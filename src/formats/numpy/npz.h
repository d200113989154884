// SPDX-License-Identifier: Apache-2.0
// NumPy's .npz files: zip archives of .npy arrays, by name. Arrays are unpacked when they are asked for, so that one of
// a type that is not read (text, for example) does not stand in the way of the others.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/budget.h"
#include "base/status.h"
#include "formats/numpy/npy.h"
#include "formats/zip/archive.h"

namespace reef::numpy {

class Npz {
 public:
  static Result<Npz> open(const Bytes& file);
  static Result<Npz> load(const std::string& path);

  // Without ".npy", in the order of the file.
  const std::vector<std::string>& names() const { return names_; }
  bool has(const std::string& name) const;
  // Type and shape, from the first bytes alone.
  Result<Header> header(const std::string& name) const;
  Result<Array> read(const std::string& name) const;
  // The first `rows` indices of the first dimension (all of them if it has fewer, or `rows` is negative), without
  // unpacking the rest; what is cut off is not compared with the checksum. An array whose elements cannot be in the
  // member is refused before it is unpacked. Counts what it unpacks against `budget`, into `memory`.
  Result<Array> read_rows(const std::string& name, std::int64_t rows, const Budget& budget,
                          BudgetedBytes& memory) const;

 private:
  Result<const zip::Member*> member(const std::string& name) const;

  zip::Archive archive_;
  std::vector<std::string> names_;
};

struct NamedArray {
  std::string name;
  Array array;
};
// Same arrays, same bytes.
Result<std::vector<std::uint8_t>> write_npz(std::span<const NamedArray> arrays, bool deflate);

}  // namespace reef::numpy
