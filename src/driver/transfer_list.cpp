// SPDX-License-Identifier: Apache-2.0
#include "driver/transfer_list.h"

#include <optional>
#include <utility>

#include "host/programs.h"
#include "isa/dma_trace.h"
#include "isa/program.h"

namespace reef::driver {
namespace {

struct Asked {
  std::size_t bytes = 0;
  Tag tag = Tag::kInput;
};

// In order; nothing: it cannot be told.
std::optional<std::vector<Asked>> asked_by(std::span<const std::vector<std::uint8_t>> chunks) {
  std::vector<Asked> asked;
  isa::DmaTrace trace;
  for (const auto& chunk : chunks) {
    const auto program = isa::decode(chunk);
    if (!program.ok()) return std::nullopt;
    for (const isa::Instruction& instruction : *program) {
      const isa::Opcode opcode = instruction.opcode();
      if (opcode == isa::Opcode::kBranch || opcode == isa::Opcode::kRepeat) return std::nullopt;
      (void)trace.follow(instruction);
      if (!trace.issued()) continue;
      const auto [bytes, tag] = *trace.issued();
      constexpr auto kFirstInterrupt = static_cast<std::uint32_t>(Tag::kInterrupt0);
      if (!tag || *tag == 0 || *tag >= kFirstInterrupt + kInterrupts) return std::nullopt;
      if (!bytes && *tag < kFirstInterrupt) return std::nullopt;
      asked.push_back({bytes.value_or(0), static_cast<Tag>(*tag)});
    }
  }
  return asked;
}

bool is_data(const Step& step) {
  return step.kind == Step::Kind::kReceive || (step.kind == Step::Kind::kSend && step.tag != Tag::kInstructions);
}

// The transfers that the program asks for in place of one entry, taken from the front of `asked`; empty if it asks for
// something else.
std::vector<Step> parts_of(const Step& step, std::span<const Asked>& asked) {
  std::vector<Step> parts;
  bool is_one_way = true;
  for (std::size_t done = 0; done < step.bytes;) {
    if (asked.empty() || asked[0].tag >= Tag::kInterrupt0 || asked[0].bytes == 0) return {};
    const auto [bytes, tag] = asked[0];
    if (bytes > step.bytes - done) return {};
    if (tag != step.tag && step.buffer != host::BufferIndex::kScratch) return {};
    Step part = step;
    part.kind = tag == Tag::kOutput ? Step::Kind::kReceive : Step::Kind::kSend;
    part.tag = tag;
    part.offset = step.offset + done;
    part.bytes = bytes;
    is_one_way = is_one_way && tag == step.tag;
    parts.push_back(part);
    done += bytes;
    asked = asked.subspan(1);
  }
  return is_one_way ? std::vector<Step>{step} : parts;
}

}  // namespace

std::vector<Step> with_directions_apart(std::vector<Step> steps, std::span<const std::vector<std::uint8_t>> chunks) {
  const std::optional<std::vector<Asked>> all = asked_by(chunks);
  if (!all) return steps;
  std::span<const Asked> asked(*all);
  std::vector<Step> apart;
  for (const Step& step : steps) {
    if (!is_data(step)) {
      if (step.kind == Step::Kind::kInterrupt) {
        if (asked.empty() || asked[0].tag < Tag::kInterrupt0) return steps;
        asked = asked.subspan(1);
      }
      apart.push_back(step);
      continue;
    }
    const std::vector<Step> parts = parts_of(step, asked);
    if (parts.empty()) return steps;
    apart.insert(apart.end(), parts.begin(), parts.end());
  }
  return asked.empty() ? std::move(apart) : std::move(steps);
}

}  // namespace reef::driver
