// SPDX-License-Identifier: Apache-2.0
#include "formats/tfrecord/records.h"

#include <array>

namespace reef::tfrecord {
namespace {

constexpr std::uint64_t kLengthBytes = 8, kCrcBytes = 4, kHeaderBytes = kLengthBytes + kCrcBytes;
constexpr std::uint32_t kPolynomial = 0x82f63b78;  // reflected
constexpr std::uint32_t kMaskDelta = 0xa282ead8;   // tensorflow/core/lib/hash/crc32c.h

// Tables for eight bytes at a time ("slicing by 8").
struct Tables {
  std::array<std::array<std::uint32_t, 256>, 8> of{};
};

constexpr Tables make_tables() {
  Tables tables;
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) != 0 ? crc >> 1 ^ kPolynomial : crc >> 1;
    tables.of[0][i] = crc;
  }
  for (std::size_t k = 1; k < 8; ++k) {
    for (std::size_t i = 0; i < 256; ++i)
      tables.of[k][i] = tables.of[k - 1][i] >> 8 ^ tables.of[0][tables.of[k - 1][i] & 0xff];
  }
  return tables;
}
constexpr Tables kTables = make_tables();

std::uint64_t little_endian(std::span<const std::uint8_t> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | bytes[i];
  return value;
}

void append_little_endian(std::uint64_t value, std::size_t bytes, std::vector<std::uint8_t>& to) {
  for (std::size_t i = 0; i < bytes; ++i) to.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
}

}  // namespace

std::uint32_t crc32c(std::span<const std::uint8_t> data) {
  std::uint32_t crc = 0xffffffff;
  while (data.size() >= 8) {
    const std::uint64_t word = little_endian(data.first(8)) ^ crc;
    crc = 0;
    for (std::size_t k = 0; k < 8; ++k) crc ^= kTables.of[7 - k][word >> (8 * k) & 0xff];
    data = data.subspan(8);
  }
  for (const std::uint8_t byte : data) crc = crc >> 8 ^ kTables.of[0][(crc ^ byte) & 0xff];
  return ~crc;
}

std::uint32_t masked_crc32c(std::span<const std::uint8_t> data) {
  const std::uint32_t crc = crc32c(data);
  return (crc >> 15 | crc << 17) + kMaskDelta;
}

Result<std::vector<Record>> read_index(const RandomFile& file, const Budget& budget) {
  std::vector<Record> records;
  std::uint64_t at = 0;
  while (at < file.size()) {
    if (records.size() % 4096 == 0) REEF_RETURN_IF_ERROR(budget.check("reading the records' lengths"));
    const std::uint64_t left = file.size() - at;
    REEF_REQUIRE(left >= kHeaderBytes + kCrcBytes, "'{}' is cut off: record {} at byte {} has {} bytes left",
                 file.path(), records.size(), at, left);
    std::array<std::uint8_t, kHeaderBytes> header{};
    REEF_RETURN_IF_ERROR(file.read_at(at, header));
    const std::span<const std::uint8_t> length = std::span(header).first(kLengthBytes);
    REEF_REQUIRE(
        masked_crc32c(length) == little_endian(std::span(header).subspan(kLengthBytes)), "'{}': {}", file.path(),
        records.empty()
            ? std::string("it is no TFRecord file: the checksum of the first length is wrong")
            : fmt::format("record {} at byte {} is damaged: the checksum of its length is wrong", records.size(), at));
    const std::uint64_t bytes = little_endian(length);
    REEF_REQUIRE(bytes <= left - kHeaderBytes - kCrcBytes,
                 "'{}' is cut off: record {} at byte {} has {} bytes, of which {} are there", file.path(),
                 records.size(), at, bytes, left - kHeaderBytes - kCrcBytes);
    records.push_back({at + kHeaderBytes, bytes});
    at += kHeaderBytes + bytes + kCrcBytes;
  }
  return records;
}

Result<Bytes> read_record(const RandomFile& file, const Record& record) {
  REEF_ASSIGN_OR_RETURN(const Bytes all, file.read(record.at, record.bytes + kCrcBytes));
  REEF_REQUIRE(masked_crc32c(all.span().first(record.bytes)) == little_endian(all.span().subspan(record.bytes)),
               "'{}': the record at byte {} is damaged: its checksum is wrong", file.path(), record.at - kHeaderBytes);
  return all.slice(0, record.bytes);
}

void append_record(std::span<const std::uint8_t> data, std::vector<std::uint8_t>& file) {
  std::vector<std::uint8_t> length;
  append_little_endian(data.size(), kLengthBytes, length);
  file.insert(file.end(), length.begin(), length.end());
  append_little_endian(masked_crc32c(length), kCrcBytes, file);
  file.insert(file.end(), data.begin(), data.end());
  append_little_endian(masked_crc32c(data), kCrcBytes, file);
}

}  // namespace reef::tfrecord
