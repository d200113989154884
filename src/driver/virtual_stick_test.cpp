// SPDX-License-Identifier: Apache-2.0
// The virtual stick by itself: how much it takes, when it stalls, and how it takes firmware.
#include "driver/virtual_stick.h"

#include <gtest/gtest.h>

#include "driver/bring_up.h"
#include "driver/dfu.h"
#include "driver/usb_session.h"
#include "driver_packages.h"

namespace reef::driver {
namespace {

constexpr Milliseconds kLimit{6000};

StickOptions running(bool is_strict = true) {
  StickOptions options;
  options.has_firmware = true;
  options.is_strict = is_strict;
  return options;
}

// A stick that is awake, without a driver above it.
struct Awake {
  explicit Awake(const StickOptions& options) : bus({&options, 1}) {
    auto opened = bus.open("1-1");
    EXPECT_TRUE(opened.ok());
    device = std::move(*opened);
    EXPECT_TRUE(device->claim(0).ok());
    UsbRegisters registers(bus, *device, kLimit);
    EXPECT_TRUE(wake_up_usb(registers, {}).ok());
  }

  // How many of the bytes were taken.
  std::size_t send(std::span<const std::uint8_t> bytes) {
    std::vector<std::uint8_t> copy(bytes.begin(), bytes.end());
    Transfer transfer;
    transfer.endpoint = 0x01;
    transfer.buffer = copy;
    device->submit(transfer);
    Transfer* const waiting[] = {&transfer};
    device->wait_any(waiting, kLimit);
    has_timed_out = transfer.is_pending;
    if (transfer.is_pending) device->cancel(transfer);
    return transfer.outcome.bytes;
  }
  std::size_t send(Tag tag, std::span<const std::uint8_t> bytes) {
    std::array<std::uint8_t, 8> header{};
    for (std::size_t i = 0; i < 4; ++i) header[i] = static_cast<std::uint8_t>(bytes.size() >> (8 * i));
    header[4] = static_cast<std::uint8_t>(tag);
    EXPECT_EQ(send(header), header.size());
    return send(bytes);
  }

  VirtualBus bus;
  std::unique_ptr<UsbDevice> device;
  bool has_timed_out = false;
};

TEST(VirtualStick, TakesAsMuchAsAStickThatNobodyEmpties) {
  const std::vector<std::uint8_t> bytes(100000);
  EXPECT_EQ(Awake(running()).send(Tag::kInput, bytes), 32768u);
  EXPECT_EQ(Awake(running()).send(Tag::kParameters, bytes), 49152u);
  Awake halted(running());
  UsbRegisters registers(halted.bus, *halted.device, kLimit);
  ASSERT_TRUE(set_run_controls(registers, RunState::kHalt, kLimit).ok());
  EXPECT_EQ(halted.send(Tag::kInstructions, bytes), 28672u);
  EXPECT_EQ(Awake(running(false)).send(Tag::kParameters, bytes), bytes.size()) << "not strict";
}

// A stick stalls when instructions that wait for input arrive before those that load parameters.
TEST(VirtualStick, TheWrongOrderStallsWhereAStickDid) {
  const darwinn::Package package = testing::echo_package(7, 512, 1);
  const auto execution = ProgramPlan::create(package.executables[0]);
  const auto caching = ProgramPlan::create(package.executables[1]);
  ASSERT_TRUE(execution.ok() && caching.ok());
  Awake stick(running());
  const auto send = [&](Tag tag, std::span<const std::uint8_t> bytes) { return stick.send(tag, bytes); };
  EXPECT_EQ(send(Tag::kInstructions, execution->chunks()[0]), execution->chunks()[0].size());
  EXPECT_EQ(send(Tag::kInstructions, caching->chunks()[0]), caching->chunks()[0].size());
  EXPECT_EQ(send(Tag::kParameters, package.executables[1].parameters.span()), 49152u);
  EXPECT_TRUE(stick.has_timed_out);
  // Registers do not answer either, until the port is reset.
  UsbRegisters registers(stick.bus, *stick.device, kLimit);
  EXPECT_FALSE(registers.read(reg::kScuCtrl3).ok());
  ASSERT_TRUE(stick.device->reset().ok());
  EXPECT_TRUE(registers.read(reg::kScuCtrl3).ok());
}

TEST(VirtualStick, TheDriverGetsOverAStall) {
  const StickOptions options = running();
  VirtualBus bus({&options, 1});
  const auto session = UsbSession::open(bus, {});
  ASSERT_TRUE(session.ok());
  darwinn::Package wrong = testing::echo_package(9, 512, 3);
  std::swap(wrong.executables[1].dma_hints->hints[0], wrong.executables[1].dma_hints->hints[1]);
  const auto bad = Model::load(std::move(wrong)), good = Model::load(testing::echo_package());
  ASSERT_TRUE(bad.ok() && good.ok());
  const std::vector<std::uint8_t> input = testing::echo_input(1);
  const auto stalled = (*session)->run(*bad, {input});
  ASSERT_FALSE(stalled.ok());
  EXPECT_NE(stalled.status().message().find("does nothing for 10000 ms"), std::string::npos)
      << stalled.status().message();
  EXPECT_EQ((*session)->notes().size(), 2u) << "it was tried twice";
  const auto outputs = (*session)->run(*good, {input});
  ASSERT_TRUE(outputs.ok()) << outputs.status().message();
  EXPECT_EQ((*outputs)[0], testing::echo_output(input, 1));
}

TEST(VirtualStick, HalfAFirmwareIsNone) {
  const StickOptions options;
  VirtualBus bus({&options, 1});
  const std::vector<std::uint8_t> firmware(700, 7);
  auto device = bus.open("1-1");
  ASSERT_TRUE(device.ok());
  // One block, and then the program that sent it is killed.
  std::vector<std::uint8_t> block(256, 7);
  ASSERT_TRUE((*device)->control({0x21, 1, 0, 0}, block, kLimit).ok());
  *device = nullptr;
  device = bus.open("1-1");
  EXPECT_FALSE(download_firmware(**device, firmware, kLimit).ok()) << "it waits for block 1";
  ASSERT_TRUE((*device)->reset().ok());
  EXPECT_FALSE(bus.stick(0).has_firmware());
  ASSERT_TRUE(download_firmware(**device, firmware, kLimit).ok());
  ASSERT_TRUE((*device)->reset().ok());
  EXPECT_TRUE(bus.stick(0).has_firmware());
  EXPECT_EQ(bus.stick(0).firmware(), firmware);
}

TEST(VirtualStick, LeavesTheBusToShowItselfAnew) {
  const StickOptions options;
  VirtualBus bus({&options, 1});
  auto device = bus.open("1-1");
  ASSERT_TRUE(device.ok());
  const std::vector<std::uint8_t> firmware(10, 7);
  ASSERT_TRUE(download_firmware(**device, firmware, kLimit).ok());
  ASSERT_TRUE((*device)->reset().ok());
  EXPECT_TRUE(bus.list()->empty());
  std::array<std::uint8_t, 18> descriptor{};
  EXPECT_EQ((*device)->control({0x80, 6, 0x0100, 0}, descriptor, kLimit).end, TransferEnd::kUnplugged);
  bus.sleep(Milliseconds(500));
  ASSERT_EQ(bus.list()->size(), 1u);
  EXPECT_EQ(bus.list()->front().id, kApplicationId);
  EXPECT_EQ((*device)->control({0x80, 6, 0x0100, 0}, descriptor, kLimit).end, TransferEnd::kUnplugged)
      << "the old handle is of no use";
}

// As Linux has it: whoever uses the interface first has it, a reset by its owner leaves it claimed, and requests for
// the device are anybody's.
TEST(VirtualStick, BelongsToOneHandle) {
  const StickOptions options = running();
  VirtualBus bus({&options, 1});
  bus.let_sticks_be_shared();
  auto first = bus.open("1-1"), second = bus.open("1-1");
  ASSERT_TRUE(first.ok() && second.ok());
  const auto read_event = [](UsbDevice& device) {
    std::array<std::uint8_t, 16> buffer{};
    Transfer transfer;
    transfer.endpoint = 0x82;
    transfer.buffer = buffer;
    device.submit(transfer);
    if (transfer.is_pending) device.cancel(transfer);
    return transfer.outcome.end;
  };
  EXPECT_EQ(read_event(**first), TransferEnd::kCancelled) << "nothing to read, but it may";
  EXPECT_EQ(read_event(**second), TransferEnd::kFailed) << "the first has it, without having asked";
  EXPECT_EQ((*second)->claim(0).code(), StatusCode::kResourceExhausted);
  EXPECT_EQ((*second)->control({0x01, 11, 0, 0}, {}, kLimit).end, TransferEnd::kFailed) << "of the interface";
  std::array<std::uint8_t, 4> value{};
  EXPECT_TRUE((*second)->control({0xc0, 1, 0xa30c, 1}, value, kLimit).ok()) << "of the device";
  ASSERT_TRUE((*first)->reset().ok());
  EXPECT_FALSE((*second)->claim(0).ok());
  ASSERT_TRUE((*first)->release(0).ok());
  EXPECT_TRUE((*second)->claim(0).ok());
  *second = nullptr;
  EXPECT_FALSE(bus.stick(0).is_claimed());
  bus.stick(0).configure(0);
  EXPECT_EQ((*first)->claim(0).code(), StatusCode::kNotFound) << "without a configuration there is no interface";
  ASSERT_TRUE((*first)->reset().ok());
}

TEST(VirtualStick, ADownloadCanBeGivenUpAndAnErrorCleared) {
  const StickOptions options;
  VirtualBus bus({&options, 1});
  auto device = bus.open("1-1");
  ASSERT_TRUE(device.ok());
  std::vector<std::uint8_t> block(256, 7);
  const auto state = [&] {
    std::array<std::uint8_t, 1> answer{};
    EXPECT_TRUE((*device)->control({0xa1, 5, 0, 0}, answer, kLimit).ok());
    return int{answer[0]};
  };
  ASSERT_TRUE((*device)->control({0x21, 1, 0, 0}, block, kLimit).ok());
  EXPECT_EQ(state(), 5);
  ASSERT_TRUE((*device)->control({0x21, 6, 0, 0}, {}, kLimit).ok());
  EXPECT_EQ(state(), 2);
  EXPECT_FALSE((*device)->control({0x21, 1, 3, 0}, block, kLimit).ok()) << "the blocks begin with 0 again";
  EXPECT_EQ(state(), 10);
  EXPECT_FALSE((*device)->control({0x21, 6, 0, 0}, {}, kLimit).ok()) << "an error has to be cleared";
  ASSERT_TRUE((*device)->control({0x21, 4, 0, 0}, {}, kLimit).ok());
  EXPECT_EQ(state(), 2);
  EXPECT_TRUE(download_firmware(**device, block, kLimit).ok());
}

// A packet that does not fit into the buffer is lost: a driver with too small buffers has to notice.
TEST(VirtualStick, APacketThatDoesNotFitOverflows) {
  for (const bool has_room : {true, false}) {
    Awake stick(running());
    std::vector<std::uint8_t> buffer(has_room ? 4 : 3);
    Transfer transfer;
    transfer.endpoint = 0x83;
    transfer.buffer = buffer;
    stick.device->submit(transfer);
    std::vector<std::uint8_t> announced = {1, 0, 0, 0, 9, 0, 0, 0};  // a tag that the chip does not take
    (void)stick.send(announced);
    stick.device->wait_any({}, Milliseconds(0));
    ASSERT_FALSE(transfer.is_pending);
    EXPECT_EQ(transfer.outcome.end, has_room ? TransferEnd::kDone : TransferEnd::kOverflow);
    EXPECT_EQ(transfer.outcome.bytes, has_room ? 4u : 0u);
  }
}

// Any bytes on the wire: it may stop, it must not fall over.
TEST(VirtualStick, NoiseDoesNoHarm) {
  for (std::uint32_t seed = 1; seed < 40; ++seed) {
    Awake stick(running());
    std::vector<std::uint8_t> bytes(3000);
    std::uint32_t state = seed;
    for (std::uint8_t& byte : bytes) {
      state = state * 1664525 + 1013904223;
      byte = static_cast<std::uint8_t>(state >> 24);
    }
    if (seed % 2 == 0) {  // a chunk of instructions of that length
      const std::size_t length = bytes.size() - 8;
      bytes[0] = static_cast<std::uint8_t>(length);
      bytes[1] = static_cast<std::uint8_t>(length >> 8);
      bytes[2] = bytes[3] = bytes[4] = 0;
    }
    (void)stick.send(bytes);
    ASSERT_TRUE(stick.device->reset().ok());
  }
}

TEST(VirtualStick, HasManyFaults) {
  EXPECT_GE(stick_faults().size(), 20u);
  for (const StickFaultInfo& info : stick_faults()) EXPECT_FALSE(info.meaning.empty()) << info.name;
}

}  // namespace
}  // namespace reef::driver
