// SPDX-License-Identifier: Apache-2.0
// Small programs written by hand: sound ones, and what is said of those that are not.
#include "audit/audit.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "handwritten_packages.h"

namespace reef::audit {
namespace {

using testing::joined;
using testing::kAskForEightBytes;
using testing::kFence;
using testing::kFillTwoWords;
using testing::kPackLine;
using testing::kSendLineAndEnd;

AuditReport audited(const std::string& text, const AuditOptions& options = {}) {
  auto report = audit(testing::stand_alone_package(text), options);
  EXPECT_TRUE(report.ok()) << report.status().message();
  return report.ok() ? std::move(*report) : AuditReport{};
}

// A finding of that kind whose sentence holds all parts.
void expect_finding(const AuditReport& report, FindingKind kind, std::initializer_list<std::string_view> parts) {
  for (const Finding& finding : report.findings) {
    if (finding.kind != kind) continue;
    const auto holds = [&](std::string_view part) { return finding.sentence.find(part) != std::string::npos; };
    if (std::all_of(parts.begin(), parts.end(), holds)) return;
  }
  ADD_FAILURE() << name_of(kind) << " is not as expected among\n" << to_text(report);
}

// Fills words, packs them into a line with a wait for the fill, and sends it with a wait for the packing.
constexpr std::string_view kFillSignals = R"(
mesh_north tiles=0 fill fill_value=0x04030201
  out narrow word 0: for x2 +1
  signal MESH_S_IN each level 0
)";
constexpr std::string_view kPackWaits = R"(
narrow_to_wide tiles=0 line_level=1
  in narrow word 0: for x2 +1
  out wide line 5: for x1 +1
  wait MESH_S_IN >= 1 + 1*pass(level 0) on in
  signal NARROW_TO_WIDE each level 0
)";
constexpr std::string_view kSendWaits = R"(
outfeed line_words=64 target=host
  out buffer unit 0: for x1 +1
ring_send tiles=0 channel=a to_scalar
  in wide line 5: for x1 +1
  wait NARROW_TO_WIDE >= 1 + 0*pass(level 0) on in
halt code=16
end
)";
constexpr std::string_view kResetAll = "tile_fence tiles=all reset=all drain=all\n";

TEST(Audit, FencesOrderUnits) {
  const AuditReport report =
      audited(joined({kAskForEightBytes, kFillTwoWords, kFence, kPackLine, kFence, kSendLineAndEnd}));
  EXPECT_TRUE(report.is_sound()) << to_text(report);
  EXPECT_EQ(report.statistics.writes, 3 + 0);
  EXPECT_EQ(report.statistics.reads, 3);
  EXPECT_NE(to_text(report).find("sound"), std::string::npos);
}

TEST(Audit, WaitsOrderUnits) {
  const AuditReport report = audited(joined({kAskForEightBytes, kResetAll, kFillSignals, kPackWaits, kSendWaits}));
  EXPECT_TRUE(report.is_sound()) << to_text(report);
  EXPECT_GE(report.statistics.waits, 3);
}

TEST(Audit, AReadThatDoesNotWaitForItsWrite) {
  const AuditReport report = audited(joined({kAskForEightBytes, kFillTwoWords, kPackLine, kFence, kSendLineAndEnd}));
  expect_finding(report, FindingKind::kReadAfterWrite,
                 {"narrow_to_wide", "mesh_north", "narrow memory 0 to 1", "tile 0"});
  EXPECT_TRUE(report.complete);
  EXPECT_TRUE(is_timing(report.findings[0].kind));
}

TEST(Audit, AWaitForTooFewSignalsCoversTooLittle) {
  std::string pack(kPackWaits);
  pack.replace(pack.find("1 + 1*pass(level 0)"), 19, "1 + 0*pass(level 0)");
  const AuditReport report = audited(joined({kAskForEightBytes, kResetAll, kFillSignals, pack, kSendWaits}));
  expect_finding(report, FindingKind::kReadAfterWrite, {"word of narrow memory 1;"});
}

TEST(Audit, OverwritingWhatIsStillRead) {
  const AuditReport report =
      audited(joined({kAskForEightBytes, kFillTwoWords, kFence, kPackLine, kFillTwoWords, kFence, kSendLineAndEnd}));
  expect_finding(report, FindingKind::kWriteAfterRead, {"mesh_north", "overwrites", "narrow_to_wide"});
}

TEST(Audit, WritesOfTwoUnitsInNoOrder) {
  std::string other(kFillTwoWords);
  other.replace(other.find("mesh_north"), 10, "mesh_south");
  const AuditReport report =
      audited(joined({kAskForEightBytes, kFillTwoWords, other, kFence, kPackLine, kFence, kSendLineAndEnd}));
  expect_finding(report, FindingKind::kWriteAfterWrite, {"mesh_north", "mesh_south"});
}

TEST(Audit, AWaitThatIsNeverFulfilled) {
  std::string pack(kPackWaits);
  pack.replace(pack.find(">= 1 +"), 6, ">= 2 +");
  const AuditReport report = audited(joined({kAskForEightBytes, kResetAll, kFillSignals, pack, kSendWaits}));
  EXPECT_FALSE(report.complete);
  expect_finding(report, FindingKind::kStandstill, {"narrow_to_wide", "MESH_S_IN to reach 3 (it is 2)", "tile 0"});
}

TEST(Audit, MessagesThatNobodyTakes) {
  const AuditReport report = audited(joined({kAskForEightBytes, kFillTwoWords, kFence, kPackLine, kFence, R"(
ring_send tiles=0 channel=b to_tiles=3
  in wide line 5: for x1 +1
)",
                                             kSendLineAndEnd}));
  expect_finding(report, FindingKind::kLeftOver, {"ring channel B", "tile 3"});
}

TEST(Audit, MessagesThatNobodySends) {
  const AuditReport report = audited(joined({kAskForEightBytes, kFillTwoWords, kFence, kPackLine, kFence, R"(
ring_receive_b tiles=3
  out wide line 5: for x1 +1
)",
                                             kSendLineAndEnd}));
  expect_finding(report, FindingKind::kStandstill, {"ring_receive_b", "never arrives", "tile 3"});
}

TEST(Audit, OutputsThatAreNotSent) {
  const AuditReport report = audited(joined({kAskForEightBytes, "halt code=16\nend\n"}));
  expect_finding(report, FindingKind::kLeftOver, {"outputs asked for are not sent"});
}

TEST(Audit, SendersThatDoNotWaitForTheirTurn) {
  const std::string text = joined({kAskForEightBytes, R"(
mesh_north tiles=0,1 fill fill_value=1
  out narrow word 0: for x2 +1
tile_fence tiles=all drain=all
narrow_to_wide tiles=0,1 line_level=1
  in narrow word 0: for x2 +1
  out wide line 5: for x1 +1
tile_fence tiles=all drain=all
ring_receive_a tiles=2
  out wide line 6: for x2 +1
ring_send tiles=0 channel=a to_tiles=2
  in wide line 5: for x1 +1
ring_send tiles=1 channel=a to_tiles=2
  in wide line 5: for x1 +1
)",
                                   kSendLineAndEnd});
  const AuditReport report = audited(text);
  expect_finding(report, FindingKind::kMessageOrder, {"ring_send", "ring channel A", "tile 2"});
  expect_finding(report, FindingKind::kRingTurn, {"turn"});
}

TEST(Audit, ACounterThatIsSetWhileItIsUsed) {
  const AuditReport report =
      audited(joined({kAskForEightBytes, kResetAll, kFillSignals, "tile_fence tiles=0 reset=MESH_S_IN reset_to=5\n",
                      kFence, kPackLine, kFence, kSendLineAndEnd}));
  expect_finding(report, FindingKind::kCounterSet, {"MESH_S_IN", "mesh_north"});
}

// 40,000 signals before the waiting unit looks: its wait for the first is taken for one that is still to come.
TEST(Audit, ACounterThatHasWrappedHoldsAWait) {
  const std::string text = joined({kAskForEightBytes, kResetAll, R"(
mesh_north tiles=0 fill fill_value=1
  out narrow word 0: for x200 +1, rep x200
  signal MESH_S_IN each level 0
narrow_to_wide tiles=0 line_level=1
  in narrow word 0: for x2 +1
  out wide line 5: for x1 +1
  wait MESH_S_IN >= 1 + 0*pass(level 0) on in
)",
                                   kFence, kSendLineAndEnd});
  expect_finding(audited(text), FindingKind::kStandstill, {"narrow_to_wide", "MESH_S_IN to reach 1 (it is -25536)"});
}

// The same where the waiting unit is handed out first and has passed when the walk comes to the signals: only another
// order would hold it.
TEST(Audit, ACounterThatMayWrapBeforeAWaitIsAsked) {
  const std::string text = joined({kAskForEightBytes, kFillTwoWords, kResetAll, R"(
narrow_to_wide tiles=0 line_level=1
  in narrow word 0: for x2 +1
  out wide line 5: for x1 +1
  wait MESH_S_IN >= 0 + 0*pass(level 0) on in
mesh_north tiles=0 fill fill_value=1
  out narrow word 8: for x200 +1, rep x200
  signal MESH_S_IN each level 0
)",
                                   kFence, kSendLineAndEnd});
  expect_finding(audited(text), FindingKind::kCounterWrap, {"narrow_to_wide", "MESH_S_IN", "not arrived"});
}

// A wait on the destination holds back a mover's stores, but not its reads.
TEST(Audit, AWaitOfTheDestinationDoesNotOrderTheRead) {
  std::string pack(kPackWaits);
  pack.replace(pack.find("1 + 1*pass(level 0) on in"), 25, "2 + 0*pass(level 0) on out");
  const AuditReport report = audited(joined({kAskForEightBytes, kResetAll, kFillSignals, pack, kSendWaits}));
  expect_finding(report, FindingKind::kReadAfterWrite, {"narrow_to_wide", "mesh_north"});
}

TEST(Audit, AddressesBeyondAMemory) {
  const AuditReport report = audited(joined({kAskForEightBytes, R"(
mesh_north tiles=0 fill fill_value=1
  out narrow word 49151: for x2 +1
tile_fence tiles=all drain=all
)",
                                             kFillTwoWords, kFence, kPackLine, kFence, kSendLineAndEnd}));
  expect_finding(report, FindingKind::kAddress, {"mesh_north", "narrow memory"});
}

TEST(Audit, ComputingWithMemoryThatNothingWroteIsNoted) {
  const AuditReport report = audited(joined(
      {kAskForEightBytes, kFillTwoWords, kFence, testing::kMultiplyWords, kFence, kPackLine, kFence, kSendLineAndEnd}));
  EXPECT_TRUE(report.is_sound()) << to_text(report);
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_NE(report.notes[0].sentence.find("multiply_add"), std::string::npos);
}

TEST(Audit, ASecondInferenceMustFindWhatTheFirstDid) {
  // The counter is awaited before anything sets it, and is one higher in the end.
  const AuditReport report = audited(joined({kAskForEightBytes, kFillSignals, kPackWaits, kSendWaits}));
  expect_finding(report, FindingKind::kRepetition, {"MESH_S_IN", "begins at 0 the first time, at 2 the next"});
  // The cached line is overwritten by what is computed.
  darwinn::Package package = testing::caching_package(7, 5, 9);
  package.executables[0] = testing::with_output(
      testing::assembled(joined({kAskForEightBytes, R"(
outfeed line_words=64 target=host
  out buffer unit 0: for x1 +1
ring_send tiles=0 channel=a to_scalar
  in wide line 5: for x1 +1
)",
                                 kFence, kFillTwoWords, kFence, kPackLine, kFence, "halt code=16\nend\n"}),
                         darwinn::ExecutableType::kExecutionOnly));
  const auto second = audit(package);
  ASSERT_TRUE(second.ok()) << second.status().message();
  expect_finding(*second, FindingKind::kRepetition, {"narrow_to_wide", "line of wide memory 5"});
  const auto untouched = audit(testing::caching_package(7, 5, 9));
  ASSERT_TRUE(untouched.ok());
  EXPECT_TRUE(untouched->is_sound()) << to_text(*untouched);
}

TEST(Audit, ScalarLoopsAreFollowedUnlessTheyDependOnData) {
  const std::string counted = R"(
scalar r9 = mov 0
L40:
scalar r9 = add r9, 1
scalar p0 = lt r9, 5
branch to L40 if p0
)";
  const AuditReport report =
      audited(joined({kAskForEightBytes, counted, kFillTwoWords, kFence, kPackLine, kFence, kSendLineAndEnd}));
  EXPECT_TRUE(report.is_sound()) << to_text(report);
  std::string unknown = counted;
  unknown.replace(unknown.find("add r9, 1"), 9, "load [77]");
  const AuditReport other =
      audited(joined({kAskForEightBytes, unknown, kFillTwoWords, kFence, kPackLine, kFence, kSendLineAndEnd}));
  EXPECT_FALSE(other.complete);
  ASSERT_EQ(other.not_covered.size(), 1u);
  EXPECT_NE(other.not_covered[0].find("depends on data"), std::string::npos);
}

// Three stores from word `first` on, then a load that is out of bounds unless the address is known to be six further.
AuditReport audited_with_stepping_stores(int first) {
  const std::string stores = fmt::format(R"(
scalar r8 = mov {}
repeat 3 {{
  scalar store [r8 += 2] = r8
}}
scalar p0 = eq r8, {}
branch to L60 if p0
scalar r9 = load [r8]
L60:
)",
                                         first, first + 6);
  return audited(joined({kAskForEightBytes, stores, kFillTwoWords, kFence, kPackLine, kFence, kSendLineAndEnd}));
}

TEST(Audit, StoresThatStepTheirAddressesAreFollowed) {
  const AuditReport fits = audited_with_stepping_stores(4091);
  EXPECT_TRUE(fits.is_sound() && fits.complete) << to_text(fits);
  expect_finding(audited_with_stepping_stores(4092), FindingKind::kAddress,
                 {"stores to word 4096 of scalar memory, which has 4096"});
}

TEST(Audit, EndsWithinItsSteps) {
  const std::string text = joined({kAskForEightBytes, R"(
mesh_north tiles=all fill fill_value=1
  out narrow word 0: rep x60000, rep x60000
)",
                                   kSendLineAndEnd});
  const AuditReport report = audited(text, {.max_steps = 10'000});
  EXPECT_FALSE(report.complete);
  EXPECT_LE(report.statistics.steps, 10'001);
  ASSERT_EQ(report.not_covered.size(), 1u);
}

}  // namespace
}  // namespace reef::audit
