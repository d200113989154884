// SPDX-License-Identifier: Apache-2.0
// `reef virtual-usb`: programs that know nothing of Reef find virtual sticks. The program is libusb_program.c, built
// with libusb's own header and linked with the system's libusb, in whose place ours comes.
#include <elf.h>

#include <fstream>
#include <set>
#include <sstream>

#include "base/file.h"
#include "command_line.h"

namespace reef::testing {
namespace {

namespace fs = std::filesystem;

std::string program(const std::string& name = "libusb_program") {
  return (fs::path(REEF_PROGRAM).parent_path() / "tests" / name).string();
}

class VirtualUsb : public CommandLine {
 protected:
  void SetUp() override {
    if (!fs::exists(program())) GTEST_SKIP() << "libusb's header is not there (Debian: libusb-1.0-0-dev)";
  }
  // The program with a command, under `reef virtual-usb OPTIONS`.
  static void expect_done(const std::string& options, const std::string& command,
                          const std::string& name = "libusb_program") {
    const Outcome outcome = reef(fmt::format("virtual-usb {} -- {} {}", options, program(name), command));
    EXPECT_EQ(outcome.exit_code, 0) << command << ": " << outcome.text;
    EXPECT_NE(outcome.text.find("done"), std::string::npos) << command << ": " << outcome.text;
  }
};

TEST_F(VirtualUsb, SticksAreListedWithTheirDescriptors) {
  const Outcome two = reef(fmt::format("virtual-usb --sticks 2 -- {} list 2", program()));
  EXPECT_EQ(two.exit_code, 0) << two.text;
  EXPECT_NE(two.text.find("1-1 1a6e:089a speed 4\n1-2 1a6e:089a speed 4"), std::string::npos) << two.text;
  const Outcome slow = reef(fmt::format("virtual-usb --speed high -- {} list 1", program()));
  EXPECT_NE(slow.text.find("1-1 1a6e:089a speed 3"), std::string::npos) << slow.text;
  expect_done("--sticks 0", "list 0");
}

TEST_F(VirtualUsb, FirmwareRegistersTransfersAndHotplugAreLibusbs) {
  for (const char* command : {"descriptors", "registers", "asynchronous", "hotplug", "jam", "claim"}) {
    expect_done("", command);
  }
}

TEST_F(VirtualUsb, CornersAreThoseOfLibusbOnLinux) {
  for (const char* command : {"order", "malformed", "threads", "contexts", "hotplug", "fork", "poll", "callbacks"}) {
    expect_done("--ready", command, "libusb_corners");
  }
}

TEST_F(VirtualUsb, CallsToACardAreThoseOfGasket) {
  for (const char* command : {"calls", "pages", "owners"}) expect_done("--pcie", command, "apex_program");
}

TEST_F(VirtualUsb, AFaultHappensWhereItWasAskedFor) { expect_done("--fault unplug@3", "unplug"); }

TEST_F(VirtualUsb, SticksKeepTheirStateFromOneProgramToTheNext) {
  const std::string other = program();
  const Outcome outcome = reef(
      fmt::format("virtual-usb -- sh -c '{0} registers && {0} count {1} 1 && {0} count {2} 0'", other, 0x18d1, 0x1a6e));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
}

TEST_F(VirtualUsb, AProgramThatIsKilledGivesItsStickBack) {
  const Outcome outcome =
      reef(fmt::format("virtual-usb -- sh -c 'timeout -s KILL 0.5 {0} hold; {0} claim'", program()));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("done"), std::string::npos) << outcome.text;
}

TEST_F(VirtualUsb, EveryOperationIsInTheLog) {
  const std::string log = (folder_ / "log.txt").string();
  expect_done("--log " + log, "registers");
  std::ifstream file(log);
  std::stringstream text;
  text << file.rdbuf();
  for (const char* line : {"1-1 open 1-1\n", "1-1 claim\n", "1-1 control 21 01 0003 0000, 256 of 256 bytes: 0303",
                           "1-1 reset port\n", "1-1 write tileconfig0 = 0x7f\n", "1-1 read tileconfig0 = 0x7f\n"}) {
    EXPECT_NE(text.str().find(line), std::string::npos) << line << "\n" << text.str();
  }
}

// Whatever a program may call, so that it loads.
TEST_F(VirtualUsb, ExportsWhatLibusbExports) {
  const auto symbols_of = [&](const std::string& library) {
    const std::string list = (folder_ / "symbols").string();
    std::set<std::string> names;
    if (std::system(fmt::format("nm -D --defined-only {} > {} 2>/dev/null", library, list).c_str()) != 0) return names;
    std::ifstream file(list);
    for (std::string address, kind, name; file >> address >> kind >> name;)
      names.insert(name.substr(0, name.find('@')));
    return names;
  };
  const Outcome real = reef(fmt::format("virtual-usb -- sh -c 'LD_PRELOAD= LD_LIBRARY_PATH= ldd {}'", program()));
  std::istringstream words(real.text);
  std::string path;
  for (std::string word; words >> word;) {
    if (word.find("/libusb-1.0.so.0") != std::string::npos) path = word;
  }
  const std::set<std::string> theirs = symbols_of(path);
  if (theirs.empty()) GTEST_SKIP() << "nm or the system's libusb is not there";
  const std::set<std::string> ours =
      symbols_of((fs::path(REEF_PROGRAM).parent_path() / "virtual_usb" / "libusb-1.0.so.0").string());
  for (const std::string& name : theirs) EXPECT_TRUE(ours.contains(name)) << name;
  for (const std::string& name : ours) EXPECT_TRUE(name.starts_with("libusb_")) << name << " gets into programs";
}

TEST_F(VirtualUsb, OutsideOfItTheLibrarySaysWhatToDo) {
  const std::string folder = (fs::path(REEF_PROGRAM).parent_path() / "virtual_usb").string();
  const Outcome outcome = reef(fmt::format("--version && LD_LIBRARY_PATH={} {} list 0", folder, program()));
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_NE(outcome.text.find("reef virtual-usb"), std::string::npos) << outcome.text;
}

using VirtualUsbCommand = CommandLine;

TEST_F(VirtualUsbCommand, TheExitCodeIsThePrograms) {
  EXPECT_EQ(reef("virtual-usb -- sh -c 'exit 7'").exit_code, 7);
  EXPECT_EQ(reef("virtual-usb -- sh -c 'kill -TERM $$'").exit_code, 128 + 15);
  EXPECT_EQ(reef("virtual-usb -- true").exit_code, 0);
}

TEST_F(VirtualUsbCommand, WhatCannotBeDoneIsSaid) {
  const auto expect = [](const std::string& arguments, int code, const char* words) {
    const Outcome outcome = reef("virtual-usb " + arguments);
    EXPECT_EQ(outcome.exit_code, code) << arguments << ": " << outcome.text;
    EXPECT_NE(outcome.text.find(words), std::string::npos) << arguments << ": " << outcome.text;
  };
  expect("-- no_such_program_anywhere", 1, "no program 'no_such_program_anywhere'");
  expect("--fault melts@3 -- true", 1, "unplug");
  expect("--fault 2:unplug@3 -- true", 1, "there are 1 sticks");
  expect("--log /dev/null/x -- true", 1, "/dev/null");
  expect("", 2, "command");
}

// Reef's own driver on a stick of another process, and a stick that differs in one respect.
TEST_F(VirtualUsbCommand, TheDeviceTestConfirmsAStickAndNamesWhatIsWrongWithAnother) {
  const std::string report = (folder_ / "report.json").string();
  const Outcome right = reef(fmt::format("virtual-usb --ready -- {} devices --test --report {}", REEF_PROGRAM, report));
  EXPECT_EQ(right.exit_code, 0) << right.text;
  EXPECT_NE(right.text.find("confirmed  convolution"), std::string::npos) << right.text;
  std::ifstream file(report);
  std::stringstream text;
  text << file.rdbuf();
  for (const char* word : {"\"transcript\"", "\"link\": \"USB 3\"", "\"as_expected\": true", "out 01"}) {
    EXPECT_NE(text.str().find(word), std::string::npos) << word;
  }
  EXPECT_EQ(text.str().find(folder_.string()), std::string::npos) << "a path of the machine";
  const Outcome wrong =
      reef(fmt::format("virtual-usb --ready --misreading no-table -- {} devices --test", REEF_PROGRAM));
  EXPECT_EQ(wrong.exit_code, 1) << wrong.text;
  EXPECT_NE(wrong.text.find("a chip that applies no activation tables"), std::string::npos) << wrong.text;
}

// The same program without a loader in its table of segments is one that is statically linked.
// A stick that another program holds is passed over by --device auto, which says so; one that is named is not.
TEST_F(VirtualUsbCommand, AutomaticChoicePassesOverAStickInUse) {
  ASSERT_EQ(reef(fmt::format("compile --no-verify -o '{}' '{}'", folder_.string(),
                             REEF_SOURCE_DIR "/models/reef_creatures_int8.tflite"))
                .exit_code,
            0);
  const std::string run =
      fmt::format("{} run {} --device", REEF_PROGRAM, (folder_ / "reef_creatures_int8_edgetpu.tflite").string());
  const Outcome outcome = reef(
      fmt::format("virtual-usb --ready --sticks 2 -- sh -c '{0} usb:0 --bench 1000000 >/dev/null 2>&1 & holder=$!; "
                  "for i in $(seq 100); do {1} devices | grep -q \"in use\" && break; sleep 0.1; done; "
                  "{0} auto; {0} usb:0; kill $holder'",
                  run, REEF_PROGRAM));
  EXPECT_NE(outcome.text.find("Edge TPU usb:1"), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("note: Edge TPU usb:0"), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("reef: Edge TPU usb:0: USB port"), std::string::npos) << outcome.text;
}

TEST_F(VirtualUsbCommand, StaticallyLinkedProgramsAreRefused) {
  auto bytes = read_file("/proc/self/exe", 1u << 31);
  ASSERT_TRUE(bytes.ok());
  std::vector<std::uint8_t> file(bytes->span().begin(), bytes->span().begin() + 4096);
  Elf64_Ehdr header;
  std::memcpy(&header, file.data(), sizeof header);
  ASSERT_LT(header.e_phoff + header.e_phnum * sizeof(Elf64_Phdr), file.size());
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::uint8_t* const at = file.data() + header.e_phoff + i * sizeof segment;
    std::memcpy(&segment, at, sizeof segment);
    if (segment.p_type == PT_INTERP) segment.p_type = PT_NULL;
    std::memcpy(at, &segment, sizeof segment);
  }
  const fs::path fixed = folder_ / "static_program", script = folder_ / "script";
  ASSERT_TRUE(write_file(fixed.string(), file).ok());
  std::ofstream(script) << "#!" << fixed.string() << " -x\n";
  for (const fs::path& path : {fixed, script}) {
    fs::permissions(path, fs::perms::owner_all);
    const Outcome outcome = reef("virtual-usb -- " + path.string());
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_NE(outcome.text.find("statically linked"), std::string::npos) << outcome.text;
  }
}

}  // namespace
}  // namespace reef::testing
