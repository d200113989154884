// SPDX-License-Identifier: Apache-2.0
#include "driver/pcie_link.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "host/programs.h"

namespace reef::driver {
namespace {

constexpr std::uint64_t kSimpleSlots = 6144;  // of 8192
constexpr std::size_t kCoherentBytes = 0x4000;
constexpr std::uint32_t kQueueEntries = 256;
constexpr std::size_t kPcieLinkEntryBytes = 16;
constexpr std::uint64_t kQueueEnable = 5;  // enabled, and the status block is written
constexpr std::uint64_t kAllScalarCore = 0xf, kAllButFirst = 0xe;
constexpr std::uint32_t kQueueBit = 1u << static_cast<int>(PcieInterrupt::kInstructionQueue);
constexpr std::uint32_t kScalarCoreBit = 1u << static_cast<int>(PcieInterrupt::kScalarCore0);
constexpr std::uint32_t kFatalBit = 1u << static_cast<int>(PcieInterrupt::kFatalError);

}  // namespace

// Not visible to the chip before map(), and unmapped with its end at the latest.
class PcieLink::Pages {
 public:
  Pages(PcieDevice& device, std::span<const std::uint8_t> content) : Pages(device, content.size()) {
    if (is_there()) std::copy(content.begin(), content.end(), memory_.begin());
  }
  Pages(PcieDevice& device, std::size_t bytes) : device_(device), memory_(device.allocate(bytes)), bytes_(bytes) {}
  ~Pages() {
    (void)unmap();
    if (is_there()) device_.release(memory_);
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  bool is_there() const { return !memory_.empty(); }
  std::span<std::uint8_t> memory() { return memory_; }
  std::span<const std::uint8_t> content() const { return memory_.first(bytes_); }
  std::uint64_t address() const { return address_; }
  Status map(std::uint64_t address, DmaDirection direction) {
    REEF_RETURN_IF_ERROR(device_.map(memory_, address, direction));
    is_mapped_ = true;
    address_ = address;
    return ok_status();
  }
  Status unmap() { return std::exchange(is_mapped_, false) ? device_.unmap(memory_, address_) : ok_status(); }

 private:
  PcieDevice& device_;
  std::span<std::uint8_t> memory_;
  std::size_t bytes_ = 0;
  bool is_mapped_ = false;
  std::uint64_t address_ = 0;
};

PcieLink::PcieLink(std::unique_ptr<PcieDevice> device, Milliseconds settle)
    : device_(std::move(device)), settle_(settle) {}

PcieLink::~PcieLink() = default;

// ---- Starting and stopping ----

Status PcieLink::check_fatal_error() {
  REEF_ASSIGN_OR_RETURN(const std::uint64_t errors, device_->read(reg::kErrorStatus));
  if (errors == 0) return ok_status();
  if (errors == ~std::uint64_t{0}) {
    return make_error(StatusCode::kIoError, "the device is lost: its registers read all ones");
  }
  REEF_ASSIGN_OR_RETURN(const std::uint64_t first, device_->read(reg::kFirstErrorStatus));
  REEF_ASSIGN_OR_RETURN(const std::uint64_t address, device_->read(reg::kPageFaultAddress));
  return make_error(StatusCode::kIoError,
                    "the chip reports a fatal error: {} (hib_error_status {:#x}, first {:#x}, page fault at {:#x})",
                    error_text(errors), errors, first, address);
}

Status PcieLink::start_queue(Clock clock) {
  REEF_RETURN_IF_ERROR(device_->set_performance(static_cast<std::uint32_t>(clock)));
  REEF_RETURN_IF_ERROR(check_fatal_error());
  REEF_RETURN_IF_ERROR(device_->write(reg::kDmaBurstLimit, 0));
  REEF_RETURN_IF_ERROR(device_->partition(kSimpleSlots));
  REEF_ASSIGN_OR_RETURN(queue_memory_, device_->coherent_memory(kCoherentBytes));
  if (queue_memory_.size() < 2 * kPageBytes) {
    return make_error(StatusCode::kIoError, "there is no memory for the chip's queue");
  }
  for (std::size_t page = 0; page < 2; ++page) {
    REEF_RETURN_IF_ERROR(device_->map(queue_memory_.subspan(page * kPageBytes, kPageBytes),
                                      kSimpleAddress + page * kPageBytes, DmaDirection::kBoth));
  }
  REEF_ASSIGN_OR_RETURN(const std::uint64_t entry, device_->read(reg::kQueueDescriptorSize));
  if (entry != kPcieLinkEntryBytes) {
    return make_error(StatusCode::kIoError, "the chip's queue has entries of {} bytes instead of {}", entry,
                      kPcieLinkEntryBytes);
  }
  REEF_RETURN_IF_ERROR(device_->write(reg::kQueueBase, kSimpleAddress));
  REEF_RETURN_IF_ERROR(device_->write(reg::kQueueStatusBlock, kSimpleAddress + kPageBytes));
  REEF_RETURN_IF_ERROR(device_->write(reg::kQueueSize, kQueueEntries));
  REEF_RETURN_IF_ERROR(device_->write(reg::kQueueControl, kQueueEnable));
  return device_->wait_for(whole(reg::kQueueStatus), 1, settle_);
}

Status PcieLink::start(Clock clock) {
  REEF_RETURN_IF_ERROR(start_queue(clock));
  REEF_RETURN_IF_ERROR(device_->enable_interrupts());
  REEF_RETURN_IF_ERROR(set_run_controls(*device_, RunState::kRun, settle_));
  REEF_RETURN_IF_ERROR(device_->write(reg::kStatusBlockUpdate, 0));
  REEF_ASSIGN_OR_RETURN(const std::uint64_t count, device_->read(reg::kHostInterruptCount));
  counted_ = static_cast<std::uint16_t>(count);
  REEF_RETURN_IF_ERROR(device_->write(reg::kHostInterruptControl, kAllScalarCore));
  REEF_RETURN_IF_ERROR(device_->write(reg::kQueueInterruptControl, 1));
  return device_->write(reg::kFatalControl, 1);
}

Status PcieLink::stop() {
  REEF_RETURN_IF_ERROR(device_->write(reg::kDmaPause, 1));
  REEF_RETURN_IF_ERROR(device_->wait_for(whole(reg::kDmaPaused), 1, settle_));
  REEF_RETURN_IF_ERROR(set_run_controls(*device_, RunState::kHalt, settle_));
  for (const std::uint32_t control : {reg::kHostInterruptControl, reg::kQueueInterruptControl, reg::kFatalControl}) {
    REEF_RETURN_IF_ERROR(device_->write(control, 0));
  }
  REEF_RETURN_IF_ERROR(device_->write(reg::kQueueControl, 0));
  REEF_RETURN_IF_ERROR(device_->wait_for(whole(reg::kQueueStatus), 0, settle_));
  for (const std::uint32_t place : {reg::kQueueTail, reg::kQueueBase, reg::kQueueStatusBlock}) {
    REEF_RETURN_IF_ERROR(device_->write(place, 0));
  }
  for (std::size_t page = 0; page < 2; ++page) {
    REEF_RETURN_IF_ERROR(
        device_->unmap(queue_memory_.subspan(page * kPageBytes, kPageBytes), kSimpleAddress + page * kPageBytes));
  }
  return ok_status();
}

void PcieLink::halt() {
  (void)set_run_controls(*device_, RunState::kHalt, settle_);
  (void)device_->write(reg::kQueueControl, 0);
  if (device_->write(reg::kDmaPause, 1).ok()) (void)device_->wait_for(whole(reg::kDmaPaused), 1, settle_);
}

// ---- Programs ----

// A queue whose tail meets its head would be empty.
static_assert(PcieLink::kMostChunks < kQueueEntries);

bool PcieLink::has_room(std::size_t chunks) const {
  std::size_t used = 0;
  for (const Program& program : programs_) used += program.entries;
  return used + chunks <= kMostChunks;
}

// Addresses are given one after the other, with a page between that is never mapped, and start anew at the end. By then
// the programs that had the first ones are over: all that are under way together have less than 4 GiB.
Result<PcieLink::Pages*> PcieLink::add(Program& program, std::unique_ptr<Pages> pages, DmaDirection direction) {
  if (!pages->is_there()) return make_error(StatusCode::kResourceExhausted, "there is no memory for a transfer");
  const std::uint64_t room = pages->memory().size() + kPageBytes;
  if (next_address_ + room > kExtendedAddress + kExtendedBytes) next_address_ = kExtendedAddress;
  REEF_RETURN_IF_ERROR(pages->map(next_address_, direction));
  next_address_ += room;
  program.memory.push_back(std::move(pages));
  return program.memory.back().get();
}

// Only what the program addresses: it has no transfers but those. An address for each number of a BufferIndex.
Status PcieLink::add_buffers(Program& program, const darwinn::Executable& executable, const Tensors& inputs,
                             std::vector<std::uint64_t>& addresses) {
  const auto add_one = [&](auto content, DmaDirection direction) -> Result<Pages*> {
    REEF_ASSIGN_OR_RETURN(Pages* const pages, add(program, std::make_unique<Pages>(*device_, content), direction));
    addresses.push_back(pages->address());
    return pages;
  };
  if (executable.parameters.empty()) {
    addresses.push_back(0);
  } else {
    REEF_RETURN_IF_ERROR(add_one(executable.parameters.span(), DmaDirection::kToDevice).status());
  }
  if (executable.scratch_size_bytes == 0) {
    addresses.push_back(0);
  } else {
    const auto bytes = static_cast<std::size_t>(executable.scratch_size_bytes);
    REEF_RETURN_IF_ERROR(add_one(bytes, DmaDirection::kBoth).status());
  }
  for (const auto& input : inputs) {
    REEF_RETURN_IF_ERROR(add_one(std::span<const std::uint8_t>(input), DmaDirection::kToDevice).status());
  }
  for (const darwinn::Layer& layer : executable.output_layers) {
    const auto bytes = static_cast<std::size_t>(layer.size_bytes);
    REEF_ASSIGN_OR_RETURN(Pages* const pages, add_one(bytes, DmaDirection::kFromDevice));
    program.outputs.push_back(pages);
  }
  return ok_status();
}

Status PcieLink::enqueue(const Pages& instructions) {
  const std::span entry = queue_memory_.subspan(tail_ * kPcieLinkEntryBytes, kPcieLinkEntryBytes);
  const std::uint64_t address = instructions.address(), bytes = instructions.content().size();
  for (std::size_t i = 0; i < 8; ++i) entry[i] = static_cast<std::uint8_t>(address >> (8 * i));
  for (std::size_t i = 0; i < 8; ++i) entry[8 + i] = static_cast<std::uint8_t>(bytes >> (8 * i));
  tail_ = (tail_ + 1) % kQueueEntries;
  std::atomic_thread_fence(std::memory_order_seq_cst);  // the entry is in memory before the chip hears of it
  return device_->write(reg::kQueueTail, tail_);
}

Status PcieLink::launch(const darwinn::Executable& executable, const Tensors& inputs) {
  if (!has_room(executable.instruction_chunks.size())) {
    return make_error(StatusCode::kResourceExhausted, "there is no room in the chip's queue");
  }
  Program program;
  std::vector<std::uint64_t> addresses;
  REEF_RETURN_IF_ERROR(add_buffers(program, executable, inputs, addresses));
  REEF_ASSIGN_OR_RETURN(const auto chunks, host::relocated(executable, addresses));
  std::vector<const Pages*> instructions;
  for (const auto& chunk : chunks) {
    auto pages = std::make_unique<Pages>(*device_, std::span<const std::uint8_t>(chunk));
    REEF_ASSIGN_OR_RETURN(instructions.emplace_back(), add(program, std::move(pages), DmaDirection::kToDevice));
  }
  program.entries = chunks.size();
  programs_.push_back(std::move(program));  // before the chip hears of it: its memory must outlive a failure here
  for (const Pages* pages : instructions) REEF_RETURN_IF_ERROR(enqueue(*pages));
  return ok_status();
}

// ---- What comes back ----

// Memory that the kernel does not take from the chip must not go: the device has to be closed first.
Result<PcieLink::Tensors> PcieLink::outputs_of(Program& program) {
  for (const auto& pages : program.memory) REEF_RETURN_IF_ERROR(pages->unmap());
  Tensors outputs;
  for (const Pages* pages : program.outputs) outputs.emplace_back(pages->content().begin(), pages->content().end());
  return outputs;
}

Result<std::vector<PcieLink::Tensors>> PcieLink::take_ended() {
  std::vector<Tensors> all;
  if (ended_ == 0) return all;
  REEF_ASSIGN_OR_RETURN(const std::uint64_t head, device_->read(reg::kQueueCompletedHead));
  if (head >= kQueueEntries) {
    REEF_RETURN_IF_ERROR(check_fatal_error());
    return make_error(StatusCode::kIoError, "the chip's queue of {} entries is at entry {}", kQueueEntries, head);
  }
  std::size_t passed = (head + kQueueEntries - head_) % kQueueEntries;
  while (ended_ > 0 && !programs_.empty() && programs_.front().entries <= passed) {
    Program& program = programs_.front();
    REEF_ASSIGN_OR_RETURN(all.emplace_back(), outputs_of(program));
    passed -= program.entries;
    head_ = static_cast<std::uint32_t>((head_ + program.entries) % kQueueEntries);
    --ended_;
    programs_.pop_front();
  }
  if (programs_.empty()) ended_ = 0;
  return all;
}

Result<std::vector<PcieLink::Tensors>> PcieLink::collect(std::uint32_t interrupts) {
  if ((interrupts & kFatalBit) != 0) {
    REEF_RETURN_IF_ERROR(check_fatal_error());
    return make_error(StatusCode::kIoError, "the chip reports a fatal error and does not say which");
  }
  if ((interrupts & kQueueBit) != 0) REEF_RETURN_IF_ERROR(device_->write(reg::kQueueInterruptStatus, 0));
  if ((interrupts & kScalarCoreBit) != 0) {
    // First clear, then count: an interrupt between the two is counted and comes again.
    REEF_RETURN_IF_ERROR(device_->write(reg::kHostInterruptStatus, kAllButFirst));
    REEF_ASSIGN_OR_RETURN(const std::uint64_t count, device_->read(reg::kHostInterruptCount));
    ended_ += static_cast<std::uint16_t>(static_cast<std::uint16_t>(count) - counted_);
    counted_ = static_cast<std::uint16_t>(count);
  }
  return take_ended();
}

}  // namespace reef::driver
