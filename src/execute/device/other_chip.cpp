// SPDX-License-Identifier: Apache-2.0
#include "execute/device/other_chip.h"

#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace reef::device {
namespace {

// "ProductsOf16" -> "products-of-16"
std::string with_dashes(std::string_view name) {
  std::string text;
  bool was_digit = false;
  for (const char c : name) {
    const bool is_digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    const bool is_upper = std::isupper(static_cast<unsigned char>(c)) != 0;
    if (!text.empty() && (is_upper || (is_digit && !was_digit))) text += '-';
    text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    was_digit = is_digit;
  }
  return text;
}

std::string place_of(const BeliefInfo& info) {
  if (!info.fact.empty()) return fmt::format("chip/facts.def, k{}", info.fact);
  if (info.group == "Tensor unit") return "docs/numerics.md, The chip's numbers";
  return fmt::format("docs/hardware/proofs.md, {}", info.group);
}

std::vector<OtherChip> list_chips() {
  std::vector<OtherChip> chips;
  for (const isa::MisreadingInfo& info : isa::misreadings()) {
    chips.push_back(
        {std::string(info.name), std::string(info.deed), std::string(info.refuted), info.misreading, Belief::kNone});
  }
  for (const BeliefInfo& info : beliefs()) {
    chips.push_back({fmt::format("not-{}", with_dashes(info.name)),
                     fmt::format("does otherwise than \"{}\" ({})", info.statement, info.alternative),
                     fmt::format("{}: {}", place_of(info), info.statement), std::nullopt, info.belief});
  }
  return chips;
}

}  // namespace

std::span<const OtherChip> other_chips() {
  static const std::vector<OtherChip> chips = list_chips();
  return chips;
}

const OtherChip* find_other_chip(std::string_view name) {
  const std::span<const OtherChip> chips = other_chips();
  const auto found = std::find_if(chips.begin(), chips.end(), [&](const OtherChip& chip) { return chip.name == name; });
  return found == chips.end() ? nullptr : &*found;
}

Result<std::shared_ptr<const LoadedPackage>> load_for(const OtherChip& chip, darwinn::Package package) {
  if (chip.misreading) {
    for (darwinn::Executable& executable : package.executables) {
      for (darwinn::InstructionChunk& chunk : executable.instruction_chunks) {
        REEF_ASSIGN_OR_RETURN(std::vector<std::uint8_t> bytes, isa::apply(*chip.misreading, chunk.bitstream.span()));
        chunk.bitstream = Bytes(std::move(bytes));
      }
    }
  }
  return LoadedPackage::load(std::move(package), chip.doubted);
}

}  // namespace reef::device
