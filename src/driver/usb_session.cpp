// SPDX-License-Identifier: Apache-2.0
#include "driver/usb_session.h"

#include <algorithm>
#include <array>
#include <utility>

#include "driver/dfu.h"
#include "host/programs.h"
#include "host/tensors.h"

namespace reef::driver {
namespace {

using host::BufferIndex;

constexpr SetupPacket kGetDeviceDescriptor = {0x80, 6, 0x0100, 0};
constexpr std::size_t kDeviceDescriptorBytes = 18;
constexpr std::size_t kSuperSpeedChunk = 1024, kHighSpeedChunk = 256;  // bytes of output sent at once
constexpr Milliseconds kLook{100};                                     // between two looks at the bus
constexpr Milliseconds kBeforeRetry{500};
constexpr std::size_t kMostNotes = 100;
constexpr std::size_t kMostSpares = 16;  // buffers that are kept

// Google's runtime reads it first, too; here it also tells a device that answers from one that does not.
Status check_descriptor(UsbDevice& device, UsbId expected, Milliseconds limit) {
  std::array<std::uint8_t, kDeviceDescriptorBytes> bytes{};
  const Outcome outcome = device.control(kGetDeviceDescriptor, bytes, limit);
  if (!outcome.ok() || outcome.bytes != bytes.size()) return transfer_error("reading the device descriptor", outcome);
  const UsbId id = {static_cast<std::uint16_t>(bytes[8] | bytes[9] << 8),
                    static_cast<std::uint16_t>(bytes[10] | bytes[11] << 8)};
  if (id == expected) return ok_status();
  return make_error(StatusCode::kIoError, "the device says that it is {:04x}:{:04x} and not {:04x}:{:04x}", id.vendor,
                    id.product, expected.vendor, expected.product);
}

}  // namespace

Result<std::unique_ptr<UsbSession>> UsbSession::open(UsbBus& bus, UsbSessionOptions options) {
  std::unique_ptr<UsbSession> session(new UsbSession(bus, std::move(options)));
  if (session->options_.path.empty()) {
    REEF_ASSIGN_OR_RETURN(const std::vector<UsbDeviceInfo> devices, bus.list());
    if (devices.empty()) {
      return make_error(StatusCode::kNotFound, "there is no Edge TPU on USB: plug one in, or use the virtual device");
    }
    session->options_.path = devices.front().path;
  }
  REEF_RETURN_IF_ERROR(session->connect());
  return session;
}

UsbSession::~UsbSession() { (void)close(); }

// ---- Whose turn it is ----

class UsbSession::Turn {
 public:
  explicit Turn(UsbSession& session) : session_(session) { take(); }
  ~Turn() { pass(); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  bool is_mine() const { return is_mine_; }
  void take() {
    std::unique_lock lock(session_.mutex_);
    ++session_.waiting_;
    session_.changed_.wait(lock, [&] { return !session_.is_taken_; });
    --session_.waiting_;
    session_.is_taken_ = is_mine_ = true;
  }
  void pass() {
    if (!std::exchange(is_mine_, false)) return;
    const std::lock_guard lock(session_.mutex_);
    session_.is_taken_ = false;
    session_.changed_.notify_all();
  }

 private:
  UsbSession& session_;
  bool is_mine_ = false;
};

bool UsbSession::is_somebody_waiting() const {
  const std::lock_guard lock(mutex_);
  return waiting_ > 0;
}

void UsbSession::note(std::string text) {
  const std::lock_guard lock(mutex_);
  if (notes_.size() < kMostNotes) notes_.push_back(std::move(text));
}

std::int64_t UsbSession::parameter_loads() const {
  const std::lock_guard lock(mutex_);
  return parameter_loads_;
}

Status UsbSession::close() {
  const Turn turn(*this);
  if (link_ == nullptr) return ok_status();
  const Status settled = settle_all();  // for threads that wait for the end of theirs
  if (!settled.ok()) {
    abandon(settled);
    return settled;
  }
  cache_.clear();
  const std::unique_ptr<UsbLink> link = std::move(link_);
  return link->stop();
}

// ---- Opening ----

Result<std::unique_ptr<UsbDevice>> UsbSession::wait_for_device(std::optional<UsbId> wanted, UsbId& found) {
  Status last = make_error(StatusCode::kNotFound, "there is no Edge TPU at USB port {}: plug it in", options_.path);
  for (Milliseconds waited{0}; waited <= options_.enumerate; waited += kLook) {
    REEF_ASSIGN_OR_RETURN(const std::vector<UsbDeviceInfo> devices, bus_.list());
    const auto device = std::find_if(devices.begin(), devices.end(), [&](const UsbDeviceInfo& info) {
      return info.path == options_.path && (!wanted || info.id == *wanted);
    });
    if (device != devices.end()) {
      auto opened = bus_.open(options_.path);
      if (opened.ok()) {
        found = device->id;
        return opened;
      }
      last = opened.status();
      if (last.code() != StatusCode::kIoError && last.code() != StatusCode::kNotFound) return last;
    }
    bus_.sleep(kLook);
  }
  return make_error(StatusCode::kIoError, "{}", last.message());
}

Result<std::unique_ptr<UsbDevice>> UsbSession::reset_and_reopen(std::unique_ptr<UsbDevice> device,
                                                                std::optional<UsbId> wanted, UsbId& found) {
  REEF_RETURN_IF_ERROR(device->reset());
  device.reset();
  return wait_for_device(wanted, found);
}

Status UsbSession::connect_once() {
  UsbId id;
  REEF_ASSIGN_OR_RETURN(std::unique_ptr<UsbDevice> device, wait_for_device(std::nullopt, id));
  REEF_RETURN_IF_ERROR(check_descriptor(*device, id, options_.limits.control));
  // A reset ends whatever the device was in the middle of, also a half-way download.
  std::optional<UsbId> wanted;
  if (id == kApplicationId && options_.always_download) {
    REEF_RETURN_IF_ERROR(detach(*device, options_.limits.control));
    wanted = kDfuId;
  }
  REEF_ASSIGN_OR_RETURN(device, reset_and_reopen(std::move(device), wanted, id));
  if (id == kDfuId) {
    if (!options_.firmware) {
      return make_error(StatusCode::kNotFound, "the stick at USB port {} waits for firmware and there is none",
                        options_.path);
    }
    REEF_ASSIGN_OR_RETURN(const Bytes firmware, options_.firmware());
    REEF_RETURN_IF_ERROR(download_firmware(*device, firmware.span(), options_.limits.control));
    REEF_ASSIGN_OR_RETURN(device, reset_and_reopen(std::move(device), kApplicationId, id));
  }
  BringUp bring_up;
  bring_up.clock = options_.clock;
  bring_up.settle = options_.settle;
  bring_up.report_all_transfers = wants_reports_;
  bring_up.output_chunk = device->speed() == UsbSpeed::kSuper ? kSuperSpeedChunk : kHighSpeedChunk;
  auto link = std::make_unique<UsbLink>(bus_, std::move(device), options_.limits);
  REEF_RETURN_IF_ERROR(link->start(bring_up));
  link_ = std::move(link);
  const std::lock_guard lock(mutex_);
  ++opened_;
  return ok_status();
}

Status UsbSession::connect() {
  cache_.clear();
  for (int attempt = 1;; ++attempt) {
    const Status status = connect_once();
    if (status.ok() || status.code() != StatusCode::kIoError || attempt >= options_.open_attempts) {
      return status.in(fmt::format("USB port {}", options_.path));
    }
    note(fmt::format("opening failed: {}", status.message()));
    // A reset helps a device that hangs; if it fails, the next attempt tries another.
    if (const auto device = bus_.open(options_.path); device.ok()) (void)(*device)->reset();
    bus_.sleep(kBeforeRetry);
  }
}

void UsbSession::abandon(const Status& reason) {
  note(reason.message());
  cache_.clear();
  if (link_ != nullptr) {
    // A stick whose pipe is full does not even answer for its registers; a reset helps then. If it fails, opening tries
    // another.
    (void)link_->device().reset();
    link_.reset();
  }
  const std::lock_guard lock(mutex_);
  for (const Owed& owed : owed_) owed.request->failure = reason;
  owed_.clear();
  changed_.notify_all();
}

// ---- Running ----

Status UsbSession::settle_one() {
  for (;;) {
    REEF_ASSIGN_OR_RETURN(const Event event, link_->next_event());
    const bool is_transfer = event.tag < static_cast<std::uint8_t>(Tag::kInterrupt0);
    if (is_transfer && link_->reports_all_transfers()) continue;  // one that was in the list
    const Owed owed = owed_.front();
    if (event.tag != static_cast<int>(Tag::kInterrupt0) + owed.interrupt) {
      return make_error(StatusCode::kIoError, "the device reports tag {} instead of interrupt {}", event.tag,
                        owed.interrupt);
    }
    owed_.pop_front();
    const std::lock_guard lock(mutex_);
    --owed.request->interrupts;
    changed_.notify_all();
    return ok_status();
  }
}

Status UsbSession::settle_all() {
  while (!owed_.empty()) REEF_RETURN_IF_ERROR(settle_one());
  return ok_status();
}

bool UsbSession::is_over(const Request& request) const {
  const std::lock_guard lock(mutex_);
  return request.interrupts == 0 || !request.failure.ok();
}

Status UsbSession::finish(Turn& turn, const Request& request) {
  while (!is_over(request)) {
    if (!turn.is_mine()) {
      // Whoever has the turn reads reports; if nobody has it any more, this thread does.
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return request.interrupts == 0 || !request.failure.ok() || !is_taken_; });
      lock.unlock();
      if (!is_over(request)) turn.take();
    } else if (is_somebody_waiting()) {
      turn.pass();
    } else if (const Status status = settle_one(); !status.ok()) {
      abandon(status);
    }
  }
  const std::lock_guard lock(mutex_);
  return request.failure;
}

std::span<const std::uint8_t> UsbSession::bytes_of(const ProgramPlan& plan, const ProgramBuffers& buffers,
                                                   const Step& step) {
  if (step.tag == Tag::kInstructions) return plan.chunks()[step.buffer];
  const std::span lent = buffers.lent[step.buffer];
  return (lent.empty() ? std::span(buffers.own[step.buffer]) : lent).subspan(step.offset, step.bytes);
}

UsbSession::ProgramBuffers UsbSession::make_buffers(const ProgramPlan& plan) {
  ProgramBuffers buffers;
  buffers.own.resize(plan.buffers());
  buffers.lent.resize(plan.buffers());
  buffers.lent[BufferIndex::kParameters] = plan.executable().parameters.span();
  {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = BufferIndex::kScratch; i < buffers.own.size() && !spare_.empty(); ++i) {
      if (plan.buffer_bytes(i) == 0) continue;
      buffers.own[i] = std::move(spare_.back());
      spare_.pop_back();
    }
  }
  for (std::size_t i = BufferIndex::kScratch; i < buffers.own.size(); ++i) {
    if (plan.may_be_written(i)) buffers.own[i].assign(plan.buffer_bytes(i), 0);
  }
  return buffers;
}

void UsbSession::keep(ProgramBuffers buffers) {
  const std::lock_guard lock(mutex_);
  for (std::vector<std::uint8_t>& buffer : buffers.own) {
    if (buffer.capacity() > 0 && spare_.size() < kMostSpares) spare_.push_back(std::move(buffer));
  }
}

Status UsbSession::send_program(const ProgramPlan& plan, ProgramBuffers& buffers, const RequestPtr& request) {
  for (const Step& step : plan.steps()) {
    switch (step.kind) {
      case Step::Kind::kSend:
        REEF_RETURN_IF_ERROR(link_->send(step.tag, bytes_of(plan, buffers, step)));
        break;
      case Step::Kind::kReceive:
        REEF_RETURN_IF_ERROR(link_->receive(std::span(buffers.own[step.buffer]).subspan(step.offset, step.bytes)));
        break;
      case Step::Kind::kInterrupt:
        owed_.push_back({step.interrupt, request});
        {
          const std::lock_guard lock(mutex_);
          ++request->interrupts;
        }
        break;
      case Step::Kind::kFence:
        REEF_RETURN_IF_ERROR(link_->drain());
        REEF_RETURN_IF_ERROR(settle_all());
        break;
    }
  }
  return ok_status();
}

// The device reports each transfer, and gets or gives what it asks for. Slower, and right for any program of one chunk.
Status UsbSession::serve_program(const ProgramPlan& plan, ProgramBuffers& buffers) {
  REEF_RETURN_IF_ERROR(link_->drain());
  REEF_RETURN_IF_ERROR(settle_all());
  REEF_RETURN_IF_ERROR(link_->send(Tag::kInstructions, plan.chunks().front()));
  for (;;) {
    REEF_ASSIGN_OR_RETURN(const Event event, link_->next_event());
    if (event.tag >= static_cast<std::uint8_t>(Tag::kInterrupt0)) return link_->drain();
    const auto tag = static_cast<Tag>(event.tag);
    const std::optional<Place> place = plan.place_of(event.address, event.bytes);
    const bool is_output = tag == Tag::kOutput;
    if (!place || tag == Tag::kInstructions || (is_output && !plan.may_be_written(place->buffer))) {
      return make_error(StatusCode::kIoError, "the device asks for {} bytes at {:#x} with tag {}, which is no buffer",
                        event.bytes, event.address, event.tag);
    }
    if (is_output) {
      REEF_RETURN_IF_ERROR(link_->receive(std::span(buffers.own[place->buffer]).subspan(place->offset, event.bytes)));
    } else {
      const Step step{Step::Kind::kSend, tag, place->buffer, place->offset, event.bytes, 0};
      REEF_RETURN_IF_ERROR(link_->send(tag, bytes_of(plan, buffers, step)));
    }
  }
}

Status UsbSession::issue(const std::shared_ptr<const Model>& model, RunBuffers& buffers, const RequestPtr& request) {
  if (model->needs_reports() && !wants_reports_) {
    wants_reports_ = true;
    if (link_ != nullptr) {
      REEF_RETURN_IF_ERROR(settle_all());
      const std::unique_ptr<UsbLink> link = std::move(link_);
      REEF_RETURN_IF_ERROR(link->stop());
    }
  }
  if (link_ == nullptr) REEF_RETURN_IF_ERROR(connect());
  if (owed_.empty()) REEF_RETURN_IF_ERROR(link_->expect_quiet());
  const auto run_program = [&](const ProgramPlan& plan, ProgramBuffers& of_program) {
    return plan.is_complete() ? send_program(plan, of_program, request) : serve_program(plan, of_program);
  };
  const bool is_present = cache_.holds(model->execution().executable().parameter_caching_token, model);
  const ProgramPlan* const caching = is_present ? nullptr : model->caching();
  // Instructions that follow are sent while parameters are still being loaded.
  if (caching != nullptr) {
    buffers.caching = make_buffers(*caching);
    REEF_RETURN_IF_ERROR(run_program(*caching, buffers.caching));
  }
  REEF_RETURN_IF_ERROR(run_program(model->execution(), buffers.execution));
  REEF_RETURN_IF_ERROR(link_->drain());
  if (caching != nullptr) {
    cache_.add(caching->executable().parameter_caching_token, model);
    const std::lock_guard lock(mutex_);
    ++parameter_loads_;
  }
  for (std::string& warning : link_->take_warnings()) note(std::move(warning));
  return ok_status();
}

Status UsbSession::run_once(const std::shared_ptr<const Model>& model, RunBuffers& buffers) {
  const auto request = std::make_shared<Request>();
  Turn turn(*this);
  const Status status = issue(model, buffers, request);
  if (status.ok()) return finish(turn, *request);
  abandon(status);  // before the buffers go: transfers may still be under way
  return status;
}

Result<UsbSession::Tensors> UsbSession::run(const std::shared_ptr<const LoadedModel>& loaded, const Inputs& inputs) {
  const auto model = std::dynamic_pointer_cast<const Model>(loaded);
  if (model == nullptr) return internal_error("the model was not loaded for USB");
  const ProgramPlan& plan = model->execution();
  const darwinn::Executable& executable = plan.executable();
  REEF_REQUIRE(inputs.size() == executable.input_layers.size(), "the package has {} inputs, {} were given",
               executable.input_layers.size(), inputs.size());
  RunBuffers buffers;
  buffers.execution = make_buffers(plan);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const darwinn::Layer& layer = executable.input_layers[i];
    const std::size_t number = BufferIndex::kFirstLayer + i;
    if (host::is_taken_as_it_is(layer) && static_cast<std::int64_t>(inputs[i].size()) == layer.size_bytes) {
      buffers.execution.lent[number] = inputs[i];
    } else {
      REEF_RETURN_IF_ERROR(host::fill_input(layer, inputs[i], buffers.execution.own[number]));
    }
  }
  Status status = run_once(model, buffers);
  if (status.code() == StatusCode::kIoError) {
    status = run_once(model, buffers);
    if (status.ok()) note(std::string(kRepeatedNote));
  }
  REEF_RETURN_IF_ERROR(status);
  Tensors outputs;
  for (std::size_t i = 0; i < executable.output_layers.size(); ++i) {
    const darwinn::Layer& layer = executable.output_layers[i];
    REEF_ASSIGN_OR_RETURN(std::vector<std::uint8_t> tensor,
                          host::gathered(layer, buffers.execution.own[BufferIndex::kFirstLayer + inputs.size() + i]));
    host::flip_signs(tensor, layer.data_type);
    outputs.push_back(std::move(tensor));
  }
  keep(std::move(buffers.execution));
  return outputs;
}

}  // namespace reef::driver
