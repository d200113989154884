// SPDX-License-Identifier: Apache-2.0
// An Edge TPU on USB, from plugged in to inferences: firmware, waking up, parameter caching, and getting over whatever
// can happen to a stick.
//
// A failure of the link is not the end: the port is reset, the stick is found again where it was, gets firmware if it
// lost it, wakes up, and the inference is repeated once. Only then is the failure returned, as a Status; nothing
// aborts, and every wait has a limit. notes() tells what happened. Any number of threads: one inference after the
// other.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "driver/bring_up.h"
#include "driver/model.h"
#include "driver/usb.h"
#include "driver/usb_link.h"
#include "host/parameter_cache.h"

namespace reef::driver {

struct UsbSessionOptions {
  std::string path;  // of the device; empty: the first
  Clock clock = Clock::kMax;
  bool always_download = false;  // firmware also to a stick that runs
  // Called when a stick waits for firmware. Without one such a stick cannot be used.
  std::function<Result<Bytes>()> firmware;
  LinkLimits limits;
  Milliseconds settle{1000};      // for a register to follow
  Milliseconds enumerate{10000};  // for a stick to come back after a reset
  int open_attempts = 3;
};

class UsbSession {
 public:
  using Tensors = std::vector<std::vector<std::uint8_t>>;

  // The bus must outlive it. Wakes the stick; an error says what to do.
  static Result<std::unique_ptr<UsbSession>> open(UsbBus& bus, UsbSessionOptions options);
  // Closes; a failure then is of no consequence and is not reported.
  ~UsbSession();
  UsbSession(const UsbSession&) = delete;
  UsbSession& operator=(const UsbSession&) = delete;

  // Tensors as TFLite holds them, in the order of the layers. Loads parameters first where needed.
  Result<Tensors> run(const std::shared_ptr<const Model>& model,
                      const std::vector<std::span<const std::uint8_t>>& inputs);

  // Sends the stick to sleep. A later run() opens it again.
  Status close();

  const std::string& path() const { return options_.path; }
  // What went wrong and what was done about it, oldest first.
  std::vector<std::string> notes() const;
  // How often a parameter-caching program has run to its end.
  std::int64_t parameter_loads() const;
  // How often the stick was opened.
  int opened() const;

 private:
  UsbSession(UsbBus& bus, UsbSessionOptions options) : bus_(bus), options_(std::move(options)) {}

  Status connect();
  Status connect_once();
  Result<std::unique_ptr<UsbDevice>> wait_for_device(std::optional<UsbId> wanted, UsbId& found);
  Result<std::unique_ptr<UsbDevice>> reset_and_reopen(std::unique_ptr<UsbDevice> device, std::optional<UsbId> wanted,
                                                      UsbId& found);
  // Gives up a link that has failed.
  void abandon(const Status& reason);
  // Of one run; they outlive every transfer of it.
  struct RunBuffers {
    std::vector<std::vector<std::uint8_t>> execution, caching;  // by number, see host::BufferIndex
  };
  Status run_once(const std::shared_ptr<const Model>& model, RunBuffers& buffers);
  Status send_program(const ProgramPlan& plan, std::vector<std::vector<std::uint8_t>>& buffers);
  Status serve_program(const ProgramPlan& plan, std::vector<std::vector<std::uint8_t>>& buffers);
  Status await_interrupts();

  UsbBus& bus_;
  UsbSessionOptions options_;
  mutable std::mutex mutex_;
  std::unique_ptr<UsbLink> link_;  // null: closed, or given up
  bool wants_reports_ = false;     // a model needed the device to report each transfer
  std::vector<int> awaited_;       // interrupts of programs that were sent
  host::ParameterCache cache_;
  std::vector<std::string> notes_;
  int opened_ = 0;
};

}  // namespace reef::driver
