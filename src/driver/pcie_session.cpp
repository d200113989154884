// SPDX-License-Identifier: Apache-2.0
#include "driver/pcie_session.h"

#include <algorithm>
#include <utility>

#include "host/tensors.h"

namespace reef::driver {
namespace {

using host::BufferIndex;

constexpr std::size_t kMostNotes = 100;
constexpr std::size_t kMostUnderWay = 8;   // programs: enough to keep the chip busy, few to repeat after a failure
constexpr Milliseconds kListen{100};       // at a time, so that a link that others found broken can be given up
constexpr Milliseconds kIdleInterrupt{1};  // what an interrupt that ends nothing counts against the limit

}  // namespace

Result<std::shared_ptr<const PcieModel>> PcieModel::load(darwinn::Package package) {
  std::shared_ptr<PcieModel> model(new PcieModel);
  model->package_ = std::move(package);
  REEF_ASSIGN_OR_RETURN(model->programs_, host::find_programs(model->package_));
  for (const darwinn::Executable* program : {model->programs_.execution, model->programs_.caching}) {
    if (program == nullptr) continue;
    REEF_RETURN_IF_ERROR(host::check_sizes(*program));
    REEF_REQUIRE(program->instruction_chunks.size() <= PcieLink::kMostChunks,
                 "the program has {} chunks of instructions", program->instruction_chunks.size());
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

void PcieSession::note(std::string text) {
  if (notes_.size() < kMostNotes) notes_.push_back(std::move(text));
}

std::int64_t PcieSession::parameter_loads() const {
  const std::lock_guard lock(mutex_);
  return cache_.loads();
}

// ---- Opening and closing ----

Status PcieSession::connect() {
  cache_.clear();
  REEF_ASSIGN_OR_RETURN(auto device, bus_.open());
  auto link = std::make_unique<PcieLink>(std::move(device), options_.settle);
  REEF_RETURN_IF_ERROR(link->start(options_.clock));
  link_ = std::move(link);
  ++opened_;
  return ok_status();
}

Status PcieSession::close() {
  Lock lock(mutex_);
  wait_until(lock, [&] { return under_way_.empty() && !is_listening_; });
  if (link_ == nullptr) return ok_status();
  cache_.clear();
  const std::unique_ptr<PcieLink> link = std::move(link_);
  return link->stop();
}

// Closing the device makes the kernel reset the chip: it cannot write to memory that is not ours any more.
void PcieSession::abandon(Lock& lock, const Status& reason) {
  if (link_ == nullptr) return note(reason.message());
  if (broken_.ok()) broken_ = reason;
  changed_.wait(lock, [&] { return !is_listening_ || broken_.ok(); });
  if (broken_.ok()) return;  // another thread did it
  const Status why = std::exchange(broken_, ok_status());
  note(why.message());
  cache_.clear();
  if (!under_way_.empty()) link_->halt();
  link_.reset();
  for (const RequestPtr& request : under_way_) request->failure = why;
  under_way_.clear();
  changed_.notify_all();
}

// ---- Waiting ----

Status PcieSession::take_in(std::uint32_t interrupts) {
  REEF_ASSIGN_OR_RETURN(std::vector<Tensors> ended, link_->collect(interrupts));
  for (Tensors& outputs : ended) {
    const RequestPtr request = std::move(under_way_.front());
    under_way_.pop_front();
    --request->programs;
    request->outputs = std::move(outputs);
  }
  if (!ended.empty()) {
    without_progress_ = Milliseconds(0);
    return ok_status();
  }
  without_progress_ += interrupts == 0 ? kListen : kIdleInterrupt;
  if (without_progress_ < options_.progress) return ok_status();
  REEF_RETURN_IF_ERROR(link_->check_fatal_error());
  return make_error(StatusCode::kIoError, "the chip does not end its program within {} ms", options_.progress.count());
}

void PcieSession::listen(Lock& lock) {
  is_listening_ = true;
  PcieLink& link = *link_;
  lock.unlock();
  const Result<std::uint32_t> interrupts = link.wait(kListen);
  lock.lock();
  is_listening_ = false;
  Status status = broken_;
  if (status.ok()) status = interrupts.ok() ? take_in(*interrupts) : interrupts.status();
  if (!status.ok()) abandon(lock, status);
  changed_.notify_all();
}

void PcieSession::wait_until(Lock& lock, const std::function<bool()>& is_reached) {
  while (!is_reached()) {
    if (is_listening_ || !broken_.ok()) {
      changed_.wait(lock);
    } else {
      listen(lock);
    }
  }
}

// ---- Running ----

Status PcieSession::launch(const darwinn::Executable& executable, const Tensors& inputs, const RequestPtr& request) {
  if (under_way_.empty()) without_progress_ = Milliseconds(0);
  const std::size_t before = link_->under_way();
  const Status status = link_->launch(executable, inputs);
  if (link_->under_way() > before) {
    under_way_.push_back(request);
    ++request->programs;
  }
  return status;
}

Status PcieSession::issue(const std::shared_ptr<const PcieModel>& model, const Tensors& inputs,
                          const RequestPtr& request) {
  if (link_ == nullptr) REEF_RETURN_IF_ERROR(connect());
  REEF_RETURN_IF_ERROR(link_->tend());
  for (std::string& warning : link_->take_warnings()) note(std::move(warning));
  const host::Programs& programs = model->programs();
  const bool is_present = cache_.holds(programs.execution->parameter_caching_token, model);
  if (programs.caching != nullptr && !is_present) {
    REEF_RETURN_IF_ERROR(launch(*programs.caching, {}, request).in("parameter caching"));
    // The chip works in order: whatever is launched from now on finds the parameters.
    cache_.add(programs.caching->parameter_caching_token, model);
  }
  return launch(*programs.execution, inputs, request);
}

Status PcieSession::run_once(const std::shared_ptr<const PcieModel>& model, const Tensors& inputs, Tensors& outputs) {
  const auto request = std::make_shared<Request>();
  Lock lock(mutex_);
  for (;;) {
    wait_until(lock, [&] { return broken_.ok() && under_way_.size() < kMostUnderWay; });
    const Status status = issue(model, inputs, request);
    if (status.ok()) break;
    const bool is_full = status.code() == StatusCode::kResourceExhausted;
    if (!is_full) abandon(lock, status);
    if (!is_full || under_way_.empty()) return status;
    // Others have the memory or the queue. Once one of them is over, there is more.
    const std::size_t before = under_way_.size();
    wait_until(lock, [&] { return under_way_.size() < before; });
    if (!request->failure.ok()) return request->failure;
  }
  wait_until(lock, [&] { return request->is_over(); });
  outputs = std::move(request->outputs);
  return request->failure;
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
  Status status = run_once(model, padded, sent);
  if (status.code() == StatusCode::kIoError) {
    status = run_once(model, padded, sent);
    const Lock lock(mutex_);
    if (status.ok()) note(std::string(kRepeatedNote));
  }
  REEF_RETURN_IF_ERROR(status);
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
