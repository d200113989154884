// SPDX-License-Identifier: Apache-2.0
#include "isa/combination.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "isa/format.h"
#include "isa/seen.h"

namespace reef::isa {
namespace {

struct SeenLine {
  std::string_view mnemonic, combination;
  std::int64_t instructions, files;
};
#define SEEN_FILES(count) constexpr std::int64_t kFiles = count;
#define SEEN_COMBINATION(mnemonic, combination, instructions, files)
#include "isa/seen_combinations.def"
#undef SEEN_FILES
#undef SEEN_COMBINATION
#define SEEN_FILES(count)
#define SEEN_COMBINATION(mnemonic, combination, instructions, files) {mnemonic, combination, instructions, files},
constexpr SeenLine kLines[] = {
    {"", "", 0, 0},  // so that an empty list compiles
#include "isa/seen_combinations.def"
};
#undef SEEN_FILES
#undef SEEN_COMBINATION

// How a field takes part.
enum class Role : std::uint8_t { kNone, kValue, kPresence };

constexpr int kWidestSelection = 5;  // bits; what is wider is a number

Role role_of(const Field& field) {
  switch (field.kind) {
    case Kind::kFlag:
    case Kind::kEnum:
      return Role::kValue;
    case Kind::kRaw:
      if (!field.unit.empty()) return Role::kNone;  // a constant, as any bits
      return field.width <= kWidestSelection ? Role::kValue : Role::kPresence;
    case Kind::kMask:
      return field.unit == "dimensions" ? Role::kPresence : Role::kValue;
    case Kind::kUnsigned:
    case Kind::kSigned:
      if (field.name == "buffer_level" || field.name == "clip_dim") return Role::kPresence;
      if (field.name == "counter" || field.unit == "lanes") return Role::kValue;
      return field.unit.empty() && field.width <= kWidestSelection ? Role::kValue : Role::kNone;
    case Kind::kFloat32:
    case Kind::kTileMask:
      return Role::kNone;
  }
  return Role::kNone;
}

std::set<std::string> words_of(std::string_view text) {
  std::istringstream stream{std::string(text)};
  return {std::istream_iterator<std::string>(stream), {}};
}

std::string joined(const std::set<std::string>& words) { return fmt::format("{}", fmt::join(words, ", ")); }

// The combination that was seen and differs in least, in words.
struct Nearest {
  std::string what, nearest;
};
Nearest nearest_to(Opcode opcode, const std::string& combination) {
  const std::set<std::string> own = words_of(combination);
  std::size_t fewest = std::numeric_limits<std::size_t>::max();
  std::int64_t most_files = 0;
  std::set<std::string> added, missing;
  const SeenCombination* best = nullptr;
  for (const auto& [key, seen] : combination_table().seen) {
    if (key.first != opcode) continue;
    const std::set<std::string> other = words_of(key.second);
    std::set<std::string> more, less;
    std::set_difference(own.begin(), own.end(), other.begin(), other.end(), std::inserter(more, more.end()));
    std::set_difference(other.begin(), other.end(), own.begin(), own.end(), std::inserter(less, less.end()));
    const std::size_t distance = more.size() + less.size();
    if (distance > fewest || (distance == fewest && seen.files <= most_files)) continue;
    fewest = distance;
    most_files = seen.files;
    added = std::move(more);
    missing = std::move(less);
    best = &seen;
  }
  if (best == nullptr) return {"the instruction itself", ""};
  std::string difference;
  if (!added.empty()) difference = fmt::format("with {}", joined(added));
  if (!missing.empty()) difference += fmt::format("{}without {}", added.empty() ? "" : " and ", joined(missing));
  return {difference, fmt::format("else as in {} instructions of {} files", best->instructions, best->files)};
}

// Fields of which the values themselves were never seen: selections with another value, and numbers that are as usual
// in all programs; of these the value is left out, so that the same thing with other numbers is the same thing.
std::string unseen_values(const Instruction& instruction) {
  std::string text;
  for (const Unseen& unseen : unseen_in(instruction)) {
    if (unseen.seen != nullptr && unseen.seen->values.empty()) continue;  // a number beyond the range that was seen
    const Field& field = *unseen.field;
    const bool is_number =
        (field.kind == Kind::kUnsigned || field.kind == Kind::kSigned) && field.width > kWidestSelection;
    text += text.empty() ? "" : ", ";
    text += is_number ? field.full_name() : fmt::format("{}={}", field.full_name(), unseen.value);
  }
  return text;
}

}  // namespace

std::string combination_of(const Instruction& instruction) {
  std::string text;
  const Field* const sequence = sequence_field(instruction.opcode());
  for (const Field& field : fields(instruction.opcode())) {
    if (field == common::kOpcode || (sequence != nullptr && field == *sequence)) continue;
    const Role role = role_of(field);
    const std::uint32_t bits = instruction.bits(field);
    if (role == Role::kNone || bits == field.usual) continue;
    text += text.empty() ? "" : " ";
    text +=
        role == Role::kPresence ? field.full_name() : fmt::format("{}={}", field.full_name(), instruction.get(field));
  }
  return text;
}

const CombinationTable& combination_table() {
  static const CombinationTable table = [] {
    CombinationTable result;
    result.files = kFiles;
    for (const SeenLine& line : kLines) {
      const auto opcode = opcode_from_mnemonic(line.mnemonic);
      if (opcode) result.seen[{*opcode, line.combination}] = {line.instructions, line.files};
    }
    return result;
  }();
  return table;
}

std::vector<Novelty> novelties_of(std::span<const Instruction> program) {
  std::vector<Novelty> found;
  std::map<std::pair<Opcode, std::string>, std::size_t> places;
  std::int64_t row = 0;
  for (std::size_t i = 0; i < program.size(); ++i) {
    const Instruction& instruction = program[i];
    const Opcode opcode = instruction.opcode();
    const auto note = [&](const std::string& key, const auto& describe) {
      const auto [at, is_new] = places.try_emplace({opcode, key}, found.size());
      if (is_new) {
        Novelty& novelty = found.emplace_back();
        novelty.opcode = opcode;
        novelty.first_row = row;
        describe(novelty);
      }
      ++found[at->second].times;
      found[at->second].instructions.push_back(i);
    };
    if (const std::string values = unseen_values(instruction); !values.empty()) {
      note("values " + values, [&](Novelty& novelty) { novelty.what = "with " + values + ", which none has"; });
    }
    const std::string combination = combination_of(instruction);
    if (combination_table().seen.count({opcode, combination}) == 0) {
      note(combination, [&](Novelty& novelty) {
        const Nearest nearest = nearest_to(opcode, combination);
        novelty.what = nearest.what;
        novelty.nearest = nearest.nearest;
      });
    }
    row += instruction.rows();
  }
  return found;
}

void CombinationCounter::add_file(std::span<const Program> programs) {
  ++files_;
  std::set<std::pair<Opcode, std::string>> in_file;
  for (const Program& program : programs) {
    for (const Instruction& instruction : program) {
      auto key = std::pair(instruction.opcode(), combination_of(instruction));
      SeenCombination& seen = counts_[key];
      ++seen.instructions;
      if (in_file.insert(std::move(key)).second) ++seen.files;
    }
  }
}

std::string CombinationCounter::to_def() const {
  std::string text = fmt::format(
      "// SPDX-License-Identifier: Apache-2.0\n// Written by tools/count_seen.cpp; see combination.h. Do not edit.\n"
      "SEEN_FILES({})\n",
      files_);
  for (const auto& [key, seen] : counts_) {
    text += fmt::format("SEEN_COMBINATION(\"{}\", \"{}\", {}, {})\n", info(key.first).mnemonic, key.second,
                        seen.instructions, seen.files);
  }
  return text;
}

}  // namespace reef::isa
