// SPDX-License-Identifier: Apache-2.0
#include "formats/tar/tar.h"

#include <gtest/gtest.h>

#include "formats/tar/test_tars.h"

namespace reef::tar {
namespace {

using testing::archive;
using testing::end;
using testing::joined;
using testing::member;

Result<Index> index_of(std::vector<std::uint8_t> bytes) {
  return read_index(*RandomFile::over(Bytes(std::move(bytes)), "x.tar"));
}

void expect_refusal(std::vector<std::uint8_t> bytes, const std::string& sentence) {
  const auto index = index_of(std::move(bytes));
  ASSERT_FALSE(index.ok());
  EXPECT_NE(index.status().message().find(sentence), std::string::npos) << index.status().message();
}

TEST(Tar, MembersHaveTheirPlaces) {
  const std::vector<std::uint8_t> bytes =
      archive({{"./a/1.jpg", "first"}, {"a/1.cls", std::string(600, 'x')}, {"b", ""}});
  const auto index = index_of(bytes);
  ASSERT_TRUE(index.ok()) << index.status().message();
  ASSERT_EQ(index->members.size(), 3u);
  EXPECT_TRUE(index->has_end);
  EXPECT_EQ(index->members[0].name, "a/1.jpg");
  EXPECT_EQ(std::string(bytes.begin() + static_cast<std::ptrdiff_t>(index->members[0].at),
                        bytes.begin() + static_cast<std::ptrdiff_t>(index->members[0].at + index->members[0].bytes)),
            "first");
  EXPECT_EQ(index->members[1].bytes, 600u);
  EXPECT_EQ(index->members[2].bytes, 0u);
}

TEST(Tar, LongNamesOfGnuAndPax) {
  const std::string name = std::string(150, 'n') + "/" + std::string(150, 'm') + ".jpg";
  const std::string record = " path=" + name + "\n";
  const std::string pax = std::to_string(record.size() + 3) + record;
  const auto index = index_of(joined({member("././@LongLink", name + std::string(1, '\0'), 'L'), member("short", "1"),
                                      member("pax", pax, 'x'), member("short", "2"), member("plain", "3"), end()}));
  ASSERT_TRUE(index.ok()) << index.status().message();
  ASSERT_EQ(index->members.size(), 3u);
  EXPECT_EQ(index->members[0].name, name);
  EXPECT_EQ(index->members[1].name, name);
  EXPECT_EQ(index->members[2].name, "plain");
}

TEST(Tar, HardLinksAreTheMemberBefore) {
  const auto index = index_of(joined({member("a.jpg", "pixels"), member("b.jpg", "", '1', "a.jpg"), end()}));
  ASSERT_TRUE(index.ok()) << index.status().message();
  ASSERT_EQ(index->members.size(), 2u);
  EXPECT_EQ(index->members[1].at, index->members[0].at);
  expect_refusal(joined({member("b.jpg", "", '1', "../../etc/passwd"), end()}), "'../../etc/passwd' leads out");
  expect_refusal(joined({member("b.jpg", "", '1', "later.jpg"), end()}), "a link to 'later.jpg', which is not in");
}

TEST(Tar, WhatIsNoSampleIsRefused) {
  expect_refusal(archive({{"../x.jpg", "1"}}), "member '../x.jpg' leads out of the archive");
  expect_refusal(archive({{"/etc/passwd", "1"}}), "leads out of the archive");
  expect_refusal(archive({{"a/../../x", "1"}}), "leads out of the archive");
  expect_refusal(joined({member("l", "", '2', "/etc/passwd"), end()}), "member 'l' is a symbolic link");
  expect_refusal(joined({member("d", "", '3'), end()}), "a device");
  expect_refusal(joined({member("s", "", 'S'), end()}), "a sparse file");
}

TEST(Tar, DamageIsFound) {
  std::vector<std::uint8_t> bytes = archive({{"a.jpg", std::string(2000, 'a')}, {"b.jpg", "b"}});
  expect_refusal({bytes.begin(), bytes.begin() + 1000},
                 "it is cut off: member 'a.jpg' has 2000 bytes from byte 512 on");
  std::vector<std::uint8_t> in_header(bytes.begin(), bytes.begin() + 512 + 2048 + 100);
  expect_refusal(in_header, "it is cut off within the header at byte 2560");
  std::vector<std::uint8_t> no_end(bytes.begin(), bytes.end() - 1024);
  const auto index = index_of(no_end);
  ASSERT_TRUE(index.ok());
  EXPECT_FALSE(index->has_end);
  bytes[2560] ^= 1;
  expect_refusal(bytes, "the header at byte 2560 is damaged");
  expect_refusal(std::vector<std::uint8_t>(100, 'x'), "it is no tar archive");
  expect_refusal(std::vector<std::uint8_t>(5000, 'x'), "it is no tar archive");
}

// A header may claim any size; nothing is allocated for it.
TEST(Tar, HugeSizesAreComparedWithTheFile) {
  std::vector<std::uint8_t> header = member("huge.jpg", "");
  const auto claim = [&](const std::vector<std::uint8_t>& size) {
    std::vector<std::uint8_t> changed = header;
    std::copy(size.begin(), size.end(), changed.begin() + 124);
    std::fill(changed.begin() + 148, changed.begin() + 156, ' ');
    unsigned sum = 0;
    for (const std::uint8_t byte : changed) sum += byte;
    char text[8];
    std::snprintf(text, sizeof(text), "%06o", sum);
    std::copy(text, text + 7, changed.begin() + 148);
    return joined({changed, end()});
  };
  expect_refusal(claim({'7', '7', '7', '7', '7', '7', '7', '7', '7', '7', '7', 0}), "has 8589934591 bytes");
  expect_refusal(claim({0x80, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}), "bytes from byte 512 on");
  expect_refusal(claim({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}), "cannot be read");
  expect_refusal(joined({member("x", " path", 'x'), end()}), "a pax header is damaged");
  expect_refusal(joined({member("x", "27 GNU.sparse.name=abcdefg\n", 'x'), end()}), "a sparse file");
}

}  // namespace
}  // namespace reef::tar
