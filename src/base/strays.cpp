// SPDX-License-Identifier: Apache-2.0
#include "base/strays.h"

#include <charconv>
#include <cstdint>
#include <fstream>
#include <optional>
#include <random>
#include <string_view>

#include <dirent.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

namespace reef {
namespace {

// ".reef-HHHHHHHH-PID-START-RRRRRRRRRRRRRRRR", numbers in hexadecimal. The random half is what nobody can guess.
constexpr std::string_view kPrefix = kTemporaryPrefix;
constexpr std::string_view kOnlyCopy = ".reef-copy-";

// A process, for as long as the machine runs: a number is used again, but not with the same start.
struct Maker {
  std::uint32_t place = 0;  // machine, boot and namespace; 0: not known
  std::uint64_t process = 0, start = 0;
  friend bool operator==(const Maker&, const Maker&) = default;
};

std::uint32_t hash(std::string_view text) {  // FNV-1a
  std::uint32_t value = 2166136261u;
  for (const char c : text) value = (value ^ static_cast<std::uint8_t>(c)) * 16777619u;
  return value == 0 ? 1 : value;
}

std::uint32_t this_place() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  char space[64];
  const ssize_t length = ::readlink("/proc/self/ns/pid", space, sizeof space);
  if (boot.empty() || length <= 0) return 0;
  return hash(boot + std::string(space, static_cast<std::size_t>(length)));
}

// When a process started, in ticks since the boot; nothing: there is no such process.
std::optional<std::uint64_t> start_of(std::uint64_t process) {
  std::string line;
  if (!std::getline(std::ifstream(fmt::format("/proc/{}/stat", process)), line)) return std::nullopt;
  // "123 (name, which may hold anything) S ...": the start is the 20th word behind the name.
  std::size_t at = line.rfind(')');
  for (int word = 0; word < 20 && at != std::string::npos; ++word) at = line.find(' ', at + 1);
  std::uint64_t ticks = 0;
  if (at == std::string::npos) return std::nullopt;
  const auto [end, error] = std::from_chars(line.data() + at + 1, line.data() + line.size(), ticks);
  return error == std::errc() ? std::optional(ticks) : std::nullopt;
}

Maker this_process() {
  const auto number = static_cast<std::uint64_t>(::getpid());
  const std::optional<std::uint64_t> start = start_of(number);
  return start ? Maker{this_place(), number, *start} : Maker{0, number, 0};
}

std::uint64_t random_digits() {
  std::uint64_t digits = 0;
  if (::getrandom(&digits, sizeof digits, 0) == static_cast<ssize_t>(sizeof digits)) return digits;
  std::random_device device;  // a system without getrandom
  return std::uint64_t{device()} << 32 | device();
}

std::string name_with(std::string_view prefix) {
  const Maker maker = this_process();
  return fmt::format("{}{:08x}-{:x}-{:x}-{:016x}", prefix, maker.place, maker.process, maker.start, random_digits());
}

// Nothing: it is no name that new_temporary_name makes.
std::optional<Maker> maker_of(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  std::uint64_t numbers[4] = {};
  for (std::uint64_t& number : numbers) {
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number, 16);
    if (error != std::errc()) return std::nullopt;
    name.remove_prefix(static_cast<std::size_t>(end - name.data()));
    const bool is_last = &number == &numbers[3];
    if (is_last ? !name.empty() : !name.starts_with('-')) return std::nullopt;
    if (!is_last) name.remove_prefix(1);
  }
  if (numbers[0] > UINT32_MAX) return std::nullopt;
  return Maker{static_cast<std::uint32_t>(numbers[0]), numbers[1], numbers[2]};
}

bool has_ended(const Maker& maker, std::uint32_t place) {
  if (maker.place == 0 || maker.place != place) return false;
  const std::optional<std::uint64_t> start = start_of(maker.process);
  return !start || *start != maker.start;
}

bool is_own_file(int folder, const char* name) {
  struct stat info {};
  return ::fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(info.st_mode) &&
         info.st_uid == ::geteuid();
}

}  // namespace

std::string new_temporary_name() { return name_with(kPrefix); }
std::string new_name_of_only_copy() { return name_with(kOnlyCopy); }

void remove_strays(int folder) {
  constexpr int kMostEntries = 20'000;  // of a folder; reading one of a million takes longer than most commands
  const std::uint32_t place = this_place();
  const int opened = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (opened < 0) return;
  DIR* const list = ::fdopendir(opened);
  if (list == nullptr) {
    ::close(opened);
    return;
  }
  for (int i = 0; i < kMostEntries; ++i) {
    const dirent* const entry = ::readdir(list);
    if (entry == nullptr) break;
    const std::optional<Maker> maker = maker_of(entry->d_name);
    if (maker && has_ended(*maker, place) && is_own_file(opened, entry->d_name)) ::unlinkat(opened, entry->d_name, 0);
  }
  ::closedir(list);
}

}  // namespace reef
