// SPDX-License-Identifier: Apache-2.0
#include "driver/model.h"

#include "driver/transfer_list.h"
#include "host/programs.h"
#include "host/tensors.h"

namespace reef::driver {
namespace {

// Buffers are given 2^32 bytes each, far from 0: an address belongs to one of them or to none.
constexpr std::uint64_t kFirstAddress = std::uint64_t{1} << 40, kAddressStep = std::uint64_t{1} << 32;

using host::BufferIndex;

std::vector<std::size_t> sizes_of_buffers(const darwinn::Executable& executable) {
  std::vector<std::size_t> sizes = {executable.parameters.size(),
                                    static_cast<std::size_t>(executable.scratch_size_bytes)};
  for (const auto* layers : {&executable.input_layers, &executable.output_layers}) {
    for (const darwinn::Layer& layer : *layers) sizes.push_back(static_cast<std::size_t>(layer.size_bytes));
  }
  return sizes;
}

Tag tag_of(darwinn::BaseAddress base, darwinn::Direction direction) {
  if (direction == darwinn::Direction::kToHost) return Tag::kOutput;
  return base == darwinn::BaseAddress::kParameter ? Tag::kParameters : Tag::kInput;
}

}  // namespace

std::optional<Place> ProgramPlan::place_of(std::uint64_t address, std::uint64_t bytes) const {
  if (address < kFirstAddress) return std::nullopt;
  const std::uint64_t buffer = (address - kFirstAddress) / kAddressStep,
                      offset = (address - kFirstAddress) % kAddressStep;
  if (buffer >= buffer_bytes_.size()) return std::nullopt;
  const std::size_t size = buffer_bytes_[at(buffer)];
  if (offset > size || bytes > size - offset) return std::nullopt;
  return Place{static_cast<std::size_t>(buffer), static_cast<std::size_t>(offset)};
}

bool ProgramPlan::may_be_written(std::size_t buffer) const {
  return buffer == BufferIndex::kScratch || buffer >= BufferIndex::kFirstLayer + executable_->input_layers.size();
}

Status ProgramPlan::add_hint(const darwinn::DmaHint& hint) {
  Step step;
  if (const auto* instructions = std::get_if<darwinn::InstructionHint>(&hint.hint)) {
    REEF_REQUIRE(instructions->chunk_index >= 0 && static_cast<std::size_t>(instructions->chunk_index) < chunks_.size(),
                 "the list of transfers names chunk {} of {}", instructions->chunk_index, chunks_.size());
    step.buffer = static_cast<std::size_t>(instructions->chunk_index);
    step.bytes = chunks_[step.buffer].size();
  } else if (const auto* data = std::get_if<darwinn::DescriptorHint>(&hint.hint)) {
    REEF_REQUIRE(data->use, "the list of transfers has one that does not say of which buffer");
    if (data->use->batch != 0) return unsupported("the program works on several elements of a batch at once");
    REEF_ASSIGN_OR_RETURN(step.buffer, BufferIndex(*executable_).find(*data->use));
    const bool is_inside =
        data->offset_bytes >= 0 && data->size_bytes >= 0 &&
        std::int64_t{data->offset_bytes} + data->size_bytes <= static_cast<std::int64_t>(buffer_bytes_[step.buffer]);
    REEF_REQUIRE(is_inside, "the list of transfers has {} bytes at {} of a buffer of {}", data->size_bytes,
                 data->offset_bytes, buffer_bytes_[step.buffer]);
    step.tag = tag_of(data->use->base, hint.direction);
    step.kind = step.tag == Tag::kOutput ? Step::Kind::kReceive : Step::Kind::kSend;
    const bool is_written = step.kind == Step::Kind::kReceive;
    REEF_REQUIRE(!is_written || may_be_written(step.buffer), "the program writes to its own parameters or inputs");
    step.offset = static_cast<std::size_t>(data->offset_bytes);
    step.bytes = static_cast<std::size_t>(data->size_bytes);
  } else if (const auto* interrupt = std::get_if<darwinn::InterruptHint>(&hint.hint)) {
    REEF_REQUIRE(interrupt->interrupt >= 0 && interrupt->interrupt < kInterrupts, "the chip has no interrupt {}",
                 interrupt->interrupt);
    step.kind = Step::Kind::kInterrupt;
    step.interrupt = interrupt->interrupt;
  } else if (std::holds_alternative<darwinn::FenceHint>(hint.hint)) {
    step.kind = Step::Kind::kFence;
  } else {
    return invalid_input("the list of transfers has an entry of an unknown kind");
  }
  steps_.push_back(step);
  return ok_status();
}

Result<ProgramPlan> ProgramPlan::create(const darwinn::Executable& executable) {
  REEF_RETURN_IF_ERROR(host::check_sizes(executable));
  ProgramPlan plan;
  plan.executable_ = &executable;
  plan.buffer_bytes_ = sizes_of_buffers(executable);
  std::vector<std::uint64_t> addresses(plan.buffer_bytes_.size());
  for (std::size_t i = 0; i < addresses.size(); ++i) addresses[i] = kFirstAddress + i * kAddressStep;
  REEF_ASSIGN_OR_RETURN(plan.chunks_, host::relocated(executable, addresses));
  if (executable.dma_hints) {
    for (const darwinn::DmaHint& hint : executable.dma_hints->hints) REEF_RETURN_IF_ERROR(plan.add_hint(hint));
  }
  plan.is_complete_ = executable.dma_hints && executable.dma_hints->is_complete;
  if (plan.is_complete_) plan.steps_ = with_directions_apart(std::move(plan.steps_), plan.chunks_);
  if (!plan.is_complete_ && plan.chunks_.size() != 1) {
    return unsupported(
        "the program's list of transfers is not complete, and it has {} chunks of instructions: over USB nobody could "
        "tell when to send which. Use a device on PCIe or the virtual one",
        plan.chunks_.size());
  }
  return plan;
}

Result<std::shared_ptr<const Model>> Model::load(darwinn::Package package) {
  std::shared_ptr<Model> model(new Model);
  model->package_ = std::move(package);
  REEF_ASSIGN_OR_RETURN(const host::Programs programs, host::find_programs(model->package_));
  REEF_ASSIGN_OR_RETURN(model->execution_, ProgramPlan::create(*programs.execution));
  if (programs.caching != nullptr) {
    REEF_REQUIRE(programs.caching->parameter_caching_token != 0, "the parameter-caching program has no token");
    REEF_ASSIGN_OR_RETURN(model->caching_, ProgramPlan::create(*programs.caching));
  }
  return std::shared_ptr<const Model>(std::move(model));
}

}  // namespace reef::driver
