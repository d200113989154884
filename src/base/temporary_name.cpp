// SPDX-License-Identifier: Apache-2.0
#include "base/temporary_name.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <unistd.h>

#include "base/strays.h"

namespace reef {
namespace internal {

enum State : int { kFree, kBeingFilled, kListed };

// An entry of the list. Entries are added and used again, never freed: the handler may be reading them.
struct ListedName {
  std::atomic<int> state{kBeingFilled};
  int folder = -1;
  bool is_folder = false;
  char name[64] = {};
  ListedName* next = nullptr;
};

}  // namespace internal

namespace {

using internal::kBeingFilled;
using internal::kFree;
using internal::kListed;
using internal::ListedName;

constinit std::atomic<ListedName*> first_listed{nullptr};

// How many SignalsWait there are; kEnding: a signal is ending the process.
constexpr int kEnding = -1;
constinit std::atomic<int> uninterrupted{0};
constinit std::atomic<int> waiting_signal{0};

static_assert(std::atomic<int>::is_always_lock_free && std::atomic<ListedName*>::is_always_lock_free);

ListedName* new_entry() {
  for (ListedName* entry = first_listed; entry != nullptr; entry = entry->next) {
    int free = kFree;
    if (entry->state.compare_exchange_strong(free, kBeingFilled)) return entry;
  }
  auto* entry = new ListedName;
  entry->next = first_listed;
  while (!first_listed.compare_exchange_weak(entry->next, entry)) {
  }
  return entry;
}

// Everything below is called by a signal handler: it uses only what POSIX allows there.

void remove_listed() {
  for (const bool folders : {false, true}) {  // a folder can go when its files are gone
    for (ListedName* entry = first_listed; entry != nullptr; entry = entry->next) {
      if (entry->state != kListed || entry->is_folder != folders) continue;
      ::unlinkat(entry->folder, entry->name, folders ? AT_REMOVEDIR : 0);
    }
  }
}

[[noreturn]] void end_by(int signal) {
  remove_listed();
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  ::sigaction(signal, &standard, nullptr);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  ::raise(signal);
  ::_exit(128 + signal);
}

// The order matters: a SignalsWait looks for a waiting signal after it has counted itself off, and this looks for
// those after it has left the signal there, so that one of the two sees the other.
void on_signal(int signal) {
  const int error = errno;
  waiting_signal = signal;
  int none = 0;
  if (uninterrupted.compare_exchange_strong(none, kEnding)) end_by(signal);
  errno = error;
}

}  // namespace

TemporaryName TemporaryName::drawn_in(std::shared_ptr<const FileDescriptor> folder) {
  return TemporaryName(std::move(folder), new_temporary_name());
}

TemporaryName::TemporaryName(std::shared_ptr<const FileDescriptor> folder, const std::string& name, Kind kind)
    : folder_(std::move(folder)), listed_(new_entry()) {
  listed_->folder = folder_->get();
  listed_->is_folder = kind == Kind::kFolder;
  std::strncpy(listed_->name, name.c_str(), sizeof(listed_->name) - 1);
  listed_->state = kListed;
}

TemporaryName::TemporaryName(TemporaryName&& other) noexcept
    : folder_(std::move(other.folder_)), listed_(std::exchange(other.listed_, nullptr)) {}

const char* TemporaryName::name() const { return listed_->name; }

void TemporaryName::remove() {
  if (listed_ == nullptr) return;
  ::unlinkat(folder_->get(), listed_->name, listed_->is_folder ? AT_REMOVEDIR : 0);
  give_away();
}

void TemporaryName::give_away() {
  if (listed_ != nullptr) listed_->state = kFree;
  listed_ = nullptr;
}

SignalsWait::SignalsWait() {
  for (int now = uninterrupted;;) {
    while (now == kEnding) {  // a handler on another thread ends the process
      ::pause();
      now = uninterrupted;
    }
    if (uninterrupted.compare_exchange_weak(now, now + 1)) return;
  }
}

SignalsWait::~SignalsWait() {
  --uninterrupted;
  const int signal = waiting_signal;
  int none = 0;
  if (signal != 0 && uninterrupted.compare_exchange_strong(none, kEnding)) end_by(signal);
}

void install_interrupt_cleanup() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    if (::sigaction(signal, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) continue;
    action = {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    ::sigaction(signal, &action, nullptr);
  }
}

Result<TemporaryFolder> TemporaryFolder::make(const std::string& prefix, std::initializer_list<const char*> files) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path parent = fs::temp_directory_path(error);
  TemporaryFolder folder;
  const SignalsWait until_it_is_listed;
  std::string pattern = (parent / (prefix + "_XXXXXX")).string();
  if (error || ::mkdtemp(pattern.data()) == nullptr) {
    return make_error(StatusCode::kIoError, "cannot make a temporary folder '{}': {}", pattern,
                      error ? error.message() : std::strerror(errno));
  }
  folder.path_ = pattern;
  const auto open = [](const std::string& path) {
    return std::make_shared<const FileDescriptor>(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  };
  const auto inside = open(pattern), outside = open(parent.string());
  for (const char* name : files) folder.names_.emplace_back(inside, name);
  folder.names_.emplace_back(outside, fs::path(pattern).filename().string(), TemporaryName::Kind::kFolder);
  return folder;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code error;
  if (!path_.empty() && !names_.empty()) std::filesystem::remove_all(path_, error);
}

}  // namespace reef
