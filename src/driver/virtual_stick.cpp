// SPDX-License-Identifier: Apache-2.0
// The answers of a stick: descriptors, DFU, registers, bytes. virtual_bus.cpp has its side of the bus.
#include "driver/virtual_stick.h"

#include <algorithm>

#include "driver/model.h"
#include "driver/registers.h"

namespace reef::driver {
namespace {

constexpr std::array kFaults = {
#define FAULT(constant, name, meaning) StickFaultInfo{StickFault::constant, name, meaning},
#include "driver/stick_faults.def"
#undef FAULT
};

// The application's is published (edgetpuxray); that without firmware is the same with its own numbers.
constexpr std::array<std::uint8_t, 18> kApplicationDescriptor = {0x12, 1, 0x10, 3, 0, 0, 0, 9, 0xd1,
                                                                 0x18, 2, 0x93, 0, 1, 0, 0, 0, 1};
constexpr std::array<std::uint8_t, 18> kDfuDescriptor = {0x12, 1,    0x10, 3, 0, 0, 0, 9, 0x6e,
                                                         0x1a, 0x9a, 8,    0, 1, 0, 0, 0, 1};
// One interface of DFU; its functional descriptor says 256 bytes a block, version 1.1.
constexpr std::array<std::uint8_t, 27> kDfuConfiguration = {9,    2, 27, 0, 1, 1,    0, 0x80, 0x38, 9, 4, 0,    0, 0,
                                                            0xfe, 1, 2,  0, 9, 0x21, 3, 0xe8, 3,    0, 1, 0x10, 1};
constexpr std::size_t kSuperPacket = 1024, kHighPacket = 512;  // bytes of a bulk packet
// Its length at USB 3, 96 bytes, is published (coral-usb-oxidized): six endpoints with their companions. What stands in
// it is deduced from how the endpoints are used.
std::vector<std::uint8_t> application_configuration(UsbSpeed speed) {
  constexpr std::array<std::uint8_t, 6> kEndpoints = {0x01, 0x02, 0x03, 0x81, 0x82, 0x83};
  constexpr std::uint8_t kInterruptEndpoint = 0x83, kBulk = 2, kInterrupt = 3;
  const bool is_super = speed == UsbSpeed::kSuper;
  std::vector<std::uint8_t> bytes = {9, 2, 0, 0, 1, 1, 0, 0x80, 0x70, 9, 4, 0, 0, 6, 0xff, 0xff, 0xff, 0};
  for (const std::uint8_t endpoint : kEndpoints) {
    const bool is_interrupt = endpoint == kInterruptEndpoint;
    const std::size_t packet = is_interrupt ? 64 : is_super ? kSuperPacket : kHighPacket;
    bytes.insert(bytes.end(),
                 {7, 5, endpoint, is_interrupt ? kInterrupt : kBulk, static_cast<std::uint8_t>(packet),
                  static_cast<std::uint8_t>(packet >> 8), static_cast<std::uint8_t>(is_interrupt ? 1 : 0)});
    if (is_super) bytes.insert(bytes.end(), {6, 0x30, static_cast<std::uint8_t>(is_interrupt ? 0 : 15), 0, 0, 0});
  }
  bytes[2] = static_cast<std::uint8_t>(bytes.size());
  return bytes;
}
constexpr std::size_t kBlock = 256;
constexpr std::uint16_t kUploadBlocks = 128;                       // a stick returns 32 KiB, whatever it was sent
constexpr std::uint8_t kIdle = 2, kDownloadIdle = 5, kError = 10;  // states of DFU
constexpr std::uint8_t kDfuClearStatus = 4, kDfuGetState = 5, kDfuAbort = 6;  // its requests that sessions do not use
constexpr std::size_t kHeaderBytes = 8;

// Registers of a stick right after DFU, and of one that was put to sleep: as in logs of real ones.
constexpr std::uint64_t kFreshPower = 0x60050004, kAsleepPower = 0x50c5025c;
constexpr std::uint64_t kAsleepBits = 0x25c, kAwakeBits = 0x004, kStateBits = 0xfff;  // of scu_ctrl_3, read only

constexpr std::array kRunControls = {
    reg::kScalarCoreRun, reg::kAvDataPopRun,    reg::kParameterPopRun,  reg::kInfeedRun,        reg::kOutfeedRun,
    reg::kOpRun,         reg::kNarrowToWideRun, reg::kWideToNarrowRun,  reg::kMesh0Run,         reg::kMesh1Run,
    reg::kMesh2Run,      reg::kMesh3Run,        reg::kRingConsumer0Run, reg::kRingConsumer1Run, reg::kRingProducerRun};

Outcome done(std::size_t bytes) { return {TransferEnd::kDone, bytes}; }
constexpr Outcome kRefusal = {TransferEnd::kStalled, 0};

}  // namespace

std::span<const StickFaultInfo> stick_faults() { return kFaults; }

VirtualStick::VirtualStick(const StickOptions& options)
    : options_(options),
      core_(options.is_strict, options.threads, options.other_chip),
      has_firmware_(options.has_firmware) {
  lose_power();
  has_firmware_ = options.has_firmware;
  if (options.was_put_to_sleep) registers_[reg::kScuCtrl3] = kAsleepPower;
}

void VirtualStick::inject(StickFault fault, std::int64_t at_operation) {
  const std::lock_guard lock(mutex_);
  fault_ = fault;
  fault_at_ = at_operation;
}

std::int64_t VirtualStick::operations() const {
  const std::lock_guard lock(mutex_);
  return operations_;
}

void VirtualStick::unplug() {
  const std::lock_guard lock(mutex_);
  is_plugged_in_ = false;
  lose_power();
  leave_bus(Milliseconds(0));
}

void VirtualStick::plug_in() {
  const std::lock_guard lock(mutex_);
  is_plugged_in_ = true;
}

bool VirtualStick::has_firmware() const {
  const std::lock_guard lock(mutex_);
  return has_firmware_;
}

std::uint64_t VirtualStick::generation() const {
  const std::lock_guard lock(mutex_);
  return generation_;
}

bool VirtualStick::is_on_bus() const {
  const std::lock_guard lock(mutex_);
  return is_present(Milliseconds(clock_ != nullptr ? clock_->load() : 0));
}

bool VirtualStick::is_claimed() const {
  const std::lock_guard lock(mutex_);
  return claimed_by_ != nullptr;
}

int VirtualStick::configuration() const {
  const std::lock_guard lock(mutex_);
  return configuration_;
}

void VirtualStick::configure(int value) {
  const std::lock_guard lock(mutex_);
  configuration_ = value;
  is_halted_ = {};
}

std::vector<std::uint8_t> VirtualStick::own_descriptor(std::uint16_t value) const {
  constexpr std::size_t kMost = 256;
  const std::lock_guard lock(mutex_);
  std::vector<std::uint8_t> bytes(kMost);
  const Outcome outcome = descriptor(value, bytes);
  bytes.resize(outcome.ok() ? outcome.bytes : 0);
  return bytes;
}

std::vector<std::uint8_t> VirtualStick::firmware() const {
  const std::lock_guard lock(mutex_);
  return firmware_;
}

std::string VirtualStick::diagnosis() const {
  const std::lock_guard lock(mutex_);
  return core_.diagnosis();
}

std::optional<StickFault> VirtualStick::next_fault() {
  if (operations_++ != fault_at_) return std::nullopt;
  return fault_;
}

// ---- Power and bus ----

void VirtualStick::lose_power() {
  registers_ = {{reg::kScuCtrl0, 0x000f0059},  {reg::kScuCtrl2, 0x00110000}, {reg::kFuseRevision, 0x01000000},
                {reg::kScuCtrl3, kFreshPower}, {reg::kThermalWarning, 1},    {reg::kRamTest, 0x0070007f},
                {reg::kScuCtr7, 0x000c003f}};
  wake_core();
  has_firmware_ = false;
  firmware_.clear();
  hangs_ = 0;
}

void VirtualStick::wake_core() {
  std::erase_if(registers_, [](const auto& entry) { return entry.first >= 0x40000; });
  core_.power_cycle();
  header_.clear();
  piece_left_ = 0;
  interrupts_ = 0;
}

void VirtualStick::leave_bus(Milliseconds time) {
  ++generation_;
  claimed_by_ = nullptr;
  configuration_ = 1;
  is_halted_ = {};
  dfu_state_ = kIdle;
  dfu_error_ = 0;
  next_block_ = 0;
  returns_to_dfu_ = false;
  returns_at_ = Milliseconds(clock_ != nullptr ? clock_->load() : 0) + time;
}

void VirtualStick::reset_port() {
  constexpr Milliseconds kReturns{300};
  if (hangs_ > 0) --hangs_;
  is_halted_ = {};
  const bool was_with_firmware = has_firmware_;
  if (!has_firmware_ && is_firmware_complete_) has_firmware_ = true;
  if (was_with_firmware && returns_to_dfu_) {
    lose_power();
  }
  is_firmware_complete_ = false;
  // The contents of the FIFOs are lost; the chip's own state changes when it is put to sleep.
  header_.clear();
  piece_left_ = 0;
  if (was_with_firmware != has_firmware_) {
    leave_bus(kReturns);
    return;
  }
  if (!has_firmware_) firmware_.clear();
  dfu_state_ = kIdle;
  dfu_error_ = 0;
  next_block_ = 0;
  returns_to_dfu_ = false;
  claimed_by_ = nullptr;
}

// ---- Endpoint 0 ----

Outcome VirtualStick::control(const SetupPacket& setup, std::span<std::uint8_t> data) {
  if ((setup.type & 0x60) == 0) return standard_request(setup, data);
  const std::uint32_t offset = setup.value | std::uint32_t{setup.index} << 16;
  if (has_firmware_) {
    const std::size_t width = setup.request == 0 ? 8 : 4;
    const bool is_access = (setup.type == 0xc0 || setup.type == 0x40) && setup.request <= 1 && data.size() == width;
    if (is_access) return setup.type == 0xc0 ? read_register(offset, data) : write_register(offset, data);
    if (setup.type == 0x21 && setup.request == 0) {
      returns_to_dfu_ = true;
      return done(0);
    }
    return kRefusal;
  }
  if (setup.type == 0x21 && setup.request == 1) return download(setup.value, data);
  if (setup.type == 0xa1 && setup.request == 2) return upload(setup.value, data);
  if (setup.type == 0xa1 && setup.request == 3) return dfu_status(data);
  if (setup.type == 0xa1 && setup.request == kDfuGetState && !data.empty()) {
    data[0] = dfu_state_;
    return done(1);
  }
  if (setup.type == 0x21 && (setup.request == kDfuClearStatus || setup.request == kDfuAbort)) {
    return dfu_end(setup.request);
  }
  return kRefusal;
}

// Requests that every USB device answers (chapter 9 of the standard).
Outcome VirtualStick::standard_request(const SetupPacket& setup, std::span<std::uint8_t> data) {
  constexpr std::uint8_t kGetStatus = 0, kClearFeature = 1, kGetDescriptor = 6, kGetConfiguration = 8,
                         kSetConfiguration = 9, kGetInterface = 10, kSetInterface = 11;
  const auto answer = [&](std::initializer_list<std::uint8_t> bytes) {
    const std::size_t part = std::min(bytes.size(), data.size());
    std::copy_n(bytes.begin(), part, data.begin());
    return done(part);
  };
  if (setup.type == 0x80 && setup.request == kGetDescriptor) return descriptor(setup.value, data);
  if (setup.type == 0x80 && setup.request == kGetConfiguration) return answer({1});
  if (setup.type == 0x81 && setup.request == kGetInterface) return answer({0});
  const bool is_endpoint = (setup.type & 0x1f) == 2;
  const std::size_t endpoint = (setup.index & 0x80) != 0 ? setup.index & 3u : 0;
  if (setup.is_in() && setup.request == kGetStatus) {
    return answer({static_cast<std::uint8_t>(is_endpoint && is_halted_[endpoint] ? 1 : 0), 0});
  }
  if (setup.type == 0x00 && setup.request == kSetConfiguration && setup.value <= 1) return done(0);
  if (setup.type == 0x01 && setup.request == kSetInterface && setup.value == 0) return done(0);
  if (setup.type == 0x02 && setup.request == kClearFeature && setup.value == 0) {
    is_halted_[endpoint] = false;
    return done(0);
  }
  return kRefusal;
}

Outcome VirtualStick::descriptor(std::uint16_t value, std::span<std::uint8_t> data) const {
  const std::vector<std::uint8_t> configuration = application_configuration(options_.speed);
  std::span<const std::uint8_t> found;
  if (value == 0x0100) found = has_firmware_ ? kApplicationDescriptor : kDfuDescriptor;
  if (value == 0x0200) found = has_firmware_ ? std::span<const std::uint8_t>(configuration) : kDfuConfiguration;
  if (found.empty()) return kRefusal;
  const std::size_t part = std::min(found.size(), data.size());
  std::copy_n(found.begin(), part, data.begin());
  return done(part);
}

// Blocks come in order, from 0 on; anything else is an error until the next reset.
Outcome VirtualStick::download(std::uint16_t block, std::span<const std::uint8_t> data) {
  if (dfu_state_ == kError || block != next_block_) {
    dfu_state_ = kError;
    dfu_error_ = 0x0f;
    return kRefusal;
  }
  ++next_block_;
  firmware_.insert(firmware_.end(), data.begin(), data.end());
  dfu_state_ = data.empty() ? kIdle : kDownloadIdle;
  if (data.empty()) is_firmware_complete_ = true;
  return done(data.size());
}

Outcome VirtualStick::upload(std::uint16_t block, std::span<std::uint8_t> data) const {
  if (block >= kUploadBlocks) return done(0);
  const std::size_t part = std::min(kBlock, data.size()), from = block * kBlock;
  std::fill_n(data.begin(), part, std::uint8_t{0});
  for (std::size_t i = 0; i < part && from + i < firmware_.size(); ++i) data[i] = firmware_[from + i];
  return done(part);
}

Outcome VirtualStick::dfu_status(std::span<std::uint8_t> data) const {
  const std::array<std::uint8_t, 6> status = {dfu_error_, 0, 0, 0, dfu_state_, 0};
  const std::size_t part = std::min(status.size(), data.size());
  std::copy_n(status.begin(), part, data.begin());
  return done(part);
}

// DFU 1.1, which sticks say that they follow: an error is cleared, a download given up. No log of a stick has either.
Outcome VirtualStick::dfu_end(std::uint8_t request) {
  const bool is_expected = (dfu_state_ == kError) == (request == kDfuClearStatus);
  dfu_state_ = is_expected ? kIdle : kError;
  dfu_error_ = is_expected ? 0 : 0x0f;
  next_block_ = 0;
  if (!is_firmware_complete_) firmware_.clear();
  return is_expected ? done(0) : kRefusal;
}

Outcome VirtualStick::read_register(std::uint32_t offset, std::span<std::uint8_t> data) const {
  const auto found = registers_.find(offset);
  const std::uint64_t value = found == registers_.end() ? 0 : found->second;
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::uint8_t>(value >> (8 * i));
  return done(data.size());
}

Outcome VirtualStick::write_register(std::uint32_t offset, std::span<const std::uint8_t> data) {
  std::uint64_t value = 0;
  for (std::size_t i = data.size(); i-- > 0;) value = value << 8 | data[i];
  if (offset == reg::kScuCtrl3) {  // what is read in the lower bits follows what is written in the upper ones
    const bool sleeps = field::kForceSleep.get(value) == 3;
    value = (value & ~kStateBits) | (sleeps ? kAsleepBits : kAwakeBits);
    if (sleeps) wake_core();
  }
  registers_[offset] = value;
  const auto is_one = [&](std::uint32_t control) {
    const auto found = registers_.find(control);
    return found != registers_.end() && found->second == 1;
  };
  core_.set_running(std::all_of(kRunControls.begin(), kRunControls.end(), is_one));
  if (offset == reg::kEventTags) core_.set_reported_tags(value);
  if (offset == reg::kOutfeedChunk) core_.set_output_chunk(std::clamp<std::uint64_t>(value, 1, 1024) * 8);
  return done(data.size());
}

// ---- The other endpoints ----

std::size_t VirtualStick::write_bulk(std::span<const std::uint8_t> data) {
  std::size_t taken = 0;
  bool moved = true;
  while (taken < data.size() && moved) {
    moved = false;
    if (piece_left_ == 0) {
      const std::size_t part = std::min(kHeaderBytes - header_.size(), data.size() - taken);
      header_.insert(header_.end(), data.begin() + static_cast<std::ptrdiff_t>(taken),
                     data.begin() + static_cast<std::ptrdiff_t>(taken + part));
      taken += part;
      if (header_.size() < kHeaderBytes) break;
      for (std::size_t i = 4; i-- > 0;) piece_left_ = piece_left_ << 8 | header_[i];
      piece_tag_ = header_[4] & 0x0f;
      header_.clear();
      core_.begin_piece(piece_tag_, piece_left_);
      moved = true;
      continue;
    }
    const std::size_t part = core_.accept(piece_tag_, data.subspan(taken, std::min(piece_left_, data.size() - taken)));
    taken += part;
    piece_left_ -= part;
    core_.advance();
    moved = part > 0;
  }
  core_.advance();
  if (core_.take_failure()) interrupt(1);
  return taken;
}

std::optional<std::size_t> VirtualStick::read_bulk(std::uint8_t endpoint, std::span<std::uint8_t> to) {
  if (endpoint == 0x81) return core_.read_output(to, options_.speed == UsbSpeed::kSuper ? kSuperPacket : kHighPacket);
  const auto give = [&](std::span<const std::uint8_t> packet) {
    if (packet.size() <= to.size()) std::copy(packet.begin(), packet.end(), to.begin());
    return packet.size();
  };
  if (endpoint == 0x82) {
    const auto event = core_.next_event();
    if (!event) return std::nullopt;
    return give(*event);
  }
  if (endpoint != 0x83 || interrupts_ == 0) return std::nullopt;
  const std::uint32_t causes = std::exchange(interrupts_, 0);
  std::array<std::uint8_t, 4> packet{};
  for (std::size_t i = 0; i < packet.size(); ++i) packet[i] = static_cast<std::uint8_t>(causes >> (8 * i));
  return give(packet);
}

// Bits as on endpoint 0x83: each is reported only if its control register says so.
void VirtualStick::interrupt(std::uint32_t cause) {
  constexpr std::array kControls = {reg::kUsbFatalControl, reg::kUsbTopLevel0Control, reg::kUsbTopLevel1Control,
                                    reg::kUsbTopLevel2Control, reg::kUsbTopLevel3Control};
  for (std::size_t bit = 0; bit < kControls.size(); ++bit) {
    const auto control = registers_.find(kControls[bit]);
    if ((cause >> bit & 1) != 0 && control != registers_.end() && control->second == 1) interrupts_ |= 1u << bit;
  }
}

}  // namespace reef::driver
