// SPDX-License-Identifier: Apache-2.0
// Contexts, options, capabilities, versions, words for errors.
#include <sys/eventfd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <iterator>

#include "client.h"

namespace reef::driver {
namespace {

std::mutex default_mutex;
libusb_context* default_context = nullptr;
libusb_context* first_context = nullptr;  // of those that programs asked for by name

struct Version {
  std::uint16_t major, minor, micro, nano;
  const char *candidate, *description;
};
// The release whose interface this is.
constexpr Version kVersion = {1, 0, 26, 11724, "", "virtual sticks of Reef"};

struct Word {
  int error;
  const char *name, *text;
};
constexpr Word kWords[] = {
    {number::kSuccess, "LIBUSB_SUCCESS", "Success"},
    {number::kIo, "LIBUSB_ERROR_IO", "Input/Output Error"},
    {number::kInvalidParameter, "LIBUSB_ERROR_INVALID_PARAM", "Invalid parameter"},
    {number::kAccess, "LIBUSB_ERROR_ACCESS", "Access denied (insufficient permissions)"},
    {number::kNoDevice, "LIBUSB_ERROR_NO_DEVICE", "No such device (it may have been disconnected)"},
    {number::kNotFound, "LIBUSB_ERROR_NOT_FOUND", "Entity not found"},
    {number::kBusy, "LIBUSB_ERROR_BUSY", "Resource busy"},
    {number::kTimeout, "LIBUSB_ERROR_TIMEOUT", "Operation timed out"},
    {number::kOverflow, "LIBUSB_ERROR_OVERFLOW", "Overflow"},
    {number::kPipe, "LIBUSB_ERROR_PIPE", "Pipe error"},
    {number::kInterrupted, "LIBUSB_ERROR_INTERRUPTED", "System call interrupted (perhaps due to signal)"},
    {number::kNoMemory, "LIBUSB_ERROR_NO_MEM", "Insufficient memory"},
    {number::kNotSupported, "LIBUSB_ERROR_NOT_SUPPORTED", "Operation not supported or unimplemented on this platform"},
    {number::kOther, "LIBUSB_ERROR_OTHER", "Other error"},
};

// Options by their numbers, and how libusb_init_context() is given them.
constexpr int kLogLevel = 0, kUseUsbDk = 1, kNoDiscovery = 2, kLogCallback = 3, kMostVerbose = 4;
struct InitOption {
  int option;
  union {
    int number;
    void (*function)(libusb_context*, int, const char*);
  };
};
std::atomic<bool> discovers_nothing = false;  // contexts that are made from now on

libusb_context* make_context() {
  const int socket = connect_to_devices();
  if (socket < 0) {
    std::fprintf(stderr,
                 "libusb: this library has virtual sticks only, and nobody offers any: start the program with "
                 "`reef virtual-usb -- COMMAND`\n");
    return nullptr;
  }
  auto* const context = new libusb_context;
  context->bus_socket = socket;
  context->discovers_nothing = discovers_nothing;
  context->wake_file = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  return context;
}

void destroy(libusb_context* context) {
  for (libusb_device* device : context->devices) unref(device);
  for (const auto& [device, event] : context->plugged) unref(device);
  ::close(context->bus_socket);
  ::close(context->wake_file);
  delete context;
}

}  // namespace

libusb_context* context_of(libusb_context* context) {
  if (context != nullptr) return context;
  const std::lock_guard lock(default_mutex);
  return default_context != nullptr ? default_context : first_context;
}

}  // namespace reef::driver

using namespace reef::driver;

REEF_LIBUSB int libusb_init(libusb_context** context) {
  const std::lock_guard lock(default_mutex);
  if (context != nullptr) {
    *context = make_context();
    if (first_context == nullptr) first_context = *context;
    return *context != nullptr ? number::kSuccess : number::kOther;
  }
  if (default_context != nullptr) {
    ++default_context->references;
    return number::kSuccess;
  }
  default_context = make_context();
  return default_context != nullptr ? number::kSuccess : number::kOther;
}

REEF_LIBUSB int libusb_init_context(libusb_context** context, const InitOption* options, int count) {
  const int error = libusb_init(context);
  for (int i = 0; error == number::kSuccess && options != nullptr && i < count; ++i) {
    if (options[i].option == kNoDiscovery)
      context_of(context != nullptr ? *context : nullptr)->discovers_nothing = true;
  }
  return error;
}

REEF_LIBUSB void libusb_exit(libusb_context* context) {
  const std::lock_guard lock(default_mutex);
  if (context == nullptr) {
    if (default_context == nullptr || --default_context->references > 0) return;
    context = default_context;
    default_context = nullptr;
  }
  if (context == first_context) first_context = nullptr;
  destroy(context);
}

// Levels of logging change nothing here. Without a context an option is one of all that are made later.
REEF_LIBUSB int libusb_set_option(libusb_context* context, int option, ...) {
  if (option < kLogLevel || option > kLogCallback) return number::kInvalidParameter;
  if (option == kUseUsbDk) return number::kNotSupported;  // of Windows
  if (option == kNoDiscovery && context == nullptr) discovers_nothing = true;
  if (option != kLogLevel) return number::kSuccess;
  va_list arguments;
  va_start(arguments, option);
  const int level = va_arg(arguments, int);
  va_end(arguments);
  return level >= 0 && level <= kMostVerbose ? number::kSuccess : number::kInvalidParameter;
}
REEF_LIBUSB void libusb_set_debug(libusb_context* /*context*/, int /*level*/) {}
REEF_LIBUSB void libusb_set_log_cb(libusb_context* /*context*/,
                                   void (* /*callback*/)(libusb_context*, int, const char*), int /*mode*/) {}

REEF_LIBUSB const Version* libusb_get_version() { return &kVersion; }

REEF_LIBUSB int libusb_has_capability(std::uint32_t capability) {
  constexpr std::uint32_t kCapabilities = 0, kHotplug = 1, kHid = 0x100, kDetach = 0x101;  // those of Linux
  for (const std::uint32_t known : {kCapabilities, kHotplug, kHid, kDetach}) {
    if (capability == known) return 1;
  }
  return 0;
}

REEF_LIBUSB const char* libusb_error_name(int error) {
  for (const Word& word : kWords) {
    if (word.error == error) return word.name;
  }
  return "**UNKNOWN**";
}

REEF_LIBUSB const char* libusb_strerror(int error) {
  for (const Word& word : kWords) {
    if (word.error == error) return word.text;
  }
  return kWords[std::size(kWords) - 1].text;
}

// English is what there is.
REEF_LIBUSB int libusb_setlocale(const char* locale) {
  if (locale == nullptr || std::strlen(locale) < 2) return number::kInvalidParameter;
  return locale[0] == 'e' && locale[1] == 'n' ? number::kSuccess : number::kNotFound;
}
