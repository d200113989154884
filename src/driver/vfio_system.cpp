// SPDX-License-Identifier: Apache-2.0
#include "driver/vfio_system.h"

#include <fcntl.h>
#include <linux/vfio.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include <fmt/format.h>

#include "driver/holders.h"
#include "driver/usb.h"

namespace reef::driver {
namespace {

namespace fs = std::filesystem;
using SteadyClock = std::chrono::steady_clock;

constexpr std::size_t kBarBytes = 1 << 20;
// Below 4 GiB, and away from what x86 (fee00000) and ARM (8000000) keep for interrupts.
constexpr std::uint64_t kArenaBusAddress = 0x40000000;

std::string first_line(const fs::path& path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  return line;
}

class SystemVfio final : public VfioKernel {
 public:
  explicit SystemVfio(std::string address) : address_(std::move(address)) { events_.fill(-1); }
  ~SystemVfio() override { SystemVfio::close(); }

  Status open() override {
    const CardBinding binding = binding_of(address_);
    if (binding.driver != "vfio-pci") {
      return make_error(StatusCode::kNotFound,
                        "the card at {} belongs to {}: bind it to vfio-pci (driver_override), or use /dev/apex_N",
                        address_, binding.driver.empty() ? "no driver" : binding.driver);
    }
    if (binding.iommu_group.empty()) {
      return unsupported("the machine's IOMMU is off: switch it on in its firmware and with intel_iommu=on");
    }
    const Status status = take(binding.iommu_group);
    if (!status.ok()) close();
    return status;
  }

  void close() override {
    (void)set_vectors(0);
    if (bar_ != nullptr) ::munmap(bar_, kBarBytes);
    if (!arena_.memory.empty()) ::munmap(arena_.memory.data(), arena_.memory.size());
    for (int* file : {&device_, &group_, &container_}) {
      if (*file >= 0) ::close(*file);
      *file = -1;
    }
    bar_ = nullptr;
    arena_ = {};
  }

  Result<std::uint16_t> read_config(std::uint32_t offset) override {
    std::uint16_t value = 0;
    const auto place = static_cast<off_t>(config_offset_ + offset);
    if (::pread(device_, &value, sizeof value, place) != sizeof value) return failure("reading the configuration");
    return value;
  }
  Status write_config(std::uint32_t offset, std::uint16_t value) override {
    const auto place = static_cast<off_t>(config_offset_ + offset);
    if (::pwrite(device_, &value, sizeof value, place) != sizeof value) return failure("writing the configuration");
    return ok_status();
  }
  Result<std::uint64_t> read_register(std::uint32_t offset) override {
    REEF_RETURN_IF_ERROR(check(offset));
    if (register_bits(offset) == 64) return std::uint64_t{*reinterpret_cast<volatile std::uint64_t*>(bar_ + offset)};
    return std::uint64_t{*reinterpret_cast<volatile std::uint32_t*>(bar_ + offset)};
  }
  Status write_register(std::uint32_t offset, std::uint64_t value) override {
    REEF_RETURN_IF_ERROR(check(offset));
    __sync_synchronize();  // tables and buffers are in memory before the chip hears of them
    if (register_bits(offset) == 64) {
      *reinterpret_cast<volatile std::uint64_t*>(bar_ + offset) = value;
    } else {
      *reinterpret_cast<volatile std::uint32_t*>(bar_ + offset) = static_cast<std::uint32_t>(value);
    }
    return ok_status();
  }

  Result<Arena> map_arena(std::size_t bytes) override {
    const auto host_page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    bytes = (bytes + host_page - 1) / host_page * host_page;
    void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return failure("allocating memory for the card");
    arena_ = {{static_cast<std::uint8_t*>(memory), bytes}, kArenaBusAddress};
    vfio_iommu_type1_dma_map map{};
    map.argsz = sizeof map;
    map.flags = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE;
    map.vaddr = reinterpret_cast<std::uintptr_t>(memory);
    map.iova = kArenaBusAddress;
    map.size = bytes;
    if (::ioctl(container_, VFIO_IOMMU_MAP_DMA, &map) != 0) {
      if (errno == ENOMEM) {
        return make_error(StatusCode::kResourceExhausted,
                          "the card's memory of {} MiB cannot be locked: raise the limit of locked memory (ulimit -l)",
                          bytes >> 20);
      }
      return failure("mapping memory for the card");
    }
    return arena_;
  }

  Result<int> set_vectors(int wanted) override {
    if (device_ < 0) return 0;
    const auto request = [&](int count) {
      std::array<std::uint8_t, sizeof(vfio_irq_set) + sizeof(int) * kPcieInterrupts> bytes{};
      vfio_irq_set set{};
      set.argsz = static_cast<std::uint32_t>(sizeof(vfio_irq_set) + sizeof(int) * static_cast<std::size_t>(count));
      set.flags = (count == 0 ? VFIO_IRQ_SET_DATA_NONE : VFIO_IRQ_SET_DATA_EVENTFD) | VFIO_IRQ_SET_ACTION_TRIGGER;
      set.index = VFIO_PCI_MSIX_IRQ_INDEX;
      set.count = static_cast<std::uint32_t>(count);
      std::memcpy(bytes.data(), &set, sizeof set);
      std::memcpy(bytes.data() + sizeof set, events_.data(), sizeof(int) * static_cast<std::size_t>(count));
      return ::ioctl(device_, VFIO_DEVICE_SET_IRQS, bytes.data());
    };
    if (wanted == 0) {
      if (vectors_ > 0) (void)request(0);
      vectors_ = 0;
      for (int& event : events_) {
        if (event >= 0) ::close(event);
        event = -1;
      }
      return 0;
    }
    for (int i = 0; i < wanted; ++i) {
      if (events_[at(i)] < 0) {
        events_[at(i)] = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
      }
    }
    for (const int count : {wanted, 1}) {
      const int result = request(count);
      if (result < 0) continue;
      vectors_ = result > 0 && result < count ? 0 : count;  // a number says how many there could be
      if (vectors_ > 0) return vectors_;
    }
    return failure("asking for interrupts");
  }
  Result<std::uint32_t> wait_for_vectors(Milliseconds limit) override {
    std::array<pollfd, kPcieInterrupts> files{};
    const auto count = static_cast<std::size_t>(vectors_);
    for (std::size_t i = 0; i < count; ++i) files[i] = {events_[i], POLLIN, 0};
    const auto until = SteadyClock::now() + limit;
    int ready = -1;
    for (Milliseconds left = limit;; left = std::chrono::duration_cast<Milliseconds>(until - SteadyClock::now())) {
      ready = ::poll(files.data(), count, static_cast<int>(std::clamp<Milliseconds::rep>(left.count(), 0, 1 << 30)));
      if (ready >= 0) break;
      if (errno != EINTR) return failure("waiting for interrupts");  // a signal of the program's
    }
    std::uint32_t fired = 0;
    for (std::size_t i = 0; ready > 0 && i < count; ++i) {
      std::uint64_t times = 0;
      if ((files[i].revents & POLLIN) != 0 && ::read(files[i].fd, &times, sizeof times) == sizeof times) {
        fired |= 1u << i;
      }
    }
    return fired;
  }

  Status reset_function() override {
    return ::ioctl(device_, VFIO_DEVICE_RESET) == 0 ? ok_status() : failure("resetting the card");
  }
  void sleep(Milliseconds time) override { std::this_thread::sleep_for(time); }
  Milliseconds uptime() override {
    return std::chrono::duration_cast<Milliseconds>(SteadyClock::now().time_since_epoch());
  }

 private:
  Status failure(std::string_view what) const {
    return make_error(StatusCode::kIoError, "{} failed: {}", what, std::strerror(errno));
  }
  Status check(std::uint32_t offset) const {
    const bool fits = bar_ != nullptr && offset + 8 <= kBarBytes;
    return fits ? ok_status() : internal_error("the card has no register {:#x}", offset);
  }

  Status take(const std::string& group) {
    container_ = ::open("/dev/vfio/vfio", O_RDWR | O_CLOEXEC);
    if (container_ < 0) return failure("opening /dev/vfio/vfio");
    const std::string path = "/dev/vfio/" + group;
    group_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (group_ < 0 && errno == EACCES) {
      return unsupported("there is no permission to use {}: give it to your group with a udev rule, or run as root",
                         path);
    }
    if (group_ < 0 && errno == EBUSY) {
      const std::string holders = holders_of("/proc", path);
      return in_use_error(holders.empty() ? "another program" : holders).in(path);
    }
    if (group_ < 0) return failure("opening " + path);
    vfio_group_status status{};
    status.argsz = sizeof status;
    if (::ioctl(group_, VFIO_GROUP_GET_STATUS, &status) != 0) return failure("asking for the IOMMU group");
    if ((status.flags & VFIO_GROUP_FLAGS_VIABLE) == 0) {
      return unsupported("other devices of IOMMU group {} belong to other drivers: bind all of them to vfio-pci",
                         group);
    }
    if (::ioctl(group_, VFIO_GROUP_SET_CONTAINER, &container_) != 0) return failure("joining the IOMMU group");
    if (::ioctl(container_, VFIO_SET_IOMMU, VFIO_TYPE1v2_IOMMU) != 0) return failure("starting the IOMMU");
    device_ = ::ioctl(group_, VFIO_GROUP_GET_DEVICE_FD, address_.c_str());
    if (device_ < 0) return failure("opening the card at " + address_);
    return map_bar();
  }

  Status map_bar() {
    vfio_region_info config{}, bar{};
    config.argsz = sizeof config;
    config.index = VFIO_PCI_CONFIG_REGION_INDEX;
    bar.argsz = sizeof bar;
    bar.index = VFIO_PCI_BAR2_REGION_INDEX;
    if (::ioctl(device_, VFIO_DEVICE_GET_REGION_INFO, &config) != 0 ||
        ::ioctl(device_, VFIO_DEVICE_GET_REGION_INFO, &bar) != 0) {
      return failure("asking for the card's registers");
    }
    if (bar.size < kBarBytes || (bar.flags & VFIO_REGION_INFO_FLAG_MMAP) == 0) {
      return unsupported("the card's registers cannot be mapped: {} bytes", static_cast<std::uint64_t>(bar.size));
    }
    config_offset_ = config.offset;
    void* const memory =
        ::mmap(nullptr, kBarBytes, PROT_READ | PROT_WRITE, MAP_SHARED, device_, static_cast<off_t>(bar.offset));
    if (memory == MAP_FAILED) return failure("mapping the card's registers");
    bar_ = static_cast<std::uint8_t*>(memory);
    return ok_status();
  }

  const std::string address_;
  int container_ = -1, group_ = -1, device_ = -1;
  std::uint64_t config_offset_ = 0;
  std::uint8_t* bar_ = nullptr;
  Arena arena_;
  std::array<int, kPcieInterrupts> events_;
  int vectors_ = 0;
};

}  // namespace

std::vector<std::string> list_pci_edge_tpus(const std::string& devices) {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator entry(devices, error), end; !error && entry != end; entry.increment(error)) {
    if (first_line(entry->path() / "vendor") != "0x1ac1" || first_line(entry->path() / "device") != "0x089a") continue;
    found.push_back(entry->path().filename().string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

CardBinding binding_of(const std::string& address, const std::string& devices) {
  const fs::path device = fs::path(devices) / address;
  std::error_code error;
  CardBinding binding;
  binding.driver = fs::read_symlink(device / "driver", error).filename().string();
  binding.iommu_group = fs::read_symlink(device / "iommu_group", error).filename().string();
  return binding;
}

std::unique_ptr<VfioKernel> make_system_vfio(const std::string& address) {
  return std::make_unique<SystemVfio>(address);
}

}  // namespace reef::driver
