// SPDX-License-Identifier: Apache-2.0
#include "driver/pcie_session.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <thread>

#include <gtest/gtest.h>

#include "driver/pcie_transcript.h"
#include "driver/virtual_card.h"
#include "driver_packages.h"

namespace reef::driver {
namespace {

using testing::echo_input;
using testing::echo_output;
using testing::echo_package;

std::shared_ptr<const PcieModel> must_load(darwinn::Package package) {
  auto model = PcieModel::load(std::move(package));
  EXPECT_TRUE(model.ok()) << model.status().message();
  return model.ok() ? *model : nullptr;
}

void expect_echo(PcieSession& session, const std::shared_ptr<const PcieModel>& model, unsigned seed,
                 unsigned parameter_seed = 1) {
  const std::vector<std::uint8_t> input = echo_input(seed);
  const auto outputs = session.run(model, {input});
  ASSERT_TRUE(outputs.ok()) << outputs.status().message();
  EXPECT_EQ((*outputs)[0], echo_output(input, parameter_seed));
}

TEST(PcieSession, Runs) {
  VirtualCard card;
  {
    const auto session = PcieSession::open(card, {});
    ASSERT_TRUE(session.ok()) << session.status().message();
    const auto model = must_load(echo_package()), chunks = must_load(echo_package(8, 512, 2, 2));
    for (unsigned seed = 0; seed < 3; ++seed) expect_echo(**session, model, seed);
    EXPECT_EQ((*session)->parameter_loads(), 1);
    expect_echo(**session, chunks, 5, 2);
    EXPECT_EQ((*session)->parameter_loads(), 2);
    EXPECT_EQ(card.mapped_pages(), 2u) << "only the queue stays mapped";
    EXPECT_TRUE((*session)->notes().empty());
    ASSERT_TRUE((*session)->close().ok());
    EXPECT_EQ(card.mapped_pages(), 0u);
    expect_echo(**session, model, 7);
    EXPECT_EQ((*session)->opened(), 2);
  }
  EXPECT_EQ(card.diagnosis(), "");
}

// A card's report has every call and none of the host's addresses.
TEST(PcieSession, EveryCallToACardCanBeRecorded) {
  VirtualCard card;
  std::mutex mutex;
  std::string log;
  LoggedCard logged(card, [&](const std::string& line) {
    const std::lock_guard lock(mutex);
    log += line + "\n";
  });
  auto session = PcieSession::open(logged, {});
  ASSERT_TRUE(session.ok()) << session.status().message();
  expect_echo(**session, must_load(echo_package()), 1);
  ASSERT_TRUE((*session)->close().ok());
  for (const char* line :
       {"open\n", "performance 3\n", "partition 6144\n", "coherent memory, ", "map 0x1000000, ",
        "map 0x8000000000000000, ", "write instruction_queue_tail = 0x1\n", "interrupts 0x11\n", "close\n"}) {
    EXPECT_NE(log.find(line), std::string::npos) << line << log;
  }
  for (std::size_t at = log.find("0x"); at != std::string::npos; at = log.find("0x", at + 1)) {
    const std::size_t end = std::min(log.find_first_not_of("0123456789abcdef", at + 2), log.size());
    EXPECT_NE(end - at, 14u) << "an address of this process: " << log.substr(at, end - at);
  }
}

// The queue has 256 entries, the count of interrupts 16 bits, addresses 4 GiB.
TEST(PcieSession, QueueAndAddressesWrap) {
  VirtualCard card;
  const auto session = PcieSession::open(card, {});
  ASSERT_TRUE(session.ok());
  const auto model = must_load(echo_package());
  for (unsigned i = 0; i < 300; ++i) expect_echo(**session, model, i);
  EXPECT_TRUE((*session)->notes().empty());
}

// It needs no list of transfers.
TEST(PcieSession, RunsProgramsWithoutHints) {
  darwinn::Package package = echo_package(7, 4, 1, 2);
  for (darwinn::Executable& executable : package.executables) executable.dma_hints.reset();
  VirtualCard card;
  const auto session = PcieSession::open(card, {});
  ASSERT_TRUE(session.ok());
  expect_echo(**session, must_load(std::move(package)), 1);
}

TEST(PcieSession, ACardInUseIsAnError) {
  VirtualCard card;
  const auto first = PcieSession::open(card, {});
  ASSERT_TRUE(first.ok());
  const auto second = PcieSession::open(card, {});
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.status().message().find("in use"), std::string::npos);
}

// ---- Several threads ----

// A card that tells of no interrupt before so many entries were put into its queue.
class LateInterrupts final : public PcieBus {
 public:
  LateInterrupts(PcieBus& bus, int after) : bus_(bus), after_(after) {}
  Result<std::unique_ptr<PcieDevice>> open() override {
    REEF_ASSIGN_OR_RETURN(auto device, bus_.open());
    return std::unique_ptr<PcieDevice>(std::make_unique<Device>(*this, std::move(device)));
  }
  void sleep(Milliseconds time) override { bus_.sleep(time); }
  int entries() const { return entries_; }

 private:
  class Device final : public PcieDevice {
   public:
    Device(LateInterrupts& bus, std::unique_ptr<PcieDevice> device) : bus_(bus), device_(std::move(device)) {}
    Result<std::uint64_t> read(std::uint32_t offset) override { return device_->read(offset); }
    Status write(std::uint32_t offset, std::uint64_t value) override {
      if (offset == reg::kQueueTail && value != 0) ++bus_.entries_;
      return device_->write(offset, value);
    }
    void sleep(Milliseconds time) override { device_->sleep(time); }
    Status set_performance(std::uint32_t level) override { return device_->set_performance(level); }
    Status partition(std::uint64_t simple_slots) override { return device_->partition(simple_slots); }
    Result<std::span<std::uint8_t>> coherent_memory(std::size_t bytes) override {
      return device_->coherent_memory(bytes);
    }
    Status map(std::span<std::uint8_t> memory, std::uint64_t address, DmaDirection direction) override {
      return device_->map(memory, address, direction);
    }
    Status unmap(std::span<std::uint8_t> memory, std::uint64_t address) override {
      return device_->unmap(memory, address);
    }
    Status enable_interrupts() override { return device_->enable_interrupts(); }
    Result<std::uint32_t> wait_for_interrupts(Milliseconds limit) override {
      // A driver that lets nobody launch while it waits ends the test here, with an error.
      for (int look = 0; bus_.entries_ < bus_.after_; ++look) {
        if (look == 30000) return make_error(StatusCode::kIoError, "nobody launches anything");
        std::this_thread::sleep_for(Milliseconds(1));
      }
      return device_->wait_for_interrupts(limit);
    }

   private:
    LateInterrupts& bus_;
    std::unique_ptr<PcieDevice> device_;
  };
  PcieBus& bus_;
  const int after_;
  std::atomic<int> entries_{0};
};

// The chip's queue has both requests before the driver hears of the end of the first: the chip need not wait for the
// host in between.
TEST(PcieSession, TheNextRequestIsLaunchedBeforeTheLastIsOver) {
  VirtualCard card;
  constexpr int kFirst = 2, kSecond = 1;  // programs: parameter caching and execution, execution
  LateInterrupts bus(card, kFirst + kSecond);
  const auto session = PcieSession::open(bus, {});
  ASSERT_TRUE(session.ok()) << session.status().message();
  const auto model = must_load(echo_package());
  std::thread first([&] { expect_echo(**session, model, 1); });
  std::thread second([&] { expect_echo(**session, model, 2); });
  first.join();
  second.join();
  EXPECT_TRUE((*session)->notes().empty()) << (*session)->notes().front();
  EXPECT_EQ(bus.entries(), kFirst + kSecond);
  EXPECT_EQ((*session)->parameter_loads(), 1);
  EXPECT_EQ((*session)->opened(), 1);
  EXPECT_EQ(card.mapped_pages(), 2u);
}

TEST(PcieSession, EightThreadsOnTwoCards) {
  std::array<VirtualCard, 2> cards;
  std::vector<std::unique_ptr<PcieSession>> sessions;
  for (VirtualCard& card : cards) {
    auto session = PcieSession::open(card, {});
    ASSERT_TRUE(session.ok());
    sessions.push_back(std::move(*session));
  }
  const auto a = must_load(echo_package(7, 4, 1)), b = must_load(echo_package(8, 4, 2, 2));
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (unsigned i = 0; i < 20; ++i) {
        const bool first = (t + i) % 3 != 0;
        expect_echo(*sessions[(t + i) % 2], first ? a : b, t * 16 + i, first ? 1 : 2);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& session : sessions) EXPECT_TRUE(session->notes().empty()) << session->notes().front();
  for (const VirtualCard& card : cards) EXPECT_EQ(card.mapped_pages(), 2u);
}

TEST(PcieSession, ASessionMayBeClosedWhileOthersUseIt) {
  VirtualCard card;
  const auto session = PcieSession::open(card, {});
  ASSERT_TRUE(session.ok());
  const auto model = must_load(echo_package());
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (unsigned i = 0; i < 20; ++i) expect_echo(**session, model, t * 32 + i);
    });
  }
  for (int i = 0; i < 10; ++i) EXPECT_TRUE((*session)->close().ok());
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE((*session)->notes().empty()) << (*session)->notes().front();
}

class PcieFaults : public ::testing::TestWithParam<int> {};

TEST_P(PcieFaults, AreSurvivedAtEveryCall) {
  const auto fault = static_cast<CardFault>(GetParam());
  const auto model = must_load(echo_package());
  std::int64_t begin = 0, end = 0;
  {
    VirtualCard card;
    const auto session = PcieSession::open(card, {});
    begin = card.calls();
    expect_echo(**session, model, 1);
    expect_echo(**session, model, 2);
    ASSERT_TRUE((*session)->close().ok());
    end = card.calls();
  }
  int recoveries = 0;
  // Faults while a card is opened for the first time are reported to the caller.
  for (std::int64_t at = begin; at < end; ++at) {
    VirtualCard card;
    const auto session = PcieSession::open(card, {});
    ASSERT_TRUE(session.ok());
    card.inject(fault, at);
    for (const unsigned seed : {1u, 2u}) {
      const std::vector<std::uint8_t> input = echo_input(seed);
      const auto outputs = (*session)->run(model, {input});
      ASSERT_TRUE(outputs.ok()) << name_of(fault) << " at call " << at << ": " << outputs.status().message();
      ASSERT_EQ((*outputs)[0], echo_output(input, 1)) << name_of(fault) << " at call " << at;
    }
    (void)(*session)->close();
    expect_echo(**session, model, 3);
    if (!(*session)->notes().empty()) ++recoveries;
    EXPECT_LT(card.now(), Milliseconds(60000));
  }
  fmt::print("{}: {} calls, {} sessions recovered\n", name_of(fault), end - begin, recoveries);
  EXPECT_GT(recoveries, 0);
}

// A fault ends every request that is under way, and each of them is repeated.
TEST_P(PcieFaults, AreSurvivedByThreeThreads) {
  const auto fault = static_cast<CardFault>(GetParam());
  const auto a = must_load(echo_package(7, 4, 1)), b = must_load(echo_package(8, 4, 2));
  for (std::int64_t at = 0; at < 160; at += 3) {
    VirtualCard card;
    const auto session = PcieSession::open(card, {});
    ASSERT_TRUE(session.ok());
    card.inject(fault, card.calls() + at);
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 3; ++t) {
      threads.emplace_back([&, t] {
        for (unsigned i = 0; i < 2; ++i) expect_echo(**session, t == 0 ? a : b, t * 4 + i, t == 0 ? 1 : 2);
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_FALSE(HasFailure()) << name_of(fault) << " at call " << at;
    // Without a fault in between only the queue is mapped.
    if (fault != CardFault::kLosesPages) {
      EXPECT_EQ(card.mapped_pages(), 2u) << name_of(fault) << " at call " << at;
    }
  }
}

TEST_P(PcieFaults, WhileOpeningAreErrorsOrHarmless) {
  const auto fault = static_cast<CardFault>(GetParam());
  std::int64_t calls = 0;
  {
    VirtualCard card;
    const auto session = PcieSession::open(card, {});
    calls = card.calls();
  }
  const auto model = must_load(echo_package());
  for (std::int64_t at = 0; at < calls; ++at) {
    VirtualCard card;
    card.inject(fault, at);
    auto session = PcieSession::open(card, {});
    if (!session.ok()) session = PcieSession::open(card, {});
    ASSERT_TRUE(session.ok()) << name_of(fault) << " at call " << at << ": " << session.status().message();
    expect_echo(**session, model, 1);
  }
}

INSTANTIATE_TEST_SUITE_P(All, PcieFaults, ::testing::Range(0, kCardFaults), [](const auto& info) {
  std::string name(name_of(static_cast<CardFault>(info.param)));
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
});

}  // namespace
}  // namespace reef::driver
