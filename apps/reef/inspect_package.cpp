// SPDX-License-Identifier: Apache-2.0
// The package is read once into PackageView, which both forms of output walk.
#include "inspect.h"

#include <bit>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "chip/machine.h"
#include "formats/darwinn/cached_parameters.h"
#include "formats/darwinn/reader.h"
#include "formats/darwinn/without_code.h"
#include "ir/describe.h"
#include "isa/program.h"
#include "report/compute_steps.h"

namespace reef::app {
namespace {

using Json = nlohmann::ordered_json;
using darwinn::Executable;
using report::ComputeStep;
using report::ParameterUse;

struct OpcodeUse {
  int instructions = 0, rows = 0;
};

struct ExecutableView {
  const Executable* executable = nullptr;
  int rows = 0;
  std::map<isa::Opcode, OpcodeUse> histogram;
  std::vector<ComputeStep> steps;            // not for parameter-caching programs
  std::vector<darwinn::CachedPiece> pieces;  // for those only
  std::vector<report::LineRun> scratch;
};

struct PackageView {
  darwinn::CustomOptions options;
  std::vector<std::string> notes;
  std::vector<ExecutableView> executables;
  std::uint64_t cached_lines = 0;  // over all tiles, each counted once
};

std::string size_text(std::uint64_t bytes) { return ir::describe_bytes(static_cast<std::int64_t>(bytes)); }

std::string_view type_name(darwinn::DataType type) {
  switch (type) {
    case darwinn::DataType::kUint8:
      return "uint8";
    case darwinn::DataType::kUint16:
      return "uint16";
    case darwinn::DataType::kInt32:
      return "int32";
    case darwinn::DataType::kBfloat16:
      return "bfloat16";
    case darwinn::DataType::kFloat16:
      return "float16";
    case darwinn::DataType::kFloat32:
      return "float32";
    case darwinn::DataType::kInt8:
      return "int8";
    case darwinn::DataType::kInt16:
      return "int16";
  }
  return "?";
}

std::string_view base_name(darwinn::BaseAddress base) {
  switch (base) {
    case darwinn::BaseAddress::kOutput:
      return "output";
    case darwinn::BaseAddress::kInput:
      return "input";
    case darwinn::BaseAddress::kParameter:
      return "parameters";
    case darwinn::BaseAddress::kScratch:
      return "scratch";
  }
  return "?";
}

Status view_executable(const Executable& executable, const std::vector<darwinn::CachedPiece>& cached,
                       ExecutableView& view) {
  view.executable = &executable;
  for (const darwinn::InstructionChunk& chunk : executable.instruction_chunks) {
    REEF_ASSIGN_OR_RETURN(const isa::Program program, isa::decode(chunk.bitstream.span()));
    view.rows += isa::row_count(program);
    for (const isa::Instruction& instruction : program) {
      OpcodeUse& use = view.histogram[instruction.opcode()];
      ++use.instructions;
      use.rows += instruction.rows();
    }
  }
  if (executable.type == darwinn::ExecutableType::kParameterCaching) {
    view.pieces = cached;
    return ok_status();
  }
  REEF_ASSIGN_OR_RETURN(view.steps, report::compute_steps(executable, cached));
  REEF_ASSIGN_OR_RETURN(view.scratch, report::scratch_lines(executable));
  return ok_status();
}

Result<PackageView> view_package(const Bytes& custom_options) {
  PackageView view;
  REEF_ASSIGN_OR_RETURN(view.options, darwinn::read_custom_options(custom_options, &view.notes));
  std::vector<darwinn::CachedPiece> cached;
  if (const Executable* caching = view.options.package.find(darwinn::ExecutableType::kParameterCaching)) {
    REEF_ASSIGN_OR_RETURN(cached, darwinn::find_cached_pieces(*caching));
  }
  std::set<std::pair<int, std::uint32_t>> lines;
  for (const darwinn::CachedPiece& piece : cached) {
    for (std::uint32_t k = 0; k < piece.lines; ++k) lines.emplace(piece.tile, piece.first_line + k);
  }
  view.cached_lines = lines.size();
  for (const Executable& executable : view.options.package.executables) {
    Status status = view_executable(executable, cached, view.executables.emplace_back());
    if (!status.ok()) return status.in(fmt::format("{} program '{}'", name_of(executable.type), executable.name));
  }
  return view;
}

// ---- Text ----

std::string layer_text(std::string_view role, const darwinn::Layer& layer) {
  std::string text = fmt::format("      {:<7} '{}' {} y {} x {} z {}, {} bytes", role, layer.name,
                                 type_name(layer.data_type), layer.y_dim, layer.x_dim, layer.z_dim, layer.size_bytes);
  if (layer.numerics) {
    text +=
        fmt::format(", zero point {}, factor {}", layer.numerics->zero_point, layer.numerics->dequantization_factor);
  }
  if (layer.executions_per_inference != 1) text += fmt::format(", {} times", layer.executions_per_inference);
  if (const auto* info = std::get_if<darwinn::OutputInfo>(&layer.info)) {
    if (info->layout) text += fmt::format(", gathered from {} tiles", info->layout->tile_offset.size());
    if (info->slices) text += fmt::format(", in {} slices", info->slices->layouts.size());
  }
  return text + "\n";
}

struct HintText {
  std::string operator()(std::monostate) const { return "nothing"; }
  std::string operator()(const darwinn::DescriptorHint& hint) const {
    std::string text(hint.use ? base_name(hint.use->base) : "unnamed buffer");
    if (hint.use && !hint.use->name.empty()) text += fmt::format(" '{}'", hint.use->name);
    return text + fmt::format(", {} bytes at {}", hint.size_bytes, hint.offset_bytes);
  }
  std::string operator()(const darwinn::InstructionHint& hint) const {
    return fmt::format("instructions, chunk {}", hint.chunk_index);
  }
  std::string operator()(const darwinn::InterruptHint& hint) const {
    return fmt::format("interrupt {}", hint.interrupt);
  }
  std::string operator()(const darwinn::FenceHint&) const { return "wait for everything before"; }
};

std::string dma_text(const darwinn::DmaHints& hints) {
  std::string text = fmt::format("      transfers ({}):\n",
                                 hints.is_complete ? "all, in this order" : "the first ones; the rest depends on data");
  for (const darwinn::DmaHint& hint : hints.hints) {
    text += fmt::format("        {} {}\n", hint.direction == darwinn::Direction::kToDevice ? "to device" : "to host  ",
                        std::visit(HintText{}, hint.hint));
  }
  return text;
}

std::string histogram_text(const ExecutableView& view) {
  std::string text = "      instructions:\n";
  for (const auto& [opcode, use] : view.histogram) {
    text += fmt::format("        {:>6} {:<18} {:>6} rows\n", use.instructions, isa::info(opcode).mnemonic, use.rows);
  }
  return text;
}

std::string use_text(const ParameterUse& use) {
  const std::string what = fmt::format("{} at {}", size_text(use.bytes), use.offset);
  switch (use.from) {
    case ParameterUse::From::kHost:
      return what + " streamed by the host";
    case ParameterUse::From::kOwnTile:
      break;
    case ParameterUse::From::kRing:
      break;
  }
  return fmt::format("{} in tile {} lines {}-{}{}", what, use.tile, use.first_line, use.first_line + use.lines - 1,
                     use.from == ParameterUse::From::kOwnTile ? " (used there)" : "");
}

std::string step_text(const ComputeStep& step) {
  std::vector<std::string> flags;
  if (step.weights) flags.push_back("weights");
  if (step.bias) flags.push_back("bias");
  if (step.scale_per_cell) flags.push_back("scale per channel");
  if (step.zero_per_cell) flags.push_back("zero point per channel");
  if (step.activation) flags.push_back("table");
  if (step.wide_operands) flags.push_back("16-bit operand");
  if (step.wide_result) flags.push_back("16-bit result");
  std::string text = fmt::format(
      "        {:>2}:{:<6} {:<14} {:>2} tiles {:>9} steps {:>2} cells  zero points {},{},{}  scale {:<12g} {}\n",
      step.chunk, step.row, isa::info(step.opcode).mnemonic, std::popcount(step.tiles), step.steps, step.cells,
      step.in_zero, step.param_zero, step.out_zero, step.scale, fmt::join(flags, ", "));
  for (const ParameterUse& use : step.parameters) text += fmt::format("                  {}\n", use_text(use));
  return text;
}

std::string steps_text(const ExecutableView& view) {
  std::string text =
      "      computation (chunk:row of the first instruction; steps of the busiest tile; zero points of input, "
      "parameters,\n"
      "      output; below it the parameters it uses, as bytes at an offset of the parameters):\n";
  for (const ComputeStep& step : view.steps) text += step_text(step);
  return text;
}

std::string pieces_text(const std::vector<darwinn::CachedPiece>& pieces) {
  std::string text = "      where parameters are cached:\n";
  for (const darwinn::CachedPiece& piece : pieces) {
    text += fmt::format("        {:>9} bytes at {:>8}: tile {:>2} lines {}-{}\n", piece.bytes, piece.offset, piece.tile,
                        piece.first_line, piece.first_line + piece.lines - 1);
  }
  return text;
}

std::string memory_text(const PackageView& package, const ExecutableView& view) {
  const Executable& executable = *view.executable;
  std::string text;
  if (executable.used_narrow_memory_bytes > 0) {
    text += fmt::format("      activation memory: {} of {} per tile\n",
                        size_text(static_cast<std::uint64_t>(executable.used_narrow_memory_bytes)),
                        size_text(chip::kNarrowBytes));
  }
  if (executable.type != darwinn::ExecutableType::kParameterCaching) {
    std::vector<std::string> runs;
    for (const report::LineRun& run : view.scratch) runs.push_back(fmt::format("{}-{}", run.first, run.last));
    const std::uint64_t free = report::longest_free_run(view.scratch);
    text += fmt::format("      parameter memory: scratch in lines {}; room to cache {}, {} cached\n",
                        runs.empty() ? "none" : fmt::format("{}", fmt::join(runs, ", ")),
                        size_text(free * chip::kTiles * chip::kWideLineBytes),
                        size_text(package.cached_lines * chip::kWideLineBytes));
  }
  if (executable.scratch_size_bytes > 0) {
    text += fmt::format("      host scratch memory: {}\n",
                        size_text(static_cast<std::uint64_t>(executable.scratch_size_bytes)));
  }
  return text;
}

std::string executable_text(const PackageView& package, const ExecutableView& view) {
  const Executable& executable = *view.executable;
  const bool caches = executable.type == darwinn::ExecutableType::kParameterCaching;
  std::string text =
      fmt::format("    {} '{}': {} rows of instructions in {} chunk{} ({})", name_of(executable.type), executable.name,
                  view.rows, executable.instruction_chunks.size(), executable.instruction_chunks.size() == 1 ? "" : "s",
                  size_text(static_cast<std::uint64_t>(view.rows) * isa::kRowBytes));
  if (!executable.parameters.empty()) {
    text += fmt::format(", {} of parameters {}", size_text(executable.parameters.size()),
                        caches ? "to cache" : "streamed on every run");
  }
  text += fmt::format(", caching token {:#018x}\n", executable.parameter_caching_token);
  for (const darwinn::Layer& layer : executable.input_layers) text += layer_text("input", layer);
  for (const darwinn::Layer& layer : executable.output_layers) text += layer_text("output", layer);
  text += memory_text(package, view);
  if (executable.dma_hints) text += dma_text(*executable.dma_hints);
  text += histogram_text(view);
  if (caches) return text + pieces_text(view.pieces);
  return text + steps_text(view);
}

// ---- JSON ----

Json layer_json(const darwinn::Layer& layer) {
  Json json = {{"name", layer.name},        {"type", type_name(layer.data_type)},
               {"bytes", layer.size_bytes}, {"y", layer.y_dim},
               {"x", layer.x_dim},          {"z", layer.z_dim}};
  if (layer.numerics) {
    json["zero_point"] = layer.numerics->zero_point;
    json["dequantization_factor"] = layer.numerics->dequantization_factor;
  }
  if (layer.executions_per_inference != 1) json["executions_per_inference"] = layer.executions_per_inference;
  return json;
}

Json hints_json(const darwinn::DmaHints& hints) {
  Json list = Json::array();
  for (const darwinn::DmaHint& hint : hints.hints) {
    Json row = {{"direction", hint.direction == darwinn::Direction::kToDevice ? "to_device" : "to_host"}};
    if (const auto* descriptor = std::get_if<darwinn::DescriptorHint>(&hint.hint)) {
      row["kind"] = "transfer";
      if (descriptor->use) row["buffer"] = base_name(descriptor->use->base);
      if (descriptor->use && !descriptor->use->name.empty()) row["layer"] = descriptor->use->name;
      row["offset"] = descriptor->offset_bytes;
      row["bytes"] = descriptor->size_bytes;
    } else if (const auto* instructions = std::get_if<darwinn::InstructionHint>(&hint.hint)) {
      row["kind"] = "instructions";
      row["chunk"] = instructions->chunk_index;
    } else if (const auto* interrupt = std::get_if<darwinn::InterruptHint>(&hint.hint)) {
      row["kind"] = "interrupt";
      row["number"] = interrupt->interrupt;
    } else {
      row["kind"] = std::holds_alternative<darwinn::FenceHint>(hint.hint) ? "fence" : "none";
    }
    list.push_back(std::move(row));
  }
  return list;
}

Json use_json(const ParameterUse& use) {
  Json json = {{"offset", use.offset}, {"bytes", use.bytes}};
  if (use.from == ParameterUse::From::kHost) {
    json["from"] = "host";
  } else {
    json["from"] = use.from == ParameterUse::From::kRing ? "ring" : "own_tile";
    json["tile"] = use.tile;
    json["first_line"] = use.first_line;
    json["lines"] = use.lines;
  }
  return json;
}

// JSON has no infinities; clamps that do not clamp are absent.
void put_finite(Json& json, const char* name, float value) {
  if (std::isfinite(value)) json[name] = value;
}

Json step_json(const ComputeStep& step) {
  Json json = {{"chunk", step.chunk},
               {"row", step.row},
               {"instructions", step.instructions},
               {"opcode", isa::info(step.opcode).mnemonic},
               {"tiles", step.tiles},
               {"steps", step.steps},
               {"cells", step.cells},
               {"in_zero", step.in_zero},
               {"param_zero", step.param_zero},
               {"out_zero", step.out_zero},
               {"weights", step.weights},
               {"bias", step.bias},
               {"scale_per_cell", step.scale_per_cell},
               {"zero_per_cell", step.zero_per_cell},
               {"activation", step.activation}};
  put_finite(json, "scale", step.scale);
  put_finite(json, "min", step.min);
  put_finite(json, "max", step.max);
  for (const ParameterUse& use : step.parameters) json["parameters"].push_back(use_json(use));
  return json;
}

Json executable_json(const ExecutableView& view) {
  const Executable& executable = *view.executable;
  Json json = {{"type", name_of(executable.type)},
               {"name", executable.name},
               {"caching_token", fmt::format("{:#018x}", executable.parameter_caching_token)},
               {"instruction_rows", view.rows},
               {"chunks", executable.instruction_chunks.size()},
               {"parameter_bytes", executable.parameters.size()},
               {"scratch_bytes", executable.scratch_size_bytes},
               {"narrow_memory_bytes_per_tile", executable.used_narrow_memory_bytes}};
  for (const report::LineRun& run : view.scratch) json["scratch_lines"].push_back({run.first, run.last});
  for (const darwinn::Layer& layer : executable.input_layers) json["inputs"].push_back(layer_json(layer));
  for (const darwinn::Layer& layer : executable.output_layers) json["outputs"].push_back(layer_json(layer));
  if (executable.dma_hints) {
    json["transfers_complete"] = executable.dma_hints->is_complete;
    json["transfers"] = hints_json(*executable.dma_hints);
  }
  for (const auto& [opcode, use] : view.histogram) {
    json["histogram"][std::string(isa::info(opcode).mnemonic)] = {{"instructions", use.instructions},
                                                                  {"rows", use.rows}};
  }
  for (const darwinn::CachedPiece& piece : view.pieces) {
    json["cached"].push_back({{"offset", piece.offset},
                              {"bytes", piece.bytes},
                              {"tile", piece.tile},
                              {"first_line", piece.first_line},
                              {"lines", piece.lines}});
  }
  for (const ComputeStep& step : view.steps) json["computation"].push_back(step_json(step));
  return json;
}

}  // namespace

Result<std::string> describe_package(const Bytes& custom_options) {
  REEF_ASSIGN_OR_RETURN(const PackageView view, view_package(custom_options));
  const darwinn::Package& package = view.options.package;
  std::string text = fmt::format("  Edge TPU package: {}, for '{}', needs runtime {}", size_text(custom_options.size()),
                                 chip::kChipName, package.min_runtime_version);
  if (!package.compiler_version.empty()) text += fmt::format(", compiler '{}'", package.compiler_version);
  if (!package.model_identifier.empty()) text += fmt::format(", model '{}'", package.model_identifier);
  text += "\n";
  if (const Status status = darwinn::require_code(package); !status.ok()) {
    text += fmt::format("    note: {}\n", status.message());
  }
  for (const ExecutableView& executable : view.executables) text += executable_text(view, executable);
  for (const std::string& note : view.notes) text += fmt::format("    note: {}\n", note);
  return text;
}

Result<nlohmann::ordered_json> package_json(const Bytes& custom_options) {
  REEF_ASSIGN_OR_RETURN(const PackageView view, view_package(custom_options));
  const darwinn::Package& package = view.options.package;
  Json json = {{"bytes", custom_options.size()},
               {"chip", chip::kChipName},
               {"min_runtime_version", package.min_runtime_version},
               {"compiler_version", package.compiler_version},
               {"cached_bytes", view.cached_lines * chip::kWideLineBytes}};
  if (const Status status = darwinn::require_code(package); !status.ok()) json["no_machine_code"] = status.message();
  for (const ExecutableView& executable : view.executables) json["executables"].push_back(executable_json(executable));
  return json;
}

}  // namespace reef::app
