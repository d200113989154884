// SPDX-License-Identifier: Apache-2.0
// The way from a program with virtual devices to the process that has them. Both libraries that are put into such a
// program use it: the virtual libusb and the virtual card.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "driver/serve_protocol.h"

namespace reef::driver {

// A socket to the devices' process, or -1: the program does not run under `reef virtual-usb`, or that has ended.
inline int connect_to_devices() {
  const char* const path = std::getenv(serve::kSocketVariable);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path == nullptr || std::strlen(path) >= sizeof address.sun_path) return -1;
  std::strcpy(address.sun_path, path);
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return -1;
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return socket;
  ::close(socket);
  return -1;
}

}  // namespace reef::driver
