// SPDX-License-Identifier: Apache-2.0
#include "driver/vfio.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "driver/thermal.h"

namespace reef::driver {
namespace {

constexpr std::uint32_t kCommand = 4;  // of configuration space
constexpr std::uint16_t kMemoryAndMaster = 6, kMaster = 4;

constexpr std::uint32_t kTableSlots = 8192;
constexpr std::uint64_t kValid = 1;
constexpr std::uint64_t kAllOnes32 = 0xffffffff;
constexpr Milliseconds kAfterFunctionReset{100};

constexpr std::uint64_t kHoldReset = 1, kLeaveReset = 2;  // field::kCoreReset
constexpr std::uint64_t kGated = 1, kNotGated = 0;        // field::kCoreClockGate
constexpr std::uint64_t kRamOff = 3, kRamOn = 0;          // field::kForceRamOff
constexpr std::uint64_t kNeverAsleep = 2;                 // field::kPowerOverride
constexpr std::uint64_t kBridgeProcessorFast = 8;         // of field::kClocks; without use on PCIe, as gasket sets it
constexpr std::uint64_t kMayIdleBits = std::uint64_t{3} << 31;  // gasket clears bit 32, libedgetpu names bit 31

// Vectors of all sources if each has its own, as gasket numbers them; all 0 if one has to do.
struct Route {
  std::uint32_t offset;
  std::uint64_t separate;
};
constexpr std::array<Route, 7> kRoutes = {{{reg::kInstructionQueueVector, 0},
                                           {reg::kInputQueueVector, 1},
                                           {reg::kParameterQueueVector, 2},
                                           {reg::kOutputQueueVector, 3},
                                           {reg::kScalarCoreVectors, 0xe18284},
                                           {reg::kTopLevelVectors, 0x1628488},
                                           {reg::kFatalErrorVector, 12}}};

class VfioDevice final : public PcieDevice {
 public:
  VfioDevice(VfioKernel& kernel, const VfioOptions& options) : kernel_(kernel), options_(options) {}
  ~VfioDevice() override {
    // Before the memory goes, the chip must not be able to write to it. A failure leaves bus mastering off, at least.
    (void)kernel_.set_vectors(0);
    if (is_started_) {
      (void)reset();
      (void)enter_reset();
    }
    if (const auto command = kernel_.read_config(kCommand); command.ok()) {
      (void)kernel_.write_config(kCommand, static_cast<std::uint16_t>(*command & ~kMaster));
    }
    kernel_.close();
  }

  Status start() {
    REEF_ASSIGN_OR_RETURN(arena_, kernel_.map_arena(options_.arena_bytes));
    used_.assign(arena_.memory.size() / kPageBytes, false);
    REEF_RETURN_IF_ERROR(make_reachable());
    REEF_ASSIGN_OR_RETURN(const std::uint64_t power, read(reg::kScuCtrl3));
    if (power == kAllOnes32) {
      return make_error(StatusCode::kIoError,
                        "the card does not answer: its registers read all ones. Check that it "
                        "sits well, remove and rescan it, or switch the machine off and on");
    }
    if (const Status status = reset(); !status.ok()) {
      // A chip that does not reset by its registers may reset by the bus. Then it begins from nothing.
      REEF_RETURN_IF_ERROR(kernel_.reset_function());
      kernel_.sleep(kAfterFunctionReset);
      REEF_RETURN_IF_ERROR(make_reachable());
      REEF_RETURN_IF_ERROR(reset());
    }
    is_started_ = true;
    REEF_RETURN_IF_ERROR(start_thermal_sensor(*this));
    return clear_table();
  }

  // The clock is the slower one of that which was asked for and that which the temperature allows.
  Status tend() override {
    const Milliseconds now = kernel_.uptime();
    if (last_look_ && now - *last_look_ < kThermalInterval) return ok_status();
    last_look_ = now;
    REEF_ASSIGN_OR_RETURN(const std::optional<double> celsius, read_temperature(*this));
    if (!celsius) return ok_status();
    const int thermal = divider_for(*celsius);
    if (thermal == thermal_divider_) return ok_status();
    warnings_.push_back(thermal > thermal_divider_
                            ? fmt::format("the chip has {:.1f} degrees: it runs at 1/{} of its clock", *celsius,
                                          1 << std::max(thermal, wanted_divider_))
                            : fmt::format("the chip has cooled to {:.1f} degrees", *celsius));
    thermal_divider_ = thermal;
    return set_clock();
  }
  std::vector<std::string> take_warnings() override { return std::exchange(warnings_, {}); }

  Result<std::uint64_t> read(std::uint32_t offset) override { return kernel_.read_register(offset); }
  Status write(std::uint32_t offset, std::uint64_t value) override { return kernel_.write_register(offset, value); }
  void sleep(Milliseconds time) override { kernel_.sleep(time); }

  // Level 3 is the highest clock, divider 0.
  Status set_performance(std::uint32_t level) override {
    wanted_divider_ = 3 - static_cast<int>(std::min(level, 3u));
    return set_clock();
  }
  Status partition(std::uint64_t simple_slots) override {
    simple_slots_ = simple_slots;
    return write(reg::kExtendedTable, simple_slots);
  }
  Result<std::span<std::uint8_t>> coherent_memory(std::size_t bytes) override {
    const auto memory = allocate(bytes);
    if (memory.empty()) return make_error(StatusCode::kResourceExhausted, "there is no memory for the chip's queue");
    return memory;
  }

  std::span<std::uint8_t> allocate(std::size_t bytes) override {
    const std::size_t wanted = std::max<std::size_t>(in_pages(bytes) / kPageBytes, 1);
    std::size_t run = 0;
    for (std::size_t page = 0; page < used_.size(); ++page) {
      run = used_[page] ? 0 : run + 1;
      if (run < wanted) continue;
      const std::size_t first = page + 1 - wanted;
      std::fill_n(used_.begin() + static_cast<std::ptrdiff_t>(first), wanted, true);
      const auto memory = arena_.memory.subspan(first * kPageBytes, wanted * kPageBytes);
      std::memset(memory.data(), 0, memory.size());
      return memory;
    }
    return {};
  }
  void release(std::span<std::uint8_t> memory) override {
    const auto first = static_cast<std::size_t>(memory.data() - arena_.memory.data()) / kPageBytes;
    std::fill_n(used_.begin() + static_cast<std::ptrdiff_t>(first), memory.size() / kPageBytes, false);
  }

  Status map(std::span<std::uint8_t> memory, std::uint64_t device_address, DmaDirection /*direction*/) override {
    for (std::size_t at = 0; at < memory.size(); at += kPageBytes) {
      REEF_RETURN_IF_ERROR(set_page(device_address + at, bus_address(memory.data() + at) | kValid));
    }
    return ok_status();
  }
  Status unmap(std::span<std::uint8_t> memory, std::uint64_t device_address) override {
    for (std::size_t at = 0; at < memory.size(); at += kPageBytes) {
      REEF_RETURN_IF_ERROR(set_page(device_address + at, 0));
    }
    return ok_status();
  }

  // The table of vectors is in the core's memory: only after a reset, and again after each.
  Status enable_interrupts() override {
    REEF_ASSIGN_OR_RETURN(vectors_, kernel_.set_vectors(kPcieInterrupts));
    for (int vector = 0; vector < vectors_; ++vector) {
      const auto entry = static_cast<std::uint32_t>(reg::kMsixTable + 16 * vector + 8);  // data and, above it, control
      const auto masked = Field{entry, 32, 1};
      REEF_ASSIGN_OR_RETURN(const std::uint64_t value, read(entry));
      if (masked.get(value) != 0) REEF_RETURN_IF_ERROR(write(entry, masked.set(value, 0)));
    }
    for (const Route& route : kRoutes) {
      REEF_RETURN_IF_ERROR(write(route.offset, vectors_ >= kPcieInterrupts ? route.separate : 0));
    }
    return ok_status();
  }
  // Causes are read from the chip, so that one vector is enough for all.
  Result<std::uint32_t> wait_for_interrupts(Milliseconds limit) override {
    REEF_ASSIGN_OR_RETURN(const std::uint32_t vectors, kernel_.wait_for_vectors(limit));
    if (vectors == 0) return 0u;
    REEF_ASSIGN_OR_RETURN(const std::uint64_t queue, read(reg::kQueueInterruptStatus));
    REEF_ASSIGN_OR_RETURN(const std::uint64_t core, read(reg::kHostInterruptStatus));
    REEF_ASSIGN_OR_RETURN(const std::uint64_t fatal, read(reg::kFatalStatus));
    if (fatal == ~std::uint64_t{0})
      return make_error(StatusCode::kIoError, "the card is lost: registers read all ones");
    std::uint32_t fired = 0;
    if ((queue & 1) != 0) fired |= 1u << static_cast<int>(PcieInterrupt::kInstructionQueue);
    fired |= static_cast<std::uint32_t>(core & 0xf) << static_cast<int>(PcieInterrupt::kScalarCore0);
    if ((fatal & 1) != 0) fired |= 1u << static_cast<int>(PcieInterrupt::kFatalError);
    return fired;
  }

 private:
  Status set_clock() {
    const auto divider = static_cast<std::uint64_t>(std::max(wanted_divider_, thermal_divider_));
    return change(field::kClocks, kBridgeProcessorFast | divider);
  }

  // VFIO clears bus mastering when it opens a device, and a reset does, too.
  Status make_reachable() {
    REEF_ASSIGN_OR_RETURN(const std::uint16_t command, kernel_.read_config(kCommand));
    return kernel_.write_config(kCommand, static_cast<std::uint16_t>(command | kMemoryAndMaster));
  }

  // ---- Reset and power ----

  Status enter_reset() {
    REEF_ASSIGN_OR_RETURN(const std::uint64_t power, read(reg::kScuCtrl3));
    if (field::kIsInReset.get(power) != 0) return ok_status();  // the core does not answer
    REEF_ASSIGN_OR_RETURN(const std::uint64_t idle, read(reg::kIdle));
    REEF_RETURN_IF_ERROR(write(reg::kIdle, idle & ~kMayIdleBits));
    REEF_RETURN_IF_ERROR(write(reg::kDmaPause, 1));
    REEF_RETURN_IF_ERROR(wait_for(Field{reg::kDmaPaused, 0, 1}, 1, options_.settle));
    REEF_RETURN_IF_ERROR(change(field::kCoreReset, kHoldReset));
    REEF_RETURN_IF_ERROR(change(field::kCoreClockGate, kGated));
    REEF_RETURN_IF_ERROR(change(field::kForceRamOff, kRamOff));
    return wait_for(field::kIsRamOff, 1, options_.settle);
  }
  Status quit_reset() {
    REEF_RETURN_IF_ERROR(change(field::kForceRamOff, kRamOn));
    REEF_RETURN_IF_ERROR(change(field::kCoreClockGate, kNotGated));
    REEF_RETURN_IF_ERROR(change(field::kCoreReset, kLeaveReset));
    REEF_RETURN_IF_ERROR(wait_for(field::kIsRamOff, 0, options_.settle));
    REEF_RETURN_IF_ERROR(wait_for(field::kIsInReset, 0, options_.settle));
    REEF_RETURN_IF_ERROR(change(field::kPowerOverride, kNeverAsleep));
    REEF_RETURN_IF_ERROR(wait_until_ready(reg::kPageTableReady));
    return wait_until_ready(reg::kMsixTableReady);
  }
  // Erases the page table, routing of interrupts, the queue and what the chip holds.
  Status reset() {
    REEF_RETURN_IF_ERROR(enter_reset());
    return quit_reset();
  }
  Status wait_until_ready(std::uint32_t offset) {
    for (Milliseconds waited{0};; waited += Milliseconds(1)) {
      REEF_ASSIGN_OR_RETURN(const std::uint64_t value, read(offset));
      if (value != 0) return ok_status();
      if (waited >= options_.settle) {
        return make_error(StatusCode::kIoError, "{} stays 0: the core's memory does not start", register_name(offset));
      }
      sleep(Milliseconds(1));
    }
  }

  // ---- The chip's page table ----

  std::uint64_t bus_address(const std::uint8_t* memory) const {
    return arena_.bus_address + static_cast<std::uint64_t>(memory - arena_.memory.data());
  }
  Status clear_table() {
    for (std::uint32_t slot = 0; slot < kTableSlots; ++slot) REEF_RETURN_IF_ERROR(write(reg::kPageTable + 8 * slot, 0));
    tables_.clear();
    return partition(kTableSlots);
  }
  Status set_page(std::uint64_t address, std::uint64_t entry) {
    if (address < kExtendedAddress) {
      const std::uint64_t slot = address / kPageBytes;
      if (slot >= simple_slots_) return internal_error("the chip has no simple page at {:#x}", address);
      return write(static_cast<std::uint32_t>(reg::kPageTable + 8 * slot), entry);
    }
    const std::uint64_t slot = (address - kExtendedAddress) >> 21, page = address >> 12 & 511;
    if (simple_slots_ + slot >= kTableSlots) return internal_error("the chip has no extended page at {:#x}", address);
    REEF_ASSIGN_OR_RETURN(const std::span<std::uint8_t> table, extended_table(slot));
    for (std::size_t i = 0; i < 8; ++i) table[page * 8 + i] = static_cast<std::uint8_t>(entry >> (8 * i));
    return ok_status();
  }
  // A page of entries in host memory; empty before the chip hears of it, and there until it is closed.
  Result<std::span<std::uint8_t>> extended_table(std::uint64_t slot) {
    if (const auto found = tables_.find(slot); found != tables_.end()) return found->second;
    const auto table = allocate(kPageBytes);
    if (table.empty())
      return make_error(StatusCode::kResourceExhausted, "there is no memory for the chip's page table");
    const auto place = static_cast<std::uint32_t>(reg::kPageTable + 8 * (simple_slots_ + slot));
    REEF_RETURN_IF_ERROR(write(place, bus_address(table.data()) | kValid));
    tables_[slot] = table;
    return table;
  }

  VfioKernel& kernel_;
  const VfioOptions options_;
  VfioKernel::Arena arena_;
  std::vector<bool> used_;  // pages of the arena
  std::uint64_t simple_slots_ = kTableSlots;
  std::map<std::uint64_t, std::span<std::uint8_t>> tables_;  // by extended slot
  int vectors_ = 0;
  bool is_started_ = false;
  int wanted_divider_ = 0, thermal_divider_ = 0;
  std::optional<Milliseconds> last_look_;  // at the temperature
  std::vector<std::string> warnings_;
};

}  // namespace

Result<std::unique_ptr<PcieDevice>> VfioBus::open() {
  REEF_RETURN_IF_ERROR(kernel_.open());
  auto device = std::make_unique<VfioDevice>(kernel_, options_);
  REEF_RETURN_IF_ERROR(device->start());
  return std::unique_ptr<PcieDevice>(std::move(device));
}

}  // namespace reef::driver
