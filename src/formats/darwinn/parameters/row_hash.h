// SPDX-License-Identifier: Apache-2.0
// Hashes of runs of 64-byte rows, so that a chunk can be looked for at every row of a blob in constant time.
//
// The hash of a run is a polynomial over mixed rows modulo 2^64; equal runs have equal hashes. The converse is likely,
// not certain: whoever finds an equal hash compares the bytes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace reef::darwinn {

class RowHashes {
 public:
  // Bytes behind the last whole row are left out.
  explicit RowHashes(std::span<const std::uint8_t> bytes);

  std::size_t rows() const { return before_.size() - 1; }
  std::uint64_t of_row(std::size_t row) const { return of_run(row, 1); }
  // Rows [first, first + count), which must exist.
  std::uint64_t of_run(std::size_t first, std::size_t count) const;

 private:
  std::vector<std::uint64_t> before_;  // [i]: hash of rows [0, i)
  std::vector<std::uint64_t> powers_;  // [i]: base to the power of i
};

}  // namespace reef::darwinn
