// SPDX-License-Identifier: Apache-2.0
// Edge TPUs on PCIe behind Google's kernel driver (gasket and apex): /dev/apex_0 and so on. The kernel resets the chip,
// sets clocks, keeps page tables and delivers interrupts; registers are read and written through three windows.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "driver/pcie.h"

struct pollfd;

namespace reef::driver {

// The system calls that are made, so that tests put something else in their place. Results are as of the calls; a
// failure is -1 (null for mmap), and last_error() its errno.
class ApexKernel {
 public:
  virtual ~ApexKernel() = default;
  virtual int open(const std::string& path) = 0;
  virtual void close(int file) = 0;
  virtual int ioctl(int file, unsigned long request, void* argument) = 0;
  virtual void* map(int file, std::size_t bytes, std::uint64_t offset) = 0;
  virtual void unmap(void* memory, std::size_t bytes) = 0;
  virtual int event_file() = 0;
  virtual int poll(std::span<pollfd> files, int milliseconds) = 0;
  virtual ssize_t read(int file, void* to, std::size_t bytes) = 0;
  virtual void sleep(Milliseconds time) = 0;
  virtual int last_error() = 0;
};
// The machine's own.
ApexKernel& system_kernel();

class ApexBus final : public PcieBus {
 public:
  // "/dev/apex_0". Both must outlive what is opened. `devices` is the folder where the system shows them.
  ApexBus(ApexKernel& kernel, std::string path, std::string devices = "/sys/class/apex")
      : kernel_(kernel), path_(std::move(path)), devices_(std::move(devices)) {}
  Result<std::unique_ptr<PcieDevice>> open() override;
  void sleep(Milliseconds time) override { kernel_.sleep(time); }

 private:
  ApexKernel& kernel_;
  std::string path_, devices_;
};

Status apex_permission_error(const std::string& path);

// Who has the device open, as the kernel says: "frigate (process 812)"; empty: it does not.
std::string apex_owner(const std::string& path, const std::string& devices = "/sys/class/apex",
                       const std::string& proc = "/proc");

// Paths of all, in the order of their numbers.
std::vector<std::string> list_apex_devices(const std::string& devices = "/sys/class/apex");

}  // namespace reef::driver
