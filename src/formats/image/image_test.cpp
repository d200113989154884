// SPDX-License-Identifier: Apache-2.0
#include "formats/image/image.h"

#include "formats/image/exif.h"

#include <gtest/gtest.h>

namespace reef::image {
namespace {

// A 2 x 2, 24-bit BMP: red green / blue white (stored bottom row first, BGR, rows padded to 4 bytes).
std::vector<std::uint8_t> tiny_bmp() {
  std::vector<std::uint8_t> bmp = {'B', 'M', 70, 0, 0, 0, 0, 0, 0, 0, 54, 0, 0, 0, 40, 0, 0,  0,
                                   2,   0,   0,  0, 2, 0, 0, 0, 1, 0, 24, 0, 0, 0, 0,  0, 16, 0,
                                   0,   0,   0,  0, 0, 0, 0, 0, 0, 0, 0,  0, 0, 0, 0,  0, 0,  0};
  for (const int value : {255, 0, 0, 255, 255, 255, 0, 0, 0, 0, 255, 0, 255, 0, 0, 0}) {
    bmp.push_back(static_cast<std::uint8_t>(value));
  }
  return bmp;
}

TEST(Image, DecodesBmpTopRowFirst) {
  const auto image = decode(Bytes(tiny_bmp()), 3);
  ASSERT_TRUE(image.ok()) << image.status().message();
  EXPECT_EQ(image->width, 2);
  EXPECT_EQ(image->height, 2);
  EXPECT_EQ(image->samples, (std::vector<std::uint8_t>{255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255}));
}

// Expected values from Pillow's ImageOps.exif_transpose.
TEST(Image, IsTurnedUpright) {
  const std::vector<std::vector<std::uint8_t>> wanted = {{1, 2, 3, 4, 5, 6}, {3, 2, 1, 6, 5, 4}, {6, 5, 4, 3, 2, 1},
                                                         {4, 5, 6, 1, 2, 3}, {1, 4, 2, 5, 3, 6}, {4, 1, 5, 2, 6, 3},
                                                         {6, 3, 5, 2, 4, 1}, {3, 6, 2, 5, 1, 4}};
  const Image stored = {3, 2, 1, {1, 2, 3, 4, 5, 6}};
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const Image turned = upright(stored, orientation);
    EXPECT_EQ(turned.samples, wanted[at(orientation - 1)]) << orientation;
    EXPECT_EQ(turned.width, orientation < 5 ? 3 : 2);
    EXPECT_EQ(turned.height, orientation < 5 ? 2 : 3);
  }
}

// The beginning of a JPEG with the orientation 6, written by Pillow.
TEST(Image, OrientationIsReadFromExif) {
  std::vector<std::uint8_t> file = {0xff, 0xd8, 0xff, 0xe0, 0x00, 0x10, 'J',  'F',  'I',  'F',  0x00, 0x01,
                                    0x01, 0x00, 0x00, 0x01, 0x00, 0x01, 0x00, 0x00, 0xff, 0xe1, 0x00, 0x22,
                                    'E',  'x',  'i',  'f',  0x00, 0x00, 'M',  'M',  0x00, 0x2a, 0x00, 0x00,
                                    0x00, 0x08, 0x00, 0x01, 0x01, 0x12, 0x00, 0x03, 0x00, 0x00, 0x00, 0x01,
                                    0x00, 0x06, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xff, 0xdb, 0x00, 0x04};
  EXPECT_EQ(orientation_of(file), 6);
  // No number of bytes and no byte may lead outside of the file.
  for (std::size_t size = 0; size <= file.size(); ++size) {
    const std::vector<std::uint8_t> cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_TRUE(orientation_of(cut) == 1 || orientation_of(cut) == 6);
  }
  for (std::uint8_t& byte : file) {
    const std::uint8_t kept = byte;
    for (const int other : {0x00, 0x7f, 0xff}) {
      byte = static_cast<std::uint8_t>(other);
      const int orientation = orientation_of(file);
      EXPECT_TRUE(orientation >= 1 && orientation <= 8);
    }
    byte = kept;
  }
}

TEST(Image, FilesThatAreNoPicturesAreNamed) {
  const auto refusal = [](std::string_view text) {
    return decode(Bytes(std::vector<std::uint8_t>(text.begin(), text.end())), 3).status().message();
  };
  EXPECT_EQ(refusal(""), "the file is empty");
  EXPECT_EQ(refusal("just a text"), "this is a text, not a picture");
  EXPECT_NE(refusal(std::string_view("\0\0\0\x18"
                                     "ftypheic\0\0\0\0",
                                     16))
                .find("HEIC"),
            std::string::npos);
  EXPECT_NE(refusal(std::string_view("\0\0\0\x18"
                                     "ftypavif\0\0\0\0",
                                     16))
                .find("AVIF"),
            std::string::npos);
  EXPECT_NE(refusal(std::string_view("II*\0\x08\0\0\0\0\0\0\0\0", 13)).find("TIFF"), std::string::npos);
}

TEST(Image, DamagedFilesAreRefusedAtEveryLength) {
  const std::vector<std::uint8_t> whole = tiny_bmp();
  for (std::size_t size = 0; size < 54; ++size) {
    EXPECT_FALSE(
        decode(Bytes(std::vector<std::uint8_t>(whole.begin(), whole.begin() + static_cast<long>(size))), 3).ok());
  }
}

// Expected values from Pillow's Image.resize(..., BILINEAR).
// 3 x 2 pixels, lossless, by Pillow: red green blue / dark, brown, white.
std::vector<std::uint8_t> tiny_webp() {
  return {0x52, 0x49, 0x46, 0x46, 0x42, 0x0,  0x0,  0x0,  0x57, 0x45, 0x42, 0x50, 0x56, 0x50, 0x38,
          0x4c, 0x36, 0x0,  0x0,  0x0,  0x2f, 0x2,  0x40, 0x0,  0x0,  0x2f, 0x40, 0x90, 0x6d, 0xb3,
          0x41, 0xdc, 0xeb, 0xfe, 0x32, 0xd3, 0x20, 0x93, 0xb6, 0xc9, 0x5f, 0xff, 0x76, 0x66, 0x6d,
          0x64, 0xd2, 0x36, 0xad, 0x87, 0xfd, 0xf3, 0xaf, 0xb2, 0xf3, 0x1f, 0x68, 0xe4, 0x91, 0xac,
          0xfb, 0x6,  0x4,  0x2,  0x94, 0xb1, 0xe2, 0x81, 0x6d, 0x22, 0xfa, 0x1f, 0xe3, 0x5};
}

TEST(Image, DecodesWebp) {
  const auto image = decode(Bytes(tiny_webp()), 3);
  if (!image.ok() && image.status().message().find("libwebp7") != std::string::npos) {
    GTEST_SKIP() << image.status().message();
  }
  ASSERT_TRUE(image.ok()) << image.status().message();
  EXPECT_EQ(image->width, 3);
  EXPECT_EQ(image->height, 2);
  EXPECT_EQ(image->samples,
            (std::vector<std::uint8_t>{255, 0, 0, 0, 255, 0, 0, 0, 255, 10, 20, 30, 200, 100, 50, 255, 255, 255}));
  EXPECT_EQ(decode(Bytes(tiny_webp()), 4)->samples[3], 255);
  EXPECT_EQ(decode(Bytes(tiny_webp()), 1)->samples[5], 255);
  const std::vector<std::uint8_t> whole = tiny_webp();
  for (std::size_t size = 0; size < whole.size() - 4; ++size) {
    EXPECT_FALSE(
        decode(Bytes(std::vector<std::uint8_t>(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size))), 3)
            .ok());
  }
}

TEST(Image, ShrinkingEqualsPillow) {
  EXPECT_EQ(resize(Image{4, 1, 1, {0, 100, 200, 100}}, 2, 1).samples, (std::vector<std::uint8_t>{71, 143}));
  EXPECT_EQ(resize(Image{7, 1, 1, {10, 20, 30, 250, 7, 90, 1}}, 3, 1).samples,
            (std::vector<std::uint8_t>{19, 118, 40}));
}

TEST(Image, EnlargingInterpolates) {
  const Image wide = resize(Image{2, 1, 1, {0, 100}}, 4, 1);
  EXPECT_EQ(wide.samples, (std::vector<std::uint8_t>{0, 25, 75, 100}));
}

TEST(Image, SameSizeIsUntouched) {
  const Image source{3, 2, 1, {1, 2, 3, 4, 5, 6}};
  EXPECT_EQ(resize(source, 3, 2).samples, source.samples);
}

// stb_image as of 2022 writes past a table on such a file.
TEST(Image, JpegTablesOfTooManyCodesAreRefused) {
  for (const bool in_scan : {false, true}) {
    std::vector<std::uint8_t> file = {0xff, 0xd8};
    if (in_scan) file.insert(file.end(), {0xff, 0xda, 0, 4, 0, 0, 0x12, 0xff, 0, 0x34});
    file.insert(file.end(), {0xff, 0xc4, 0x0f, 0xff, 0});
    file.insert(file.end(), 16, 255);
    file.resize(file.size() + 5000);
    const auto picture = decode(Bytes(std::move(file)), 3);
    ASSERT_FALSE(picture.ok());
    EXPECT_NE(picture.status().message().find("more than 256 codes"), std::string::npos) << picture.status().message();
  }
}

}  // namespace
}  // namespace reef::image
