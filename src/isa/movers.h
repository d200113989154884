// SPDX-License-Identifier: Apache-2.0
// Opcodes 13 and 14: between narrow memory (4-byte words) and wide memory (256-byte lines) or scaling memory.
//
// A line is complete after one pass of the narrow dimensions below the line-closing level, or after 64 words. With
// this rule the number of lines equals the number of wide steps in all 23,410 such instructions that were checked.
#pragma once

#include "isa/layout.h"

namespace reef::isa::movers {

using layout::field;
using layout::flag;
using layout::plus_one;

enum NestIndex : std::uint8_t { kInNest, kOutNest };

// ---- 13: narrow to wide ----

inline constexpr NestFields kToWideIn = layout::nest({"in", AddressUnit::kNarrowWord, 62, 6, 16, 17, 16, 3});
inline constexpr NestFields kToWideOut = layout::nest({"out", AddressUnit::kWideLine, 337, 4, 16, 17, 16, 2});
inline constexpr std::array kToWideNests = {kToWideIn, kToWideOut};
inline constexpr Field kBaseFromRegister =
    flag("base_from_register", 542,
         "the base of `in` comes from base_register (one instruction of a recurrent network; the register holds the "
         "word address of the time step)",
         Evidence::kInferred);
inline constexpr ProducerFields kSignalNarrowToWide = layout::producer(
    {"signal_narrow_to_wide", 543, 3, false, static_cast<std::uint8_t>(TileCounter::kNarrowToWide), kOutNest});
inline constexpr auto kToWideWatchers = layout::watchers<6>({547, 5, 3, true, false, {kInNest, kOutNest}});
inline constexpr Field kTranspose =
    flag("transpose", 799,
         "transposes the 4x4 bytes of every four words: one channel per cell instead of one pixel per word",
         Evidence::kExecuted);
inline constexpr Field kTransposeHalves =
    flag("transpose_halves", 800, "with transpose: transposes the 2x2 16-bit halves of every two words instead",
         Evidence::kExecuted);
inline constexpr Field kToWideLineLevel =
    field("line_level", 801, 3, Kind::kUnsigned, "level",
          "a line ends with each pass of so many dimensions of `in`, and after 64 words", Evidence::kExecuted);

// ---- 14: wide to narrow, or to scaling memory ----

inline constexpr NestFields kToNarrowIn = layout::nest({"in", AddressUnit::kWideLine, 62, 4, 16, 17, 16, 2});
// Words of narrow memory; with to_scaling, steps of 8 bytes of scaling memory (scales from 0 on, biases from 64 on).
inline constexpr NestFields kToNarrowOut = layout::nest({"out", AddressUnit::kNarrowWord, 267, 6, 16, 17, 16, 3});
inline constexpr std::array kToNarrowNests = {kToNarrowIn, kToNarrowOut};
inline constexpr Field kSkip = flag("skip", 542, "words at the start of each line are skipped", Evidence::kExecuted);
inline constexpr Field kSkipLevel =
    plus_one(field("skip_level", 543, 3, Kind::kUnsigned, "level",
                   "words are skipped before each pass of this many inner dimensions of `out`", Evidence::kExecuted));
inline constexpr Field kSkipFirst =
    field("skip_first", 546, 16, Kind::kUnsigned, "word", "start of what is skipped", Evidence::kObserved);
inline constexpr Field kSkipWords =
    plus_one(field("skip_words", 562, 16, Kind::kUnsigned, "words", "how many words are skipped", Evidence::kExecuted));
inline constexpr Field kSkipLast =
    field("skip_last", 578, 16, Kind::kUnsigned, "word", "end of what is skipped", Evidence::kObserved);
inline constexpr Field kToScaling =
    flag("to_scaling", 867, "0: `out` is narrow memory, 1: `out` is scaling memory", Evidence::kExecuted);
inline constexpr ProducerFields kSignalWideToNarrow = layout::choose_counter(
    layout::producer(
        {"signal_wide_to_narrow", 611, 3, false, static_cast<std::uint8_t>(TileCounter::kWideToNarrow), kOutNest}),
    kToScaling,
    {static_cast<std::uint8_t>(TileCounter::kWideToNarrow), static_cast<std::uint8_t>(TileCounter::kWideToScaling)});
inline constexpr auto kToNarrowWatchers = layout::watchers<6>({615, 5, 3, true, false, {kInNest, kOutNest}});
inline constexpr Field kToNarrowLineLevel =
    field("line_level", 870, 3, Kind::kUnsigned, "level",
          "a line ends with each pass of so many dimensions of `out`, and after 64 words", Evidence::kExecuted);

}  // namespace reef::isa::movers
