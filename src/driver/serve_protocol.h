// SPDX-License-Identifier: Apache-2.0
// The protocol between a program that runs under `reef virtual-usb` and the process that has the virtual devices:
// messages over a Unix socket. The program's half is bindings/virtual_usb, which shares this header and nothing else:
// it depends on nothing but the system. Both halves are of one build; numbers are in the machine's own order.
//
// A connection is for one purpose, which its first message says: kList (any number of times), an open stick (kOpen,
// then the others), or one call to a card.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace reef::driver::serve {

// Environment of the program: the socket's path, and a folder with the dev/ and sys/ of the virtual devices.
inline constexpr char kSocketVariable[] = "REEF_VIRTUAL_USB", kRootVariable[] = "REEF_VIRTUAL_ROOT";
inline constexpr char kCardDevice[] = "/dev/apex_0", kCardClass[] = "/sys/class/apex";
// Below that folder: where programs that have a stick open hold its file, "/dev/bus/usb/001/002", as libusb does. It is
// how a program finds out which process uses a stick.
inline constexpr char kUsbDevices[] = "/dev/bus/usb";

enum class Kind : std::uint32_t {
  // To the devices
  kList,
  kOpen,        // OpenRequest
  kClaim,       // std::uint32_t: the interface
  kRelease,     // std::uint32_t: the interface
  kReset,       // nothing
  kConfigure,   // std::int32_t: the configuration
  kConfigured,  // nothing; the reply is the configuration, or an error
  kSubmit,      // SubmitRequest, then what is sent
  kClose,       // nothing; the last message
  kCancel,      // CancelRequest
  kOpenCard,    // nothing; the reply carries a file
  kCardIoctl,   // IoctlRequest, perhaps with a file
  // From them
  kReply,  // std::int32_t (of libusb's errors; of a card: errno), then what was asked for
  kEnded,  // Ended, then what was received
};

struct Header {
  std::uint32_t bytes = 0;  // that follow
  Kind kind = Kind::kList;
  std::uint64_t id = 0;  // chosen by the program: of a request, or of a transfer
};
inline constexpr std::uint32_t kMostBytes = 256u << 20;

struct DeviceRecord {
  std::uint32_t slot = 0;
  std::uint64_t generation = 0;  // another one after each time it showed itself anew
  std::uint8_t address = 0, port = 0, speed = 0;
  std::uint8_t device[18] = {};
  std::uint16_t configuration_bytes = 0;
  std::uint8_t configuration[128] = {};
};
inline constexpr std::uint8_t kBusNumber = 1;

struct OpenRequest {
  std::uint32_t slot = 0;
  std::uint64_t generation = 0;
};
// Endpoint 0: the bytes of the setup packet come first.
struct SubmitRequest {
  std::uint32_t endpoint = 0, bytes = 0;
};
struct CancelRequest {
  std::uint64_t transfer = 0;
  std::uint32_t has_timed_out = 0;
};
struct Ended {
  std::int32_t status = 0;  // of libusb's
  std::uint32_t bytes = 0;
};
// The argument of a gasket or apex ioctl, which has six words at most, some of them written by the call.
struct IoctlRequest {
  std::uint64_t request = 0;
  std::uint64_t words[6] = {};
};

// ---- Sockets that block ----

inline bool receive_all(int socket, void* to, std::size_t bytes) {
  auto* at = static_cast<std::uint8_t*>(to);
  while (bytes > 0) {
    const ssize_t part = ::recv(socket, at, bytes, 0);
    if (part < 0 && errno == EINTR) continue;
    if (part <= 0) return false;
    at += part;
    bytes -= static_cast<std::size_t>(part);
  }
  return true;
}

inline bool send_all(int socket, const void* from, std::size_t bytes) {
  const auto* at = static_cast<const std::uint8_t*>(from);
  while (bytes > 0) {
    const ssize_t part = ::send(socket, at, bytes, MSG_NOSIGNAL);
    if (part < 0 && errno == EINTR) continue;
    if (part <= 0) return false;
    at += part;
    bytes -= static_cast<std::size_t>(part);
  }
  return true;
}

// A header with what follows it. Not to be called by two threads at once.
inline bool send_message(int socket, Kind kind, std::uint64_t id, const void* first, std::size_t first_bytes,
                         const void* second = nullptr, std::size_t second_bytes = 0) {
  const Header header{static_cast<std::uint32_t>(first_bytes + second_bytes), kind, id};
  std::uint8_t start[sizeof(Header) + 256];
  if (first_bytes > sizeof start - sizeof header) {
    return send_all(socket, &header, sizeof header) && send_all(socket, first, first_bytes) &&
           send_all(socket, second, second_bytes);
  }
  std::memcpy(start, &header, sizeof header);
  if (first_bytes > 0) std::memcpy(start + sizeof header, first, first_bytes);
  return send_all(socket, start, sizeof header + first_bytes) && send_all(socket, second, second_bytes);
}

// One byte that carries a file (negative: none).
inline bool send_file(int socket, int file) {
  char byte = 1;
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (file >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* const head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(head), &file, sizeof file);
  }
  return ::sendmsg(socket, &message, MSG_NOSIGNAL) == 1;
}

// False: the connection has ended. `file` is negative if none came.
inline bool receive_file(int socket, int& file) {
  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  file = -1;
  ssize_t moved = 0;
  do moved = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  while (moved < 0 && errno == EINTR);
  if (moved != 1) return false;
  const cmsghdr* const head = CMSG_FIRSTHDR(&message);
  if (head != nullptr && head->cmsg_type == SCM_RIGHTS) std::memcpy(&file, CMSG_DATA(head), sizeof file);
  return true;
}

}  // namespace reef::driver::serve
