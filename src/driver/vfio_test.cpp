// SPDX-License-Identifier: Apache-2.0
// The VFIO driver against a card in software: power states that take time, a core that is dead while it is in reset, a
// reset that wipes everything, the chip's page table walked as the chip would, an IOMMU, and few interrupt vectors.
#include "driver/vfio.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include <gtest/gtest.h>

#include "driver/card_chip.h"
#include "driver/pcie_session.h"
#include "driver/vfio_system.h"
#include "driver_packages.h"

namespace reef::driver {
namespace {

constexpr std::uint64_t kDead = 0xdeadfeeddeadfeed;
constexpr std::uint64_t kBusAddress = 0x40000000;

// Calls may come from two threads: one that waits and one that launches.
class FakeVfio final : public VfioKernel, private CardChip {
 public:
  FakeVfio() : CardChip(1) {}

  int offered_vectors = kPcieInterrupts;
  std::size_t host_page = kPageBytes;  // what the IOMMU maps at once
  bool pause_works = true, is_lost = false;
  int function_resets = 0;
  std::uint64_t first_count = 0;  // of interrupts, after a reset
  bool is_open = false;
  Milliseconds now{0};

  bool core_is_alive() const { return !in_reset_ && !ram_off_; }
  bool is_master() const { return (command_ & 4) != 0; }
  int vectors() const { return vectors_; }
  std::string why() const { return why_it_failed(); }

  Status open() override {
    if (is_open) return make_error(StatusCode::kIoError, "the group is in use");
    is_open = true;
    command_ &= static_cast<std::uint16_t>(~4);  // as VFIO does
    return ok_status();
  }
  void close() override {
    is_open = false;
    arena_.clear();
  }
  Result<std::uint16_t> read_config(std::uint32_t offset) override { return offset == 4 ? command_ : std::uint16_t{0}; }
  Status write_config(std::uint32_t offset, std::uint16_t value) override {
    if (offset == 4) command_ = value;
    return ok_status();
  }
  Result<std::uint64_t> read_register(std::uint32_t offset) override {
    const std::lock_guard lock(mutex_);
    if (is_lost) return register_bits(offset) == 64 ? ~std::uint64_t{0} : 0xffffffff;
    if (offset == reg::kScuCtrl3) {
      follow();
      std::uint64_t value = low_[offset];
      value = field::kIsInReset.set(value, in_reset_ ? 1 : 0);
      return field::kIsRamOff.set(value, ram_off_ ? 1 : 0);
    }
    if (register_bits(offset) == 32) return low_[offset];
    if (!core_is_alive()) return kDead;
    if (offset == reg::kDmaPaused && !pause_works) return 0;
    if (offset == reg::kPageTableReady || offset == reg::kMsixTableReady) return ++ready_reads_ > 4 ? 1 : 0;
    return read_core(offset);
  }
  Status write_register(std::uint32_t offset, std::uint64_t value) override {
    const std::lock_guard lock(mutex_);
    if (is_lost) return ok_status();
    if (register_bits(offset) == 32) {
      low_[offset] = value;
      delay_ = 3;
      return ok_status();
    }
    EXPECT_TRUE(core_is_alive()) << "a core in reset was written to: " << register_name(offset);
    write_core(offset, value);
    return ok_status();
  }
  Result<Arena> map_arena(std::size_t bytes) override {
    bytes = (bytes + host_page - 1) / host_page * host_page;
    arena_.assign(bytes + host_page, 0);
    auto* const start = arena_.data() + (host_page - reinterpret_cast<std::uintptr_t>(arena_.data()) % host_page);
    memory_ = {start, bytes};
    return Arena{memory_, kBusAddress};
  }
  Result<int> set_vectors(int wanted) override {
    EXPECT_TRUE(wanted == 0 || core_is_alive()) << "the table of vectors is in the core";
    vectors_ = std::min(wanted, offered_vectors);
    if (vectors_ < wanted) vectors_ = std::min(vectors_, 1);
    // Two of them come up masked.
    for (const int vector : {0, 4}) {
      if (vector < vectors_) write_core(entry(vector), std::uint64_t{1} << 32);
    }
    return vectors_;
  }
  Result<std::uint32_t> wait_for_vectors(Milliseconds limit) override {
    const std::lock_guard lock(mutex_);
    if (core_is_alive() && !is_lost) work();
    const std::uint32_t sources = is_master() && !is_lost ? take_fired() : 0;
    std::uint32_t fired = 0;
    for (int source = 0; source < kPcieInterrupts; ++source) {
      if ((sources >> source & 1) == 0) continue;
      const int vector = vector_of(source);
      const bool is_masked = (read_core(entry(vector)) >> 32 & 1) != 0;
      if (vector < vectors_ && !is_masked) fired |= 1u << vector;
    }
    if (fired == 0) now += limit;
    return fired;
  }
  Status reset_function() override {
    ++function_resets;
    command_ = 0;
    low_.clear();
    in_reset_ = ram_off_ = true;
    pause_works = true;
    reset_core();
    return ok_status();
  }
  void sleep(Milliseconds time) override {
    const std::lock_guard lock(mutex_);
    now += time;
  }
  Milliseconds uptime() override {
    const std::lock_guard lock(mutex_);
    return now;
  }

  std::uint64_t low_register(std::uint32_t offset) { return low_[offset]; }
  // Sets the sensor's reading, by gasket's formula.
  void set_temperature(double celsius) {
    const auto raw = static_cast<std::uint64_t>(662 - (celsius * 1000 - 550) / 250);
    low_[reg::kThermalValue] = field::kTemperature.set(low_[reg::kThermalValue], raw);
  }

 private:
  static std::uint32_t entry(int vector) { return static_cast<std::uint32_t>(reg::kMsixTable + 16 * vector + 8); }
  int vector_of(int source) const {
    if (source >= 4 && source < 8)
      return static_cast<int>(read_core(reg::kScalarCoreVectors) >> 7 * (source - 4) & 127);
    if (source == 12) return static_cast<int>(read_core(reg::kFatalErrorVector));
    return static_cast<int>(read_core(reg::kInstructionQueueVector));
  }
  // A forced state takes effect only after it was read a few times.
  void follow() {
    if (--delay_ > 0) return;
    ram_off_ = field::kForceRamOff.get(low_[reg::kScuCtrl3]) == 3;
    const std::uint64_t wanted = field::kCoreReset.get(low_[reg::kScuCtrl2]);
    const bool was_alive = core_is_alive();
    if (wanted == 1) in_reset_ = true;
    if (wanted == 2) in_reset_ = false;
    if (was_alive == core_is_alive()) return;
    reset_core();
    write_core(reg::kHostInterruptCount, first_count);
    ready_reads_ = 0;
  }
  std::uint8_t* at_bus_address(std::uint64_t entry_value) const {
    if ((entry_value & 1) == 0) return nullptr;
    const std::uint64_t bus = entry_value & ~std::uint64_t{kPageBytes - 1};
    if (bus < kBusAddress || bus + kPageBytes > kBusAddress + memory_.size()) return nullptr;  // the IOMMU says no
    return memory_.data() + (bus - kBusAddress);
  }
  std::uint8_t* byte_at(std::uint64_t address) const override {
    if (!is_master()) return nullptr;
    const auto slot = [&](std::uint64_t index) {
      return read_core(static_cast<std::uint32_t>(reg::kPageTable + 8 * index));
    };
    std::uint8_t* page = nullptr;
    if (address < kExtendedAddress) {
      page = at_bus_address(slot(address >> 12 & 8191));
    } else if (const std::uint8_t* const table =
                   at_bus_address(slot(read_core(reg::kExtendedTable) + (address >> 21 & 8191)))) {
      std::uint64_t value = 0;
      for (std::size_t i = 8; i-- > 0;) value = value << 8 | table[(address >> 12 & 511) * 8 + i];
      page = at_bus_address(value);
    }
    return page == nullptr ? nullptr : page + address % kPageBytes;
  }

  std::mutex mutex_;
  std::uint16_t command_ = 0;
  std::map<std::uint32_t, std::uint64_t> low_;
  bool in_reset_ = true, ram_off_ = true;
  int delay_ = 0, ready_reads_ = 0, vectors_ = 0;
  std::vector<std::uint8_t> arena_;
  std::span<std::uint8_t> memory_;
};

VfioOptions small() {
  VfioOptions options;
  options.arena_bytes = 4 << 20;
  return options;
}

void expect_echo(PcieSession& session, unsigned seed, const FakeVfio& card) {
  static const auto model = PcieModel::load(testing::echo_package());
  const std::vector<std::uint8_t> input = testing::echo_input(seed);
  const auto outputs = session.run(*model, {input});
  ASSERT_TRUE(outputs.ok()) << outputs.status().message() << "; " << card.why();
  EXPECT_EQ((*outputs)[0], testing::echo_output(input, 1));
}

TEST(Vfio, RunsWithManyVectorsAndWithOne) {
  for (const int vectors : {kPcieInterrupts, 5, 1}) {
    FakeVfio card;
    card.offered_vectors = vectors;
    VfioBus bus(card, small());
    {
      const auto session = PcieSession::open(bus, {});
      ASSERT_TRUE(session.ok()) << session.status().message();
      EXPECT_EQ(card.vectors(), vectors == kPcieInterrupts ? vectors : 1);
      for (unsigned seed = 0; seed < 4; ++seed) expect_echo(**session, seed, card);
      EXPECT_TRUE((*session)->notes().empty()) << (*session)->notes().front();
      EXPECT_TRUE(card.core_is_alive());
    }
    EXPECT_FALSE(card.core_is_alive()) << "it is left in reset";
    EXPECT_FALSE(card.is_master());
    EXPECT_EQ(card.vectors(), 0);
    EXPECT_FALSE(card.is_open);
    EXPECT_EQ(card.function_resets, 0);
  }
}

// An ARM host with pages of 16 or 64 KiB: the chip's have 4 KiB all the same, and a buffer of one of them is a page of
// the chip's, wherever in a host's page it lies.
TEST(Vfio, TheHostsPagesMayBeLarger) {
  for (const std::size_t host_page : {std::size_t{16} << 10, std::size_t{64} << 10}) {
    FakeVfio card;
    card.host_page = host_page;
    VfioOptions options;
    options.arena_bytes = 200 << 10;  // no multiple of either
    VfioBus bus(card, options);
    const auto session = PcieSession::open(bus, {});
    ASSERT_TRUE(session.ok()) << session.status().message();
    for (unsigned seed = 0; seed < 40; ++seed) expect_echo(**session, seed, card);
    EXPECT_TRUE((*session)->notes().empty()) << (*session)->notes().front();
  }
}

TEST(Vfio, TheCountOfInterruptsWraps) {
  FakeVfio card;
  card.first_count = 65534;
  VfioBus bus(card, small());
  const auto session = PcieSession::open(bus, {});
  ASSERT_TRUE(session.ok()) << session.status().message();
  for (unsigned seed = 0; seed < 6; ++seed) expect_echo(**session, seed, card);
  EXPECT_TRUE((*session)->notes().empty());
}

// Many buffers: more than a megabyte of the arena is used again and again, and extended tables are.
TEST(Vfio, MemoryIsUsedAgain) {
  FakeVfio card;
  VfioBus bus(card, small());
  const auto session = PcieSession::open(bus, {});
  ASSERT_TRUE(session.ok());
  for (unsigned seed = 0; seed < 400; ++seed) expect_echo(**session, seed, card);
  EXPECT_TRUE((*session)->notes().empty());
}

// The arena has room for the buffers of one request and a half: the others wait for those that are under way.
TEST(Vfio, ThreadsShareASmallArena) {
  for (const int vectors : {kPcieInterrupts, 1}) {
    FakeVfio card;
    card.offered_vectors = vectors;
    VfioOptions options;
    options.arena_bytes = 260 << 10;
    VfioBus bus(card, options);
    const auto session = PcieSession::open(bus, {});
    ASSERT_TRUE(session.ok()) << session.status().message();
    const auto a = PcieModel::load(testing::echo_package(7, 512, 1)),
               b = PcieModel::load(testing::echo_package(8, 512, 2));
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (unsigned i = 0; i < 10; ++i) {
          const bool first = (t + i) % 2 == 0;
          const std::vector<std::uint8_t> input = testing::echo_input(t * 16 + i);
          const auto outputs = (*session)->run(first ? *a : *b, {input});
          ASSERT_TRUE(outputs.ok()) << outputs.status().message();
          EXPECT_EQ((*outputs)[0], testing::echo_output(input, first ? 1 : 2));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_TRUE((*session)->notes().empty()) << (*session)->notes().front();
    EXPECT_EQ((*session)->opened(), 1);
  }
}

TEST(Vfio, AProgramThatDoesNotFitIntoTheArenaIsAnError) {
  FakeVfio card;
  VfioOptions options;
  options.arena_bytes = 100 << 10;
  VfioBus bus(card, options);
  const auto session = PcieSession::open(bus, {});
  ASSERT_TRUE(session.ok()) << session.status().message();
  const auto large = PcieModel::load(testing::echo_package(8, 512, 2));
  const std::vector<std::uint8_t> input = testing::echo_input(2);
  const auto outputs = (*session)->run(*large, {input});
  ASSERT_FALSE(outputs.ok());
  EXPECT_EQ(outputs.status().code(), StatusCode::kResourceExhausted);
  expect_echo(**session, 1, card);
}

// A process was killed while its program ran: the core is not in reset, and its transfers cannot be paused.
TEST(Vfio, WhatCannotBePausedIsResetByTheBus) {
  FakeVfio card;
  VfioBus bus(card, small());
  {
    const auto first = PcieSession::open(bus, {});
    ASSERT_TRUE(first.ok());
    card.pause_works = false;  // closing cannot end it properly either
  }
  EXPECT_TRUE(card.core_is_alive());
  EXPECT_FALSE(card.is_master()) << "at least it cannot write to memory any more";
  const auto session = PcieSession::open(bus, {});
  ASSERT_TRUE(session.ok()) << session.status().message();
  EXPECT_EQ(card.function_resets, 1);
  expect_echo(**session, 1, card);
}

TEST(Vfio, ALostLinkIsAnErrorAndComesBack) {
  FakeVfio card;
  VfioBus bus(card, small());
  const auto session = PcieSession::open(bus, {});
  ASSERT_TRUE(session.ok());
  expect_echo(**session, 1, card);
  card.is_lost = true;
  const auto model = PcieModel::load(testing::echo_package());
  const std::vector<std::uint8_t> input = testing::echo_input(2);
  const auto outputs = (*session)->run(*model, {input});
  ASSERT_FALSE(outputs.ok());
  EXPECT_NE(outputs.status().message().find("all ones"), std::string::npos) << outputs.status().message();
  card.is_lost = false;
  expect_echo(**session, 3, card);
}

// 85, 90 and 95 degrees are gasket's limits; a lower clock that was asked for stays.
TEST(Vfio, AHotChipRunsSlower) {
  const auto divider = [](FakeVfio& card) { return field::kClocks.get(card.low_register(reg::kScuCtrl3)) & 3; };
  for (const Clock clock : {Clock::kMax, Clock::kMedium}) {
    FakeVfio card;
    VfioBus bus(card, small());
    PcieSessionOptions options;
    options.clock = clock;
    const auto session = PcieSession::open(bus, options);
    ASSERT_TRUE(session.ok()) << session.status().message();
    const std::uint64_t asked = clock == Clock::kMax ? 0 : 2;
    for (const auto& [celsius, least] :
         std::vector<std::pair<double, std::uint64_t>>{{40, 0}, {86, 1}, {91, 2}, {96, 3}, {84, 0}}) {
      card.set_temperature(celsius);
      card.now += Milliseconds(5000);
      expect_echo(**session, 1, card);
      EXPECT_EQ(divider(card), std::max(asked, least)) << celsius;
    }
    EXPECT_EQ((*session)->notes().size(), 4u) << "three times warmer, once cooler";
    EXPECT_NE((*session)->notes()[0].find("degrees"), std::string::npos);
    EXPECT_EQ(field::kShutdownThreshold.get(card.low_register(reg::kThermalShutdown)), 265u);
    EXPECT_EQ(field::kShutdownEnable.get(card.low_register(reg::kThermalShutdown)), 1u);
  }
}

TEST(Vfio, TheTemperatureIsReadEveryFiveSeconds) {
  FakeVfio card;
  VfioBus bus(card, small());
  const auto session = PcieSession::open(bus, {});
  ASSERT_TRUE(session.ok()) << session.status().message();
  expect_echo(**session, 1, card);
  card.set_temperature(96);
  card.now += Milliseconds(4000);
  expect_echo(**session, 2, card);
  EXPECT_TRUE((*session)->notes().empty());
  card.now += Milliseconds(1000);
  expect_echo(**session, 3, card);
  EXPECT_EQ((*session)->take_notes().size(), 1u);
}

TEST(Vfio, CardsAreFoundByTheirNumbers) {
  const std::string devices = ::testing::TempDir() + "reef_pci_" + std::to_string(::getpid());
  const auto add = [&](const std::string& address, const char* vendor, const char* device) {
    std::filesystem::create_directories(devices + "/" + address);
    std::ofstream(devices + "/" + address + "/vendor") << vendor << "\n";
    std::ofstream(devices + "/" + address + "/device") << device << "\n";
  };
  add("0000:05:00.0", "0x1ac1", "0x089a");
  add("0000:03:00.0", "0x1ac1", "0x089a");
  add("0000:04:00.0", "0x8086", "0x089a");
  EXPECT_EQ(list_pci_edge_tpus(devices), (std::vector<std::string>{"0000:03:00.0", "0000:05:00.0"}));
  std::filesystem::remove_all(devices);
  // No such card on any machine: an error, not a crash.
  const auto kernel = make_system_vfio("ffff:ff:1f.7");
  const Status status = kernel->open();
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find("vfio-pci"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace reef::driver
