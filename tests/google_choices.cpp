// SPDX-License-Identifier: Apache-2.0
#include "google_choices.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "compiler/verification.h"
#include "generated_code.h"
#include "isa/disassembler.h"
#include "isa/format.h"
#include "isa/movers.h"
#include "isa/ring.h"
#include "isa/tensor_op.h"

namespace reef::testing {
namespace {

using darwinn::ExecutableType;
using isa::Instruction;
using isa::Opcode;

// ---- Alignment ----

constexpr std::size_t kAgree = 6;      // opcodes in a row from which programs are taken to be together again
constexpr std::size_t kSearch = 3000;  // instructions that may lie between
constexpr int kMostRounds = 12;
constexpr std::size_t kMostDifferences = 10;

// Of a tile instruction: who executes it.
std::uint32_t tiles_of(const Instruction& instruction) {
  return isa::sequence_field(instruction.opcode()) == nullptr ? 0 : instruction.bits(isa::tile::kTiles);
}

bool agree(const isa::Program& a, std::size_t i, const isa::Program& b, std::size_t k) {
  for (std::size_t n = 0; n < kAgree; ++n) {
    if (i + n >= a.size() || k + n >= b.size()) return n > 0 && i + n >= a.size() && k + n >= b.size();
    if (a[i + n].opcode() != b[k + n].opcode()) return false;
    if (tiles_of(a[i + n]) != tiles_of(b[k + n])) return false;
  }
  return true;
}

// An instruction without what depends on how many came before it.
Instruction without_sequence(Instruction instruction) {
  if (const isa::Field* field = isa::sequence_field(instruction.opcode())) (void)instruction.set(*field, 0);
  return instruction;
}

std::string text(const Instruction& instruction) { return isa::disassemble({&instruction, 1}); }

// ---- Objects of memory ----

enum class Memory { kNarrow, kWide };
struct Place {
  Memory memory = Memory::kNarrow;
  std::int64_t address = 0;  // byte or line
};

// An address field of an instruction, with the shape of the loops that it is the base of.
struct Address {
  Place place;
  isa::Nest shape;  // base 0
};

// A side that an instruction does not have (a mesh unit that only receives): all bits are zero.
bool is_absent(const isa::Nest& nest) {
  return nest.base == 0 && std::all_of(nest.dims.begin(), nest.dims.end(),
                                       [](const auto& dim) { return dim.count <= 1 && dim.stride == 0; });
}

std::vector<Address> addresses_of(const Instruction& instruction) {
  std::vector<Address> found;
  const Opcode opcode = instruction.opcode();
  const bool scaling = opcode == Opcode::kWideToNarrow && instruction.test(isa::movers::kToScaling);
  for (const isa::NestFields& fields : isa::nests(opcode)) {
    if (!fields.has_addresses) continue;
    Address address;
    address.shape = instruction.read_nest(fields);
    const std::int64_t base = address.shape.base;
    if (is_absent(address.shape)) continue;
    address.shape.base = 0;
    switch (fields.unit) {
      case isa::AddressUnit::kNarrowByte:
        address.place = {Memory::kNarrow, base};
        break;
      case isa::AddressUnit::kNarrowWord:
        address.place = {Memory::kNarrow, base * chip::kNarrowWordBytes};
        break;
      case isa::AddressUnit::kWideLine:
        address.place = {Memory::kWide, base};
        break;
      case isa::AddressUnit::kWideQuarter:
        address.place = {Memory::kWide, base / chip::kWideAddressUnitsPerLine};
        break;
      default:
        continue;
    }
    if (scaling && address.place.memory == Memory::kNarrow) continue;
    found.push_back(address);
  }
  const bool receives = opcode == Opcode::kRingReceiveA || opcode == Opcode::kRingReceiveB;
  if (receives && instruction.test(isa::ring::kHeader)) {
    found.push_back({{Memory::kWide, instruction.get(isa::ring::kHeaderFirst)}, {}});
  }
  return found;
}

// The object that exists in the step and has the place; kNowhere: none.
std::int32_t object_at(const tiled::TiledProgram& program, std::int32_t step, const Place& place) {
  const auto find = [&](const auto& objects, const auto& begin_of, const auto& size_of) {
    for (std::size_t i = 0; i < objects.size(); ++i) {
      const auto& object = objects[i];
      if (object.life.first > step || object.life.last < step) continue;
      if (place.address >= begin_of(object) && place.address < begin_of(object) + size_of(object)) {
        return static_cast<std::int32_t>(i);
      }
    }
    return tiled::kNowhere;
  };
  if (place.memory == Memory::kNarrow) {
    return find(
        program.narrow, [](const auto& o) { return std::int64_t{o.address}; }, [](const auto& o) { return o.bytes; });
  }
  return find(
      program.wide, [](const auto& o) { return std::int64_t{o.line}; }, [](const auto& o) { return o.lines; });
}

// How often each object was found to lie at an address in their program.
using Votes = std::map<std::pair<Memory, std::int32_t>, std::map<std::int64_t, int>>;

// `own`: the same code with all objects where we would have them, so that no two are in one place: there it is seen
// which object an address belongs to.
struct OwnPlaces {
  compiler::PartCode code;
  isa::Program program;
};

Votes votes_of(const compiler::PartCode& code, const isa::Program& ours, const OwnPlaces& own,
               const isa::Program& theirs) {
  Votes votes;
  for (const auto& [i, k] : aligned(ours, theirs)) {
    const auto begin = std::upper_bound(code.step_begins.begin(), code.step_begins.end(), static_cast<std::int32_t>(i));
    if (begin == code.step_begins.begin() || begin == code.step_begins.end()) continue;
    const auto step = static_cast<std::int32_t>(begin - code.step_begins.begin() - 1);
    const auto mine = addresses_of(ours[i]), other = addresses_of(theirs[k]);
    const auto unmoved = i < own.program.size() ? addresses_of(own.program[i]) : std::vector<Address>();
    if (tiles_of(ours[i]) != tiles_of(theirs[k]) || mine.size() != other.size()) continue;
    for (std::size_t n = 0; n < mine.size(); ++n) {
      if (!(mine[n].shape == other[n].shape)) continue;
      const bool is_known = own.program.size() == ours.size() && n < unmoved.size() &&
                            unmoved[n].shape == mine[n].shape && unmoved[n].place.memory == mine[n].place.memory;
      const tiled::TiledProgram& places = is_known ? own.code.program : code.program;
      const Place& place = is_known ? unmoved[n].place : mine[n].place;
      const std::int32_t object = object_at(places, step, place);
      if (object == tiled::kNowhere) continue;
      const std::int64_t at = place.memory == Memory::kNarrow ? places.address_of(object) : places.line_of(object);
      ++votes[{place.memory, object}][at + other[n].place.address - place.address];
    }
  }
  return votes;
}

// True: something changed.
bool adopt(const Votes& votes, const tiled::TiledProgram& program, compiler::GenerationOptions& options) {
  bool changed = false;
  for (const auto& [object, places] : votes) {
    const auto most = std::max_element(places.begin(), places.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    const auto index = static_cast<std::size_t>(object.second);
    const bool narrow = object.first == Memory::kNarrow;
    const std::int64_t now = narrow ? program.narrow[index].address : program.wide[index].line;
    const std::int64_t end = most->first + (narrow ? program.narrow[index].bytes : program.wide[index].lines);
    const std::int64_t limit = narrow ? chip::kNarrowBytes : chip::kWideLines;
    if (most->first == now || most->first < 0 || end > limit) continue;
    (narrow ? options.narrow_addresses : options.wide_lines)[object.second] = static_cast<std::int32_t>(most->first);
    changed = true;
  }
  return changed;
}

using ParameterPlaces = std::vector<std::vector<tiled::ParameterPiece>>;

// Google's places of as many chunks as we have; none where they are cut in another way than ours.
std::optional<ParameterPlaces> places_of(const darwinn::Package& theirs, const tiled::TiledProgram& program) {
  const darwinn::Executable* caching = theirs.find(ExecutableType::kParameterCaching);
  if (caching == nullptr) return std::nullopt;
  const auto code = whole_program(*caching);
  if (!code.ok()) return std::nullopt;
  const ParameterPlaces theirs_in_order = parameter_places(*code);
  ParameterPlaces places;
  std::size_t next = 0;
  for (const tiled::ParameterChunk& chunk : program.parameters) {
    std::int64_t lines = 0;
    if (next < theirs_in_order.size()) {
      for (const tiled::ParameterPiece& piece : theirs_in_order[next]) lines += piece.lines;
    }
    if (lines == chunk.lines) {
      places.push_back(theirs_in_order[next++]);
    } else if (chunk.can_stream && !chunk.is_cached()) {
      places.emplace_back();  // sent with every inference
    } else {
      return std::nullopt;
    }
  }
  return places;
}

Result<OwnPlaces> own_places(const compiler::PartProgram& part, const compiler::GenerationOptions& options,
                             ExecutableType type) {
  OwnPlaces own;
  REEF_ASSIGN_OR_RETURN(own.code, compiler::generate_part_with(part, options));
  if (const darwinn::Executable* execute = own.code.package.find(type)) {
    REEF_ASSIGN_OR_RETURN(own.program, whole_program(*execute));
  }
  return own;
}

}  // namespace

Result<MappedPart> MappedPart::of(const ir::Model& source, const darwinn::Package& theirs) {
  REEF_ASSIGN_OR_RETURN(compiler::VerifiedPart part, compiler::part_of_package(source, theirs));
  std::erase_if(part.outputs, [](std::int32_t t) { return t < 0; });  // states, which no tensor stands for
  return MappedPart{std::move(part.ops), std::move(part.inputs), std::move(part.outputs)};
}

compiler::PartProgram MappedPart::part(const ir::Model& source, std::uint64_t token, int min_runtime_version) const {
  return compiler::PartProgram{.model = source,
                               .ops = ops,
                               .inputs = inputs,
                               .outputs = outputs,
                               .min_runtime_version = min_runtime_version,
                               .caching_token = token};
}

Result<isa::Program> whole_program(const darwinn::Executable& executable) {
  isa::Program whole;
  const std::size_t chunks = executable.instruction_chunks.size();
  for (std::size_t c = 0; c < chunks; ++c) {
    REEF_ASSIGN_OR_RETURN(const isa::Program chunk, isa::decode(executable.instruction_chunks[c].bitstream.span()));
    auto end = chunk.end();
    if (c + 1 < chunks) {  // a halt that says that more is to come, and nothing but padding behind it
      const auto halt =
          std::find_if(chunk.rbegin(), chunk.rend(), [](const Instruction& i) { return i.opcode() == Opcode::kHalt; });
      if (halt != chunk.rend()) end = halt.base() - 1;
    }
    const bool has_start = c > 0 && !chunk.empty() && chunk.front().opcode() == Opcode::kStart;
    whole.insert(whole.end(), chunk.begin() + (has_start ? 1 : 0), end);
  }
  return whole;
}

std::vector<std::pair<std::size_t, std::size_t>> aligned(const isa::Program& ours, const isa::Program& theirs) {
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  std::size_t i = 0, k = 0;
  while (i < ours.size() && k < theirs.size()) {
    if (ours[i].opcode() == theirs[k].opcode()) {
      pairs.emplace_back(i++, k++);
      continue;
    }
    bool found = false;
    for (std::size_t apart = 1; apart < kSearch && !found; ++apart) {
      for (std::size_t skipped = 0; skipped <= apart && !found; ++skipped) {  // `skipped` of ours, the rest of theirs
        if (!agree(ours, i + skipped, theirs, k + apart - skipped)) continue;
        i += skipped;
        k += apart - skipped;
        found = true;
      }
    }
    if (!found) break;
  }
  return pairs;
}

Likeness likeness(const isa::Program& ours, const isa::Program& theirs) {
  Likeness result;
  result.rows = isa::row_count(theirs);
  result.identical = ours == theirs;
  const auto note = [&](std::size_t k, const std::string& a, const std::string& b) {
    if (result.differences.size() >= kMostDifferences) return;
    const int row = isa::row_count(std::span(theirs).first(k));
    result.differences.push_back(fmt::format("row {}, instruction {} of theirs:\nours   {}theirs {}", row, k, a, b));
  };
  std::size_t next_i = 0, next_k = 0;
  const auto gap = [&](std::size_t i, std::size_t k) {
    if (i == next_i && k == next_k) return;
    note(next_k, next_i < ours.size() ? text(ours[next_i]) : "ends\n",
         next_k < theirs.size() ? text(theirs[next_k]) : "ends\n");
  };
  for (const auto& [i, k] : aligned(ours, theirs)) {
    gap(i, k);
    const Instruction a = without_sequence(ours[i]), b = without_sequence(theirs[k]);
    const auto left = a.words(), right = b.words();
    int equal = 0;
    for (std::size_t row = 0; row < left.size() / 2; ++row) {
      equal += left[2 * row] == right[2 * row] && left[2 * row + 1] == right[2 * row + 1];
    }
    if (equal != b.rows() && b.opcode() != Opcode::kStart) note(k, text(ours[i]), text(theirs[k]));
    result.equal += equal;
    next_i = i + 1;
    next_k = k + 1;
  }
  gap(ours.size(), theirs.size());
  return result;
}

Result<LikeGoogle> generate_like_google(const compiler::PartProgram& part, const darwinn::Package& theirs) {
  const darwinn::Executable* execution = theirs.find(ExecutableType::kExecutionOnly);
  if (execution == nullptr) execution = theirs.find(ExecutableType::kStandAlone);
  REEF_REQUIRE(execution != nullptr, "the package has no program to execute");
  REEF_ASSIGN_OR_RETURN(const isa::Program google, whole_program(*execution));
  LikeGoogle result;
  result.options.compiler_version = theirs.compiler_version;
  result.options.level = tiled::Level::kAsGoogle;
  REEF_ASSIGN_OR_RETURN(result.code, compiler::generate_part_with(part, result.options));
  result.options.parameter_places = places_of(theirs, result.code.program);
  // Places that our form of a chunk cannot use are of no help.
  if (!compiler::generate_part_with(part, result.options).ok()) result.options.parameter_places.reset();
  REEF_ASSIGN_OR_RETURN(OwnPlaces own, own_places(part, result.options, execution->type));
  for (; result.rounds < kMostRounds; ++result.rounds) {
    REEF_ASSIGN_OR_RETURN(result.code, compiler::generate_part_with(part, result.options));
    const darwinn::Executable* execute = result.code.package.find(execution->type);
    if (execute == nullptr) break;
    REEF_ASSIGN_OR_RETURN(const isa::Program ours, whole_program(*execute));
    if (!adopt(votes_of(result.code, ours, own, google), result.code.program, result.options)) break;
  }
  return result;
}

}  // namespace reef::testing
