// SPDX-License-Identifier: Apache-2.0
#include "driver/core_runner.h"

#include <utility>
#include <vector>

namespace reef::driver {

namespace {

device::Options options_of(int threads, const device::OtherChip* other) {
  device::Options options;
  options.threads = threads;
  options.takes_line_by_line = true;
  if (other != nullptr) options.doubted = other->doubted;
  return options;
}

}  // namespace

CoreRunner::CoreRunner(int threads, const device::OtherChip* other)
    : chip_(options_of(threads, other)), other_(other) {}

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
  if (other_ != nullptr && other_->misreading) {
    if (auto changed = isa::apply(*other_->misreading, chunk); changed.ok()) misread = std::move(*changed);
  }
  const std::size_t first = program_->operations.size();
  isa::UnknownList unknown;
  Status status = device::append_chunk(*program_, misread.empty() ? chunk : std::span(std::as_const(misread)), unknown);
  if (status.ok()) status = unknown.to_status();
  if (status.ok() && other_ != nullptr) {
    status = device::take_otherwise_from(other_->doubted, *program_, first).status();
  }
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
