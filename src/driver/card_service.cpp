// SPDX-License-Identifier: Apache-2.0
#include "driver/card_service.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

namespace reef::driver {
namespace {

// Layout of the shared file: registers lie where gasket maps them, and memory for the queue follows.
constexpr std::array<std::uint32_t, 3> kWindowOffsets = {0x40000, 0x44000, 0x48000};
constexpr std::size_t kCoherentOffset = 16u << 20, kMostCoherentBytes = 64u << 10;
constexpr std::size_t kFileBytes = kCoherentOffset + kMostCoherentBytes;

constexpr unsigned kGasketType = 0xdc, kApexType = 0x7f;
enum GasketCall : unsigned {
  kReset,
  kSetEventCall,
  kClearEvent,
  kTables = 4,
  kTableSize,
  kSimpleSize,
  kPartitionCall,
  kMapCall,
  kUnmapCall,
  kClearCounts,
  kCoherentCall,
  kMapFlags
};

constexpr std::chrono::microseconds kLook{50};
constexpr int kLooksBetweenLocks = 40;

constexpr std::uint64_t kSlots = 8192, kPagesPerSlot = 512;  // of the page table; of one of its extended slots
constexpr std::uint64_t kFlagsDirection = 3;                 // of a mapping, after one bit that nobody uses

bool is_event_file(int file) {
  std::error_code error;
  const std::string path = fmt::format("/proc/self/fd/{}", file);
  return std::filesystem::read_symlink(path, error).string() == "anon_inode:[eventfd]";
}

std::uint32_t offset_of(std::size_t index) {
  constexpr std::size_t kPerWindow = 4096 / 8;
  return kWindowOffsets[index / kPerWindow] + static_cast<std::uint32_t>(index % kPerWindow * 8);
}

// Writes that start something come after those that say what.
int rank_of(std::uint32_t offset) { return offset == reg::kQueueTail ? 2 : offset == reg::kQueueControl ? 1 : 0; }

std::string describe(const serve::IoctlRequest& call) {
  const auto& words = call.words;
  const unsigned type = _IOC_TYPE(call.request), number = _IOC_NR(call.request);
  if (type == kApexType && number == 0) return fmt::format("gate clock {}, force idle {}", words[0], words[1]);
  if (type == kApexType && number == 1) return fmt::format("performance {}", words[0] & 0xffffffff);
  if (type != kGasketType) return fmt::format("unknown call {:#x}", call.request);
  switch (number) {
    case kSetEventCall:
      return fmt::format("event for interrupt {}", words[0]);
    case kClearEvent:
      return fmt::format("no event for interrupt {}", words[0]);
    case kTables:
      return "number of page tables";
    case kTableSize:
      return "size of the page table";
    case kSimpleSize:
      return "simple slots of the page table";
    case kPartitionCall:
      return fmt::format("partition {}", words[1]);
    case kMapCall:
      return fmt::format("map {:#x} {:#x}", words[3], words[1]);
    case kMapFlags:
      return fmt::format("map {:#x} {:#x} {}", words[3], words[1], (words[4] & 0xffffffff) >> 1);
    case kUnmapCall:
      return fmt::format("unmap {:#x} {:#x}", words[3], words[1]);
    case kCoherentCall:
      return fmt::format("{} {:#x}", words[1] != 0 ? "coherent" : "coherent off", words[2]);
    default:
      return fmt::format("gasket call {}", number);
  }
}

}  // namespace

Result<std::unique_ptr<CardService>> CardService::create(int threads, const device::OtherChip* other_chip,
                                                         std::string owner_file, Note note, Note warn) {
  std::unique_ptr<CardService> service(
      new CardService(threads, other_chip, std::move(owner_file), std::move(note), std::move(warn)));
  REEF_RETURN_IF_ERROR(service->make_file());
  service->write_owner();
  service->watcher_ = std::thread([card = service.get()] { card->watch(); });
  return service;
}

CardService::~CardService() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
    changed_.notify_all();
  }
  if (watcher_.joinable()) watcher_.join();
  if (memory_ != nullptr) ::munmap(memory_, kFileBytes);
}

Status CardService::make_file() {
  const auto failure = [](std::string_view what) {
    return make_error(StatusCode::kIoError, "{} for a virtual card failed: {}", what, std::strerror(errno));
  };
  file_ = FileDescriptor(::memfd_create("apex_0", MFD_CLOEXEC));
  if (file_.get() < 0 || ::ftruncate(file_.get(), kFileBytes) != 0) return failure("making shared memory");
  // An opening of its own, so that its lock is another one than theirs.
  lock_ = FileDescriptor(::open(fmt::format("/proc/self/fd/{}", file_.get()).c_str(), O_RDWR | O_CLOEXEC));
  if (lock_.get() < 0) return failure("opening shared memory");
  void* const memory = ::mmap(nullptr, kFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
  if (memory == MAP_FAILED) return failure("mapping shared memory");
  memory_ = static_cast<std::uint8_t*>(memory);
  publish();
  return ok_status();
}

std::atomic_ref<std::uint64_t> CardService::register_at(std::size_t index) const {
  return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(memory_ + offset_of(index)));
}

void CardService::write_owner() const { std::ofstream(owner_file_) << owner_ << "\n"; }

// ---- Watching registers ----

void CardService::watch() {
  std::unique_lock lock(mutex_);
  for (int looks = 0; !stops_; ++looks) {
    if (owner_ == 0) {
      changed_.wait(lock, [&] { return stops_ || owner_ != 0; });
      continue;
    }
    if (take_writes()) {
      publish();
      deliver();
    }
    if (looks % kLooksBetweenLocks == 0) close_if_unused();
    lock.unlock();
    std::this_thread::sleep_for(kLook);
    lock.lock();
  }
}

bool CardService::take_writes() {
  std::vector<std::pair<std::uint32_t, std::uint64_t>> written;
  for (std::size_t i = 0; i < kRegisters; ++i) {
    const std::uint64_t value = register_at(i).load(std::memory_order_acquire);
    if (value == published_[i]) continue;
    published_[i] = value;
    written.emplace_back(offset_of(i), value);
  }
  std::stable_sort(written.begin(), written.end(),
                   [](const auto& a, const auto& b) { return rank_of(a.first) < rank_of(b.first); });
  for (const auto& [offset, value] : written) {
    note_(fmt::format("write {} {:#x}", register_name(offset), value));
    write_core(offset, value);
  }
  if (why_it_failed() != reported_failure_) {
    reported_failure_ = why_it_failed();
    if (!reported_failure_.empty()) note_("the chip stops: " + reported_failure_);
  }
  return !written.empty();
}

// A register that the program writes at the same time keeps what the program wrote; the next look finds it.
void CardService::publish() {
  for (std::size_t i = 0; i < kRegisters; ++i) {
    const std::uint64_t value = read_core(offset_of(i));
    std::uint64_t expected = published_[i];
    if (value == expected) continue;
    if (register_at(i).compare_exchange_strong(expected, value, std::memory_order_acq_rel)) published_[i] = value;
  }
}

void CardService::deliver() {
  const std::uint32_t fired = take_fired();
  for (const auto& [interrupt, event] : events_) {
    constexpr std::uint64_t kOnce = 1;
    if ((fired >> interrupt & 1) == 0) continue;
    note_(fmt::format("interrupt {}", interrupt));
    (void)!::write(event.get(), &kOnce, sizeof kOnce);
  }
}

void CardService::close_if_unused() {
  if (opening_ > 0 || ::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) return;
  ::flock(lock_.get(), LOCK_UN);
  note_("close");
  owner_ = 0;
  write_owner();
  reset();
}

void CardService::reset() {
  reset_core();
  pages_.clear();
  events_.clear();
  simple_slots_ = kSlots;
  for (const std::uint32_t window : kWindowOffsets) std::fill_n(memory_ + window, kWindowBytes, std::uint8_t{0});
  std::fill_n(memory_ + kCoherentOffset, kMostCoherentBytes, std::uint8_t{0});
  published_ = {};
  publish();
}

// ---- Calls ----

int CardService::open(pid_t process) {
  const std::lock_guard lock(mutex_);
  if (owner_ != 0) close_if_unused();
  if (owner_ != 0 && owner_ != process) return -EPERM;
  note_("open");
  owner_ = process;
  ++opening_;
  write_owner();
  changed_.notify_all();
  return file_.get();
}

void CardService::opened() {
  const std::lock_guard lock(mutex_);
  --opening_;
}

int CardService::call(pid_t process, serve::IoctlRequest& request, FileDescriptor file) {
  const std::lock_guard lock(mutex_);
  if (owner_ == 0) return EPERM;  // who has its file may use it, also a child of the process that opened it
  note_(describe(request));
  auto& words = request.words;
  const unsigned type = _IOC_TYPE(request.request), number = _IOC_NR(request.request);
  if (type == kApexType) return number <= 1 ? 0 : ENOTTY;
  const bool has_table = number >= kTableSize && number != kClearCounts;
  if (has_table && number <= kMapFlags && words[0] != 0) return EFAULT;  // there is only one
  switch (number) {
    case kReset:
      reset();
      return 0;
    case kSetEventCall:
      if (words[0] >= kPcieInterrupts) return EINVAL;
      if (file.get() < 0) return EBADF;
      if (!is_event_file(file.get())) return EINVAL;
      events_.insert_or_assign(words[0], std::move(file));
      return 0;
    case kClearEvent:
      if (words[0] >= kPcieInterrupts) return EINVAL;
      events_.erase(words[0]);
      return 0;
    case kTables:
      words[0] = 1;
      return 0;
    case kTableSize:
      words[1] = kSlots;
      return 0;
    case kSimpleSize:
      words[1] = simple_slots_;
      return 0;
    case kClearCounts:
      return 0;
    case kPartitionCall:
      return partition(words[1]);
    case kMapCall:
    case kMapFlags:
      return map(process, request);
    case kUnmapCall:
      return unmap(request);
    case kCoherentCall:
      if (words[2] > kMostCoherentBytes) return ENOMEM;
      if (words[1] == 0) return words[3] == kCoherentOffset ? 0 : EADDRNOTAVAIL;
      if (words[2] == 0) return EINVAL;
      words[3] = kCoherentOffset;
      return 0;
    default:
      return ENOTTY;
  }
}

int CardService::partition(std::uint64_t simple_slots) {
  if (simple_slots > kSlots) return EINVAL;
  const std::uint64_t first_that_changes = std::min(simple_slots, simple_slots_) * kPageBytes;
  if (pages_.lower_bound(first_that_changes) != pages_.end()) return EBUSY;
  simple_slots_ = simple_slots;
  return 0;
}

// Whole pages, which the table has slots for.
bool CardService::is_good_range(std::uint64_t device, std::uint64_t bytes) const {
  if (bytes == 0 || bytes % kPageBytes != 0 || device % kPageBytes != 0 ||
      bytes > kSlots * kPagesPerSlot * kPageBytes) {
    return false;
  }
  if (device < kExtendedAddress) return device / kPageBytes + bytes / kPageBytes <= simple_slots_;
  const std::uint64_t slot = (device - kExtendedAddress) / kPageBytes / kPagesPerSlot;
  return slot + (bytes / kPageBytes + kPagesPerSlot - 1) / kPagesPerSlot <= kSlots - simple_slots_;
}

int CardService::map(pid_t process, const serve::IoctlRequest& request) {
  const std::uint64_t bytes = request.words[1], host = request.words[2], device = request.words[3];
  if (host % kPageBytes != 0 || !is_good_range(device, bytes)) return EINVAL;
  const bool has_flags = _IOC_NR(request.request) == kMapFlags;
  if (has_flags && (request.words[4] >> 1 & kFlagsDirection) == kFlagsDirection) return EINVAL;
  for (std::uint64_t at = 0; at < bytes; at += kPageBytes) {
    if (pages_.count(device + at) != 0) return EBUSY;
  }
  if (!is_memory_of(process, host, bytes)) return EFAULT;
  for (std::uint64_t at = 0; at < bytes; at += kPageBytes) pages_[device + at] = {process, host + at};
  return 0;
}

int CardService::unmap(const serve::IoctlRequest& request) {
  const std::uint64_t bytes = request.words[1], device = request.words[3];
  if (!is_good_range(device, bytes)) return EINVAL;
  for (std::uint64_t at = 0; at < bytes; at += kPageBytes) pages_.erase(device + at);
  return 0;
}

// ---- The program's memory ----

// False only if some page of it is not there; where the system does not let us look, the chip will find out.
bool CardService::is_memory_of(pid_t process, std::uint64_t host, std::uint64_t bytes) {
  constexpr std::size_t kMostParts = 512;
  std::array<std::uint8_t, kMostParts> room{};
  std::vector<iovec> there;
  for (std::uint64_t at = 0; at < bytes; at += kMostParts * kPageBytes) {
    there.clear();
    for (std::uint64_t page = at; page < bytes && there.size() < kMostParts; page += kPageBytes) {
      there.push_back({reinterpret_cast<void*>(host + page), 1});
    }
    const iovec here{room.data(), there.size()};
    const ssize_t moved = ::process_vm_readv(process, &here, 1, there.data(), there.size(), 0);
    if (moved < 0 && errno != EFAULT) return true;
    if (moved != static_cast<ssize_t>(there.size())) return false;
  }
  return true;
}

bool CardService::is_mapped(std::uint64_t address) const {
  return pages_.count(address / kPageBytes * kPageBytes) != 0;
}

bool CardService::read_page(std::uint64_t address, std::uint8_t* to, std::size_t bytes) const {
  const auto page = pages_.find(address / kPageBytes * kPageBytes);
  if (page == pages_.end()) return false;
  const iovec here{to, bytes};
  const iovec there{reinterpret_cast<void*>(page->second.address + address % kPageBytes), bytes};
  const pid_t process = page->second.process;
  return was_moved(process, ::process_vm_readv(process, &here, 1, &there, 1, 0), bytes);
}

bool CardService::write_page(std::uint64_t address, const std::uint8_t* from, std::size_t bytes) {
  const auto page = pages_.find(address / kPageBytes * kPageBytes);
  if (page == pages_.end()) return false;
  const iovec here{const_cast<std::uint8_t*>(from), bytes};
  const iovec there{reinterpret_cast<void*>(page->second.address + address % kPageBytes), bytes};
  const pid_t process = page->second.process;
  return was_moved(process, ::process_vm_writev(process, &here, 1, &there, 1, 0), bytes);
}

bool CardService::was_moved(pid_t process, ssize_t moved, std::size_t bytes) const {
  if (moved == static_cast<ssize_t>(bytes)) return true;
  if (moved < 0 && errno == ESRCH) return false;  // it has ended; the card is reset when that is noticed
  if (!std::exchange(has_warned_, true)) {
    warn_(
        fmt::format("the virtual card cannot reach the memory of process {}: {} (the system has to allow "
                    "process_vm_readv on child processes)",
                    process, moved < 0 ? std::strerror(errno) : "it is not all there"));
  }
  return false;
}

}  // namespace reef::driver
