// SPDX-License-Identifier: Apache-2.0
#include "formats/tfrecord/records.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "formats/tfrecord/example.h"

namespace reef::tfrecord {
namespace {

std::span<const std::uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

std::shared_ptr<const RandomFile> file_of(std::vector<std::uint8_t> bytes) {
  return RandomFile::over(Bytes(std::move(bytes)), "x.tfrecord");
}

void expect_refusal(std::vector<std::uint8_t> bytes, const std::string& sentence) {
  const auto index = read_index(*file_of(std::move(bytes)));
  ASSERT_FALSE(index.ok());
  EXPECT_NE(index.status().message().find(sentence), std::string::npos) << index.status().message();
}

// RFC 3720, appendix B.4.
TEST(TfRecord, ChecksumIsCastagnoli) {
  EXPECT_EQ(crc32c(std::vector<std::uint8_t>(32)), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::vector<std::uint8_t>(32, 0xff)), 0x62a8ab43u);
  std::vector<std::uint8_t> rising(32);
  for (std::size_t i = 0; i < 32; ++i) rising[i] = static_cast<std::uint8_t>(i);
  EXPECT_EQ(crc32c(rising), 0x46dd794eu);
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xe3069283u);
}

// The bytes that tf.io.TFRecordWriter writes for b"reef" (TensorFlow 2.21).
TEST(TfRecord, IsWhatTensorFlowWrites) {
  std::vector<std::uint8_t> written;
  append_record(bytes_of("reef"), written);
  const std::vector<std::uint8_t> expected = {0x04, 0,    0,   0,   0,   0,   0,    0,    0x42, 0x45,
                                              0x52, 0x04, 'r', 'e', 'e', 'f', 0xec, 0xb5, 0xb6, 0x91};
  EXPECT_EQ(written, expected);
  const auto file = file_of(written);
  const auto index = read_index(*file);
  ASSERT_TRUE(index.ok()) << index.status().message();
  EXPECT_EQ(*read_record(*file, (*index)[0]), Bytes::copy_of(bytes_of("reef")));
}

TEST(TfRecord, DamageIsFound) {
  std::vector<std::uint8_t> bytes;
  append_record(bytes_of("first"), bytes);
  append_record(bytes_of("second"), bytes);
  const auto with = [&](std::size_t at) {
    std::vector<std::uint8_t> changed = bytes;
    changed[at] ^= 0x10;
    return changed;
  };
  expect_refusal(with(0), "it is no TFRecord file");
  expect_refusal(with(21), "record 1 at byte 21 is damaged: the checksum of its length");
  expect_refusal({bytes.begin(), bytes.end() - 3}, "is cut off: record 1 at byte 21");
  expect_refusal({bytes.begin(), bytes.begin() + 25}, "is cut off: record 1 at byte 21 has 4 bytes left");
  const auto file = file_of(with(14));
  const auto index = read_index(*file);
  ASSERT_TRUE(index.ok()) << "data are verified when they are read";
  EXPECT_TRUE(read_record(*file, (*index)[1]).ok());
  EXPECT_NE(read_record(*file, (*index)[0]).status().message().find("its checksum is wrong"), std::string::npos);
}

// A length with a right checksum counts only as far as the file goes.
TEST(TfRecord, HugeLengthsAreComparedWithTheFile) {
  std::vector<std::uint8_t> bytes(8, 0xff);
  const std::uint32_t crc = masked_crc32c(bytes);
  for (int i = 0; i < 4; ++i) bytes.push_back(static_cast<std::uint8_t>(crc >> (8 * i)));
  bytes.resize(64);
  expect_refusal(bytes, "has 18446744073709551615 bytes, of which");
}

TEST(TfRecord, ExamplesAreFeaturesByName) {
  // features { feature { key: "a" value { int64_list { value: [7, 300] } } } }
  const std::vector<std::uint8_t> record = {0x0a, 0x0e, 0x0a, 0x0c, 0x0a, 0x01, 'a',  0x12,
                                            0x07, 0x1a, 0x05, 0x0a, 0x03, 0x07, 0xac, 0x02};
  const auto example = read_example(Bytes(record));
  ASSERT_TRUE(example.ok()) << example.status().message();
  EXPECT_EQ(example->at("a").integers, (std::vector<std::int64_t>{7, 300}));
  EXPECT_EQ(example->at("a").describe(), "2 integers");
  const auto cut = read_example(Bytes(std::vector<std::uint8_t>(record.begin(), record.end() - 1)));
  EXPECT_NE(cut.status().message().find("not a tf.train.Example"), std::string::npos) << cut.status().message();
  const auto sequence = read_example(Bytes(std::vector<std::uint8_t>{0x12, 0x00}));
  EXPECT_NE(sequence.status().message().find("SequenceExample"), std::string::npos);
}

}  // namespace
}  // namespace reef::tfrecord
