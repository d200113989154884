// SPDX-License-Identifier: Apache-2.0
// reef disasm: Edge TPU programs as text.
#include <memory>

#include <fmt/format.h>

#include "base/file.h"
#include "base/output_place.h"
#include "base/sha256.h"
#include "commands.h"
#include "console.h"
#include "formats/darwinn/listing.h"
#include "formats/tflite/reader.h"
#include "ir/verify.h"
#include "isa/disassembler.h"

namespace reef::app {
namespace {

struct DisasmOptions {
  std::string file;
  std::string out;
  std::string only;
};

bool is_tflite(const Bytes& file) {
  return file.size() >= 8 && std::string_view(reinterpret_cast<const char*>(file.data()) + 4, 4) == "TFL3";
}

// A file that is not a model holds the instructions themselves.
Result<isa::Listing> list_bitstream(const DisasmOptions& options, const Bytes& file) {
  isa::NamedProgram program;
  program.name = options.file;
  auto decoded = isa::decode(file.span());
  if (!decoded.ok()) {
    return decoded.status().in(options.file + " is not a .tflite file, and as instructions it does not decode");
  }
  program.program = std::move(*decoded);
  return isa::Listing{{std::move(program)}};
}

Result<isa::Listing> list_model(const DisasmOptions& options, const Bytes& file) {
  REEF_ASSIGN_OR_RETURN(const ir::Model model, tflite::read_model(file));
  REEF_RETURN_IF_ERROR(ir::verify(model));
  REEF_ASSIGN_OR_RETURN(isa::Listing listing, darwinn::list_programs(model));
  REEF_REQUIRE(!listing.programs.empty(), "the model has no Edge TPU op, so there is nothing to disassemble");
  // `reef asm` finds the rest of the file by these, and makes sure that it is the same file.
  auto& attributes = listing.programs[0].attributes;
  attributes.emplace_back("file", options.file);
  attributes.emplace_back("sha256", sha256_hex(file.span()));
  return listing;
}

Status disasm(const DisasmOptions& options) {
  REEF_RETURN_IF_ERROR(check_outputs(std::span(&options.out, 1), std::span(&options.file, 1)));
  REEF_ASSIGN_OR_RETURN(const Bytes file, read_file(options.file, tflite::kMaxFileBytes));
  auto listed = is_tflite(file) ? list_model(options, file) : list_bitstream(options, file);
  if (!listed.ok()) return listed.status().in(options.file);
  if (!options.only.empty()) {
    std::erase_if(listed->programs, [&](const auto& p) { return p.name.find(options.only) == std::string::npos; });
    REEF_REQUIRE(!listed->programs.empty(), "no program of {} has '{}' in its name", options.file, options.only);
  }
  const std::string text = isa::print_listing(*listed);
  if (!options.out.empty()) return write_file(options.out, text);
  print_exact("{}", text);
  return ok_status();
}

}  // namespace

void add_disasm(Command& app, Action& action) {
  auto options = std::make_shared<DisasmOptions>();
  Command command = app.add_subcommand("disasm", "Show Edge TPU programs as text that `reef asm` turns back");
  command.add_option("file", options->file, "An _edgetpu.tflite file, or bare instructions").required();
  command.add_option("-o,--out", options->out, "Write the listing to this file instead of standard output").writes();
  command.add_option("--only", options->only, "Only programs with this in their name, such as EXECUTION or 'op 0'");
  command.footer(
      "Example:\n  reef disasm model_edgetpu.tflite -o model.s && reef asm model.s -o same_edgetpu.tflite\n"
      "docs/hardware/assembly.md explains the text.");
  command.callback([options, &action] { action = [options] { return disasm(*options); }; });
}

}  // namespace reef::app
