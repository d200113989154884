// SPDX-License-Identifier: Apache-2.0
#include "driver/register_port.h"

#include <array>

namespace reef::driver {
namespace {

constexpr std::uint8_t kReadType = 0xc0, kWriteType = 0x40;  // vendor requests to the device
constexpr std::uint8_t kRequest64 = 0, kRequest32 = 1;
constexpr Milliseconds kPause{1};

SetupPacket setup_of(std::uint8_t type, std::uint32_t offset) {
  return {type, register_bits(offset) == 64 ? kRequest64 : kRequest32, static_cast<std::uint16_t>(offset),
          static_cast<std::uint16_t>(offset >> 16)};
}

}  // namespace

Status RegisterPort::change(const Field& field, std::uint64_t value) {
  REEF_ASSIGN_OR_RETURN(const std::uint64_t old, read(field.offset));
  return write(field.offset, field.set(old, value));
}

Status RegisterPort::wait_for(const Field& field, std::uint64_t value, Milliseconds limit) {
  for (Milliseconds waited{0};; waited += kPause) {
    REEF_ASSIGN_OR_RETURN(const std::uint64_t found, read(field.offset));
    if (field.get(found) == value) return ok_status();
    if (waited >= limit) {
      return make_error(StatusCode::kIoError, "{} does not become {:#x} within {} ms; it reads {:#x}",
                        register_name(field.offset), value, limit.count(), found);
    }
    sleep(kPause);
  }
}

Result<std::uint64_t> UsbRegisters::read(std::uint32_t offset) {
  std::array<std::uint8_t, 8> bytes{};
  const std::size_t size = static_cast<std::size_t>(register_bits(offset)) / 8;
  const Outcome outcome = device_.control(setup_of(kReadType, offset), std::span(bytes).first(size), limit_);
  if (!outcome.ok() || outcome.bytes != size) return transfer_error("reading " + register_name(offset), outcome);
  std::uint64_t value = 0;
  for (std::size_t i = size; i-- > 0;) value = value << 8 | bytes[i];
  return value;
}

Status UsbRegisters::write(std::uint32_t offset, std::uint64_t value) {
  std::array<std::uint8_t, 8> bytes{};
  const std::size_t size = static_cast<std::size_t>(register_bits(offset)) / 8;
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::uint8_t>(value >> (8 * i));
  const Outcome outcome = device_.control(setup_of(kWriteType, offset), std::span(bytes).first(size), limit_);
  if (!outcome.ok() || outcome.bytes != size) return transfer_error("writing " + register_name(offset), outcome);
  return ok_status();
}

}  // namespace reef::driver
