// SPDX-License-Identifier: Apache-2.0
#include "retarget/follow.h"

#include <algorithm>
#include <set>

#include "retarget/machine.h"

namespace reef::retarget {

namespace {

// Larger transfers than any network has.
constexpr std::int64_t kMaxTransferBytes = std::int64_t{1} << 26;

std::optional<std::uint32_t> layer_index(const std::vector<darwinn::Layer>& layers, const std::string& name) {
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (layers[i].name == name) return static_cast<std::uint32_t>(i);
  }
  return std::nullopt;
}

Result<HostTransfer> transfer_of(const darwinn::Executable& executable, const darwinn::DescriptorHint& hint,
                                 darwinn::Direction direction) {
  HostTransfer transfer;
  transfer.offset = hint.offset_bytes;
  transfer.bytes = hint.size_bytes;
  REEF_REQUIRE(hint.offset_bytes >= 0 && hint.size_bytes >= 0, "a transfer has a negative offset or size");
  switch (hint.use->base) {
    case darwinn::BaseAddress::kScratch:
      transfer.kind = direction == darwinn::Direction::kToHost ? HostTransfer::Kind::kScratchWrite
                                                               : HostTransfer::Kind::kScratchRead;
      return transfer;
    case darwinn::BaseAddress::kInput:
    case darwinn::BaseAddress::kOutput: {
      const bool is_input = hint.use->base == darwinn::BaseAddress::kInput;
      transfer.kind = is_input ? HostTransfer::Kind::kInput : HostTransfer::Kind::kOutput;
      const auto layer = layer_index(is_input ? executable.input_layers : executable.output_layers, hint.use->name);
      REEF_REQUIRE(layer.has_value(), "a transfer names the layer '{}', which does not exist", hint.use->name);
      transfer.layer = *layer;
      return transfer;
    }
    default:
      transfer.bytes = 0;
      return transfer;
  }
}

// A scratch read that goes beyond what has been written is a read and a write that the compiler joined.
std::vector<HostTransfer> split_joined(const std::vector<HostTransfer>& transfers) {
  std::vector<HostTransfer> split;
  std::int64_t written = 0;
  for (const HostTransfer& transfer : transfers) {
    const std::int64_t end = transfer.offset + transfer.bytes;
    if (transfer.kind == HostTransfer::Kind::kScratchRead && end > written && transfer.offset < written) {
      HostTransfer read = transfer, write = transfer;
      read.bytes = written - transfer.offset;
      write.kind = HostTransfer::Kind::kScratchWrite;
      write.offset = written;
      write.bytes = end - written;
      split.push_back(read);
      split.push_back(write);
    } else {
      split.push_back(transfer);
    }
    if (split.back().kind == HostTransfer::Kind::kScratchWrite) written = std::max(written, end);
  }
  return split;
}

Status add_transfers(const darwinn::Executable& executable, Machine::Job& job) {
  if (!executable.dma_hints) return ok_status();
  job.transfers_are_complete = executable.dma_hints->is_complete;
  std::int64_t total = 0;
  for (const darwinn::DmaHint& hint : executable.dma_hints->hints) {
    const auto* descriptor = std::get_if<darwinn::DescriptorHint>(&hint.hint);
    if (descriptor == nullptr || !descriptor->use) continue;
    if (descriptor->use->base == darwinn::BaseAddress::kParameter) continue;
    REEF_ASSIGN_OR_RETURN(const HostTransfer transfer, transfer_of(executable, *descriptor, hint.direction));
    total += transfer.bytes;
    REEF_REQUIRE(total <= kMaxTransferBytes && transfer.offset <= kMaxTransferBytes,
                 "the transfers of '{}' are larger than {} bytes", executable.name, kMaxTransferBytes);
    job.transfers.push_back(transfer);
  }
  job.transfers = split_joined(job.transfers);
  for (const HostTransfer& transfer : job.transfers) {
    if (transfer.kind == HostTransfer::Kind::kScratchRead || transfer.kind == HostTransfer::Kind::kScratchWrite) {
      job.scratch_bytes = std::max(job.scratch_bytes, transfer.offset + transfer.bytes);
    }
  }
  return ok_status();
}

Result<Machine::Job> job_of(const DecodedExecutable& decoded, Origin parameters) {
  Machine::Job job;
  job.parameters = parameters;
  job.parameter_bytes = static_cast<std::int64_t>(decoded.executable->parameters.size());
  REEF_REQUIRE(job.parameter_bytes <= kMaxTagNumber, "{} bytes of parameters are more than any chip holds",
               job.parameter_bytes);
  job.program.reserve(decoded.program.size());
  for (std::size_t i = 0; i < decoded.program.size(); ++i) {
    auto operation = isa::operation_of(decoded.program[i]);
    if (!operation.ok()) {
      return operation.status().in(
          fmt::format("instruction {} ({})", i, isa::info(decoded.program[i].opcode()).mnemonic));
    }
    // A mask that comes from a scalar register (loops over time steps): which tile it is does not matter for where
    // bytes come from, as all time steps of a tensor are one tensor. Tile 0 stands for it.
    if (operation->tiles_register >= 0) operation->tiles = 1;
    job.program.push_back(std::move(operation).value());
  }
  REEF_RETURN_IF_ERROR(add_transfers(*decoded.executable, job));
  return job;
}

// A layer may come in several transfers.
void collect_outputs(const darwinn::Executable& executable, const std::vector<Machine::Output>& pieces, Trace& trace) {
  for (const Machine::Output& piece : pieces) {
    const std::string& name = executable.output_layers[piece.layer].name;
    auto at = std::find_if(trace.outputs.begin(), trace.outputs.end(),
                           [&](const OutputTrace& output) { return output.layer == name; });
    if (at == trace.outputs.end()) {
      trace.outputs.push_back({name, {}, {}});
      at = std::prev(trace.outputs.end());
    }
    const auto offset = static_cast<std::size_t>(piece.offset);
    at->bytes.resize(std::max(at->bytes.size(), offset + piece.bytes.size()));
    std::copy(piece.bytes.begin(), piece.bytes.end(), at->bytes.begin() + piece.offset);
    for (const Tag tag : piece.bytes) at->sources.add(tag);
  }
  for (OutputTrace& output : trace.outputs) output.sources.finish();
}

void find_unread_fills(const DecodedExecutable& execution, const Machine::Job& job, Trace& trace) {
  std::set<std::uint32_t> read;
  for (const TensorOpTrace& op : trace.tensor_ops) {
    for (const Sources* sources : {&op.input, &op.parameters, &op.biases, &op.multipliers, &op.zero_points}) {
      read.insert(sources->fills.begin(), sources->fills.end());
    }
  }
  for (const OutputTrace& output : trace.outputs) read.insert(output.sources.fills.begin(), output.sources.fills.end());
  for (std::size_t i = 0; i < execution.program.size(); ++i) {
    const auto* mesh = std::get_if<isa::Mesh>(&job.program[i].code);
    const auto index = static_cast<std::uint32_t>(i);
    if (mesh != nullptr && mesh->fills && read.count(index) == 0) trace.unread_fills.push_back(index);
  }
}

}  // namespace

Result<DecodedExecutable> decode_executable(const darwinn::Executable& executable) {
  DecodedExecutable decoded;
  decoded.executable = &executable;
  for (std::size_t c = 0; c < executable.instruction_chunks.size(); ++c) {
    auto program = isa::decode(executable.instruction_chunks[c].bitstream.span());
    if (!program.ok()) return program.status().in(fmt::format("instruction chunk {}", c));
    decoded.chunk_starts.push_back(decoded.program.size());
    decoded.program.insert(decoded.program.end(), program->begin(), program->end());
  }
  REEF_REQUIRE(decoded.program.size() <= kMaxInstructions, "the program has {} instructions", decoded.program.size());
  return decoded;
}

Result<Trace> follow(const DecodedExecutable* caching, const DecodedExecutable& execution, std::int64_t max_steps,
                     const Budget& budget) {
  Machine machine(max_steps, budget);
  Machine::Job caching_job;
  if (caching != nullptr) {
    REEF_ASSIGN_OR_RETURN(caching_job, job_of(*caching, Origin::kCached));
    REEF_RETURN_IF_ERROR(machine.run(caching_job).in("parameter-caching program"));
  }
  REEF_ASSIGN_OR_RETURN(const Machine::Job job, job_of(execution, Origin::kStreamed));
  REEF_RETURN_IF_ERROR(machine.run(job).in("execution program"));
  Trace trace;
  trace.tensor_ops = machine.take_traces();
  collect_outputs(*execution.executable, machine.take_outputs(), trace);
  find_unread_fills(execution, job, trace);
  return trace;
}

}  // namespace reef::retarget
