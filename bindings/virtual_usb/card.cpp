// SPDX-License-Identifier: Apache-2.0
// Makes programs find a virtual card: preloaded, it stands before the C library's calls that open, look at and control
// files. /dev/apex_0 is opened by asking `reef virtual-usb` for its shared memory (src/driver/card_service), which the
// program then maps as it would the device; the ioctls of gasket and apex on it go there. /sys/class/apex and what is
// below it is looked for in a folder that shows the card.
//
// A file is known as the card by what it is (fstat), not by its number: copies of it, and numbers that are used again,
// need no bookkeeping. Programs that make system calls without the C library are not reached.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "connection.h"
#include "driver/serve_protocol.h"

#define REEF_CALL extern "C" __attribute__((visibility("default")))

namespace {

namespace serve = reef::driver::serve;
using reef::driver::connect_to_devices;

// The C library's own function of that name.
template <typename Function>
Function real(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

bool is_card(const char* path) { return path != nullptr && std::strcmp(path, serve::kCardDevice) == 0; }

// Where a path that shows the card really is. `room` has PATH_MAX bytes.
const char* place_of(const char* path, char* room) {
  const char* const root = std::getenv(serve::kRootVariable);
  if (path == nullptr || root == nullptr) return path;
  const std::size_t length = std::strlen(serve::kCardClass);
  const bool is_shown =
      std::strncmp(path, serve::kCardClass, length) == 0 && (path[length] == 0 || path[length] == '/');
  if (!is_shown && !is_card(path)) return path;
  const int written = std::snprintf(room, PATH_MAX, "%s%s", root, path);
  return written > 0 && written < PATH_MAX ? room : path;
}

// The card's file, as fstat() shows it; 0: it was never opened.
std::atomic<std::uint64_t> card_device = 0, card_inode = 0;

// fstat() of the C library, which has another name in releases before 2.33.
int status_of(int file, struct stat* about) {
  if (const auto current = real<int (*)(int, struct stat*)>("fstat"); current != nullptr) return current(file, about);
  constexpr int kVersion = sizeof(long) == 8 ? 1 : 3;
  return real<int (*)(int, int, struct stat*)>("__fxstat")(kVersion, file, about);
}

bool is_card_status(const struct stat& about) {
  return card_inode != 0 && about.st_ino == card_inode && about.st_dev == card_device;
}

bool is_card_file(int file) {
  struct stat about {};
  return card_inode != 0 && status_of(file, &about) == 0 && is_card_status(about);
}

// Between the program's memory and ours, wherever its pointer points: as the kernel, which fails with EFAULT.
bool copy_argument(bool to_program, void* own, void* programs, std::size_t bytes) {
  const iovec here{own, bytes}, there{programs, bytes};
  const ssize_t moved = to_program ? ::process_vm_writev(::getpid(), &here, 1, &there, 1, 0)
                                   : ::process_vm_readv(::getpid(), &here, 1, &there, 1, 0);
  if (moved == static_cast<ssize_t>(bytes)) return true;
  if (moved >= 0 || errno == EFAULT) return false;
  std::memcpy(to_program ? programs : own, to_program ? own : programs, bytes);  // where such calls are forbidden
  return true;
}

int fail(int error) {
  errno = error;
  return -1;
}

int open_card(int flags) {
  const int socket = connect_to_devices();
  if (socket < 0) return fail(ENODEV);
  serve::Header header;
  std::int32_t error = ENODEV;
  int shared = -1, file = -1;
  if (serve::send_message(socket, serve::Kind::kOpenCard, 0, nullptr, 0) &&
      serve::receive_all(socket, &header, sizeof header) && serve::receive_all(socket, &error, sizeof error) &&
      serve::receive_file(socket, shared) && error == 0 && shared >= 0) {
    // An opening of its own: its lock says that it is open for as long as a copy or a mapping of it lives.
    char path[64];
    std::snprintf(path, sizeof path, "/proc/self/fd/%d", shared);
    file = static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, O_RDWR | (flags & O_CLOEXEC), 0));
    error = file < 0 ? errno : 0;
    struct stat about {};
    if (file >= 0 && ::flock(file, LOCK_SH) == 0 && status_of(file, &about) == 0) {
      card_device = about.st_dev;
      card_inode = about.st_ino;
    }
    (void)serve::send_file(socket, -1);
  }
  if (shared >= 0) ::close(shared);
  ::close(socket);
  return file >= 0 ? file : fail(error != 0 ? error : EIO);
}

int call_card(unsigned long request, void* argument) {
  constexpr unsigned kGasket = 0xdc, kSetEvent = 1, kClearEvent = 2, kLoopback = 3;  // gasket lacks the last
  serve::IoctlRequest call;
  call.request = request;
  const std::size_t bytes = _IOC_SIZE(request) < sizeof call.words ? _IOC_SIZE(request) : sizeof call.words;
  const bool is_gasket = _IOC_TYPE(request) == kGasket;
  if (is_gasket && _IOC_NR(request) == kClearEvent) {  // the argument is the number itself, whatever the macro says
    call.words[0] = reinterpret_cast<std::uintptr_t>(argument);
  } else if ((_IOC_DIR(request) & _IOC_WRITE) != 0 && !copy_argument(false, call.words, argument, bytes)) {
    return fail(is_gasket && _IOC_NR(request) == kLoopback ? ENOTTY : EFAULT);
  }
  const bool has_file = is_gasket && _IOC_NR(request) == kSetEvent;
  if (has_file && ::fcntl(static_cast<int>(call.words[1]), F_GETFD) < 0) return fail(EBADF);
  const int socket = connect_to_devices();
  if (socket < 0) return fail(ENODEV);
  serve::Header header;
  std::int32_t error = ENODEV;
  if (!serve::send_message(socket, serve::Kind::kCardIoctl, 0, &call, sizeof call) ||
      !serve::send_file(socket, has_file ? static_cast<int>(call.words[1]) : -1) ||
      !serve::receive_all(socket, &header, sizeof header) || !serve::receive_all(socket, &error, sizeof error) ||
      !serve::receive_all(socket, &call, sizeof call)) {
    error = ENODEV;
  }
  ::close(socket);
  if (error != 0) return fail(error);
  if ((_IOC_DIR(request) & _IOC_READ) != 0 && !copy_argument(true, call.words, argument, bytes)) return fail(EFAULT);
  return 0;
}

// A character device that everybody may use.
constexpr unsigned kDeviceMode = S_IFCHR | 0666, kDeviceMajor = 120;
template <typename Status>
void as_device(Status& about) {
  about.st_mode = kDeviceMode;
  about.st_rdev = makedev(kDeviceMajor, 0);
}
void as_device(struct statx& about) {
  about.stx_mode = kDeviceMode;
  about.stx_rdev_major = kDeviceMajor;
  about.stx_rdev_minor = 0;
}

// The mode of open(), where there is one.
template <typename List>
mode_t mode_of(int flags, List& arguments) {
  return (flags & (O_CREAT | __O_TMPFILE)) != 0 ? static_cast<mode_t>(va_arg(arguments, unsigned)) : 0;
}

int open_any(const char* name, const char* path, int flags, mode_t mode) {
  char room[PATH_MAX];
  if (is_card(path) && std::getenv(serve::kRootVariable) != nullptr) return open_card(flags);
  return real<int (*)(const char*, int, ...)>(name)(place_of(path, room), flags, mode);
}

int open_any_at(const char* name, int folder, const char* path, int flags, mode_t mode) {
  char room[PATH_MAX];
  if (is_card(path) && std::getenv(serve::kRootVariable) != nullptr) return open_card(flags);
  return real<int (*)(int, const char*, int, ...)>(name)(folder, place_of(path, room), flags, mode);
}

}  // namespace

REEF_CALL int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_any("open", path, flags, mode);
}
REEF_CALL int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_any("open64", path, flags, mode);
}
REEF_CALL int __open_2(const char* path, int flags) { return open_any("open", path, flags, 0); }
REEF_CALL int __open64_2(const char* path, int flags) { return open_any("open64", path, flags, 0); }
REEF_CALL int openat(int folder, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_any_at("openat", folder, path, flags, mode);
}
REEF_CALL int openat64(int folder, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_any_at("openat64", folder, path, flags, mode);
}
REEF_CALL int __openat_2(int folder, const char* path, int flags) {
  return open_any_at("openat", folder, path, flags, 0);
}
REEF_CALL int __openat64_2(int folder, const char* path, int flags) {
  return open_any_at("openat64", folder, path, flags, 0);
}

REEF_CALL int ioctl(int file, unsigned long request, ...) noexcept {
  va_list arguments;
  va_start(arguments, request);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  const unsigned type = _IOC_TYPE(request);
  if ((type == 0xdc || type == 0x7f) && is_card_file(file)) return call_card(request, argument);
  return static_cast<int>(::syscall(SYS_ioctl, file, request, argument));
}

// A stream on the card is one on the file that open() gives.
#define REEF_FOR_STREAM(name)                                                              \
  REEF_CALL FILE* name(const char* path, const char* mode) {                               \
    char room[PATH_MAX];                                                                   \
    if (!is_card(path) || std::getenv(serve::kRootVariable) == nullptr) {                  \
      return real<FILE* (*)(const char*, const char*)>(#name)(place_of(path, room), mode); \
    }                                                                                      \
    const int file = open_card(std::strchr(mode, 'e') != nullptr ? O_CLOEXEC : 0);         \
    return file >= 0 ? ::fdopen(file, mode) : nullptr;                                     \
  }
REEF_FOR_STREAM(fopen)
REEF_FOR_STREAM(fopen64)

// Calls that look at a path and do nothing else.
#define REEF_FOR_PATH(result, name, parameters, arguments) \
  REEF_CALL result name parameters {                       \
    char room[PATH_MAX];                                   \
    path = place_of(path, room);                           \
    return real<result(*) parameters>(#name) arguments;    \
  }
REEF_FOR_PATH(DIR*, opendir, (const char* path), (path))
REEF_FOR_PATH(int, access, (const char* path, int mode) noexcept, (path, mode))
REEF_FOR_PATH(int, euidaccess, (const char* path, int mode) noexcept, (path, mode))
REEF_FOR_PATH(int, faccessat, (int folder, const char* path, int mode, int flags) noexcept, (folder, path, mode, flags))
REEF_FOR_PATH(ssize_t, readlink, (const char* path, char* to, std::size_t bytes) noexcept, (path, to, bytes))
REEF_FOR_PATH(ssize_t, readlinkat, (int folder, const char* path, char* to, std::size_t bytes) noexcept,
              (folder, path, to, bytes))

// The same where the answer has to be that of a device file.
#define REEF_FOR_STATUS(name, parameters, arguments)                \
  REEF_CALL int name parameters {                                   \
    char room[PATH_MAX];                                            \
    const bool is_device = is_card(path);                           \
    path = place_of(path, room);                                    \
    const int error = real<int(*) parameters>(#name) arguments;     \
    if (error == 0 && is_device && path == room) as_device(*about); \
    return error;                                                   \
  }
REEF_FOR_STATUS(stat, (const char* path, struct stat* about) noexcept, (path, about))
REEF_FOR_STATUS(lstat, (const char* path, struct stat* about) noexcept, (path, about))
REEF_FOR_STATUS(stat64, (const char* path, struct stat64* about) noexcept, (path, about))
REEF_FOR_STATUS(lstat64, (const char* path, struct stat64* about) noexcept, (path, about))
REEF_FOR_STATUS(fstatat, (int folder, const char* path, struct stat* about, int flags) noexcept,
                (folder, path, about, flags))
REEF_FOR_STATUS(fstatat64, (int folder, const char* path, struct stat64* about, int flags) noexcept,
                (folder, path, about, flags))
REEF_FOR_STATUS(__xstat, (int version, const char* path, struct stat* about) noexcept, (version, path, about))
REEF_FOR_STATUS(__xstat64, (int version, const char* path, struct stat64* about) noexcept, (version, path, about))
REEF_FOR_STATUS(__lxstat, (int version, const char* path, struct stat* about) noexcept, (version, path, about))
REEF_FOR_STATUS(__lxstat64, (int version, const char* path, struct stat64* about) noexcept, (version, path, about))
REEF_FOR_STATUS(statx, (int folder, const char* path, int flags, unsigned mask, struct statx* about) noexcept,
                (folder, path, flags, mask, about))

// Calls about an open file: the shared memory that stands for the card must look like a device to them, too.
#define REEF_FOR_OPEN_FILE(name, parameters, arguments)         \
  REEF_CALL int name parameters {                               \
    const int error = real<int(*) parameters>(#name) arguments; \
    struct stat found {};                                       \
    found.st_dev = about->st_dev;                               \
    found.st_ino = about->st_ino;                               \
    if (error == 0 && is_card_status(found)) as_device(*about); \
    return error;                                               \
  }
REEF_FOR_OPEN_FILE(fstat, (int file, struct stat* about) noexcept, (file, about))
REEF_FOR_OPEN_FILE(fstat64, (int file, struct stat64* about) noexcept, (file, about))
REEF_FOR_OPEN_FILE(__fxstat, (int version, int file, struct stat* about) noexcept, (version, file, about))
REEF_FOR_OPEN_FILE(__fxstat64, (int version, int file, struct stat64* about) noexcept, (version, file, about))
