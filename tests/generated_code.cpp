// SPDX-License-Identifier: Apache-2.0
#include "generated_code.h"

#include <algorithm>
#include <numeric>
#include <random>

#include <fmt/format.h>

#include "audit/audit.h"
#include "emit/compiled_model.h"
#include "execute/device/timeline.h"
#include "formats/darwinn/writer.h"
#include "formats/tflite/exported_writer.h"
#include "isa/disassembler.h"
#include "isa/ring.h"
#include "ops/dependencies.h"

namespace reef::testing {

WholeModel::WholeModel(const ir::Model& source) : model(source) {
  ops.resize(model.subgraphs[0].operators.size());
  std::iota(ops.begin(), ops.end(), 0);
  const ops::Dependencies::Border border = ops::Dependencies(model).border(ops);
  inputs = border.inputs;
  outputs = border.outputs;
}

compiler::PartProgram WholeModel::part(std::uint64_t token) const {
  return compiler::PartProgram{.model = model,
                               .ops = ops,
                               .inputs = inputs,
                               .outputs = outputs,
                               .min_runtime_version = 14,
                               .caching_token = token};
}

Result<std::vector<std::uint8_t>> WholeModel::file(const darwinn::Package& package) const {
  darwinn::CustomOptions options;
  options.package = package;
  REEF_ASSIGN_OR_RETURN(auto bytes, darwinn::write_custom_options(options));
  REEF_ASSIGN_OR_RETURN(const ir::Model compiled,
                        emit::compiled_model(model, {{ops, inputs, outputs, Bytes(std::move(bytes))}}));
  return tflite::write_exported_model(compiled);
}

Result<isa::Program> program_of(const darwinn::Package& package, darwinn::ExecutableType type) {
  const darwinn::Executable* executable = package.find(type);
  REEF_REQUIRE(executable != nullptr && executable->instruction_chunks.size() == 1, "not one chunk of that program");
  return isa::decode(executable->instruction_chunks[0].bitstream.span());
}

std::vector<std::vector<tiled::ParameterPiece>> parameter_places(const isa::Program& caching) {
  std::vector<std::vector<tiled::ParameterPiece>> places;
  bool receiving = false;
  for (const isa::Instruction& instruction : caching) {
    if (instruction.opcode() == isa::Opcode::kRingReceiveA) {
      if (!receiving) places.emplace_back();
      receiving = true;
      const isa::Nest nest = instruction.read_nest(isa::ring::kReceiveOut);
      const std::uint32_t tiles = instruction.bits(isa::tile::kTiles);
      int tile = 0;
      while (tile < chip::kTiles - 1 && (tiles >> tile & 1) == 0) ++tile;
      const bool header = instruction.test(isa::ring::kHeader);  // in front of the lines
      const auto header_lines = header ? static_cast<std::int32_t>(instruction.get(isa::ring::kHeaderLines)) : 0;
      places.back().push_back({tile, static_cast<std::int32_t>(nest.base) - header_lines,
                               static_cast<std::int32_t>(nest.dims[0].count) + header_lines});
    } else if (instruction.opcode() == isa::Opcode::kPop) {
      receiving = false;
    }
  }
  return places;
}

ProgramComparison compare_programs(const isa::Program& ours, const isa::Program& theirs) {
  ProgramComparison result;
  result.rows = isa::row_count(theirs);
  const auto note = [&](const std::string& text) {
    if (result.first_difference.empty()) result.first_difference = text;
  };
  const auto text = [](const isa::Instruction& instruction) { return isa::disassemble({&instruction, 1}); };
  for (std::size_t i = 0; i < std::max(ours.size(), theirs.size()); ++i) {
    if (i >= ours.size() || i >= theirs.size() || ours[i].opcode() != theirs[i].opcode()) {
      note(fmt::format("row {} of theirs, instruction {}:\nours {}theirs {}", result.compared, i,
                       i < ours.size() ? text(ours[i]) : "ends\n", i < theirs.size() ? text(theirs[i]) : "ends\n"));
      break;
    }
    const auto a = ours[i].words(), b = theirs[i].words();
    int equal = 0;
    for (std::size_t row = 0; row < a.size() / 2; ++row) {
      equal += a[2 * row] == b[2 * row] && a[2 * row + 1] == b[2 * row + 1];
    }
    if (equal != theirs[i].rows()) {
      note(fmt::format("row {}, instruction {}:\nours   {}theirs {}", result.compared, i, text(ours[i]),
                       text(theirs[i])));
    }
    result.compared += theirs[i].rows();
    result.equal += equal;
  }
  return result;
}

Status runs_as_chip_reference(const ir::Model& model, const darwinn::Package& package, unsigned seed,
                              const device::Schedule* schedule) {
  REEF_ASSIGN_OR_RETURN(const auto loaded, device::LoadedPackage::load(package));
  device::Device device({.threads = 1});
  if (schedule != nullptr) device.set_schedule(*schedule);
  return runs_as_chip_reference_on(device, model, loaded, seed);
}

Status runs_as_chip_reference_on(device::Device& device, const ir::Model& model,
                                 const std::shared_ptr<const device::LoadedPackage>& loaded, unsigned seed) {
  std::mt19937 random(seed);
  NamedBytes given;
  std::vector<std::span<const std::uint8_t>> inputs;
  for (const darwinn::Layer& layer : loaded->inputs()) {
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(device::tensor_bytes(layer)));
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
    inputs.emplace_back(given[layer.name] = std::move(bytes));
  }
  std::vector<std::string> wanted;
  for (const darwinn::Layer& layer : loaded->outputs()) wanted.push_back(layer.name);
  REEF_ASSIGN_OR_RETURN(const auto found, device.run(loaded, inputs));
  REEF_ASSIGN_OR_RETURN(const NamedBytes expected, evaluate_as_chip(model, given, wanted, {}));
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const std::vector<std::uint8_t>& right = expected.at(wanted[i]);
    REEF_REQUIRE(found[i].size() == right.size(), "'{}' has {} bytes, not {}", wanted[i], found[i].size(),
                 right.size());
    const auto at = std::mismatch(found[i].begin(), found[i].end(), right.begin());
    std::int64_t different = 0;
    for (std::size_t k = 0; k < right.size(); ++k) different += found[i][k] != right[k];
    REEF_REQUIRE(at.first == found[i].end(), "'{}': {} of {} bytes differ, first byte {}: {} instead of {}", wanted[i],
                 different, right.size(), at.first - found[i].begin(), *at.first, *at.second);
  }
  return ok_status();
}

Status has_no_races(const darwinn::Package& package) {
  REEF_ASSIGN_OR_RETURN(const auto loaded, device::LoadedPackage::load(package));
  std::vector<std::vector<std::uint8_t>> tensors;
  for (const darwinn::Layer& layer : loaded->inputs()) {
    tensors.emplace_back(static_cast<std::size_t>(device::tensor_bytes(layer)), std::uint8_t{100});
  }
  device::Device device({.threads = 1});
  device::TimelineOptions options;
  options.find_races = true;
  device::Timeline timeline(options);
  device.set_observer(&timeline);
  device.set_queue_depths(device::kShallowQueues);
  const auto result = device.run(loaded, {tensors.begin(), tensors.end()});
  if (!result.ok()) return result.status();
  for (const device::ProgramRecord& record : timeline.take_records()) {
    REEF_REQUIRE(record.races.empty(), "{} races, the first: {}", record.races.size(),
                 record.describe(record.races.front()));
  }
  return ok_status();
}

Status passes_audit(const darwinn::Package& package) {
  REEF_ASSIGN_OR_RETURN(const audit::AuditReport report, audit::audit(package));
  REEF_REQUIRE(report.is_sound(), "{}", audit::to_text(report));
  return ok_status();
}

}  // namespace reef::testing
