// SPDX-License-Identifier: Apache-2.0
// An Edge TPU on USB, from plugged in to inferences: firmware, waking up, parameter caching, and getting over whatever
// can happen to a stick.
//
// A failure of the link is not the end: the port is reset, the stick is found again where it was, gets firmware if it
// lost it, wakes up, and the inference is repeated once. Only then is the failure returned, as a Status; nothing
// aborts, and every wait has a limit. notes() tells what happened.
//
// Any number of threads. One of them at a time has the link, the others wait for their turn. Requests overlap as far as
// the order of bytes on the link allows: who has received all outputs and only waits for the chip to report the end
// lets the next thread send, and is told by whoever reads the report.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
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
#include "driver/session.h"
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

class UsbSession final : public RecordedSession {
 public:
  // The bus must outlive it. Wakes the stick; an error says what to do.
  static Result<std::unique_ptr<UsbSession>> open(UsbBus& bus, UsbSessionOptions options);
  // Closes; a failure then is of no consequence and is not reported.
  ~UsbSession() override;
  UsbSession(const UsbSession&) = delete;
  UsbSession& operator=(const UsbSession&) = delete;

  // `model` is a driver::Model.
  Result<Tensors> run(const std::shared_ptr<const LoadedModel>& model, const Inputs& inputs) override;
  Status close() override;

  const std::string& path() const { return options_.path; }
  std::int64_t parameter_loads() const override;

 private:
  UsbSession(UsbBus& bus, UsbSessionOptions options) : bus_(bus), options_(std::move(options)) {}

  Status connect();
  Status connect_once();
  Result<std::unique_ptr<UsbDevice>> wait_for_device(std::optional<UsbId> wanted, UsbId& found);
  Result<std::unique_ptr<UsbDevice>> reset_and_reopen(std::unique_ptr<UsbDevice> device, std::optional<UsbId> wanted,
                                                      UsbId& found);
  // Gives up a link that has failed.
  void abandon(const Status& reason);
  void note(std::string text);

  // ---- Whose turn it is ----
  // A thread's turn, from construction to its end or to pass().
  class Turn;
  bool is_somebody_waiting() const;

  // ---- Running; all in one's turn ----
  // The buffers of a program by number (host::BufferIndex); they outlive every transfer of it. Parameters are read
  // where they are, and so are inputs that the chip takes as they are.
  struct ProgramBuffers {
    std::vector<std::vector<std::uint8_t>> own;
    std::vector<std::span<const std::uint8_t>> lent;  // not empty: instead of the one of the same number in `own`
  };
  struct RunBuffers {
    ProgramBuffers execution, caching;
  };
  static std::span<const std::uint8_t> bytes_of(const ProgramPlan& plan, const ProgramBuffers& buffers,
                                                const Step& step);
  // Memory of earlier runs is used again: fresh pages would cost more than all else that is done for an inference.
  ProgramBuffers make_buffers(const ProgramPlan& plan);
  void keep(ProgramBuffers buffers);
  // A request whose programs were sent. Under mutex_.
  struct Request {
    int interrupts = 0;  // that the chip has still to report
    Status failure;      // the link was given up before
  };
  using RequestPtr = std::shared_ptr<Request>;
  // Until all outputs are there; what is left is reported by interrupts.
  Status issue(const std::shared_ptr<const Model>& model, RunBuffers& buffers, const RequestPtr& request);
  Status send_program(const ProgramPlan& plan, ProgramBuffers& buffers, const RequestPtr& request);
  Status serve_program(const ProgramPlan& plan, ProgramBuffers& buffers);
  // Reads one report of an interrupt and tells the request that it belongs to.
  Status settle_one();
  Status settle_all();
  bool is_over(const Request& request) const;
  // Waits for the end of a request that was issued, in this turn or in those of others.
  Status finish(Turn& turn, const Request& request);
  Status run_once(const std::shared_ptr<const Model>& model, RunBuffers& buffers);

  UsbBus& bus_;
  UsbSessionOptions options_;

  std::condition_variable changed_;
  bool is_taken_ = false;  // somebody has the turn
  int waiting_ = 0;        // for a turn
  std::int64_t parameter_loads_ = 0;
  std::vector<std::vector<std::uint8_t>> spare_;  // memory for buffers

  // Only the thread that has the turn may touch these.
  std::unique_ptr<UsbLink> link_;  // null: closed, or given up
  bool wants_reports_ = false;     // a model needed the device to report each transfer
  struct Owed {
    int interrupt = 0;
    RequestPtr request;
  };
  std::deque<Owed> owed_;  // interrupts of programs that were sent, in order
  host::ParameterCache cache_;
};

}  // namespace reef::driver
