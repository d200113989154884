// SPDX-License-Identifier: Apache-2.0
#include "isa/unknown.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "isa/format.h"
#include "isa/scalar.h"
#include "isa/tensor_op.h"

namespace reef::isa {
namespace {

constexpr std::size_t kMostListed = 20;

using Sentences = std::vector<std::string>;

bool is_named(std::span<const std::string_view> names, std::uint32_t value) {
  return value < names.size() && !names[value].empty();
}

void look_at_bundle(const Instruction& bundle, Sentences& found) {
  namespace b = isa::bundle;
  const std::uint32_t store = bundle.bits(b::kStore), alu = bundle.bits(b::kAlu), math = bundle.bits(b::kMath);
  if (!is_named(b::kStoreNames, store)) found.push_back(fmt::format("an unknown store {}", store));
  if (static_cast<b::Store>(store) == b::Store::kDescriptor &&
      bundle.bits(b::kStoreAddress) >= std::size(b::kDescriptorWords)) {
    found.push_back(fmt::format("an unknown descriptor word {}", bundle.bits(b::kStoreAddress)));
  }
  if (!is_named(b::kAluNames, alu)) found.push_back(fmt::format("an unknown arithmetic operation {}", alu));
  if (!is_named(b::kMathNames, math)) found.push_back(fmt::format("an unknown math function {}", math));
}

void look_at_tensor(const Instruction& op, Sentences& found) {
  namespace t = tensor_op;
  const std::uint32_t lanes = op.bits(t::kLanesOff), symmetry = op.bits(t::kOddSymmetry);
  const bool in_16 = op.test(t::kIn16), param_16 = op.test(t::kParam16);
  const std::uint32_t one_product = in_16 || param_16 ? 6 : 7;
  if (lanes != 0 && lanes != one_product) {
    found.push_back(fmt::format("lanes {:#x} switched off with {}", lanes,
                                in_16 && param_16   ? "operands of 16 bits"
                                : in_16 || param_16 ? "one operand of 16 bits"
                                                    : "operands of 8 bits"));
  }
  if (symmetry != 0 && symmetry != 3)
    found.push_back(fmt::format("an unknown symmetry {} of the activation", symmetry));
}

// The field holds the steps that a clip leaves out times their stride, in all programs seen; it says which dimension is
// clipped (clipped_dim).
void look_at_clip(const Instruction& instruction, const NestFields& fields, Sentences& found) {
  if (!fields.has_addresses) return;
  const Nest nest = instruction.read_nest(fields);
  if (nest.clip_dim == 0 || nest.clip_dim >= static_cast<std::uint32_t>(fields.dims)) return;
  const Nest::Dim& clipped = nest.dims[at(clipped_dim(instruction, fields))];
  const std::int64_t left_out = std::int64_t{clipped.count} - nest.clip_steps;
  if (left_out * clipped.stride == nest.clip_deficit) return;
  found.push_back(fmt::format("a clip of nest `{}` whose deficit {} is not {} steps of {}", fields.name,
                              nest.clip_deficit, left_out, clipped.stride));
}

}  // namespace

std::vector<std::string> unknowns_of(const Instruction& instruction) {
  Sentences found;
  const Opcode opcode = instruction.opcode();
  if (opcode == Opcode::kScalar) {
    look_at_bundle(instruction, found);
  } else if (opcode != Opcode::kBranch && instruction.test(common::kPredicated)) {
    found.emplace_back("a predicate on an instruction that is no scalar bundle");
  }
  if (opcode == Opcode::kMultiplyAdd || opcode == Opcode::kMaximum || opcode == Opcode::kSum) {
    look_at_tensor(instruction, found);
  }
  for (const NestFields& nest : nests(opcode)) look_at_clip(instruction, nest, found);
  return found;
}

void UnknownList::add(const std::string& place, const std::string& what) {
  const auto same = std::find_if(found_.begin(), found_.end(), [&](const Entry& entry) { return entry.what == what; });
  if (same != found_.end()) {
    ++same->times;
  } else {
    found_.push_back({what, place, 1});
  }
}

Status UnknownList::to_status() const {
  if (found_.empty()) return ok_status();
  std::vector<std::string> lines;
  for (const Entry& entry : found_) {
    if (lines.size() == kMostListed) {
      lines.push_back(fmt::format("and {} more", found_.size() - kMostListed));
      break;
    }
    lines.push_back(entry.times == 1 ? fmt::format("{}: {}", entry.first_place, entry.what)
                                     : fmt::format("{}: {} ({} times)", entry.first_place, entry.what, entry.times));
  }
  return unsupported(
      "the program asks for {} that the virtual device does not know:\n  {}\n{} (`reef inspect --unknown FILE` "
      "lists everything unusual in it)",
      found_.size() == 1 ? "something" : fmt::format("{} things", found_.size()), fmt::join(lines, "\n  "),
      kPleaseSendTheFile);
}

}  // namespace reef::isa
