// SPDX-License-Identifier: Apache-2.0
#include "driver/core_runner.h"

#include <utility>
#include <vector>

namespace reef::driver {

void CoreRunner::power_cycle() {
  if (has_run_) chip_.power_cycle();
  has_run_ = false;
  program_.reset();
  interrupts_ = 0;
}

Status CoreRunner::start(std::span<const std::uint8_t> chunk, device::Host& host) {
  const bool continues = program_ != nullptr;
  if (!continues) {
    program_ = std::make_unique<device::Program>();
    interrupts_ = 0;
  }
  std::vector<std::uint8_t> misread;
  if (misreading_) {
    if (auto changed = isa::apply(*misreading_, chunk); changed.ok()) misread = std::move(*changed);
  }
  isa::UnknownList unknown;
  Status status = device::append_chunk(*program_, misread.empty() ? chunk : std::span(std::as_const(misread)), unknown);
  if (status.ok()) status = unknown.to_status();
  if (!status.ok()) {
    if (continues) (void)chip_.finish();  // clears its queues
    program_.reset();
    return status;
  }
  has_run_ = true;
  if (continues) {
    chip_.program_grew();
  } else {
    chip_.begin(*program_, host);
  }
  return ok_status();
}

Status CoreRunner::advance() {
  if (program_ == nullptr) return ok_status();
  const Status moved = chip_.advance();
  if (moved.ok() && !(chip_.is_at_end() && interrupts_ > 0)) return ok_status();
  const Status ending = chip_.finish();
  program_.reset();
  return ending;
}

}  // namespace reef::driver
