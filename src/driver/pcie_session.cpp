// SPDX-License-Identifier: Apache-2.0
#include "driver/pcie_session.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "host/tensors.h"

namespace reef::driver {
namespace {

using host::BufferIndex;

constexpr std::uint64_t kSimpleSlots = 6144;  // of 8192
constexpr std::size_t kCoherentBytes = 0x4000;
constexpr std::uint32_t kQueueEntries = 256;
constexpr std::size_t kEntryBytes = 16;
constexpr std::uint64_t kQueueEnable = 5;  // enabled, and the status block is written
constexpr std::uint64_t kAllScalarCore = 0xf, kAllButFirst = 0xe;
constexpr std::size_t kMostNotes = 100;
constexpr std::uint32_t kQueueBit = 1u << static_cast<int>(PcieInterrupt::kInstructionQueue);
constexpr std::uint32_t kFatalBit = 1u << static_cast<int>(PcieInterrupt::kFatalError);

}  // namespace

// Not visible to the chip before map(), and unmapped with its end at the latest.
class PcieSession::Pages {
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
  std::span<std::uint8_t> content() { return memory_.first(bytes_); }
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

Result<std::shared_ptr<const PcieModel>> PcieModel::load(darwinn::Package package) {
  std::shared_ptr<PcieModel> model(new PcieModel);
  model->package_ = std::move(package);
  REEF_ASSIGN_OR_RETURN(model->programs_, host::find_programs(model->package_));
  for (const darwinn::Executable* program : {model->programs_.execution, model->programs_.caching}) {
    if (program == nullptr) continue;
    REEF_RETURN_IF_ERROR(host::check_sizes(*program));
    REEF_REQUIRE(program->instruction_chunks.size() < kQueueEntries, "the program has {} chunks of instructions",
                 program->instruction_chunks.size());
    for (const darwinn::InstructionChunk& chunk : program->instruction_chunks) {
      REEF_REQUIRE(!chunk.bitstream.empty(), "the program has a chunk without instructions");
    }
    // Whether the addresses can be written, with any.
    const std::vector<std::uint64_t> addresses(BufferIndex(*program).count());
    REEF_RETURN_IF_ERROR(host::relocated(*program, addresses).status());
  }
  if (model->programs_.caching != nullptr) {
    REEF_REQUIRE(model->programs_.caching->parameter_caching_token != 0, "the parameter-caching program has no token");
  }
  return std::shared_ptr<const PcieModel>(std::move(model));
}

Result<std::unique_ptr<PcieSession>> PcieSession::open(PcieBus& bus, const PcieSessionOptions& options) {
  std::unique_ptr<PcieSession> session(new PcieSession(bus, options));
  REEF_RETURN_IF_ERROR(session->connect());
  return session;
}

PcieSession::~PcieSession() { (void)close(); }

std::vector<std::string> PcieSession::take_notes() {
  const std::lock_guard lock(mutex_);
  return std::exchange(notes_, {});
}

std::vector<std::string> PcieSession::notes() const {
  const std::lock_guard lock(mutex_);
  return notes_;
}

std::int64_t PcieSession::parameter_loads() const {
  const std::lock_guard lock(mutex_);
  return cache_.loads();
}

int PcieSession::opened() const {
  const std::lock_guard lock(mutex_);
  return opened_;
}

// ---- Opening and closing ----

Status PcieSession::check_fatal_error() {
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

Status PcieSession::start_queue() {
  REEF_RETURN_IF_ERROR(device_->set_performance(static_cast<std::uint32_t>(options_.clock)));
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
  if (entry != kEntryBytes) {
    return make_error(StatusCode::kIoError, "the chip's queue has entries of {} bytes instead of {}", entry,
                      kEntryBytes);
  }
  REEF_RETURN_IF_ERROR(device_->write(reg::kQueueBase, kSimpleAddress));
  REEF_RETURN_IF_ERROR(device_->write(reg::kQueueStatusBlock, kSimpleAddress + kPageBytes));
  REEF_RETURN_IF_ERROR(device_->write(reg::kQueueSize, kQueueEntries));
  REEF_RETURN_IF_ERROR(device_->write(reg::kQueueControl, kQueueEnable));
  return device_->wait_for(whole(reg::kQueueStatus), 1, options_.settle);
}

Status PcieSession::connect() {
  cache_.clear();
  tail_ = 0;
  next_address_ = kExtendedAddress;
  REEF_ASSIGN_OR_RETURN(device_, bus_.open());
  const Status status = [&]() -> Status {
    REEF_RETURN_IF_ERROR(start_queue());
    REEF_RETURN_IF_ERROR(device_->enable_interrupts());
    REEF_RETURN_IF_ERROR(set_run_controls(*device_, RunState::kRun, options_.settle));
    REEF_RETURN_IF_ERROR(device_->write(reg::kStatusBlockUpdate, 0));
    REEF_ASSIGN_OR_RETURN(const std::uint64_t count, device_->read(reg::kHostInterruptCount));
    completed_ = static_cast<std::uint16_t>(count);
    REEF_RETURN_IF_ERROR(device_->write(reg::kHostInterruptControl, kAllScalarCore));
    REEF_RETURN_IF_ERROR(device_->write(reg::kQueueInterruptControl, 1));
    return device_->write(reg::kFatalControl, 1);
  }();
  if (status.ok()) {
    ++opened_;
  } else {
    device_.reset();
  }
  return status;
}

Status PcieSession::stop() {
  REEF_RETURN_IF_ERROR(device_->write(reg::kDmaPause, 1));
  REEF_RETURN_IF_ERROR(device_->wait_for(whole(reg::kDmaPaused), 1, options_.settle));
  REEF_RETURN_IF_ERROR(set_run_controls(*device_, RunState::kHalt, options_.settle));
  for (const std::uint32_t control : {reg::kHostInterruptControl, reg::kQueueInterruptControl, reg::kFatalControl}) {
    REEF_RETURN_IF_ERROR(device_->write(control, 0));
  }
  REEF_RETURN_IF_ERROR(device_->write(reg::kQueueControl, 0));
  REEF_RETURN_IF_ERROR(device_->wait_for(whole(reg::kQueueStatus), 0, options_.settle));
  for (const std::uint32_t place : {reg::kQueueTail, reg::kQueueBase, reg::kQueueStatusBlock}) {
    REEF_RETURN_IF_ERROR(device_->write(place, 0));
  }
  for (std::size_t page = 0; page < 2; ++page) {
    REEF_RETURN_IF_ERROR(
        device_->unmap(queue_memory_.subspan(page * kPageBytes, kPageBytes), kSimpleAddress + page * kPageBytes));
  }
  return ok_status();
}

Status PcieSession::close() {
  const std::lock_guard lock(mutex_);
  if (device_ == nullptr) return ok_status();
  cache_.clear();
  const Status status = stop();
  device_.reset();
  return status;
}

void PcieSession::stop_transfers() {
  (void)set_run_controls(*device_, RunState::kHalt, options_.settle);
  (void)device_->write(reg::kQueueControl, 0);
  if (device_->write(reg::kDmaPause, 1).ok()) (void)device_->wait_for(whole(reg::kDmaPaused), 1, options_.settle);
}

// Closing makes the kernel reset the chip: it cannot write to memory that is not ours any more.
void PcieSession::abandon(const Status& reason) {
  if (notes_.size() < kMostNotes) notes_.push_back(reason.message());
  cache_.clear();
  device_.reset();
}

// ---- Running ----

// Addresses are given one after the other, with a page between that is never mapped, and start anew at the end.
Result<std::uint64_t> PcieSession::map(Pages& pages, DmaDirection direction) {
  if (!pages.is_there()) return make_error(StatusCode::kResourceExhausted, "there is no memory for a transfer");
  const std::uint64_t room = pages.memory().size() + kPageBytes;
  if (next_address_ + room > kExtendedAddress + kExtendedBytes) next_address_ = kExtendedAddress;
  const std::uint64_t address = next_address_;
  REEF_RETURN_IF_ERROR(pages.map(address, direction));
  next_address_ += room;
  return address;
}

Status PcieSession::enqueue(std::uint64_t address, std::size_t bytes) {
  const std::span entry = queue_memory_.subspan(tail_ * kEntryBytes, kEntryBytes);
  for (std::size_t i = 0; i < 8; ++i) entry[i] = static_cast<std::uint8_t>(address >> (8 * i));
  for (std::size_t i = 0; i < 8; ++i) entry[8 + i] = static_cast<std::uint8_t>(std::uint64_t{bytes} >> (8 * i));
  tail_ = (tail_ + 1) % kQueueEntries;
  std::atomic_thread_fence(std::memory_order_seq_cst);  // the entry is in memory before the chip hears of it
  return device_->write(reg::kQueueTail, tail_);
}

Status PcieSession::await_completion() {
  bool is_done = false;
  for (;;) {
    REEF_ASSIGN_OR_RETURN(const std::uint64_t head, device_->read(reg::kQueueCompletedHead));
    if (is_done && head == tail_) return ok_status();
    REEF_ASSIGN_OR_RETURN(const std::uint32_t fired, device_->wait_for_interrupts(options_.progress));
    if (fired == 0) {
      REEF_RETURN_IF_ERROR(check_fatal_error());
      return make_error(StatusCode::kIoError, "the chip does not end its program within {} ms",
                        options_.progress.count());
    }
    if ((fired & kFatalBit) != 0) {
      REEF_RETURN_IF_ERROR(check_fatal_error());
      return make_error(StatusCode::kIoError, "the chip reports a fatal error and does not say which");
    }
    if ((fired & kQueueBit) != 0) REEF_RETURN_IF_ERROR(device_->write(reg::kQueueInterruptStatus, 0));
    if ((fired >> static_cast<int>(PcieInterrupt::kScalarCore0) & 1) != 0) {
      // First clear, then count: an interrupt between the two is counted and comes again.
      REEF_RETURN_IF_ERROR(device_->write(reg::kHostInterruptStatus, kAllButFirst));
      REEF_ASSIGN_OR_RETURN(const std::uint64_t count, device_->read(reg::kHostInterruptCount));
      if (static_cast<std::uint16_t>(count) != completed_) is_done = true;
      completed_ = static_cast<std::uint16_t>(count);
    }
  }
}

Status PcieSession::run_program(const darwinn::Executable& executable, const Tensors& inputs, Tensors& outputs) {
  // Only what the program addresses is mapped: a program has no transfers but those.
  std::vector<std::unique_ptr<Pages>> buffers;
  std::vector<std::uint64_t> addresses;
  const auto add = [&](std::unique_ptr<Pages> pages, DmaDirection direction) -> Status {
    REEF_ASSIGN_OR_RETURN(const std::uint64_t address, map(*pages, direction));
    addresses.push_back(address);
    buffers.push_back(std::move(pages));
    return ok_status();
  };
  const auto skip = [&] {
    addresses.push_back(0);
    buffers.push_back(nullptr);
  };
  if (executable.parameters.empty()) {
    skip();
  } else {
    REEF_RETURN_IF_ERROR(add(std::make_unique<Pages>(*device_, executable.parameters.span()), DmaDirection::kToDevice));
  }
  if (executable.scratch_size_bytes == 0) {
    skip();
  } else {
    const auto bytes = static_cast<std::size_t>(executable.scratch_size_bytes);
    REEF_RETURN_IF_ERROR(add(std::make_unique<Pages>(*device_, bytes), DmaDirection::kBoth));
  }
  for (const auto& input : inputs) {
    REEF_RETURN_IF_ERROR(
        add(std::make_unique<Pages>(*device_, std::span<const std::uint8_t>(input)), DmaDirection::kToDevice));
  }
  const std::size_t first_output = buffers.size();
  for (const darwinn::Layer& layer : executable.output_layers) {
    const auto bytes = static_cast<std::size_t>(layer.size_bytes);
    REEF_RETURN_IF_ERROR(add(std::make_unique<Pages>(*device_, bytes), DmaDirection::kFromDevice));
  }
  REEF_ASSIGN_OR_RETURN(const auto chunks, host::relocated(executable, addresses));
  std::vector<std::unique_ptr<Pages>> instructions;
  for (const auto& chunk : chunks) {
    instructions.push_back(std::make_unique<Pages>(*device_, std::span<const std::uint8_t>(chunk)));
    REEF_RETURN_IF_ERROR(map(*instructions.back(), DmaDirection::kToDevice).status());
  }
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    REEF_RETURN_IF_ERROR(enqueue(instructions[i]->address(), chunks[i].size()));
  }
  if (const Status status = await_completion(); !status.ok()) {
    stop_transfers();  // the chip may still write: before the memory goes
    return status;
  }
  outputs.clear();
  for (std::size_t i = first_output; i < buffers.size(); ++i) {
    REEF_RETURN_IF_ERROR(buffers[i]->unmap());
    const auto content = buffers[i]->content();
    outputs.emplace_back(content.begin(), content.end());
  }
  return ok_status();
}

Status PcieSession::run_once(const std::shared_ptr<const PcieModel>& model, const Tensors& inputs, Tensors& outputs) {
  if (device_ == nullptr) REEF_RETURN_IF_ERROR(connect());
  REEF_RETURN_IF_ERROR(device_->tend());
  for (std::string& warning : device_->take_warnings()) {
    if (notes_.size() < kMostNotes) notes_.push_back(std::move(warning));
  }
  const host::Programs& programs = model->programs();
  const bool is_present = cache_.holds(programs.execution->parameter_caching_token, model);
  if (programs.caching != nullptr && !is_present) {
    Tensors none;
    REEF_RETURN_IF_ERROR(run_program(*programs.caching, {}, none).in("parameter caching"));
    cache_.add(programs.caching->parameter_caching_token, model);
  }
  return run_program(*programs.execution, inputs, outputs);
}

Result<PcieSession::Tensors> PcieSession::run(const std::shared_ptr<const LoadedModel>& loaded, const Inputs& inputs) {
  const auto model = std::dynamic_pointer_cast<const PcieModel>(loaded);
  if (model == nullptr) return internal_error("the model was not loaded for PCIe");
  const darwinn::Executable& executable = *model->programs().execution;
  REEF_REQUIRE(inputs.size() == executable.input_layers.size(), "the package has {} inputs, {} were given",
               executable.input_layers.size(), inputs.size());
  Tensors padded, sent;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    REEF_ASSIGN_OR_RETURN(std::vector<std::uint8_t> input, host::padded_input(executable.input_layers[i], inputs[i]));
    padded.push_back(std::move(input));
  }
  {
    const std::lock_guard lock(mutex_);
    Status status = run_once(model, padded, sent);
    if (status.code() == StatusCode::kIoError) {
      abandon(status);
      status = run_once(model, padded, sent);
    }
    if (!status.ok()) {
      abandon(status);
      return status;
    }
  }
  Tensors outputs;
  for (std::size_t i = 0; i < sent.size(); ++i) {
    const darwinn::Layer& layer = executable.output_layers[i];
    REEF_ASSIGN_OR_RETURN(std::vector<std::uint8_t> tensor, host::gathered(layer, sent[i]));
    host::flip_signs(tensor, layer.data_type);
    outputs.push_back(std::move(tensor));
  }
  return outputs;
}

}  // namespace reef::driver
