// SPDX-License-Identifier: Apache-2.0
// reef asm: text to Edge TPU programs, put back into the file they came from or written as bare instructions.
#include <filesystem>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "base/file.h"
#include "base/output_place.h"
#include "base/sha256.h"
#include "commands.h"
#include "formats/darwinn/listing.h"
#include "formats/tflite/patch.h"
#include "formats/tflite/reader.h"
#include "formats/tflite/writer.h"
#include "ir/verify.h"
#include "isa/assembler.h"

namespace reef::app {
namespace {

constexpr std::uint64_t kMaxListingBytes = std::uint64_t{1} << 30;

struct AsmOptions {
  std::string listing;
  std::string out;
  std::string container;
  bool raw = false;
};

std::optional<std::string> attribute(const isa::NamedProgram& program, std::string_view key) {
  for (const auto& [name, value] : program.attributes) {
    if (name == key) return value;
  }
  return std::nullopt;
}

Status check_out(const AsmOptions& options, const std::vector<std::string>& inputs) {
  return check_outputs(std::span(&options.out, 1), inputs);
}

// The model file that the listing was made from: as `reef disasm` was given it, or beside the listing.
Result<Bytes> find_container(const AsmOptions& options, const isa::NamedProgram& first) {
  if (!options.container.empty()) return read_file(options.container, tflite::kMaxFileBytes);
  const std::string name = *attribute(first, "file");
  const auto beside = std::filesystem::path(options.listing).parent_path() / std::filesystem::path(name).filename();
  for (const std::string& path : {name, beside.string()}) {
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(path, ignored)) continue;
    REEF_RETURN_IF_ERROR(check_out(options, {path}));
    REEF_ASSIGN_OR_RETURN(Bytes file, read_file(path, tflite::kMaxFileBytes));
    const auto digest = attribute(first, "sha256");
    REEF_REQUIRE(!digest || *digest == sha256_hex(file.span()),
                 "{} is not the file this listing was made from (its SHA-256 differs): give the right one, or this one "
                 "on purpose, with --container",
                 path);
    return file;
  }
  return make_error(
      StatusCode::kNotFound,
      "{}: the listing was made from '{}', which is not there: give it with --container, or --raw for bare "
      "instructions",
      options.listing, name);
}

// Other bytes of the file stay as they are where the new programs are as long as the old ones.
Status write_into_container(const AsmOptions& options, const isa::Listing& listing) {
  REEF_ASSIGN_OR_RETURN(const Bytes file, find_container(options, listing.programs[0]));
  REEF_ASSIGN_OR_RETURN(ir::Model model, tflite::read_model(file));
  REEF_RETURN_IF_ERROR(ir::verify(model));
  REEF_RETURN_IF_ERROR(darwinn::replace_programs(model, listing));
  auto bytes = tflite::patch_file(file, model);
  if (!bytes.ok() && bytes.status().code() == StatusCode::kUnsupported) bytes = tflite::write_model(model);
  if (!bytes.ok()) return bytes.status();
  return write_file(options.out, *bytes);
}

Status assemble(const AsmOptions& options) {
  REEF_RETURN_IF_ERROR(check_out(options, {options.listing, options.container}));
  REEF_ASSIGN_OR_RETURN(const Bytes text, read_file(options.listing, kMaxListingBytes));
  auto listing = isa::parse_listing({reinterpret_cast<const char*>(text.data()), text.size()});
  if (!listing.ok()) return listing.status().in(options.listing);
  REEF_REQUIRE(!listing->programs.empty(), "{}: there is no program in it", options.listing);
  const bool has_container = !options.container.empty() || attribute(listing->programs[0], "file").has_value();
  if (has_container && !options.raw) return write_into_container(options, *listing).in(options.listing);
  REEF_REQUIRE(listing->programs.size() == 1,
               "{}: bare instructions are written for one program and the listing has {}: take one with `reef disasm "
               "--only`, or give --container",
               options.listing, listing->programs.size());
  return write_file(options.out, isa::encode(listing->programs[0].program));
}

}  // namespace

void add_asm(Command& app, Action& action) {
  auto options = std::make_shared<AsmOptions>();
  Command command = app.add_subcommand("asm", "Turn a listing made by `reef disasm` back into a file");
  command.add_option("listing", options->listing, "The text").required();
  command.add_option("-o,--out", options->out, "File to write: as the listing's origin, a model or bare instructions")
      .required()
      .writes();
  const Option raw =
      command.add_flag("--raw", options->raw, "Write the instructions of a one-program listing by themselves");
  command.add_option("--container", options->container, "Model file to put the programs into, instead of their origin")
      .option_text("FILE")
      .excludes(raw);
  command.footer(
      "Example:\n  reef disasm model_edgetpu.tflite -o model.s && reef asm model.s -o same_edgetpu.tflite\n"
      "docs/hardware/assembly.md explains the text.");
  command.callback([options, &action] { action = [options] { return assemble(*options); }; });
}

}  // namespace reef::app
