// SPDX-License-Identifier: Apache-2.0
// TFRecord files: TensorFlow's rows of records, each a length, the length's checksum, the data and their checksum
// (CRC-32C, masked; tensorflow/core/lib/io/record_writer.h).
//
// The bytes are foreign: a length counts only if its checksum is right and the file holds so many bytes. Data are
// verified when a record is read.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/budget.h"
#include "base/random_file.h"
#include "base/status.h"

namespace reef::tfrecord {

struct Record {
  std::uint64_t at = 0, bytes = 0;  // of its data, in the file
};
Result<std::vector<Record>> read_index(const RandomFile& file, const Budget& budget = {});
// Verifies the checksum.
Result<Bytes> read_record(const RandomFile& file, const Record& record);

// CRC-32C, also called Castagnoli.
std::uint32_t crc32c(std::span<const std::uint8_t> data);
std::uint32_t masked_crc32c(std::span<const std::uint8_t> data);
// A record as TensorFlow writes it, appended to `file`.
void append_record(std::span<const std::uint8_t> data, std::vector<std::uint8_t>& file);

}  // namespace reef::tfrecord
