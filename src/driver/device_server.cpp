// SPDX-License-Identifier: Apache-2.0
#include "driver/device_server.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "driver/libusb_abi.h"
#include "driver/stick_service.h"

namespace reef::driver {
namespace {

constexpr int kMostWaiting = 64;  // connections that were not accepted yet

pid_t process_behind(int socket) {
  ucred peer{};
  socklen_t bytes = sizeof peer;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 ? peer.pid : -1;
}

std::uint8_t speed_number(UsbSpeed speed) {
  return static_cast<std::uint8_t>(speed == UsbSpeed::kHigh ? libusb_number::kHighSpeed : libusb_number::kSuperSpeed);
}

// Copies what a stick shows without being opened. A program's own requests for it count as operations; this does not.
void copy_descriptor(const VirtualStick& stick, serve::DeviceRecord& record) {
  const std::vector<std::uint8_t> device = stick.own_descriptor(0x0100), all = stick.own_descriptor(0x0200);
  std::copy_n(device.begin(), std::min(device.size(), sizeof record.device), record.device);
  record.configuration_bytes = static_cast<std::uint16_t>(std::min(all.size(), sizeof record.configuration));
  std::copy_n(all.begin(), record.configuration_bytes, record.configuration);
}

}  // namespace

DeviceServer::DeviceServer(ServerOptions options, std::string folder)
    : options_(std::move(options)), folder_(std::move(folder)), bus_(options_.sticks) {
  bus_.let_sticks_be_shared();  // who may use a stick is decided when it is claimed
  for (std::size_t i = 0; i < options_.sticks.size(); ++i) {
    transcripts_.push_back(std::make_unique<Transcript>(
        [this, name = fmt::format("1-{}", i + 1)](const auto& entry) { options_.log(name + " " + entry.text()); }));
    logged_.push_back(std::make_unique<LoggedBus>(bus_, *transcripts_.back()));
  }
}

Result<std::unique_ptr<DeviceServer>> DeviceServer::start(ServerOptions options, const std::string& folder) {
  std::unique_ptr<DeviceServer> server(new DeviceServer(std::move(options), folder));
  REEF_RETURN_IF_ERROR(server->make_usb_folder());
  if (server->options_.has_card) REEF_RETURN_IF_ERROR(server->make_card());
  REEF_RETURN_IF_ERROR(server->listen());
  server->acceptor_ = std::thread([raw = server.get()] { raw->accept_all(); });
  return server;
}

DeviceServer::~DeviceServer() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
    for (const Connection& connection : connections_) ::shutdown(connection.socket, SHUT_RDWR);
  }
  if (listening_.get() >= 0) ::shutdown(listening_.get(), SHUT_RDWR);
  if (acceptor_.joinable()) acceptor_.join();
  for (Connection& connection : connections_) {
    connection.thread.join();
    ::close(connection.socket);
  }
}

Status DeviceServer::listen() {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = socket_path();
  if (path.size() >= sizeof address.sun_path) {
    return invalid_input("the path {} is too long for a socket: set TMPDIR to a shorter one", path);
  }
  path.copy(address.sun_path, path.size());
  listening_ = FileDescriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (listening_.get() < 0 ||
      ::bind(listening_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listening_.get(), kMostWaiting) != 0) {
    return make_error(StatusCode::kIoError, "listening at {} failed: {}", path, std::strerror(errno));
  }
  return ok_status();
}

// Programs hold a file there for each stick that they have open.
Status DeviceServer::make_usb_folder() {
  const std::string folder = fmt::format("{}{}/{:03}", folder_, serve::kUsbDevices, serve::kBusNumber);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return make_error(StatusCode::kIoError, "making the folder {} failed: {}", folder, error.message());
  return ok_status();
}

// Makes the files that a program finds under /dev and /sys.
Status DeviceServer::make_card() {
  namespace fs = std::filesystem;
  const std::string shown = folder_ + serve::kCardClass + "/apex_0";
  std::error_code error;
  fs::create_directories(shown, error);
  fs::create_directories(folder_ + "/dev", error);
  if (error) return make_error(StatusCode::kIoError, "making the folder {} failed: {}", shown, error.message());
  std::ofstream(folder_ + serve::kCardDevice).flush();
  for (const auto& [name, value] : {std::pair{"temp", "40000"}, {"status", "ALIVE"}, {"device_type", "apex"}}) {
    std::ofstream(shown + "/" + name) << value << "\n";
  }
  REEF_ASSIGN_OR_RETURN(card_, CardService::create(
                                   options_.card_threads, options_.card_chip, shown + "/device_owner",
                                   [this](const std::string& line) { options_.log("apex_0 " + line); }, options_.warn));
  return ok_status();
}

void DeviceServer::accept_all() {
  for (;;) {
    const int socket = ::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0 && (errno == EINTR || errno == ECONNABORTED)) continue;
    const std::lock_guard lock(mutex_);
    if (socket < 0 || stops_) {
      if (socket >= 0) ::close(socket);
      return;
    }
    forget_ended();
    Connection& connection = connections_.emplace_back();
    connection.socket = socket;
    connection.thread = std::thread([this, &connection] {
      serve(connection.socket);
      connection.is_over = true;
      ::shutdown(connection.socket, SHUT_RDWR);  // the program is not made to wait for the next one to come
    });
  }
}

void DeviceServer::forget_ended() {
  for (auto at = connections_.begin(); at != connections_.end();) {
    if (!at->is_over) {
      ++at;
      continue;
    }
    at->thread.join();
    ::close(at->socket);
    at = connections_.erase(at);
  }
}

void DeviceServer::serve(int socket) {
  serve::Header header;
  while (serve::receive_all(socket, &header, sizeof header)) {
    switch (header.kind) {
      case serve::Kind::kList:
        list(socket, header.id);
        continue;
      case serve::Kind::kOpen: {
        serve::OpenRequest request;
        if (header.bytes != sizeof request || !serve::receive_all(socket, &request, sizeof request)) return;
        if (request.slot >= logged_.size()) return;
        StickService service(socket, *logged_[request.slot], bus_.stick(request.slot), [this] { keep_time(); });
        return service.serve(fmt::format("1-{}", request.slot + 1), header.id, request.generation);
      }
      case serve::Kind::kOpenCard:
        return open_card(socket, header.id);
      case serve::Kind::kCardIoctl:
        return call_card(socket, header);
      default:
        return;
    }
  }
}

void DeviceServer::list(int socket, std::uint64_t id) {
  keep_time();
  std::vector<std::uint8_t> reply(sizeof(std::int32_t));
  for (std::size_t i = 0; i < logged_.size(); ++i) {
    const VirtualStick& stick = bus_.stick(i);
    if (!stick.is_on_bus()) continue;
    serve::DeviceRecord record;
    record.slot = static_cast<std::uint32_t>(i);
    record.generation = stick.generation();
    record.address = static_cast<std::uint8_t>(2 + (i + record.generation * logged_.size()) % 120);
    record.port = static_cast<std::uint8_t>(i + 1);
    record.speed = speed_number(options_.sticks[i].speed);
    copy_descriptor(stick, record);
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(&record);
    reply.insert(reply.end(), bytes, bytes + sizeof record);
  }
  (void)serve::send_message(socket, serve::Kind::kReply, id, reply.data(), reply.size());
}

void DeviceServer::open_card(int socket, std::uint64_t id) {
  const int file = card_ == nullptr ? -ENOENT : card_->open(process_behind(socket));
  const std::int32_t error = file < 0 ? -file : 0;
  const bool is_sent =
      serve::send_message(socket, serve::Kind::kReply, id, &error, sizeof error) && serve::send_file(socket, file);
  if (file < 0) return;
  int none = -1;
  if (is_sent) (void)serve::receive_file(socket, none);  // it has its lock now, or is gone
  if (none >= 0) ::close(none);
  card_->opened();
}

void DeviceServer::call_card(int socket, const serve::Header& header) {
  serve::IoctlRequest request;
  int file = -1;
  if (card_ == nullptr || header.bytes != sizeof request || !serve::receive_all(socket, &request, sizeof request) ||
      !serve::receive_file(socket, file)) {
    return;
  }
  const std::int32_t error = card_->call(process_behind(socket), request, FileDescriptor(file));
  (void)serve::send_message(socket, serve::Kind::kReply, header.id, &error, sizeof error, &request, sizeof request);
}

void DeviceServer::keep_time() {
  const std::lock_guard lock(mutex_);
  const auto passed = std::chrono::duration_cast<Milliseconds>(std::chrono::steady_clock::now() - start_);
  if (passed > bus_.now()) bus_.sleep(passed - bus_.now());
}

}  // namespace reef::driver
