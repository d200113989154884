// SPDX-License-Identifier: Apache-2.0
#include "audit/audit.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "audit/findings.h"
#include "audit/listing.h"
#include "audit/walk.h"

namespace reef::audit {

std::string_view name_of(FindingKind kind) {
  static constexpr std::string_view kNames[] = {"read not ordered after write",
                                                "overwritten while read",
                                                "writes in no order",
                                                "messages in no order",
                                                "ring without turn",
                                                "signals in no order",
                                                "counter set while in use",
                                                "counter used before set",
                                                "counter may wrap",
                                                "standstill",
                                                "left over",
                                                "FIFO",
                                                "address",
                                                "loop nests",
                                                "repetition",
                                                "memory that nothing wrote"};
  return kNames[at(kind)];
}

std::string Site::to_string() const {
  if (row < 0) return "";
  return fmt::format("{}{}row {} ({})", in_caching ? "caching program, " : "",
                     chunk > 0 ? fmt::format("chunk {} ", chunk) : "", row, mnemonic);
}

Result<AuditReport> audit(const darwinn::Executable& program, const darwinn::Executable* caching,
                          const AuditOptions& options) {
  AuditReport report;
  Findings findings;
  Walk walk(findings, report.statistics, options);
  REEF_ASSIGN_OR_RETURN(const Listing main, listing_of(program));
  bool goes_on = true;
  Listing before;
  if (caching != nullptr) {
    REEF_ASSIGN_OR_RETURN(before, listing_of(*caching));
    goes_on = walk.run(before);
  }
  if (goes_on) {
    goes_on = walk.run(main);
    if (goes_on) walk.check_repetition();
  } else {
    report.not_covered.emplace_back(std::string_view("the program behind the parameter-caching program"));
  }
  REEF_RETURN_IF_ERROR(options.budget.check("auditing a compiled program"));
  const bool is_full = findings.is_full();
  for (Finding& finding : findings.take()) {
    (finding.kind == FindingKind::kNeverWritten ? report.notes : report.findings).push_back(std::move(finding));
  }
  report.not_covered.insert(report.not_covered.end(), walk.not_covered().begin(), walk.not_covered().end());
  report.complete = goes_on;
  if (is_full) report.not_covered.emplace_back(std::string_view("findings beyond the first thousand"));
  return report;
}

Result<AuditReport> audit(const darwinn::Package& package, const AuditOptions& options) {
  const darwinn::Executable* caching = package.find(darwinn::ExecutableType::kParameterCaching);
  const darwinn::Executable* program = package.find(darwinn::ExecutableType::kExecutionOnly);
  if (program == nullptr) {
    program = package.find(darwinn::ExecutableType::kStandAlone);
    caching = nullptr;
  }
  REEF_REQUIRE(program != nullptr, "the package has no program to execute");
  return audit(*program, caching, options);
}

namespace {

std::string headline(const AuditReport& report, std::int64_t gathers) {
  if (report.is_sound()) {
    return "sound: every access is ordered, every wait is fulfilled, every queue drains, in every order of the units\n";
  }
  if (report.findings.empty()) return "not covered to the end; nothing found so far\n";
  if (report.is_sound_as_googles()) {
    return fmt::format(
        "sound, as long as wide_to_narrow is as fast as the ring: in {} places a line that comes overwrites one that "
        "it "
        "may still be reading, which Google's compilers 15 and 16 leave to timing wherever they gather a vector\n",
        gathers);
  }
  bool only_timing = true;
  for (const Finding& finding : report.findings) only_timing = only_timing && is_timing(finding.kind);
  return fmt::format("{} findings{}\n", report.findings.size(), only_timing ? ", all ordered only by timing" : "");
}

}  // namespace

std::string to_text(const AuditReport& report) {
  const Statistics& s = report.statistics;
  const std::int64_t gathers = std::count_if(report.findings.begin(), report.findings.end(), is_googles_gather);
  std::string text = headline(report, gathers);
  bool first_gather = true;
  for (const Finding& finding : report.findings) {
    const bool is_gather = is_googles_gather(finding);
    if (is_gather && !std::exchange(first_gather, false)) continue;
    text += fmt::format("  {}: {}", name_of(finding.kind), finding.sentence);
    if (finding.times > 1) text += fmt::format(", {} times", finding.times);
    if (is_gather && gathers > 1) text += fmt::format("; and {} others like it", gathers - 1);
    text += '\n';
  }
  for (const Finding& note : report.notes) text += fmt::format("  note: {}, {} times\n", note.sentence, note.times);
  for (const std::string& reason : report.not_covered) text += fmt::format("  not covered: {}\n", reason);
  text += fmt::format(
      "  {} programs, {} instructions, {} steps; {} reads, {} writes, {} waits, {} signals, {} messages; "
      "{} steps compute with memory that nothing wrote; a tile holds up to {} instructions\n",
      s.programs, s.instructions, s.steps, s.reads, s.writes, s.waits, s.signals, s.messages, s.reads_of_nothing,
      s.deepest_queue);
  return text;
}

bool is_googles_gather(const Finding& finding) {
  return finding.kind == FindingKind::kWriteAfterRead && finding.first.mnemonic == "wide_to_narrow" &&
         finding.second.mnemonic.starts_with("ring_receive");
}

bool AuditReport::is_sound_as_googles() const {
  return complete && std::all_of(findings.begin(), findings.end(), is_googles_gather);
}

}  // namespace reef::audit
