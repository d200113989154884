// SPDX-License-Identifier: Apache-2.0
#include "formats/darwinn/listing.h"

#include <array>
#include <charconv>
#include <map>

#include "formats/darwinn/reader.h"
#include "formats/darwinn/without_code.h"
#include "formats/darwinn/writer.h"
#include "isa/scalar.h"

namespace reef::darwinn {
namespace {

constexpr std::array<std::string_view, 4> kPlaceAttributes = {"subgraph", "op", "executable", "chunk"};
using ListingPlace = std::array<std::size_t, 4>;  // numbers of these

Result<std::size_t> number_of(const isa::NamedProgram& program, std::string_view key) {
  for (const auto& [name, text] : program.attributes) {
    if (name != key) continue;
    std::size_t number = 0;
    const auto end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, number);
    REEF_REQUIRE(error == std::errc() && rest == end, "program '{}': {}={} is not a number", program.name, key, text);
    return number;
  }
  return invalid_input("program '{}' does not say its {}: give the directive {}=NUMBER", program.name, key, key);
}

Result<ListingPlace> place_of(const isa::NamedProgram& program) {
  ListingPlace place{};
  for (std::size_t i = 0; i < place.size(); ++i) {
    REEF_ASSIGN_OR_RETURN(place[i], number_of(program, kPlaceAttributes[i]));
  }
  return place;
}

// The driver writes addresses over the immediates of scalar instructions; an edited program must keep them in place.
Status check_field_offsets(const isa::Program& program, const InstructionChunk& chunk) {
  std::map<std::int64_t, isa::Opcode> starts;  // bit of the immediate -> what is there
  std::int64_t bit = 0;
  for (const isa::Instruction& instruction : program) {
    starts.emplace(bit + isa::bundle::kAluOperand.bit, instruction.opcode());
    bit += std::int64_t{instruction.rows()} * isa::kRowBits;
  }
  for (const FieldOffset& field : chunk.field_offsets) {
    const auto found = starts.find(field.bit_offset);
    REEF_REQUIRE(found != starts.end() && found->second == isa::Opcode::kScalar,
                 "the driver writes an address at bit {} (row {}), where the new program has no scalar instruction: "
                 "keep the rows before it as they were",
                 field.bit_offset, field.bit_offset / isa::kRowBits);
  }
  return ok_status();
}

// True: the program is another one now.
Result<bool> replace_in_package(CustomOptions& options, std::size_t executable, std::size_t chunk,
                                const isa::NamedProgram& program) {
  auto& executables = options.package.executables;
  REEF_REQUIRE(executable < executables.size(), "the package has no executable {}", executable);
  auto& chunks = executables[executable].instruction_chunks;
  REEF_REQUIRE(chunk < chunks.size(), "executable {} has no chunk {}", executable, chunk);
  REEF_RETURN_IF_ERROR(check_field_offsets(program.program, chunks[chunk]));
  Bytes bitstream(isa::encode(program.program));
  if (bitstream == chunks[chunk].bitstream) return false;
  chunks[chunk].bitstream = std::move(bitstream);
  return true;
}

Status replace_in_op(ir::Operator& op, const std::map<ListingPlace, const isa::NamedProgram*>& programs) {
  REEF_ASSIGN_OR_RETURN(CustomOptions options, read_custom_options(op.custom_options));
  bool is_changed = false;
  for (const auto& [place, program] : programs) {
    const auto replaced = replace_in_package(options, place[2], place[3], *program);
    if (!replaced.ok()) return replaced.status().in(fmt::format("program '{}'", program->name));
    is_changed = is_changed || *replaced;
  }
  // Unchanged options keep their bytes, whatever compiler laid them out.
  if (!is_changed) return ok_status();
  REEF_ASSIGN_OR_RETURN(std::vector<std::uint8_t> bytes, write_custom_options(options));
  op.custom_options = Bytes(std::move(bytes));
  return ok_status();
}

}  // namespace

Result<isa::Listing> list_programs(const ir::Model& model) {
  isa::Listing listing;
  Status missing_code;
  for (std::size_t s = 0; s < model.subgraphs.size(); ++s) {
    for (std::size_t o = 0; o < model.subgraphs[s].operators.size(); ++o) {
      const ir::Operator& op = model.subgraphs[s].operators[o];
      if (!is_edge_tpu_op(op)) continue;
      auto options = read_custom_options(op.custom_options);
      if (!options.ok()) return options.status().in(fmt::format("op {} {}", o, op.type));
      const auto& executables = options->package.executables;
      if (executables.empty()) missing_code = require_code(options->package).in(fmt::format("op {} {}", o, op.type));
      for (std::size_t e = 0; e < executables.size(); ++e) {
        for (std::size_t c = 0; c < executables[e].instruction_chunks.size(); ++c) {
          isa::NamedProgram& program = listing.programs.emplace_back();
          program.name = fmt::format("op {} {} chunk {}", o, name_of(executables[e].type), c);
          const ListingPlace place = {s, o, e, c};
          for (std::size_t i = 0; i < place.size(); ++i) {
            program.attributes.emplace_back(kPlaceAttributes[i], fmt::format("{}", place[i]));
          }
          auto decoded = isa::decode(executables[e].instruction_chunks[c].bitstream.span());
          if (!decoded.ok()) return decoded.status().in(program.name);
          program.program = std::move(*decoded);
        }
      }
    }
  }
  if (listing.programs.empty() && !missing_code.ok()) return missing_code;
  return listing;
}

Status replace_programs(ir::Model& model, const isa::Listing& listing) {
  std::map<std::pair<std::size_t, std::size_t>, std::map<ListingPlace, const isa::NamedProgram*>> by_op;
  for (const isa::NamedProgram& program : listing.programs) {
    REEF_ASSIGN_OR_RETURN(const ListingPlace place, place_of(program));
    REEF_REQUIRE(place[0] < model.subgraphs.size() && place[1] < model.subgraphs[place[0]].operators.size() &&
                     is_edge_tpu_op(model.subgraphs[place[0]].operators[place[1]]),
                 "program '{}' belongs to op {} of subgraph {}, which is no Edge TPU op of this model", program.name,
                 place[1], place[0]);
    const bool is_new = by_op[{place[0], place[1]}].emplace(place, &program).second;
    REEF_REQUIRE(is_new, "program '{}' appears twice in the listing", program.name);
  }
  ir::Model changed = model;  // slices, not copies of the data
  for (const auto& [where, programs] : by_op) {
    REEF_RETURN_IF_ERROR(replace_in_op(changed.subgraphs[where.first].operators[where.second], programs));
  }
  model = std::move(changed);
  return ok_status();
}

}  // namespace reef::darwinn
