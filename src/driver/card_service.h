// SPDX-License-Identifier: Apache-2.0
// A virtual card as a program in another process has it: the /dev/apex_0 of Google's kernel driver (gasket).
//
// The device file is shared memory. Registers are three pages of it, which the program maps and this side watches: a
// register that holds something else than what was put there last has been written to. Of several that were written
// between two looks, the queue's control comes last but one and its tail last, as in every driver; a write that changes
// nothing is not seen. The chip reaches the program's memory through the pages that were mapped for it, by the system's
// calls for that (process_vm_readv). Interrupts are the program's own event files.
//
// Every opening holds a shared lock on the file. Once nobody holds one, because all closed it or died, the card is
// reset.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/file_descriptor.h"
#include "driver/card_chip.h"
#include "driver/pcie.h"
#include "driver/serve_protocol.h"

namespace reef::driver {

class CardService final : private CardChip {
 public:
  using Note = std::function<void(const std::string&)>;
  // `note` is told every call in words, `warn` what keeps the card from working at all. `owner_file` is where the
  // process that has it open is written down, as in sysfs. `other_chip`: see StickOptions.
  static Result<std::unique_ptr<CardService>> create(int threads, const device::OtherChip* other_chip,
                                                     std::string owner_file, Note note, Note warn);
  ~CardService() override;

  // The file for one more opening by a process. Negative: minus the error, which is EPERM if another process has it.
  int open(pid_t process);
  // The opening has its lock, or has been given up.
  void opened();
  // 0, or the error. May change the words. `file` is one that came with the call, negative: none.
  int call(pid_t process, serve::IoctlRequest& request, FileDescriptor file);

 private:
  static constexpr std::size_t kWindowBytes = 4096, kWindows = 3;
  static constexpr std::size_t kRegisters = kWindows * kWindowBytes / 8;
  struct Page {
    pid_t process = 0;
    std::uint64_t address = 0;
  };

  CardService(int threads, const device::OtherChip* other_chip, std::string owner_file, Note note, Note warn)
      : CardChip(threads, other_chip),
        owner_file_(std::move(owner_file)),
        note_(std::move(note)),
        warn_(std::move(warn)) {}
  Status make_file();
  void watch();
  // All with mutex_ held.
  bool take_writes();
  void publish();
  void deliver();
  void close_if_unused();
  void reset();
  int partition(std::uint64_t simple_slots);
  bool is_good_range(std::uint64_t device, std::uint64_t bytes) const;
  int map(pid_t process, const serve::IoctlRequest& request);
  int unmap(const serve::IoctlRequest& request);
  void write_owner() const;
  std::atomic_ref<std::uint64_t> register_at(std::size_t index) const;

  bool is_mapped(std::uint64_t address) const override;
  bool read_page(std::uint64_t address, std::uint8_t* to, std::size_t bytes) const override;
  bool write_page(std::uint64_t address, const std::uint8_t* from, std::size_t bytes) override;
  bool was_moved(pid_t process, ssize_t moved, std::size_t bytes) const;
  static bool is_memory_of(pid_t process, std::uint64_t host, std::uint64_t bytes);

  const std::string owner_file_;
  const Note note_, warn_;
  FileDescriptor file_{-1}, lock_{-1};
  std::uint8_t* memory_ = nullptr;
  std::mutex mutex_;
  std::condition_variable changed_;
  pid_t owner_ = 0;     // 0: nobody
  int opening_ = 0;     // that have no lock yet
  bool stops_ = false;  // the service
  std::array<std::uint64_t, kRegisters> published_{};
  std::map<std::uint64_t, Page> pages_;  // by device address
  std::uint64_t simple_slots_ = 8192;    // of the page table; the others are extended
  std::map<std::uint64_t, FileDescriptor> events_;
  std::string reported_failure_;
  mutable bool has_warned_ = false;
  std::thread watcher_;
};

}  // namespace reef::driver
