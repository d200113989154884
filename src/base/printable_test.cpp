// SPDX-License-Identifier: Apache-2.0
#include "base/printable.h"

#include <gtest/gtest.h>

namespace reef {
namespace {

TEST(Printable, OrdinaryNamesAreUnchanged) {
  for (const char* name : {"", "conv2d/BiasAdd;conv2d", "C:\\x\\n", "größe_层_🐙", "a b~{}%s"}) {
    EXPECT_EQ(printable(name), name);
    EXPECT_EQ(printable_text(name), name);
  }
}

TEST(Printable, ControlCharactersBecomeEscapes) {
  EXPECT_EQ(printable("\x1b[31mred\x1b[0m"), "\\x1b[31mred\\x1b[0m");
  EXPECT_EQ(printable(std::string_view("a\0b\x7f\x07", 5)), "a\\x00b\\x7f\\x07");
  EXPECT_EQ(printable("one\ntwo\tthree\r"), "one\\ntwo\\tthree\\r");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\x9b31m");  // CSI in one character
  EXPECT_EQ(printable("\xe2\x80\xae"
                      "gpj.exe"),
            "\\u202egpj.exe");
  EXPECT_EQ(printable("\xe2\x80\xa8"), "\\u2028");
}

TEST(Printable, BytesThatAreNoUtf8BecomeEscapes) {
  EXPECT_EQ(printable("\x9b"
                      "31m"),
            "\\x9b31m");
  EXPECT_EQ(printable("\xc3("), "\\xc3(");
  EXPECT_EQ(printable("\xe2\x82"), "\\xe2\\x82");           // cut off
  EXPECT_EQ(printable("\xc0\x9b"), "\\xc0\\x9b");           // overlong
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // surrogate
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
}

TEST(Printable, TextKeepsItsOwnLines) {
  EXPECT_EQ(printable_text("a\tb\nc\x1b]0;title\x07\r\n"), "a\tb\nc\\x1b]0;title\\x07\\r\n");
}

// Whatever the bytes are, the result has no control character but the line ends of a text.
TEST(Printable, NoPairOfBytesGetsThrough) {
  for (int a = 0; a < 256; ++a) {
    for (int b = 0; b < 256; ++b) {
      const std::string pair = {static_cast<char>(a), static_cast<char>(b)};
      for (const char c : printable(pair)) {
        EXPECT_FALSE(static_cast<unsigned char>(c) < 0x20 || c == 0x7F) << a << ' ' << b;
      }
      EXPECT_EQ(printable(printable(pair)), printable(pair)) << a << ' ' << b;
    }
  }
}

}  // namespace
}  // namespace reef
