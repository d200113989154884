// SPDX-License-Identifier: Apache-2.0
#include "driver/registers.h"

#include <set>

#include <gtest/gtest.h>

#include "driver/register_port.h"

namespace reef::driver {
namespace {

TEST(Registers, OffsetsAreAlignedAndUsedOnce) {
  std::set<std::uint32_t> seen;
  for (const RegisterInfo& info : registers()) {
    EXPECT_TRUE(seen.insert(info.offset).second) << info.name;
    EXPECT_EQ(info.offset % (static_cast<std::uint32_t>(register_bits(info.offset)) / 8), 0u) << info.name;
    EXPECT_FALSE(info.name.empty() || info.source.empty() || info.meaning.empty()) << info.name;
    EXPECT_EQ(register_name(info.offset), info.name);
  }
  EXPECT_EQ(register_name(0x12344), "0x12344");
}

TEST(Registers, FieldsLieInsideTheirRegister) {
  for (const FieldInfo& info : fields()) {
    EXPECT_GT(info.field.bits, 0);
    EXPECT_LE(info.field.low + info.field.bits, register_bits(info.field.offset)) << register_name(info.field.offset);
  }
  EXPECT_EQ(field::kForceSleep.set(0x60050004, 3), 0x60c50004u) << "as a real stick was written";
  EXPECT_EQ(field::kForceSleep.get(0x60c5025c), 3u);
  EXPECT_EQ(field::kPowerState.get(0x60c5025c), 2u);
}

TEST(Registers, ErrorsInWords) {
  EXPECT_EQ(error_text(0), "");
  EXPECT_EQ(error_text(0x2200), "invalid entry in the instruction queue, transfer of no bytes");
  EXPECT_EQ(error_text(std::uint64_t{1} << 40), "unknown error bit 40");
}

TEST(Registers, Temperatures) {
  EXPECT_EQ(millidegrees(265), 99800);
  EXPECT_EQ(millidegrees(662), 550);
  EXPECT_EQ(millidegrees(0x3ff), -89700) << "what a lost device seems to have";
}

// A device that answers every request with what it is told, and remembers the last.
class OneAnswer final : public UsbDevice {
 public:
  Outcome answer;
  std::vector<std::uint8_t> bytes;
  SetupPacket last;
  std::vector<std::uint8_t> written;

  UsbSpeed speed() const override { return UsbSpeed::kSuper; }
  Outcome control(const SetupPacket& setup, std::span<std::uint8_t> data, Milliseconds) override {
    last = setup;
    if (!setup.is_in()) written.assign(data.begin(), data.end());
    for (std::size_t i = 0; setup.is_in() && i < data.size() && i < bytes.size(); ++i) data[i] = bytes[i];
    return answer;
  }
  Status claim(int) override { return ok_status(); }
  Status release(int) override { return ok_status(); }
  Status reset() override { return ok_status(); }
  void submit(Transfer&) override {}
  void wait_any(std::span<Transfer* const>, Milliseconds) override {}
  void cancel(Transfer&) override {}
};
class NoBus final : public UsbBus {
 public:
  Milliseconds slept{0};
  Result<std::vector<UsbDeviceInfo>> list() override { return std::vector<UsbDeviceInfo>(); }
  Result<std::unique_ptr<UsbDevice>> open(const std::string&) override { return invalid_input("no"); }
  void sleep(Milliseconds time) override { slept += time; }
};

TEST(UsbRegisters, RequestsAreThoseOfTheStick) {
  NoBus bus;
  OneAnswer device;
  UsbRegisters port(bus, device, Milliseconds(6000));
  device.bytes = {0x5c, 0x02, 0xc5, 0x60, 9, 9, 9, 9};
  device.answer = {TransferEnd::kDone, 4};
  const auto scu = port.read(reg::kScuCtrl3);
  ASSERT_TRUE(scu.ok());
  EXPECT_EQ(*scu, 0x60c5025cu);
  EXPECT_EQ(device.last.type, 0xc0);
  EXPECT_EQ(device.last.request, 1);
  EXPECT_EQ(device.last.value, 0xa318);
  EXPECT_EQ(device.last.index, 1);
  device.answer = {TransferEnd::kDone, 8};
  ASSERT_TRUE(port.write(reg::kEventTags, 0xf0).ok());
  EXPECT_EQ(device.last.type, 0x40);
  EXPECT_EQ(device.last.request, 0);
  EXPECT_EQ(device.last.value, 0xc148);
  EXPECT_EQ(device.last.index, 4);
  EXPECT_EQ(device.written, (std::vector<std::uint8_t>{0xf0, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(UsbRegisters, FailuresNameTheRegister) {
  NoBus bus;
  OneAnswer device;
  UsbRegisters port(bus, device, Milliseconds(6000));
  for (const Outcome answer : {Outcome{TransferEnd::kTimedOut, 0}, Outcome{TransferEnd::kDone, 3}}) {
    device.answer = answer;
    const auto value = port.read(reg::kScuCtrl3);
    ASSERT_FALSE(value.ok());
    EXPECT_EQ(value.status().code(), StatusCode::kIoError);
    EXPECT_NE(value.status().message().find("scu_ctrl_3"), std::string::npos);
  }
}

TEST(UsbRegisters, WaitsEnd) {
  NoBus bus;
  OneAnswer device;
  device.answer = {TransferEnd::kDone, 4};
  UsbRegisters port(bus, device, Milliseconds(6000));
  const Status status = port.wait_for(field::kPowerState, 2, Milliseconds(50));
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find("within 50 ms"), std::string::npos) << status.message();
  EXPECT_EQ(bus.slept, Milliseconds(50));
}

}  // namespace
}  // namespace reef::driver
