// SPDX-License-Identifier: Apache-2.0
// Whole sessions against the virtual stick, and everything that can go wrong with one.
#include "driver/usb_session.h"

#include <atomic>
#include <functional>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "driver/transcript.h"
#include "driver/virtual_stick.h"
#include "driver_packages.h"
#include "execute/device/device.h"

namespace reef::driver {
namespace {

using testing::echo_input;
using testing::echo_output;
using testing::echo_package;

// Not real firmware: the virtual stick takes any. Three blocks, the last one short.
Result<Bytes> some_firmware() {
  std::vector<std::uint8_t> bytes(600);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i * 3);
  return Bytes(std::move(bytes));
}

UsbSessionOptions with_firmware() {
  UsbSessionOptions options;
  options.firmware = some_firmware;
  return options;
}

std::shared_ptr<const Model> must_load(darwinn::Package package) {
  auto model = Model::load(std::move(package));
  EXPECT_TRUE(model.ok()) << model.status().message();
  return model.ok() ? *model : nullptr;
}

std::unique_ptr<UsbSession> must_open(UsbBus& bus, UsbSessionOptions options = with_firmware()) {
  auto session = UsbSession::open(bus, std::move(options));
  EXPECT_TRUE(session.ok()) << session.status().message();
  return session.ok() ? std::move(*session) : nullptr;
}

void expect_echo(UsbSession& session, const std::shared_ptr<const Model>& model, unsigned seed,
                 unsigned parameter_seed = 1) {
  const std::vector<std::uint8_t> input = echo_input(seed);
  const auto outputs = session.run(model, {input});
  ASSERT_TRUE(outputs.ok()) << outputs.status().message();
  EXPECT_EQ((*outputs)[0], echo_output(input, parameter_seed));
}

StickOptions used_stick() {
  StickOptions options;
  options.has_firmware = true;
  return options;
}

TEST(EchoPackage, RunsOnTheVirtualDevice) {
  for (const int chunks : {1, 2}) {
    const auto loaded = device::LoadedPackage::load(echo_package(7, 4, 1, chunks));
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    device::Device device;
    const std::vector<std::uint8_t> input = echo_input(3);
    const auto outputs = device.run(*loaded, {input});
    ASSERT_TRUE(outputs.ok()) << outputs.status().message();
    EXPECT_EQ((*outputs)[0], echo_output(input, 1));
  }
}

TEST(UsbSession, FreshStickGetsFirmwareAndRuns) {
  const StickOptions fresh;
  VirtualBus bus({&fresh, 1});
  const auto session = must_open(bus);
  ASSERT_NE(session, nullptr);
  EXPECT_TRUE(bus.stick(0).has_firmware());
  const auto model = must_load(echo_package());
  for (unsigned seed = 0; seed < 3; ++seed) expect_echo(*session, model, seed);
  EXPECT_EQ(session->parameter_loads(), 1);
  EXPECT_EQ(session->opened(), 1);
  EXPECT_TRUE(session->notes().empty());
  EXPECT_EQ(bus.stick(0).diagnosis(), "");
}

TEST(UsbSession, AStickThatRunsNeedsNoFirmware) {
  const StickOptions used = used_stick();
  VirtualBus bus({&used, 1});
  const auto session = must_open(bus, {});
  ASSERT_NE(session, nullptr);
  expect_echo(*session, must_load(echo_package()), 1);
}

TEST(UsbSession, WithoutFirmwareAFreshStickIsAnError) {
  const StickOptions fresh;
  VirtualBus bus({&fresh, 1});
  const auto session = UsbSession::open(bus, {});
  ASSERT_FALSE(session.ok());
  EXPECT_EQ(session.status().code(), StatusCode::kNotFound);
  EXPECT_NE(session.status().message().find("firmware"), std::string::npos) << session.status().message();
}

TEST(UsbSession, NoStickIsAnError) {
  VirtualBus bus({});
  const auto session = UsbSession::open(bus, {});
  ASSERT_FALSE(session.ok());
  EXPECT_EQ(session.status().code(), StatusCode::kNotFound);
}

TEST(UsbSession, AProgramOfTwoChunksRuns) {
  const StickOptions used = used_stick();
  VirtualBus bus({&used, 1});
  const auto session = must_open(bus);
  const auto model = must_load(echo_package(7, 4, 1, 2));
  for (unsigned seed = 0; seed < 3; ++seed) expect_echo(*session, model, seed);
  EXPECT_TRUE(session->notes().empty());
}

// More parameters than the stick's FIFO holds.
TEST(UsbSession, LargeParametersPassTheSmallFifo) {
  const StickOptions used = used_stick();
  VirtualBus bus({&used, 1});
  const auto session = must_open(bus);
  expect_echo(*session, must_load(echo_package(7, 512, 9)), 1, 9);
  EXPECT_TRUE(session->notes().empty());
}

TEST(UsbSession, UsbTwoSendsOutputInSmallPieces) {
  StickOptions slow = used_stick();
  slow.speed = UsbSpeed::kHigh;
  VirtualBus bus({&slow, 1});
  Transcript transcript;
  LoggedBus logged(bus, transcript);
  const auto session = must_open(logged);
  expect_echo(*session, must_load(echo_package()), 1);
  EXPECT_NE(transcript.text().find("write outfeed_chunk_length = 0x20"), std::string::npos);
  EXPECT_NE(transcript.text().find("in 81, 256 of 256 bytes"), std::string::npos);
}

TEST(UsbSession, PackagesShareTheChipByTheirTokens) {
  const StickOptions used = used_stick();
  VirtualBus bus({&used, 1});
  const auto session = must_open(bus);
  const auto a = must_load(echo_package(7, 4, 1)), b = must_load(echo_package(8, 4, 2));
  for (int i = 0; i < 2; ++i) {
    expect_echo(*session, a, 1, 1);
    expect_echo(*session, a, 2, 1);
    expect_echo(*session, b, 3, 2);
  }
  EXPECT_EQ(session->parameter_loads(), 4);
}

// The device reports each transfer, and is served. Google's runtime does this only if asked to.
TEST(UsbSession, IncompleteListsOfTransfersAreServed) {
  const StickOptions used = used_stick();
  VirtualBus bus({&used, 1});
  const auto session = must_open(bus);
  darwinn::Package package = echo_package();
  package.executables[0].dma_hints->hints.clear();
  package.executables[0].dma_hints->is_complete = false;
  const auto incomplete = must_load(std::move(package)), complete = must_load(echo_package(8, 4, 2));
  expect_echo(*session, incomplete, 1);
  expect_echo(*session, complete, 2, 2);
  expect_echo(*session, incomplete, 3);
  EXPECT_EQ(session->opened(), 2) << "once more, for a stick that reports";
  EXPECT_TRUE(session->notes().empty());
}

TEST(UsbSession, IncompleteListsOfSeveralChunksAreRefused) {
  darwinn::Package package = echo_package(7, 4, 1, 2);
  package.executables[0].dma_hints->is_complete = false;
  const auto model = Model::load(std::move(package));
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.status().code(), StatusCode::kUnsupported);
}

TEST(UsbSession, WrongInputsAreRefusedWithoutTraffic) {
  const StickOptions used = used_stick();
  VirtualBus bus({&used, 1});
  const auto session = must_open(bus);
  const auto model = must_load(echo_package());
  const std::int64_t before = bus.stick(0).operations();
  const std::vector<std::uint8_t> small(3);
  EXPECT_FALSE(session->run(model, {small}).ok());
  EXPECT_FALSE(session->run(model, {}).ok());
  EXPECT_EQ(bus.stick(0).operations(), before);
}

TEST(UsbSession, ClosedSessionsOpenAgain) {
  const StickOptions used = used_stick();
  VirtualBus bus({&used, 1});
  const auto session = must_open(bus);
  const auto model = must_load(echo_package());
  expect_echo(*session, model, 1);
  ASSERT_TRUE(session->close().ok());
  expect_echo(*session, model, 2);
  EXPECT_EQ(session->opened(), 2);
  EXPECT_EQ(session->parameter_loads(), 2) << "sleep forgets them";
}

TEST(UsbSession, AStickInUseIsAnError) {
  const StickOptions used = used_stick();
  VirtualBus bus({&used, 1});
  const auto first = must_open(bus);
  // A second session would reset the port, as Google's runtime does, and so end the work of the first.
  const auto second = UsbSession::open(bus, {});
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.status().message().find("in use"), std::string::npos);
  expect_echo(*first, must_load(echo_package()), 1);
  EXPECT_EQ(first->opened(), 1) << "the first session was not disturbed";
}

TEST(UsbSession, HostileListsOfTransfersAreRefused) {
  const auto refused = [](auto change) {
    darwinn::Package package = echo_package();
    change(package.executables[0]);
    return !Model::load(std::move(package)).ok();
  };
  using darwinn::DescriptorHint;
  EXPECT_TRUE(refused([](auto& e) { std::get<darwinn::InstructionHint>(e.dma_hints->hints[0].hint).chunk_index = 1; }));
  EXPECT_TRUE(
      refused([](auto& e) { std::get<darwinn::InstructionHint>(e.dma_hints->hints[0].hint).chunk_index = -1; }));
  EXPECT_TRUE(refused([](auto& e) { std::get<DescriptorHint>(e.dma_hints->hints[1].hint).size_bytes = 257; }));
  EXPECT_TRUE(refused([](auto& e) { std::get<DescriptorHint>(e.dma_hints->hints[1].hint).size_bytes = -1; }));
  EXPECT_TRUE(refused([](auto& e) { std::get<DescriptorHint>(e.dma_hints->hints[1].hint).offset_bytes = 0x7fffffff; }));
  EXPECT_TRUE(refused([](auto& e) { std::get<DescriptorHint>(e.dma_hints->hints[1].hint).use.reset(); }));
  EXPECT_TRUE(refused([](auto& e) { std::get<DescriptorHint>(e.dma_hints->hints[1].hint).use->name = "other"; }));
  EXPECT_TRUE(refused([](auto& e) { std::get<DescriptorHint>(e.dma_hints->hints[1].hint).use->batch = 1; }));
  EXPECT_TRUE(refused([](auto& e) { std::get<darwinn::InterruptHint>(e.dma_hints->hints[3].hint).interrupt = 4; }));
  EXPECT_TRUE(refused([](auto& e) { e.dma_hints->hints.push_back({}); }));
  EXPECT_TRUE(refused([](auto& e) { e.instruction_chunks[0].field_offsets[0].bit_offset = -5; }));
  EXPECT_TRUE(refused([](auto& e) { e.instruction_chunks[0].field_offsets[0].bit_offset = 0x7fffffff; }));
  EXPECT_TRUE(refused([](auto& e) { e.scratch_size_bytes = -1; }));
}

// ---- Faults ----

// Counts the operations of opening, two inferences and closing.
std::int64_t count_operations(const StickOptions& stick, const std::shared_ptr<const Model>& model) {
  VirtualBus bus({&stick, 1});
  const auto session = must_open(bus);
  expect_echo(*session, model, 1);
  expect_echo(*session, model, 2);
  EXPECT_TRUE(session->close().ok());
  return bus.stick(0).operations();
}

// A fault at each of the first operations, and at some of the others. Whatever happens, both outputs are right.
void expect_survival(const StickOptions& stick, StickFault fault, std::string_view name, std::int64_t all_of,
                     std::int64_t then_each) {
  const auto model = must_load(echo_package());
  const std::int64_t operations = count_operations(stick, model);
  int recoveries = 0;
  for (std::int64_t at = 0; at < operations; at += at < all_of ? 1 : then_each) {
    VirtualBus bus({&stick, 1});
    bus.stick(0).inject(fault, at);
    const auto session = must_open(bus);
    ASSERT_NE(session, nullptr) << name << " at operation " << at;
    for (const unsigned seed : {1u, 2u}) {
      const std::vector<std::uint8_t> input = echo_input(seed);
      const auto outputs = session->run(model, {input});
      ASSERT_TRUE(outputs.ok()) << name << " at operation " << at << ": " << outputs.status().message();
      ASSERT_EQ((*outputs)[0], echo_output(input, 1)) << name << " at operation " << at;
    }
    (void)session->close();         // may fail; the next session opens the stick all the same
    bus.sleep(Milliseconds(5000));  // by then it is on the bus again
    const auto again = must_open(bus);
    ASSERT_NE(again, nullptr) << name << " at operation " << at;
    expect_echo(*again, model, 3);
    if (!session->notes().empty()) ++recoveries;
    EXPECT_LT(bus.now(), Milliseconds(200000)) << name << " at operation " << at;
  }
  fmt::print("{}: {} operations, {} sessions recovered\n", name, operations, recoveries);
}

[[maybe_unused]] void PrintTo(const StickFaultInfo& info, std::ostream* stream) { *stream << info.name; }

class UsbFaults : public ::testing::TestWithParam<StickFaultInfo> {};

TEST_P(UsbFaults, AreSurvivedAtEveryOperationOfAStickThatRuns) {
  expect_survival(used_stick(), GetParam().fault, GetParam().name, 1000, 1);
}

// Most operations of a fresh stick are blocks of firmware, each like the others.
TEST_P(UsbFaults, AreSurvivedByAFreshStick) {
  expect_survival(StickOptions(), GetParam().fault, GetParam().name, 18, 13);
}

INSTANTIATE_TEST_SUITE_P(All, UsbFaults, ::testing::ValuesIn(stick_faults().begin(), stick_faults().end()),
                         [](const auto& info) {
                           std::string name(info.param.name);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(UsbSession, AStickThatIsGoneForGoodIsAnErrorAndComesBack) {
  const StickOptions used = used_stick();
  VirtualBus bus({&used, 1});
  const auto session = must_open(bus);
  const auto model = must_load(echo_package());
  expect_echo(*session, model, 1);
  bus.stick(0).unplug();
  const std::vector<std::uint8_t> input = echo_input(2);
  const auto outputs = session->run(model, {input});
  ASSERT_FALSE(outputs.ok());
  EXPECT_NE(outputs.status().message().find("plug it in"), std::string::npos) << outputs.status().message();
  bus.stick(0).plug_in();
  expect_echo(*session, model, 3);
}

TEST(UsbSession, AProgramThatTheChipRefusesIsAnErrorAndOthersRun) {
  const StickOptions used = used_stick();
  VirtualBus bus({&used, 1});
  const auto session = must_open(bus);
  darwinn::Package package = echo_package(9);
  // Without its ring_send of the parameters the outfeed waits for ever.
  package.executables[0].instruction_chunks[0].bitstream = package.executables[1].instruction_chunks[0].bitstream;
  package.executables[0].instruction_chunks[0].field_offsets.clear();
  const auto broken = must_load(std::move(package)), good = must_load(echo_package());
  const std::vector<std::uint8_t> input = echo_input(2);
  const auto outputs = session->run(broken, {input});
  ASSERT_FALSE(outputs.ok());
  EXPECT_EQ(outputs.status().code(), StatusCode::kIoError);
  expect_echo(*session, good, 1);
}

// A stick whose reports of ends come only after so many pieces of instructions were sent to it.
class LateReports final : public UsbBus {
 public:
  LateReports(UsbBus& bus, int after, std::function<void()> at_first_piece)
      : bus_(bus), after_(after), at_first_piece_(std::move(at_first_piece)) {}
  Result<std::vector<UsbDeviceInfo>> list() override { return bus_.list(); }
  void sleep(Milliseconds time) override { bus_.sleep(time); }
  Result<std::unique_ptr<UsbDevice>> open(const std::string& path) override {
    REEF_ASSIGN_OR_RETURN(auto device, bus_.open(path));
    return std::unique_ptr<UsbDevice>(std::make_unique<Device>(*this, std::move(device)));
  }

 private:
  class Device final : public UsbDevice {
   public:
    Device(LateReports& bus, std::unique_ptr<UsbDevice> device) : bus_(bus), device_(std::move(device)) {}
    UsbSpeed speed() const override { return device_->speed(); }
    Outcome control(const SetupPacket& setup, std::span<std::uint8_t> data, Milliseconds limit) override {
      return device_->control(setup, data, limit);
    }
    Status claim(int interface) override { return device_->claim(interface); }
    Status release(int interface) override { return device_->release(interface); }
    Status reset() override { return device_->reset(); }
    void submit(Transfer& transfer) override {
      const bool is_header = !transfer.is_in() && transfer.buffer.size() == 8;
      if (is_header && transfer.buffer[4] == 0 && ++pieces_ == 1) bus_.at_first_piece_();
      if (transfer.endpoint == 0x82 && pieces_ < bus_.after_) {
        held_ = &transfer;
        transfer.is_pending = true;
        return;
      }
      device_->submit(transfer);
      if (held_ != nullptr && pieces_ >= bus_.after_) device_->submit(*std::exchange(held_, nullptr));
    }
    void wait_any(std::span<Transfer* const> transfers, Milliseconds limit) override {
      device_->wait_any(transfers, limit);
    }
    void cancel(Transfer& transfer) override {
      if (held_ != &transfer) return device_->cancel(transfer);
      held_ = nullptr;
      transfer.is_pending = false;
      transfer.outcome = {TransferEnd::kCancelled, 0};
    }

   private:
    LateReports& bus_;
    std::unique_ptr<UsbDevice> device_;
    int pieces_ = 0;
    Transfer* held_ = nullptr;
  };
  UsbBus& bus_;
  const int after_;
  const std::function<void()> at_first_piece_;
};

// The chip reports the end of the first request only after it has got the instructions of the second: who waits for
// the end of one request must let the next one begin, as Google's runtime does.
TEST(UsbSession, TheNextRequestIsSentBeforeTheEndOfTheLastIsReported) {
  const StickOptions used = used_stick();
  VirtualBus sticks({&used, 1});
  std::atomic<bool> is_second_there{false};
  constexpr int kFirstRequest = 2;  // pieces of instructions: parameter caching and execution
  LateReports bus(sticks, kFirstRequest + 1, [&] {
    while (!is_second_there) std::this_thread::yield();
    std::this_thread::sleep_for(Milliseconds(200));  // until it waits for its turn
  });
  const auto session = must_open(bus);
  const auto model = must_load(echo_package());
  std::atomic<bool> has_begun{false};
  std::thread first([&] {
    has_begun = true;
    expect_echo(*session, model, 1);
  });
  while (!has_begun) std::this_thread::yield();
  std::this_thread::sleep_for(Milliseconds(50));
  std::thread second([&] {
    is_second_there = true;
    expect_echo(*session, model, 2);
  });
  first.join();
  second.join();
  EXPECT_TRUE(session->notes().empty()) << session->notes().front();
  EXPECT_EQ(session->opened(), 1);
  EXPECT_EQ(session->parameter_loads(), 1);
}

// Each thread goes from stick to stick, with two models. `when_open` is called when all sticks are open and nobody uses
// them yet.
void expect_eight_threads_on_three_sticks(unsigned inferences, const std::function<void(VirtualBus&)>& when_open) {
  const std::array<StickOptions, 3> sticks = {used_stick(), StickOptions(), used_stick()};
  VirtualBus bus(sticks);
  std::vector<std::unique_ptr<UsbSession>> sessions;
  for (int i = 0; i < 3; ++i) {
    UsbSessionOptions options = with_firmware();
    options.path = fmt::format("1-{}", i + 1);
    sessions.push_back(must_open(bus, std::move(options)));
    ASSERT_NE(sessions.back(), nullptr);
  }
  when_open(bus);
  const auto a = must_load(echo_package(7, 4, 1)), b = must_load(echo_package(8, 4, 2));
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (unsigned i = 0; i < inferences; ++i) {
        const bool first = (t + i) % 2 == 0;
        expect_echo(*sessions[(t + i) % 3], first ? a : b, t * 16 + i, first ? 1 : 2);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(UsbSession, EightThreadsOnThreeSticks) {
  expect_eight_threads_on_three_sticks(10, [](VirtualBus&) {});
}

// Every stick has its fault, early or late; it ends all requests under way there, and each of them is repeated.
TEST_P(UsbFaults, AreSurvivedByEightThreadsOnThreeSticks) {
  for (const std::int64_t at : {0, 2, 5, 11, 23, 47}) {
    expect_eight_threads_on_three_sticks(3, [&](VirtualBus& bus) {
      for (std::size_t i = 0; i < 3; ++i)
        bus.stick(i).inject(GetParam().fault, bus.stick(i).operations() + at + static_cast<std::int64_t>(i));
    });
    ASSERT_FALSE(HasFailure()) << GetParam().name << " at operation " << at << " of the first inferences";
  }
}

}  // namespace
}  // namespace reef::driver
