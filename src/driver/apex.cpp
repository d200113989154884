// SPDX-License-Identifier: Apache-2.0
#include "driver/apex.h"

#include <dirent.h>
#include <fcntl.h>
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

#include "driver/usb.h"

namespace reef::driver {
namespace {

// Arguments of gasket's and apex's calls.
struct EventArgument {
  std::uint64_t interrupt, file;
};
struct PartitionArgument {
  std::uint64_t table, simple_slots, unused[2];
};
struct MapArgument {
  std::uint64_t table, bytes, host, device;
  std::uint32_t flags, padding;
};
struct UnmapArgument {
  std::uint64_t table, bytes, host, device;
};
struct CoherentArgument {
  std::uint64_t table, enable, bytes, offset;
};
struct GateArgument {
  std::uint64_t enable, force_idle;
};

using SteadyClock = std::chrono::steady_clock;

constexpr unsigned kGasket = 0xdc, kApex = 0x7f;
constexpr unsigned long kSetEvent = _IOW(kGasket, 1, EventArgument);
constexpr unsigned long kPartition = _IOW(kGasket, 7, PartitionArgument);
constexpr unsigned long kUnmap = _IOW(kGasket, 9, UnmapArgument);
constexpr unsigned long kCoherent = _IOWR(kGasket, 11, CoherentArgument);
constexpr unsigned long kMap = _IOW(kGasket, 12, MapArgument);
constexpr unsigned long kGateClock = _IOW(kApex, 0, GateArgument);
constexpr unsigned long kPerformance = _IOW(kApex, 1, std::uint32_t);

constexpr std::size_t kWindowBytes = 4096;
constexpr std::array<std::uint32_t, 3> kWindows = {0x40000, 0x44000, 0x48000};
constexpr std::array<int, 10> kApexInterrupts = {0, 4, 5, 6, 7, 8, 9, 10, 11, 12};  // the other queues are not used

class SystemKernel final : public ApexKernel {
 public:
  int open(const std::string& path) override { return ::open(path.c_str(), O_RDWR | O_CLOEXEC); }
  void close(int file) override { ::close(file); }
  int ioctl(int file, unsigned long request, void* argument) override { return ::ioctl(file, request, argument); }
  void* map(int file, std::size_t bytes, std::uint64_t offset) override {
    void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, static_cast<off_t>(offset));
    return memory == MAP_FAILED ? nullptr : memory;
  }
  void unmap(void* memory, std::size_t bytes) override { ::munmap(memory, bytes); }
  int event_file() override { return ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }
  int poll(std::span<pollfd> files, int milliseconds) override {
    return ::poll(files.data(), files.size(), milliseconds);
  }
  ssize_t read(int file, void* to, std::size_t bytes) override { return ::read(file, to, bytes); }
  void sleep(Milliseconds time) override { std::this_thread::sleep_for(time); }
  int last_error() override { return errno; }
};

class ApexDevice final : public PcieDevice {
 public:
  ApexDevice(ApexKernel& kernel, int file) : kernel_(kernel), file_(file) { events_.fill(-1); }
  ~ApexDevice() override {
    if (coherent_ != nullptr) {
      CoherentArgument argument{0, 0, coherent_bytes_, coherent_offset_};
      (void)kernel_.ioctl(file_, kCoherent, &argument);
      kernel_.unmap(coherent_, coherent_bytes_);
    }
    for (void* window : windows_) {
      if (window != nullptr) kernel_.unmap(window, kWindowBytes);
    }
    kernel_.close(file_);  // the kernel resets the chip and forgets its pages
    for (const int event : events_) {
      if (event >= 0) kernel_.close(event);
    }
  }

  Status start() {
    GateArgument gate{0, 0};
    REEF_RETURN_IF_ERROR(call(kGateClock, &gate, "switching the clock on"));
    for (std::size_t i = 0; i < kWindows.size(); ++i) {
      windows_[i] = kernel_.map(file_, kWindowBytes, kWindows[i]);
      if (windows_[i] == nullptr) return failure("mapping the registers");
    }
    return ok_status();
  }

  Result<std::uint64_t> read(std::uint32_t offset) override {
    REEF_ASSIGN_OR_RETURN(volatile std::uint64_t* const place, place_of(offset));
    return std::uint64_t{*place};
  }
  Status write(std::uint32_t offset, std::uint64_t value) override {
    REEF_ASSIGN_OR_RETURN(volatile std::uint64_t* const place, place_of(offset));
    *place = value;
    return ok_status();
  }
  void sleep(Milliseconds time) override { kernel_.sleep(time); }

  Status set_performance(std::uint32_t level) override { return call(kPerformance, &level, "setting the clock"); }
  Status partition(std::uint64_t simple_slots) override {
    PartitionArgument argument{0, simple_slots, {0, 0}};
    return call(kPartition, &argument, "splitting the page table");
  }
  Result<std::span<std::uint8_t>> coherent_memory(std::size_t bytes) override {
    CoherentArgument argument{0, 1, bytes, 0};
    REEF_RETURN_IF_ERROR(call(kCoherent, &argument, "allocating memory for the queue"));
    coherent_ = kernel_.map(file_, bytes, argument.offset);
    if (coherent_ == nullptr) return failure("mapping the queue");
    coherent_bytes_ = bytes;
    coherent_offset_ = argument.offset;
    std::memset(coherent_, 0, bytes);
    return std::span(static_cast<std::uint8_t*>(coherent_), bytes);
  }
  Status map(std::span<std::uint8_t> memory, std::uint64_t device_address, DmaDirection direction) override {
    MapArgument argument{0,
                         memory.size(),
                         reinterpret_cast<std::uintptr_t>(memory.data()),
                         device_address,
                         static_cast<std::uint32_t>(direction) << 1,
                         0};
    return call(kMap, &argument, "mapping memory for the chip");
  }
  Status unmap(std::span<std::uint8_t> memory, std::uint64_t device_address) override {
    UnmapArgument argument{0, memory.size(), reinterpret_cast<std::uintptr_t>(memory.data()), device_address};
    return call(kUnmap, &argument, "unmapping memory of the chip");
  }

  Status enable_interrupts() override {
    for (const int interrupt : kApexInterrupts) {
      const int event = kernel_.event_file();
      if (event < 0) return failure("making an event");
      events_[at(interrupt)] = event;
      EventArgument argument{static_cast<std::uint64_t>(interrupt), static_cast<std::uint64_t>(event)};
      REEF_RETURN_IF_ERROR(call(kSetEvent, &argument, "asking for interrupts"));
    }
    return ok_status();
  }
  Result<std::uint32_t> wait_for_interrupts(Milliseconds limit) override {
    std::array<pollfd, kApexInterrupts.size()> files{};
    for (std::size_t i = 0; i < files.size(); ++i) {
      files[i] = {events_[at(kApexInterrupts[i])], POLLIN, 0};
    }
    const auto until = SteadyClock::now() + limit;
    int ready = -1;
    for (Milliseconds left = limit;; left = std::chrono::duration_cast<Milliseconds>(until - SteadyClock::now())) {
      ready = kernel_.poll(files, static_cast<int>(std::clamp<Milliseconds::rep>(left.count(), 0, 1 << 30)));
      if (ready >= 0) break;
      if (kernel_.last_error() != EINTR) return failure("waiting for interrupts");  // a signal of the program's
    }
    std::uint32_t fired = 0;
    for (std::size_t i = 0; i < files.size(); ++i) {
      std::uint64_t count = 0;
      if ((files[i].revents & POLLIN) == 0 || kernel_.read(files[i].fd, &count, sizeof count) != sizeof count) continue;
      fired |= 1u << kApexInterrupts[i];
    }
    return fired;
  }

 private:
  Result<volatile std::uint64_t*> place_of(std::uint32_t offset) const {
    for (std::size_t i = 0; i < kWindows.size(); ++i) {
      if (offset < kWindows[i] || offset >= kWindows[i] + kWindowBytes || offset % 8 != 0) continue;
      auto* const bytes = static_cast<std::uint8_t*>(windows_[i]) + (offset - kWindows[i]);
      return reinterpret_cast<volatile std::uint64_t*>(bytes);
    }
    return internal_error("the kernel does not show the register {}", register_name(offset));
  }
  Status failure(std::string_view what) {
    return make_error(StatusCode::kIoError, "{} failed: {}", what, std::strerror(kernel_.last_error()));
  }
  Status call(unsigned long request, void* argument, std::string_view what) {
    return kernel_.ioctl(file_, request, argument) == 0 ? ok_status() : failure(what);
  }

  ApexKernel& kernel_;
  const int file_;
  std::array<void*, kWindows.size()> windows_{};
  void* coherent_ = nullptr;
  std::size_t coherent_bytes_ = 0;
  std::uint64_t coherent_offset_ = 0;
  std::array<int, kPcieInterrupts> events_;
};

}  // namespace

Status apex_permission_error(const std::string& path) {
  return unsupported(
      "there is no permission to use {}: join the group that owns it (usually apex), or copy Reef's udev rule "
      "(60-reef-edgetpu.rules) to /etc/udev/rules.d, or run as root",
      path);
}

std::string apex_owner(const std::string& path, const std::string& devices, const std::string& proc) {
  std::ifstream file(devices + "/" + std::filesystem::path(path).filename().string() + "/device_owner");
  long owner = 0;
  if (!(file >> owner) || owner <= 0) return "";
  std::string name;
  std::ifstream comm(fmt::format("{}/{}/comm", proc, owner));
  // A process that just ends, or one of another container.
  if (!std::getline(comm, name)) return fmt::format("process {}, which cannot be seen from here", owner);
  return fmt::format("{} (process {})", name, owner);
}

ApexKernel& system_kernel() {
  static SystemKernel kernel;
  return kernel;
}

Result<std::unique_ptr<PcieDevice>> ApexBus::open() {
  const int file = kernel_.open(path_);
  if (file < 0) {
    const int error = kernel_.last_error();
    if (error == ENOENT || error == ENODEV) {
      return make_error(StatusCode::kNotFound, "there is no {}: is the kernel's apex module loaded?", path_);
    }
    if (error == EACCES) {
      return apex_permission_error(path_);
    }
    if (error == EBUSY || error == EPERM) {
      const std::string owner = apex_owner(path_, devices_);
      return in_use_error(owner.empty() ? "another program" : owner).in(path_);
    }
    return make_error(StatusCode::kIoError, "opening {} failed: {}", path_, std::strerror(error));
  }
  auto device = std::make_unique<ApexDevice>(kernel_, file);
  REEF_RETURN_IF_ERROR(device->start());
  return std::unique_ptr<PcieDevice>(std::move(device));
}

std::vector<std::string> list_apex_devices(const std::string& devices) {
  constexpr std::string_view kPrefix = "apex_";
  std::vector<std::pair<unsigned long, std::string>> found;
  DIR* const folder = ::opendir(devices.c_str());
  for (const dirent* entry = nullptr; folder != nullptr && (entry = ::readdir(folder)) != nullptr;) {
    const std::string name = entry->d_name;
    const std::string number = name.substr(std::min(name.size(), kPrefix.size()));
    const bool is_number =
        !number.empty() && number.size() < 6 && number.find_first_not_of("0123456789") == std::string::npos;
    if (name.starts_with(kPrefix) && is_number) found.emplace_back(std::stoul(number), "/dev/" + name);
  }
  if (folder != nullptr) ::closedir(folder);
  std::sort(found.begin(), found.end());
  std::vector<std::string> paths;
  for (auto& [number, path] : found) paths.push_back(std::move(path));
  return paths;
}

}  // namespace reef::driver
