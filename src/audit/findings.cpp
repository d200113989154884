// SPDX-License-Identifier: Apache-2.0
#include "audit/findings.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

namespace reef::audit {
namespace {

std::string sentence_of(const Finding& f, const std::string& detail) {
  const std::string first = f.first.to_string(), second = f.second.to_string();
  std::string place = f.memory;
  if (f.first_address >= 0) place += fmt::format(" {}", f.first_address);
  if (f.last_address > f.first_address) place += fmt::format(" to {}", f.last_address);
  switch (f.kind) {
    case FindingKind::kReadAfterWrite:
      return fmt::format("{} reads {}; nothing makes it wait for {}, which writes it", second, place, first);
    case FindingKind::kWriteAfterRead:
      return fmt::format("{} overwrites {}; nothing makes it wait for {}, which reads it", second, place, first);
    case FindingKind::kWriteAfterWrite:
      return fmt::format("{} and {} write {}; nothing decides who is last", first, second, place);
    case FindingKind::kMessageOrder:
      return fmt::format("lines of {} and {} arrive on {} in an order that nothing decides", first, second, place);
    case FindingKind::kRingTurn:
      return fmt::format("{} and {} send on {}; the second does not wait for its turn", first, second, place);
    case FindingKind::kSignalOrder:
      return fmt::format("{} and {} signal {} in an order that nothing decides", first, second, place);
    case FindingKind::kCounterSet:
      return fmt::format("{} sets {}, which {} may not be done with", second, place, first);
    case FindingKind::kCounterUse:
      return fmt::format("{} may use {} before {} sets it", second, place, first);
    case FindingKind::kCounterWrap:
      return fmt::format("{} compares {} with a number so far away that 16 bits do not tell them apart{}", second,
                         place, detail);
    default:
      break;
  }
  std::string text = second;
  if (!detail.empty()) text += (text.empty() ? "" : " ") + detail;
  if (!place.empty()) text += ": " + place;
  return text;
}

}  // namespace

void Findings::add(const Observed& observed) {
  const auto key_with = [&](std::string_view detail) {
    return Key{observed.kind, observed.first, observed.second, observed.memory, detail};
  };
  const auto found = index_.find(key_with(observed.detail));
  const auto bit = static_cast<std::uint16_t>(observed.tile >= 0 ? 1u << observed.tile : 0u);
  if (found != index_.end()) {
    Finding& finding = findings_[found->second];
    finding.times += observed.times;
    finding.tiles |= bit;
    if (observed.address >= 0) {
      finding.first_address = std::min(finding.first_address, observed.address);
      finding.last_address = std::max(finding.last_address, observed.address);
    }
    return;
  }
  if (is_full()) return;
  index_.emplace(key_with(details_.emplace_back(observed.detail)), findings_.size());
  Finding& finding = findings_.emplace_back();
  finding.kind = observed.kind;
  finding.first = listing_->site(observed.first);
  finding.second = listing_->site(observed.second);
  finding.tile = observed.tile;
  finding.tiles = bit;
  finding.memory = observed.memory;
  finding.first_address = finding.last_address = observed.address;
  finding.times = observed.times;
}

std::vector<Finding> Findings::take() {
  for (std::size_t i = 0; i < findings_.size(); ++i) {
    Finding& finding = findings_[i];
    finding.sentence = sentence_of(finding, details_[i]);
    const int tiles = std::popcount(finding.tiles);
    if (tiles == 1) finding.sentence += fmt::format(" (tile {})", finding.tile);
    if (tiles > 1) finding.sentence += fmt::format(" ({} tiles, first {})", tiles, finding.tile);
  }
  return std::move(findings_);
}

}  // namespace reef::audit
