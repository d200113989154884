// SPDX-License-Identifier: Apache-2.0
#include "formats/zip/appended_archive.h"

#include <gtest/gtest.h>

namespace reef::zip {
namespace {

using Content = std::vector<std::uint8_t>;

void add(Content& file, std::uint32_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) file.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
}
void add(Content& file, const std::string& text) { file.insert(file.end(), text.begin(), text.end()); }

// `before` bytes of something else, then an archive with one stored file "labels.txt".
Content with_archive(std::size_t before) {
  Content file(before, 7);
  const std::string name = "labels.txt", text = "cat\ndog\n";
  const auto size = static_cast<std::uint32_t>(text.size());
  const auto header = static_cast<std::uint32_t>(file.size());
  add(file, 0x04034b50, 4);
  for (const int bytes : {2, 2, 2, 2, 2, 4}) add(file, 0, bytes);
  add(file, size, 4);
  add(file, size, 4);
  add(file, static_cast<std::uint32_t>(name.size()), 2);
  add(file, 0, 2);
  add(file, name);
  add(file, text);
  const auto directory = static_cast<std::uint32_t>(file.size());
  add(file, 0x02014b50, 4);
  for (const int bytes : {2, 2, 2, 2, 2, 2, 4}) add(file, 0, bytes);
  add(file, size, 4);
  add(file, size, 4);
  add(file, static_cast<std::uint32_t>(name.size()), 2);
  for (const int bytes : {2, 2, 2, 2, 4}) add(file, 0, bytes);
  add(file, header, 4);
  add(file, name);
  const auto end = static_cast<std::uint32_t>(file.size());
  add(file, 0x06054b50, 4);
  add(file, 0, 4);
  add(file, 1, 2);
  add(file, 1, 2);
  add(file, end - directory, 4);
  add(file, directory, 4);
  add(file, 0, 2);
  return file;
}

TEST(AppendedArchive, IsFoundAndMovedAlong) {
  const Content from = with_archive(1000);
  const AppendedArchive found = find_appended_archive(from);
  ASSERT_TRUE(found.is_there);
  EXPECT_EQ(found.start, 1000u);
  Content file(123, 9);
  ASSERT_TRUE(carry_archive(from, file));
  Content expected = with_archive(123);
  std::fill_n(expected.begin(), 123, std::uint8_t{9});
  EXPECT_EQ(file, expected);
}

TEST(AppendedArchive, AFileWithoutOneStaysAsItIs) {
  Content file(50, 1);
  EXPECT_FALSE(carry_archive(Content(500, 2), file));
  EXPECT_FALSE(carry_archive(Content(), file));
  EXPECT_EQ(file, Content(50, 1));
}

// Cut short, and with every byte of the directory changed: refused or carried, but nothing is read outside of the file.
TEST(AppendedArchive, DamagedOnesAreHarmless) {
  const Content whole = with_archive(40);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(find_appended_archive(std::span(whole).first(size)).is_there) << size;
  }
  for (std::size_t i = 40; i < whole.size(); ++i) {
    for (const int flip : {0x01, 0x80, 0xFF}) {
      Content damaged = whole;
      damaged[i] = static_cast<std::uint8_t>(damaged[i] ^ flip);
      Content file(10, 3);
      const bool is_carried = carry_archive(damaged, file);
      EXPECT_LE(file.size(), is_carried ? 10 + damaged.size() : 10);
    }
  }
}

}  // namespace
}  // namespace reef::zip
