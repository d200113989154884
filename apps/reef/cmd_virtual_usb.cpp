// SPDX-License-Identifier: Apache-2.0
// reef virtual-usb: runs a program with virtual Edge TPUs plugged in (docs/driver.md). This process has the devices;
// the program gets a libusb, and the device file of a card, that talk to it.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include "base/file.h"
#include "commands.h"
#include "compiler/output_check.h"
#include "console.h"
#include "driver/device_server.h"
#include "execute/device/other_chip.h"
#include "parts.h"
#include "program_file.h"
#include "usage.h"

extern char** environ;

namespace reef::app {
namespace {

namespace fs = std::filesystem;

constexpr int kMostSticks = 100;

struct VirtualUsbArguments {
  std::vector<std::string> command;
  std::optional<int> sticks;
  bool pcie = false, is_relaxed = false, is_ready = false;
  std::string log, speed = "super", misreading;
  std::vector<std::string> faults;
  int threads = 0;
};

// Gone with all that is in it.
class WorkFolder {
 public:
  static Result<WorkFolder> make() {
    std::string path = (fs::temp_directory_path() / "reef_usb_XXXXXX").string();
    if (::mkdtemp(path.data()) == nullptr) {
      return make_error(StatusCode::kIoError, "making the folder {} failed: {}", path, std::strerror(errno));
    }
    return WorkFolder(path);
  }
  ~WorkFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  WorkFolder(WorkFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  const std::string& path() const { return path_; }

 private:
  explicit WorkFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

Status link_libraries(const fs::path& from, const std::string& to) {
  std::error_code error;
  fs::create_directory(to, error);
  for (const auto& [name, file] : {std::pair{"libusb-1.0.so.0", "libusb-1.0.so.0"},
                                   {"libusb-1.0.so", "libusb-1.0.so.0"},
                                   {"libreef_virtual_card.so", "libreef_virtual_card.so"}}) {
    if (!error) fs::create_symlink(from / file, fs::path(to) / name, error);
  }
  if (error) return make_error(StatusCode::kIoError, "linking the libraries into {} failed: {}", to, error.message());
  return ok_status();
}

std::string chip_names() {
  std::string names;
  for (const device::OtherChip& chip : device::other_chips()) names += fmt::format(" {}", chip.name);
  return names;
}

// "unplug@120", or "1:unplug@120" for another stick than the first.
struct FaultRequest {
  std::size_t stick = 0;
  driver::StickFault fault = driver::StickFault::kUnplug;
  std::int64_t operation = 0;
};

Result<FaultRequest> parse_fault(const std::string& text, std::size_t sticks) {
  const auto failure = [&] {
    std::string names;
    for (const driver::StickFaultInfo& info : driver::stick_faults()) names += fmt::format(" {}", info.name);
    return invalid_input("--fault {}: it has to be NAME@OPERATION or STICK:NAME@OPERATION, with one of the names{}",
                         text, names);
  };
  const auto number = [](const std::string& digits) -> std::optional<std::int64_t> {
    if (digits.empty() || digits.size() > 15 || digits.find_first_not_of("0123456789") != std::string::npos) return {};
    return std::stoll(digits);
  };
  FaultRequest request;
  std::string rest = text;
  if (const std::size_t colon = rest.find(':'); colon != std::string::npos) {
    const auto stick = number(rest.substr(0, colon));
    if (!stick) return failure();
    request.stick = static_cast<std::size_t>(*stick);
    rest = rest.substr(colon + 1);
  }
  const std::size_t at = rest.find('@');
  const auto operation = at == std::string::npos ? std::nullopt : number(rest.substr(at + 1));
  if (!operation) return failure();
  request.operation = *operation;
  if (request.stick >= sticks) return invalid_input("--fault {}: there are {} sticks", text, sticks);
  for (const driver::StickFaultInfo& info : driver::stick_faults()) {
    if (info.name != rest.substr(0, at)) continue;
    request.fault = info.fault;
    return request;
  }
  return failure();
}

// ---- The program ----

volatile sig_atomic_t child = 0;
void pass_on(int signal) {
  if (child > 0) ::kill(child, signal);
}

// The variable with `value` before what it holds.
std::string in_front(const char* name, const std::string& value) {
  const char* const before = std::getenv(name);
  return fmt::format("{}={}{}{}", name, value, before != nullptr && *before != 0 ? ":" : "",
                     before != nullptr ? before : "");
}

std::vector<std::string> make_environment(const driver::DeviceServer& server, const std::string& libraries, bool pcie) {
  std::vector<std::string> own = {
      fmt::format("{}={}", driver::serve::kSocketVariable, server.socket_path()),
      fmt::format("{}={}", driver::serve::kRootVariable, server.root()), in_front("LD_LIBRARY_PATH", libraries),
      in_front("LD_PRELOAD", fmt::format("{}/libusb-1.0.so.0{}{}", libraries, pcie ? ":" : "",
                                         pcie ? libraries + "/libreef_virtual_card.so" : ""))};
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('='));
    const bool is_replaced =
        std::any_of(own.begin(), own.end(), [&](const std::string& other) { return other.starts_with(name + "="); });
    if (!is_replaced) own.push_back(text);
  }
  return own;
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> list;
  for (std::string& word : words) list.push_back(word.data());
  list.push_back(nullptr);
  return list;
}

// Runs it to its end. Its exit code, as a shell counts it.
Result<int> run_program(const std::string& file, std::vector<std::string> words, std::vector<std::string> environment) {
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t defaults;
  ::sigemptyset(&defaults);
  for (const int signal : {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGPIPE}) ::sigaddset(&defaults, signal);
  ::posix_spawnattr_setsigdefault(&attributes, &defaults);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  // The terminal's signals reach the program by themselves, others are passed on: this process ends after it.
  ::signal(SIGINT, SIG_IGN);
  ::signal(SIGQUIT, SIG_IGN);
  ::signal(SIGTERM, pass_on);
  ::signal(SIGHUP, pass_on);
  pid_t process = 0;
  const int error = ::posix_spawn(&process, file.c_str(), nullptr, &attributes, pointers_to(words).data(),
                                  pointers_to(environment).data());
  ::posix_spawnattr_destroy(&attributes);
  if (error != 0) return make_error(StatusCode::kIoError, "starting {} failed: {}", file, std::strerror(error));
  child = process;
  int state = 0;
  while (::waitpid(process, &state, 0) < 0 && errno == EINTR) {
  }
  child = 0;
  return WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
}

Result<int> run_with_devices(const VirtualUsbArguments& arguments) {
  REEF_ASSIGN_OR_RETURN(const std::string file, find_program(arguments.command.front()));
  REEF_RETURN_IF_ERROR(compiler::check_files({.outputs = {arguments.log}, .models = {}, .data = {}, .others = {file}}));
  REEF_RETURN_IF_ERROR(check_can_be_preloaded(file));
  REEF_ASSIGN_OR_RETURN(const fs::path libraries, find_part(Part::kVirtualUsb));
  REEF_ASSIGN_OR_RETURN(const WorkFolder folder, WorkFolder::make());
  REEF_RETURN_IF_ERROR(link_libraries(libraries, folder.path() + "/lib"));

  const int threads = arguments.threads > 0 ? arguments.threads : static_cast<int>(std::thread::hardware_concurrency());
  driver::StickOptions stick;
  stick.is_strict = !arguments.is_relaxed;
  stick.has_firmware = stick.was_put_to_sleep = arguments.is_ready;
  stick.speed = arguments.speed == "high" ? driver::UsbSpeed::kHigh : driver::UsbSpeed::kSuper;
  stick.threads = threads;
  if (!arguments.misreading.empty()) {
    stick.other_chip = device::find_other_chip(arguments.misreading);
    REEF_REQUIRE(stick.other_chip != nullptr, "--misreading {}: it has to be one of{}", arguments.misreading,
                 chip_names());
  }
  driver::ServerOptions options;
  options.sticks.assign(static_cast<std::size_t>(arguments.sticks.value_or(arguments.pcie ? 0 : 1)), stick);
  options.has_card = arguments.pcie;
  options.card_threads = threads;
  options.card_chip = stick.other_chip;
  std::mutex log_mutex;
  std::string log;
  if (!arguments.log.empty()) {
    options.log = [&](const std::string& line) {
      const std::lock_guard lock(log_mutex);
      log += line + "\n";
    };
  }
  options.warn = [](const std::string& line) { print_error("reef: warning: {}\n", line); };
  std::vector<FaultRequest> faults;
  for (const std::string& text : arguments.faults) {
    REEF_ASSIGN_OR_RETURN(faults.emplace_back(), parse_fault(text, options.sticks.size()));
  }

  REEF_ASSIGN_OR_RETURN(auto server, driver::DeviceServer::start(std::move(options), folder.path()));
  for (const FaultRequest& fault : faults) server->stick(fault.stick).inject(fault.fault, fault.operation);
  const Result<int> code =
      run_program(file, arguments.command, make_environment(*server, folder.path() + "/lib", arguments.pcie));
  for (std::size_t i = 0; i < server->sticks(); ++i) {
    if (const std::string why = server->stick(i).diagnosis(); !why.empty()) {
      print_error("reef: note: the chip of the stick at 1-{} stopped: {}\n", i + 1, why);
    }
  }
  server.reset();  // no more lines
  if (!arguments.log.empty()) REEF_RETURN_IF_ERROR(write_file(arguments.log, log));
  return code;
}

std::string footer() {
  std::string text =
      "The program, and the programs that it starts, find N Coral USB Accelerators through libusb 1.0, and with --pcie "
      "a\n"
      "Coral PCIe card as /dev/apex_0, whatever is plugged in for real. They compute what the virtual device computes, "
      "and\n"
      "stall where sticks stall. Sticks keep their state from one program to the next. The exit code is the "
      "program's.\n"
      "Programs that are statically linked, or talk to the kernel without libusb, are not reached. docs/driver.md.\n"
      "Faults happen once, at an operation (opening, claiming, resetting, a control transfer, the end of another "
      "transfer)\n"
      "counted from 0:\n";
  for (const driver::StickFaultInfo& info : driver::stick_faults()) {
    text += fmt::format("  {:18} {}\n", info.name, info.meaning);
  }
  text += "Misreadings (a chip that ...):\n";
  for (const device::OtherChip& chip : device::other_chips()) text += fmt::format("  {:28} {}\n", chip.name, chip.deed);
  return text +
         "Examples:\n"
         "  reef virtual-usb -- python3 classify_image.py --model model_edgetpu.tflite\n"
         "  reef virtual-usb --sticks 2 --log transfers.txt -- ./my_driver_test\n"
         "  reef virtual-usb --fault unplug@150 -- pytest tests/\n"
         "  reef virtual-usb --pcie -- ./my_program";
}

}  // namespace

void add_virtual_usb(Command& app, Action& action) {
  auto arguments = std::make_shared<VirtualUsbArguments>();
  Command command = app.add_subcommand("virtual-usb", "Run a program with virtual Edge TPUs plugged in");
  command.starts_programs();
  command.add_option("command", arguments->command, "The program and its arguments, after --").required();
  command.add_option("--sticks", arguments->sticks, "How many sticks are plugged in; without it 1, with --pcie none")
      .check(between(0, kMostSticks));
  command.add_flag("--pcie", arguments->pcie, "A card is there, too: /dev/apex_0");
  command.add_option("--log", arguments->log, "Write every operation on the devices to this file")
      .option_text("FILE")
      .writes();
  command.add_option("--speed", arguments->speed, "Of the sticks' ports: super (USB 3, the default) or high (USB 2)")
      .transform(one_of({"super", "high"}));
  command.add_flag("--ready", arguments->is_ready, "Sticks have firmware already, as if a program had used them");
  command.add_flag("--relaxed", arguments->is_relaxed,
                   "Sticks take any number of bytes in any order; they never stall");
  command.add_option("--fault", arguments->faults, "NAME@OPERATION, or STICK:NAME@OPERATION: what goes wrong, and when")
      .allow_extra_args(false);
  command.add_option("--misreading", arguments->misreading,
                     "The devices' chips do one thing differently: see whether a test notices");
  command.add_option("--threads", arguments->threads, "Threads that compute; without it one for each CPU")
      .check(between(1, 1024));
  command.footer(footer());
  command.callback([arguments, &action] {
    action = [arguments]() -> Ending {
      const Result<int> code = run_with_devices(*arguments);
      return code.ok() ? Ending(ok_status(), *code) : Ending(code.status());
    };
  });
}

}  // namespace reef::app
