// SPDX-License-Identifier: Apache-2.0
#include "base/shell_word.h"

#include <gtest/gtest.h>

namespace reef {
namespace {

TEST(ShellWord, QuotesWhatAShellWouldTakeApart) {
  EXPECT_EQ(shell_word("models/a_b-c.1,tflite"), "models/a_b-c.1,tflite");
  EXPECT_EQ(shell_word("my model.tflite"), "'my model.tflite'");
  EXPECT_EQ(shell_word("a;b"), "'a;b'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word("$HOME"), "'$HOME'");
  EXPECT_EQ(shell_word(""), "''");
}

}  // namespace
}  // namespace reef
