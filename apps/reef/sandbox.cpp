// SPDX-License-Identifier: Apache-2.0
#include "sandbox.h"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file_descriptor.h"

namespace reef::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kVariable = "REEF_SANDBOX";

// ---- Landlock ----

// From the kernel's interface, which is stable: older systems that we compile on have no header of it.
constexpr long kCreateRuleset = 444, kAddRule = 445, kRestrictSelf = 446;
constexpr std::uint32_t kAskVersion = 1;
constexpr int kRulePathBeneath = 1;
struct RulesetAttributes {
  std::uint64_t files = 0, network = 0;
};
struct [[gnu::packed]] PathBeneath {
  std::uint64_t allowed = 0;
  std::int32_t folder = -1;
};
enum Right : std::uint64_t {
  kExecute = 1 << 0,
  kWriteFile = 1 << 1,
  kRemoveFolder = 1 << 4,
  kRemoveFile = 1 << 5,
  kMakeCharacterDevice = 1 << 6,
  kMakeFolder = 1 << 7,
  kMakeFile = 1 << 8,
  kMakeSocket = 1 << 9,
  kMakeFifo = 1 << 10,
  kMakeBlockDevice = 1 << 11,
  kMakeLink = 1 << 12,
  kMoveBetweenFolders = 1 << 13,  // since version 2
  kTruncate = 1 << 14,            // since version 3
};
constexpr std::uint64_t kBindTcp = 1 << 0, kConnectTcp = 1 << 1;  // since version 4

constexpr std::uint64_t kWriting = kWriteFile | kRemoveFolder | kRemoveFile | kMakeFolder | kMakeFile | kTruncate;
constexpr std::uint64_t kOtherChanges =
    kExecute | kMakeCharacterDevice | kMakeSocket | kMakeFifo | kMakeBlockDevice | kMakeLink | kMoveBetweenFolders;

int landlock_version() {
  return static_cast<int>(::syscall(kCreateRuleset, nullptr, std::size_t{0}, kAskVersion));  // negative: none
}

// The rights of `wanted` that a kernel of this version knows.
std::uint64_t known_rights(std::uint64_t wanted, int version) {
  if (version < 2) wanted &= ~std::uint64_t{kMoveBetweenFolders};
  if (version < 3) wanted &= ~std::uint64_t{kTruncate};
  return wanted;
}

// The deepest folder of `path` that exists: results are made there, and folders for them.
fs::path existing_folder(fs::path path) {
  std::error_code error;
  path = fs::weakly_canonical(fs::absolute(path, error), error);  // a link's file is written where it is
  while (!fs::is_directory(path, error) && path.has_parent_path() && path.parent_path() != path) {
    path = path.parent_path();
  }
  return path;
}

void allow_beneath(int ruleset, const fs::path& folder, std::uint64_t rights) {
  const FileDescriptor opened(::open(folder.c_str(), O_PATH | O_CLOEXEC));
  if (opened.get() < 0) return;  // what cannot be opened is not written to
  const PathBeneath rule{rights, opened.get()};
  ::syscall(kAddRule, ruleset, kRulePathBeneath, &rule, 0u);
}

Status confine_files(const std::vector<std::string>& outputs) {
  const int version = landlock_version();
  if (version < 1) return unsupported("the kernel has no Landlock, which limits where files can be written");
  RulesetAttributes attributes;
  attributes.files = known_rights(kWriting | kOtherChanges, version);
  if (version >= 4) attributes.network = kBindTcp | kConnectTcp;
  // Versions before 4 know the first member only.
  const std::size_t size = version >= 4 ? sizeof attributes : sizeof attributes.files;
  const FileDescriptor ruleset(static_cast<int>(::syscall(kCreateRuleset, &attributes, size, 0u)));
  if (ruleset.get() < 0) return unsupported("Landlock made no rules: {}", std::strerror(errno));
  const std::uint64_t writing = known_rights(kWriting, version);
  for (const std::string& output : outputs) allow_beneath(ruleset.get(), existing_folder(output), writing);
  std::error_code error;
  allow_beneath(ruleset.get(), fs::temp_directory_path(error), writing);
  allow_beneath(ruleset.get(), "/dev", writing);
  if (::syscall(kRestrictSelf, ruleset.get(), 0u) != 0) {
    return unsupported("Landlock's rules were not accepted: {}", std::strerror(errno));
  }
  return ok_status();
}

// ---- seccomp ----

#if defined(__x86_64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr std::uint32_t kArchitecture = 0;
#endif

// Calls that no command needs once it has begun: starting programs, looking into other processes, changing the system.
constexpr std::uint32_t kRefused[] = {
    SYS_execve, SYS_execveat, SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_bpf, SYS_perf_event_open,
    SYS_add_key, SYS_request_key, SYS_keyctl, SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_setns,
    SYS_unshare, SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_kexec_load, SYS_reboot, SYS_swapon,
    SYS_swapoff, SYS_acct, SYS_settimeofday, SYS_quotactl, SYS_open_by_handle_at, SYS_personality,
    // These have the same number on all CPUs but for userfaultfd; headers of older systems lack them. io_uring is
    // refused because it does the work of other calls where seccomp does not see them.
    425,                                                    // io_uring_setup
    438,                                                    // pidfd_getfd
    323 + (kArchitecture == AUDIT_ARCH_AARCH64 ? -41 : 0),  // userfaultfd: 323, on arm64 282
};

constexpr std::uint32_t kArgument(int index) {
  return static_cast<std::uint32_t>(offsetof(seccomp_data, args)) + 8 * static_cast<std::uint32_t>(index);
}

sock_filter load(std::uint32_t offset) { return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset); }
sock_filter end_with(std::uint32_t action) { return BPF_STMT(BPF_RET | BPF_K, action); }
sock_filter jump(std::uint16_t test, std::uint32_t value, int if_true, int if_false) {
  return BPF_JUMP(static_cast<std::uint16_t>(BPF_JMP | test | BPF_K), value, static_cast<std::uint8_t>(if_true),
                  static_cast<std::uint8_t>(if_false));
}

// A refused call fails with EACCES, as it may for other reasons: libraries that try it have an answer for that.
constexpr std::uint32_t kRefuse = SECCOMP_RET_ERRNO | EACCES;

std::vector<sock_filter> filter() {
  std::vector<sock_filter> program = {load(offsetof(seccomp_data, arch)), jump(BPF_JEQ, kArchitecture, 1, 0),
                                      end_with(SECCOMP_RET_KILL_PROCESS),  // another CPU's numbers
                                      load(offsetof(seccomp_data, nr))};
#if defined(__x86_64__)
  constexpr std::uint32_t kX32 = 0x40000000;  // the same calls under other numbers
  program.insert(program.end(), {jump(BPF_JGE, kX32, 0, 1), end_with(kRefuse)});
#endif
  for (const std::uint32_t call : kRefused) {
    program.insert(program.end(), {jump(BPF_JEQ, call, 0, 1), end_with(kRefuse)});
  }
  // Sockets: this machine's, and netlink, by which libusb hears of devices.
  program.insert(program.end(), {jump(BPF_JEQ, SYS_socket, 0, 5), load(kArgument(0)), jump(BPF_JEQ, AF_UNIX, 2, 0),
                                 jump(BPF_JEQ, AF_NETLINK, 1, 0), end_with(kRefuse), load(offsetof(seccomp_data, nr))});
  // Memory is not both written and executed; libraries are still mapped from their files.
  program.insert(program.end(), {jump(BPF_JEQ, SYS_mprotect, 0, 4), load(kArgument(2)), jump(BPF_JSET, PROT_EXEC, 0, 1),
                                 end_with(kRefuse), load(offsetof(seccomp_data, nr))});
  program.insert(program.end(), {jump(BPF_JEQ, SYS_mmap, 0, 4), load(kArgument(2)), jump(BPF_JSET, PROT_WRITE, 0, 2),
                                 jump(BPF_JSET, PROT_EXEC, 0, 1), end_with(kRefuse)});
  program.push_back(end_with(SECCOMP_RET_ALLOW));
  return program;
}

Status confine_calls() {
  if (kArchitecture == 0) return unsupported("the sandbox does not know this CPU's system calls");
  std::vector<sock_filter> program = filter();
  const sock_fprog all{static_cast<unsigned short>(program.size()), program.data()};
  if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all) != 0) {
    return unsupported("the kernel takes no seccomp filter, which refuses programs and the network: {}",
                       std::strerror(errno));
  }
  return ok_status();
}

// Sanitizers start helpers and look at other threads when the program ends.
constexpr bool kHasSanitizer =
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(REEF_SANITIZED)
    true;
#else
    false;
#endif

}  // namespace

Result<SandboxWish> sandbox_wish() {
  const char* const text = std::getenv(kVariable);
  const std::string_view word = text == nullptr ? "" : text;
  if (word.empty() || word == "on") return SandboxWish::kBestEffort;
  if (word == "off") return SandboxWish::kOff;
  if (word == "require") return SandboxWish::kRequired;
  return invalid_input("{}={} is not understood; it may be on, off or require (docs/trust.md)", kVariable, word);
}

Status enter_sandbox(const std::vector<std::string>& outputs) {
  REEF_ASSIGN_OR_RETURN(const SandboxWish wish, sandbox_wish());
  if (wish == SandboxWish::kOff) return ok_status();
  Status status = ok_status();
  if (kHasSanitizer) {
    status = unsupported("this build has a sanitizer, which needs what a sandbox refuses");
  } else if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    status = unsupported("the process cannot give up privileges: {}", std::strerror(errno));
  } else {
    const Status files = confine_files(outputs), calls = confine_calls();
    status = files.ok() ? calls : files;
  }
  if (status.ok() || wish == SandboxWish::kBestEffort) return ok_status();
  return unsupported("{}=require, but {}; {}=off runs the command without a sandbox", kVariable, status.message(),
                     kVariable);
}

}  // namespace reef::app
