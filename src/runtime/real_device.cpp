// SPDX-License-Identifier: Apache-2.0
#include "runtime/real_device.h"

#include <iterator>
#include <utility>

#include <fmt/format.h>

namespace reef::runtime {
namespace {

Connection connection_of(const driver::Attachment& attachment) {
  return attachment.kind() == driver::AttachedBy::kUsb ? Connection::kUsb : Connection::kPci;
}

}  // namespace

RealDevice::RealDevice(std::shared_ptr<driver::Attachment> attachment, int index_of_kind)
    : attachment_(std::move(attachment)),
      selector_(fmt::format("{}:{}", connection_name(connection_of(*attachment_)), index_of_kind)) {}

Connection RealDevice::connection() const { return connection_of(*attachment_); }

Result<EdgeTpu::Loaded> RealDevice::load(const darwinn::Package& package) const {
  REEF_ASSIGN_OR_RETURN(auto loaded, attachment_->load(package));
  return Loaded(std::move(loaded));
}

// The lock is held while the device is opened: others who want it would have to wait in any case.
Result<std::shared_ptr<driver::Session>> RealDevice::session_of(State& own) {
  if (own.session == nullptr) {
    auto opened = attachment_->open(own.settings);
    if (!opened.ok()) return opened.status().in(fmt::format("Edge TPU {}", selector_));
    own.session = std::move(opened).value();
  }
  return own.session;
}

void RealDevice::drop_session(State& own) {
  if (own.session == nullptr) return;
  own.parameter_loads += own.session->parameter_loads();
  auto notes = own.session->take_notes();
  own.notes.insert(own.notes.end(), std::make_move_iterator(notes.begin()), std::make_move_iterator(notes.end()));
  own.session.reset();
}

Result<EdgeTpu::Tensors> RealDevice::run(const Loaded& package, const Inputs& inputs) {
  State& own = state_.get();
  std::shared_ptr<driver::Session> session;
  {
    const std::lock_guard lock(own.mutex);
    REEF_ASSIGN_OR_RETURN(session, session_of(own));
  }
  auto results = session->run(std::static_pointer_cast<const driver::LoadedModel>(package), inputs);
  if (!results.ok()) return results.status().in(fmt::format("Edge TPU {}", selector_));
  const std::lock_guard lock(own.mutex);
  ++own.runs;
  return results;
}

EdgeTpu::Use RealDevice::use() const {
  State& own = state_.get();
  const std::lock_guard lock(own.mutex);
  return {own.runs, own.parameter_loads + (own.session != nullptr ? own.session->parameter_loads() : 0)};
}

std::vector<std::string> RealDevice::take_notes() {
  State& own = state_.get();
  const std::lock_guard lock(own.mutex);
  std::vector<std::string> notes = std::exchange(own.notes, {});
  if (own.session != nullptr) {
    auto more = own.session->take_notes();
    notes.insert(notes.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  }
  return notes;
}

driver::DeviceCondition RealDevice::condition() const {
  State& own = state_.get();
  {
    const std::lock_guard lock(own.mutex);
    if (own.session != nullptr) return {driver::DeviceState::kInUse, "this program uses it", {}};
  }
  return attachment_->condition();
}

Result<std::shared_ptr<EdgeTpu>> RealDevice::acquire(const std::shared_ptr<RealDevice>& device,
                                                     const driver::SessionSettings& settings) {
  State& own = device->state_.get();
  const std::lock_guard lock(own.mutex);
  if (own.users == 0) {
    drop_session(own);
    own.settings = settings;
    own.settings.clock = settings.clock.value_or(driver::Clock::kMax);
  }
  REEF_REQUIRE(!settings.clock || settings.clock == own.settings.clock,
               "Edge TPU {} is in use at clock '{}', and '{}' is asked for: ask for the same, or end its other users",
               device->selector_, driver::name_of(*own.settings.clock), driver::name_of(*settings.clock));
  REEF_RETURN_IF_ERROR(device->session_of(own).status());
  ++own.users;
  return std::shared_ptr<EdgeTpu>(device.get(), [device](EdgeTpu*) { device->release(); });
}

// A user of the parent process is none of a child's.
void RealDevice::release() {
  State& own = state_.get();
  const std::lock_guard lock(own.mutex);
  if (own.users > 0 && --own.users == 0) drop_session(own);
}

}  // namespace reef::runtime
