// SPDX-License-Identifier: Apache-2.0
// Virtual sticks, and a virtual card, for programs in other processes: what `reef virtual-usb` has behind its socket.
//
// Sticks hang on one bus and keep their state from one program to the next; a program that ends, however, leaves its
// sticks as a kernel would: closed. Time is the machine's own.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/file_descriptor.h"
#include "driver/card_service.h"
#include "driver/transcript.h"
#include "driver/virtual_stick.h"

namespace reef::driver {

struct ServerOptions {
  std::vector<StickOptions> sticks;
  bool has_card = false;
  int card_threads = 1;
  const device::OtherChip* card_chip = nullptr;  // as StickOptions::other_chip
  // One line for each operation: "1-1 write scu_ctrl_3 = 0x60c50004", "apex_0 map ...". From any thread.
  std::function<void(const std::string&)> log = [](const std::string&) {};
  std::function<void(const std::string&)> warn = [](const std::string&) {};
};

class DeviceServer {
 public:
  // `folder` exists, is empty and belongs to the server: it gets the socket, and what a card shows of itself.
  static Result<std::unique_ptr<DeviceServer>> start(ServerOptions options, const std::string& folder);
  ~DeviceServer();

  std::size_t sticks() const { return logged_.size(); }
  VirtualStick& stick(std::size_t index) { return bus_.stick(index); }
  std::string socket_path() const { return folder_ + "/socket"; }
  // With the dev/ and sys/ of the devices.
  std::string root() const { return folder_; }

 private:
  DeviceServer(ServerOptions options, std::string folder);
  Status listen();
  Status make_usb_folder();
  Status make_card();
  void accept_all();
  void forget_ended();
  void serve(int socket);
  void list(int socket, std::uint64_t id);
  void open_card(int socket, std::uint64_t id);
  void call_card(int socket, const serve::Header& header);
  // Brings the bus's clock up to date.
  void keep_time();

  const ServerOptions options_;
  const std::string folder_;
  VirtualBus bus_;
  std::vector<std::unique_ptr<Transcript>> transcripts_;  // one for each stick
  std::vector<std::unique_ptr<LoggedBus>> logged_;
  std::unique_ptr<CardService> card_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  FileDescriptor listening_{-1};
  std::mutex mutex_;
  bool stops_ = false;
  struct Connection {
    int socket = -1;
    std::atomic<bool> is_over = false;
    std::thread thread;
  };
  std::list<Connection> connections_;  // of the accepting thread; sockets are closed when threads have been joined
  std::thread acceptor_;
};

}  // namespace reef::driver
