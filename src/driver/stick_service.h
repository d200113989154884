// SPDX-License-Identifier: Apache-2.0
// An open virtual stick as a program in another process has it: requests come over a socket (serve_protocol.h) and are
// carried out in their order, ends of transfers go back whenever they come.
//
// The program has the clocks: a transfer that times out is one that the program gave up. A stick that does not answer
// is therefore a transfer that does not end here. One thread reads, so that the program can always send; another works.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "driver/serve_protocol.h"
#include "driver/virtual_stick.h"

namespace reef::driver {

class StickService {
 public:
  // `socket` stays open while it lives; `keep_time` brings the bus's clock up to date.
  StickService(int socket, UsbBus& bus, VirtualStick& stick, std::function<void()> keep_time)
      : socket_(socket), bus_(bus), stick_(stick), keep_time_(std::move(keep_time)) {}

  // Opens it and serves it until the program hangs up.
  void serve(const std::string& path, std::uint64_t id, std::uint64_t generation);

 private:
  struct Message {
    serve::Header header;
    std::vector<std::uint8_t> bytes;
  };
  struct Pending {
    std::uint64_t id = 0;
    Transfer transfer;
    std::vector<std::uint8_t> buffer;
    std::chrono::steady_clock::time_point since;
    bool is_held = false;  // it has timed out, as far as the stick is concerned
  };

  void read_messages();
  void work();
  void carry_out(Message& message);
  void submit(std::uint64_t id, std::vector<std::uint8_t>& bytes);
  void control(std::unique_ptr<Pending> pending);
  void cancel(const serve::CancelRequest& request);
  void report_ended();
  void report(const Pending& pending, int status);
  void reply(std::uint64_t id, int status);
  bool is_gone() const { return stick_.generation() != generation_; }
  // A pipe that has been full for a second is noticed by the stick's registers, too.
  void notice_jam();

  const int socket_;
  UsbBus& bus_;
  VirtualStick& stick_;
  const std::function<void()> keep_time_;
  std::uint64_t generation_ = 0;
  std::list<std::unique_ptr<Pending>> pending_;  // in the order in which they came; outlives the device
  std::unique_ptr<UsbDevice> device_;
  std::mutex mutex_;  // of the queue
  std::condition_variable changed_;
  std::deque<Message> queue_;
  bool has_hung_up_ = false;
};

}  // namespace reef::driver
