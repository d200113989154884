// SPDX-License-Identifier: Apache-2.0
// The conditions under which an op runs on the Edge TPU, as data.
//
// A rule is a predicate with the sentence that states it, what to do when it is broken, the runtime versions it holds
// for and how it is known. The checker, its messages, Google's words in a compiler's log and docs/ops.md all come from
// these tables. They say what Google's compiler accepts: nobody has published why, and where its limits lie between two
// observations the rule says so.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "ops/op_context.h"

namespace reef::ops {

// Versions of Google's Edge TPU runtime that compiled code can ask for (edgetpu_compiler -m).
inline constexpr int kOldestRuntime = 10;
inline constexpr int kNewestRuntime = 14;
struct RuntimeRange {
  int from = kOldestRuntime;
  int to = kNewestRuntime;  // inclusive
  constexpr bool contains(int runtime) const { return from <= runtime && runtime <= to; }
};
inline constexpr RuntimeRange kAllRuntimes = {};
inline constexpr RuntimeRange kUpTo12 = {kOldestRuntime, 12};
// Runtimes that Coral's table calls "12 and below". Files of Google's compilers 2.0.291256449 to 15.0, for which the
// table says 13, carry the number 12 and do contain such ops (dilated depthwise convolutions, for one).
inline constexpr RuntimeRange kUpTo11 = {kOldestRuntime, 11};
inline constexpr RuntimeRange kFrom13 = {13, kNewestRuntime};

enum class RuleSource : std::uint8_t {
  kCoralDocs,  // Coral's list of supported operations and model requirements
  kMeasured,   // models and what Google's compiler made of them
  kReported,   // users' logs and issues
  kAssumed,    // follows from what is known of the chip; nobody has reported a case
};
std::string_view to_string(RuleSource source);  // "Coral's documentation", ...

// The status that Google's compiler prints for an op.
enum class GoogleStatus : std::uint8_t {
  kMapped,
  kUnspecifiedLimitation,
  kUnsupportedType,
  kSeveralSubgraphs,
  kUnsupportedRank,
  kVersionNotSupported,
  kNotSupported,
  kNotConstant,
  kImprecise,
};
std::string_view to_string(GoogleStatus status);  // Google's sentence, letter by letter

struct ChipRule {
  std::string_view id;          // "transpose-size": unique among all rules and stable, for --json and tests
  std::string_view says;        // "At most 82,944 elements.": a whole sentence, true of what maps
  std::string_view suggestion;  // what a person can do about it, a whole sentence
  // Empty if the rule holds. Otherwise the particulars, a clause that follows the op's name: "input is 1x40x40x64,
  // 102,400 elements". Gets an op whose arity is checked and whose tensors' shapes are static and usable; attributes
  // and constants come from a file and may be anything.
  std::string (*broken)(const OpContext&);
  GoogleStatus status = GoogleStatus::kUnspecifiedLimitation;
  RuleSource source = RuleSource::kCoralDocs;
  std::string_view evidence = {};  // where exactly: "edgetpu#206", "maps at 82,944 elements, does not at 102,400"
  RuntimeRange runtimes = {};
  std::string_view rewrite = {};  // the rewrite (passes/passes.def) that can mend it; empty: none
};

// Which inputs of an op are parameters: weights, biases, axes, sizes. Bit i stands for input i.
using InputSet = std::uint32_t;
constexpr InputSet input_set(std::initializer_list<int> indices) {
  InputSet set = 0;
  for (const int index : indices) set |= InputSet{1} << index;
  return set;
}

struct ChipSupport {
  int first_runtime = 0;   // 0: no version runs it
  int newest_version = 0;  // of the op that Google's newest compiler takes; 0: any
  std::span<const ChipRule> rules = {};
  InputSet parameters = 0;  // must be constants; all other inputs and all outputs are data: 8 bits, three dimensions
  std::string_view evidence = {};  // of first_runtime and newest_version, where it is not Coral's table
  // For ops that no version runs: what to use instead, a whole sentence, and the rewrite that does it.
  std::string_view instead = {};
  std::string_view rewrite = {};
  // Where newest_version is given: what newer ones are for and how to do without, whole sentences, and the rewrite that
  // does it. A file gives all ops of a type the version that the most demanding of them needs.
  std::string_view if_newer = {};
  std::string_view newer_rewrite = {};
};

}  // namespace reef::ops
