// SPDX-License-Identifier: Apache-2.0
#include "driver/transfer_list.h"

#include <gtest/gtest.h>

#include "driver_packages.h"
#include "host/programs.h"

namespace reef::driver {
namespace {

using host::BufferIndex;
using testing::ask;

std::vector<std::vector<std::uint8_t>> chunk_of(const std::string& asks) {
  const auto program =
      testing::assembled(std::string(testing::kBeginProgram) + asks + std::string(testing::kEndProgram),
                         darwinn::ExecutableType::kExecutionOnly);
  const auto bytes = program.instruction_chunks[0].bitstream.span();
  return {{bytes.begin(), bytes.end()}};
}

Step data(Tag tag, std::size_t buffer, std::size_t offset, std::size_t bytes) {
  return {tag == Tag::kOutput ? Step::Kind::kReceive : Step::Kind::kSend, tag, buffer, offset, bytes, 0};
}

const Step kInstructions{}, kEnd{Step::Kind::kInterrupt, Tag::kInstructions, 0, 0, 0, 0};

std::string text_of(const std::vector<Step>& steps) {
  std::string text;
  for (const Step& step : steps) {
    text +=
        fmt::format("{}/{}: {}+{}; ", static_cast<int>(step.kind), static_cast<int>(step.tag), step.offset, step.bytes);
  }
  return text;
}

// As in Google's YOLOv8: 409,600 bytes in and 102,400 behind them out, listed as 512,000 in.
TEST(TransferList, AnEntryThatJoinsBothDirectionsIsTakenApart) {
  const auto chunks = chunk_of(ask(4096, 1) + ask(1024, 3) + ask(0, 4));
  constexpr std::size_t kScratch = BufferIndex::kScratch;
  const std::vector<Step> joined = {kInstructions, data(Tag::kInput, kScratch, 64, 5120), kEnd};
  const std::vector<Step> apart = {kInstructions, data(Tag::kInput, kScratch, 64, 4096),
                                   data(Tag::kOutput, kScratch, 64 + 4096, 1024), kEnd};
  EXPECT_EQ(text_of(with_directions_apart(joined, chunks)), text_of(apart));
  EXPECT_EQ(text_of(with_directions_apart(apart, chunks)), text_of(apart)) << "a right list stays as it is";
}

TEST(TransferList, OtherListsStayAsTheyAre) {
  const auto expect_same = [](const std::vector<Step>& steps, const std::string& asks) {
    EXPECT_EQ(text_of(with_directions_apart(steps, chunk_of(asks))), text_of(steps)) << asks;
  };
  constexpr std::size_t kScratch = BufferIndex::kScratch, kInput = BufferIndex::kFirstLayer;
  const auto list = [](const Step& step) { return std::vector<Step>{kInstructions, step, kEnd}; };
  // Joined in one direction: one piece over the link, as Google's runtime sends it.
  expect_same(list(data(Tag::kInput, kInput, 0, 5120)), ask(4096, 1) + ask(1024, 1) + ask(0, 4));
  // An input is never written, a request is larger than the entry, nothing is asked for, an interrupt is missing.
  expect_same(list(data(Tag::kInput, kInput, 0, 5120)), ask(4096, 1) + ask(1024, 3) + ask(0, 4));
  expect_same(list(data(Tag::kInput, kScratch, 0, 5120)), ask(8192, 1) + ask(0, 4));
  expect_same(list(data(Tag::kInput, kScratch, 0, 5120)), ask(0, 4));
  expect_same(list(data(Tag::kInput, kScratch, 0, 5120)), ask(4096, 1) + ask(1024, 3));
  // The program asks for more than the list has.
  expect_same(list(data(Tag::kInput, kScratch, 0, 5120)), ask(4096, 1) + ask(1024, 3) + ask(0, 4) + ask(64, 1));
}

}  // namespace
}  // namespace reef::driver
