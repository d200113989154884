// SPDX-License-Identifier: Apache-2.0
#include "execute/device/device.h"

#include <algorithm>

#include "host/programs.h"
#include "host/tensors.h"
#include "isa/scalar.h"

namespace reef::device {
namespace {

using host::BufferIndex;

// Addresses belong into operands of scalar instructions, nowhere else.
Status check_fields(const darwinn::Executable& executable, const Program& program) {
  for (std::size_t c = 0; c < executable.instruction_chunks.size(); ++c) {
    for (const darwinn::FieldOffset& field : executable.instruction_chunks[c].field_offsets) {
      if (!field.use) continue;
      const auto index = program.at_row(c, field.bit_offset / isa::kRowBits);
      const bool fits = index && program.instructions[*index].opcode() == isa::Opcode::kScalar &&
                        field.bit_offset % isa::kRowBits == isa::bundle::kAluOperand.bit;
      REEF_REQUIRE(fits, "the package wants an address at bit {} of chunk {}, which is no scalar instruction's operand",
                   field.bit_offset, c);
    }
  }
  return ok_status();
}

Result<Program> ready_program(const darwinn::Executable& executable, isa::UnknownList& unknown) {
  REEF_RETURN_IF_ERROR(host::check_sizes(executable));
  HostMemory memory;  // gives the same addresses in the same order when the program runs
  std::vector<std::uint64_t> addresses(BufferIndex(executable).count());
  for (std::uint64_t& address : addresses) address = memory.add("", {});
  REEF_ASSIGN_OR_RETURN(const auto chunks, host::relocated(executable, addresses));
  Program program;
  program.type = executable.type;
  for (const auto& chunk : chunks) REEF_RETURN_IF_ERROR(append_chunk(program, chunk, unknown));
  REEF_RETURN_IF_ERROR(check_fields(executable, program));
  return program;
}

std::vector<std::uint8_t> copy_of(std::span<const std::uint8_t> data) { return {data.begin(), data.end()}; }

}  // namespace

std::int64_t tensor_bytes(const darwinn::Layer& layer) { return host::tensor_bytes(layer); }

Result<std::shared_ptr<const LoadedPackage>> LoadedPackage::load(darwinn::Package package, Belief doubted) {
  std::shared_ptr<LoadedPackage> loaded(new LoadedPackage);
  loaded->package_ = std::move(package);
  REEF_ASSIGN_OR_RETURN(const host::Programs programs, host::find_programs(loaded->package_));
  loaded->execution_ = programs.execution;
  loaded->caching_ = programs.caching;
  isa::UnknownList unknown;
  REEF_ASSIGN_OR_RETURN(loaded->execution_program_, ready_program(*loaded->execution_, unknown));
  if (loaded->caching_ != nullptr) {
    REEF_ASSIGN_OR_RETURN(loaded->caching_program_, ready_program(*loaded->caching_, unknown));
  }
  REEF_RETURN_IF_ERROR(unknown.to_status());
  if (doubted != Belief::kNone) {
    REEF_RETURN_IF_ERROR(take_otherwise(doubted, loaded->execution_program_).status());
    REEF_RETURN_IF_ERROR(take_otherwise(doubted, loaded->caching_program_).status());
  }
  return std::shared_ptr<const LoadedPackage>(std::move(loaded));
}

Status Device::execute(const Program& program, HostMemory& memory) {
  is_reset_due_ = true;  // also where an exception (no memory) leaves the program half done
  const Status status = chip_.run(program, memory);
  is_reset_due_ = !status.ok() || chip_.was_stopped();
  return status;
}

void Device::reset_if_due() {
  if (!is_reset_due_) return;
  cache_.clear();
  chip_.power_cycle();
  is_reset_due_ = false;
}

Status Device::make_parameters_present(const std::shared_ptr<const LoadedPackage>& package) {
  const bool is_present = cache_.holds(package->execution_->parameter_caching_token, package);
  if (package->caching_ == nullptr || is_present) return ok_status();
  const darwinn::Executable& caching = *package->caching_;
  REEF_REQUIRE(caching.parameter_caching_token != 0, "the parameter-caching program has no token");
  HostMemory memory;
  memory.add("parameters", copy_of(caching.parameters.span()));
  memory.add("scratch", std::vector<std::uint8_t>(static_cast<std::size_t>(caching.scratch_size_bytes)), false);
  REEF_RETURN_IF_ERROR(execute(package->caching_program_, memory).in("parameter caching"));
  REEF_REQUIRE(!chip_.was_stopped(), "parameter caching was stopped");
  cache_.add(caching.parameter_caching_token, package);
  return ok_status();
}

Result<std::vector<std::vector<std::uint8_t>>> Device::run(const std::shared_ptr<const LoadedPackage>& package,
                                                           const std::vector<std::span<const std::uint8_t>>& inputs) {
  const darwinn::Executable& execution = *package->execution_;
  REEF_REQUIRE(inputs.size() == execution.input_layers.size(), "the package has {} inputs, {} were given",
               execution.input_layers.size(), inputs.size());
  reset_if_due();
  HostMemory memory;
  memory.add("parameters", copy_of(execution.parameters.span()));
  memory.add("scratch", std::vector<std::uint8_t>(static_cast<std::size_t>(execution.scratch_size_bytes)), false);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const darwinn::Layer& layer = execution.input_layers[i];
    REEF_ASSIGN_OR_RETURN(std::vector<std::uint8_t> data, host::padded_input(layer, inputs[i]));
    memory.add(layer.name, std::move(data));
  }
  for (const darwinn::Layer& layer : execution.output_layers) {
    memory.add(layer.name, std::vector<std::uint8_t>(static_cast<std::size_t>(layer.size_bytes)), false);
  }
  REEF_RETURN_IF_ERROR(make_parameters_present(package));
  if (observer_ != nullptr) observer_->given(inputs);
  REEF_RETURN_IF_ERROR(execute(package->execution_program_, memory));
  REEF_REQUIRE(!chip_.was_stopped(), "the run was stopped before its end");
  std::vector<std::vector<std::uint8_t>> outputs;
  for (std::size_t i = 0; i < execution.output_layers.size(); ++i) {
    const darwinn::Layer& layer = execution.output_layers[i];
    const HostMemory::Buffer& buffer = memory.buffer(BufferIndex::kFirstLayer + inputs.size() + i);
    REEF_ASSIGN_OR_RETURN(std::vector<std::uint8_t> tensor, host::gathered(layer, buffer.bytes));
    REEF_ASSIGN_OR_RETURN(const std::vector<std::uint8_t> known, host::gathered(layer, buffer.known));
    const auto unknown = std::find(known.begin(), known.end(), 0);
    REEF_REQUIRE(unknown == known.end(),
                 "byte {} of output '{}' depends on memory that nothing wrote; {} is the first to compute with such",
                 unknown - known.begin(), layer.name,
                 chip_.first_unknown().empty() ? "no instruction" : chip_.first_unknown());
    host::flip_signs(tensor, layer.data_type);
    outputs.push_back(std::move(tensor));
  }
  if (observer_ != nullptr) observer_->returned(outputs);
  return outputs;
}

}  // namespace reef::device
