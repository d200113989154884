// SPDX-License-Identifier: Apache-2.0
#include "inspect.h"

#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "console.h"
#include "formats/darwinn/listing.h"
#include "isa/seen.h"
#include "isa/unknown.h"
#include "json_output.h"

namespace reef::app {
namespace {

using Json = nlohmann::ordered_json;

// The same thing at several places is one row.
struct Row {
  std::string program;
  std::string place;  // "row 12 (scalar)"
  std::string what;
  std::string seen;  // empty: the virtual device does not know it at all
  std::int64_t times = 0;
};

class Rows {
 public:
  void add(const std::string& program, const std::string& place, const std::string& what, const std::string& seen) {
    const auto [at, is_new] = index_.try_emplace(program + what, rows_.size());
    if (is_new) rows_.push_back({program, place, what, seen, 0});
    ++rows_[at->second].times;
  }
  const std::vector<Row>& rows() const { return rows_; }

 private:
  std::vector<Row> rows_;
  std::map<std::string, std::size_t> index_;
};

void look_at(const isa::NamedProgram& program, Rows& rows) {
  std::int64_t row = 0;
  for (const isa::Instruction& instruction : program.program) {
    const std::string_view mnemonic = isa::info(instruction.opcode()).mnemonic;
    const std::string place = fmt::format("row {} ({})", row, mnemonic);
    const auto unknown = [&](const std::string& what) {
      rows.add(program.name, place, fmt::format("{}: {}", mnemonic, what), "");
    };
    for (const std::string& what : isa::unknowns_of(instruction)) unknown(what);
    const auto operation = isa::operation_of(instruction);
    if (!operation.ok() && operation.status().code() == StatusCode::kUnsupported) unknown(operation.status().message());
    for (const isa::Unseen& unseen : isa::unseen_in(instruction)) {
      rows.add(program.name, place, fmt::format("{}: {} = {}", mnemonic, unseen.field->full_name(), unseen.value),
               isa::describe_seen(*unseen.field, unseen.seen));
    }
    row += instruction.rows();
  }
}

void print_rows(const std::string& file, const Rows& rows, std::size_t programs) {
  const isa::SeenTable& table = isa::seen_table();
  if (rows.rows().empty()) {
    print_text(
        "{}: nothing unknown in {} programs: every field value occurs in the {} public files that were counted\n", file,
        programs, table.files);
    return;
  }
  print_text("{}: {} things that none of the {} public files counted ({} instructions) has\n", file, rows.rows().size(),
             table.files, table.instructions);
  for (const Row& row : rows.rows()) {
    print_text("  {}, {}: {}{}\n    {}\n", row.program, row.place, row.what,
               row.times == 1 ? "" : fmt::format(" ({} times)", row.times),
               row.seen.empty() ? "the virtual device does not know it and refuses the file"
                                : fmt::format("seen: {}", row.seen));
  }
  print_text("{}.\n", isa::kPleaseSendTheFile);
}

Json to_json(const std::string& file, const Rows& rows) {
  const isa::SeenTable& table = isa::seen_table();
  Json json = {{"file", file}, {"public_files", table.files}, {"public_instructions", table.instructions}};
  json["unknown"] = Json::array();
  for (const Row& row : rows.rows()) {
    json["unknown"].push_back({{"program", row.program},
                               {"first_place", row.place},
                               {"what", row.what},
                               {"times", row.times},
                               {"seen", row.seen.empty() ? Json() : Json(row.seen)},
                               {"runs", !row.seen.empty()}});
  }
  return json;
}

}  // namespace

Status inspect_unknown(const std::string& file, const ir::Model& model, bool as_json) {
  REEF_ASSIGN_OR_RETURN(const isa::Listing listing, darwinn::list_programs(model));
  REEF_REQUIRE(!listing.programs.empty(), "{} has no program for the Edge TPU: --unknown looks at compiled models",
               file);
  Rows rows;
  for (const isa::NamedProgram& program : listing.programs) look_at(program, rows);
  if (as_json) {
    print_json(to_json(file, rows));
  } else {
    print_rows(file, rows, listing.programs.size());
  }
  return ok_status();
}

}  // namespace reef::app
