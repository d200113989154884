// SPDX-License-Identifier: Apache-2.0
#include "device_trial_report.h"

#include <sys/utsname.h>

#include <chrono>
#include <memory>
#include <mutex>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/version.h"
#include "compiler/device_trial.h"
#include "compiler/output_check.h"
#include "console.h"
#include "driver/attachment.h"
#include "driver/libusb_bus.h"
#include "driver/transcript.h"
#include "execute/device/device.h"
#include "json_output.h"

namespace reef::app {
namespace {

using Json = nlohmann::ordered_json;
using Answer = compiler::TestedDevice::Answer;
using Answers = Result<std::vector<Answer>>;

// Runs each inference of a test and takes its time.
template <typename Run>
Answers answers_of(const compiler::PreparedTest& test, const Run& run) {
  std::vector<Answer> answers;
  for (const compiler::DeviceTensors& inputs : test.inputs) {
    const auto begin = std::chrono::steady_clock::now();
    auto outputs = run(inputs);
    if (!outputs.ok()) return outputs.status();
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
    answers.push_back({std::move(*outputs), time.count()});
  }
  return answers;
}

// libusb's bus with a transcript before it, in one piece.
class RecordedBus final : public driver::UsbBus {
 public:
  explicit RecordedBus(const driver::LibusbApi& api) : bus_(api), logged_(bus_, transcript_) {}
  Result<std::vector<driver::UsbDeviceInfo>> list() override { return logged_.list(); }
  Result<std::unique_ptr<driver::UsbDevice>> open(const std::string& path) override { return logged_.open(path); }
  void sleep(driver::Milliseconds time) override { logged_.sleep(time); }
  const driver::Transcript& transcript() const { return transcript_; }

 private:
  driver::LibusbBus bus_;
  driver::Transcript transcript_;
  driver::LoggedBus logged_;
};

// A device with what belongs to it, for as long as it is tested.
struct OpenDevice {
  std::string name, link = "none";
  bool is_virtual = false;
  std::shared_ptr<RecordedBus> bus;  // of a stick
  std::mutex log_mutex;
  std::vector<std::string> card_log;  // of a card
  std::shared_ptr<driver::Attachment> attachment;
  std::shared_ptr<driver::Session> session;
  compiler::TestedDevice tested;
};

// "auto", "usb", "usb:1", "pci:0", or a path: among the machine's real devices.
Result<std::shared_ptr<driver::Attachment>> find_attachment(const std::string& word) {
  const driver::FoundDevices found = driver::find_attached();
  const std::size_t colon = word.find(':');
  const std::string kind = word.substr(0, colon);
  std::string rest = colon == std::string::npos ? "0" : word.substr(colon + 1), names;
  for (const auto& attachment : found.devices) {
    const bool is_usb = attachment->kind() == driver::AttachedBy::kUsb;
    const bool is_of_kind = word == "auto" || kind == (is_usb ? "usb" : "pci");
    names += fmt::format("{}{}", names.empty() ? "" : ", ", attachment->path());
    if (attachment->path() == word || (is_of_kind && rest == "0")) return attachment;
    if (is_of_kind && !rest.empty() && rest.find_first_not_of("0123456789") == std::string::npos && rest.size() < 4) {
      rest = fmt::format("{}", std::stoi(rest) - 1);
    }
  }
  std::string why;
  for (const std::string& note : found.notes) why += "; " + note;
  return make_error(StatusCode::kNotFound,
                    "there is no real Edge TPU{} here (there are: {}){}. `reef virtual-usb --ready -- reef devices "
                    "--test` tries the test on a virtual stick",
                    word == "auto" ? "" : " '" + word + "'", names.empty() ? "none" : names, why);
}

Status open_real(OpenDevice& device, const DeviceTestArguments& arguments) {
  REEF_ASSIGN_OR_RETURN(device.attachment, find_attachment(arguments.device));
  const driver::DeviceCondition condition = device.attachment->condition();
  device.link = driver::name_of(device.attachment->kind());
  if (device.attachment->kind() == driver::AttachedBy::kUsb) {
    device.link = driver::name_of(condition.speed);
    REEF_ASSIGN_OR_RETURN(const driver::LibusbApi* api, driver::load_libusb());
    device.bus = std::make_shared<RecordedBus>(*api);
    const std::string path = device.attachment->path();
    device.attachment = driver::attach_usb(device.bus, path.substr(path.rfind('/') + 1));
  }
  device.name = arguments.device == device.attachment->path()
                    ? arguments.device
                    : fmt::format("{} ({})", arguments.device, device.attachment->path());
  driver::SessionSettings settings;
  settings.firmware_file = arguments.firmware;
  settings.card_log = [&device](const std::string& line) {
    const std::lock_guard lock(device.log_mutex);
    device.card_log.push_back(line);
  };
  REEF_ASSIGN_OR_RETURN(device.session, device.attachment->open(settings));
  device.tested.run = [&device](const compiler::PreparedTest& test) -> Answers {
    REEF_ASSIGN_OR_RETURN(const auto model, device.attachment->load(test.package));
    return answers_of(test, [&](const compiler::DeviceTensors& inputs) {
      return device.session->run(model, {inputs.begin(), inputs.end()});
    });
  };
  return ok_status();
}

// Against itself: only to see what the test looks like.
void open_virtual(OpenDevice& device) {
  device.is_virtual = true;
  device.tested.run = [](const compiler::PreparedTest& test) -> Answers {
    REEF_ASSIGN_OR_RETURN(const auto loaded, device::LoadedPackage::load(test.package));
    device::Device chip;
    return answers_of(test, [&](const compiler::DeviceTensors& inputs) {
      return chip.run(loaded, {inputs.begin(), inputs.end()});
    });
  };
}

Status open_device(OpenDevice& device, const DeviceTestArguments& arguments) {
  device.name = arguments.device;
  if (arguments.device != "virtual") return open_real(device, arguments);
  open_virtual(device);
  return ok_status();
}

// ---- What is said ----

void print_finding(const compiler::TestFinding& finding) {
  const std::string whose = finding.test->is_program()   ? " (a program by hand)"
                            : finding.test->is_reefs_own ? " (only Reef generates this)"
                                                         : "";
  if (!finding.failure.ok()) {
    print_text("{}  {}{}: {}. Rests on: {}\n", finding.was_tried ? "FAILED   " : "not tried", finding.test->name, whose,
               finding.failure.message(), finding.test->rests_on);
  } else if (finding.is_equal) {
    print_text("confirmed  {}{}: {} values equal; {:.2f} ms measured, {:.2f} ms simulated. Rests on: {}\n",
               finding.test->name, whose, finding.values, finding.measured_ms, finding.simulated_ms,
               finding.test->rests_on);
  } else {
    print_text("REFUTED    {}{}: {} of {} values differ ({}). Rests on: {}\n", finding.test->name, whose,
               finding.different, finding.values, finding.first_difference, finding.test->rests_on);
  }
}

std::string verdict_of(const compiler::DeviceReport& report) {
  if (report.is_as_expected()) return "The device computes what the virtual one computes in every test.";
  std::string text;
  for (const device::OtherChip* chip : report.explanations) {
    text += fmt::format("{}a chip that {} would do all of this; that refutes {}",
                        text.empty() ? "The device differs: " : "; or ", chip->deed, chip->assumption);
  }
  return text.empty() ? "The device differs, and no single misunderstanding that Reef knows explains all outputs."
                      : text + ".";
}

// Prints how many assumptions the tests confirm, and names every one that they do not.
void print_assumptions(const compiler::DeviceReport& report) {
  using Verdict = compiler::AssumptionFinding::Verdict;
  std::size_t confirmed = 0;
  std::string others;
  for (const compiler::AssumptionFinding& assumption : report.assumptions) {
    if (assumption.verdict == Verdict::kConfirmed) {
      ++confirmed;
    } else {
      others += fmt::format("  {:9}  {}\n", compiler::name_of(assumption.verdict), assumption.otherwise->assumption);
    }
  }
  print_text(
      "{} of {} assumptions are confirmed: equal outputs rule out each chip that differs from ours in one of "
      "them.{}\n{}",
      confirmed, report.assumptions.size(), others.empty() ? "" : " The others:", others);
}

std::string hexadecimal(const std::vector<std::uint8_t>& bytes) {
  std::string text;
  for (const std::uint8_t byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

// Kernel and kind of machine, "Linux 6.1.0-18-amd64 x86_64", without the machine's name.
std::string system_text() {
  utsname about{};
  return ::uname(&about) == 0 ? fmt::format("{} {} {}", about.sysname, about.release, about.machine) : "";
}

Json report_json(const OpenDevice& device, const compiler::DeviceReport& report,
                 const std::vector<std::string>& notes) {
  Json tests = Json::array();
  for (const compiler::TestFinding& finding : report.findings) {
    Json outputs = Json::array();
    for (const compiler::DeviceTensors& inference : finding.outputs) {
      Json list = Json::array();
      for (const auto& tensor : inference) list.push_back(hexadecimal(tensor));
      outputs.push_back(list);
    }
    tests.push_back({{"name", finding.test->name},
                     {"only_reef", finding.test->is_reefs_own},
                     {"rests_on", finding.test->rests_on},
                     {"tried", finding.was_tried},
                     {"failure", finding.failure.ok() ? "" : finding.failure.message()},
                     {"equal", finding.is_equal},
                     {"values", finding.values},
                     {"different", finding.different},
                     {"first_difference", finding.first_difference},
                     {"measured_ms", finding.measured_ms},
                     {"simulated_ms", finding.simulated_ms},
                     {"outputs", outputs}});
  }
  Json explanations = Json::array(), assumptions = Json::array();
  for (const device::OtherChip* chip : report.explanations) {
    explanations.push_back({{"name", chip->name}, {"deed", chip->deed}, {"refuted", chip->assumption}});
  }
  for (const compiler::AssumptionFinding& assumption : report.assumptions) {
    Json tests_that_tell = Json::array();
    for (const compiler::DeviceTest* test : assumption.shown_by) tests_that_tell.push_back(test->name);
    assumptions.push_back({{"assumption", assumption.otherwise->assumption},
                           {"otherwise", assumption.otherwise->name},
                           {"verdict", compiler::name_of(assumption.verdict)},
                           {"shown_by", tests_that_tell}});
  }
  Json json = {{"reef", reef_version()},
               {"system", system_text()},
               {"libusb", device.bus != nullptr ? driver::libusb_version() : ""},
               {"device", device.name},
               {"link", device.link},
               {"virtual", device.is_virtual},
               {"as_expected", report.is_as_expected()},
               {"verdict", verdict_of(report)},
               {"explanations", explanations},
               {"assumptions", assumptions},
               {"tests", tests},
               {"notes", notes}};
  Json lines = Json::array();
  if (device.bus != nullptr) {
    for (const driver::TranscriptEntry& entry : device.bus->transcript().entries()) lines.push_back(entry.text());
  }
  for (const std::string& line : device.card_log) lines.push_back(line);
  json["transcript"] = lines;
  return json;
}

Status run_tests(const DeviceTestArguments& arguments, bool json) {
  REEF_RETURN_IF_ERROR(
      compiler::check_files({.outputs = {arguments.report}, .models = {}, .data = {}, .others = {arguments.firmware}}));
  OpenDevice device;
  REEF_RETURN_IF_ERROR(open_device(device, arguments));
  if (!json) print_text("Testing {} ({}) against the virtual device.\n", device.name, device.link);
  REEF_ASSIGN_OR_RETURN(const auto trial, compiler::DeviceTrial::prepare());
  const compiler::DeviceReport report = trial->run(device.tested, [&](const compiler::TestFinding& finding) {
    if (!json) print_finding(finding);
  });
  const std::vector<std::string> notes =
      device.session != nullptr ? device.session->take_notes() : std::vector<std::string>();
  const Json all = report_json(device, report, notes);
  if (json) {
    print_json(all);
  } else {
    for (const std::string& note : notes) print_text("note: {}\n", note);
    print_assumptions(report);
    print_text("{}\n", verdict_of(report));
  }
  if (!arguments.report.empty()) {
    REEF_RETURN_IF_ERROR(write_file(arguments.report, all.dump(1)));
    if (!json)
      print_text(
          "{} has versions, link, every transfer, outputs and times, and nothing about you: please attach it to an "
          "issue.\n",
          arguments.report);
  }
  if (report.is_as_expected()) return ok_status();
  return invalid_input("the device at {} is not as expected", device.name);
}

}  // namespace

void add_device_test_options(Command& command, DeviceTestArguments& arguments) {
  Option test = command.add_flag(
      "--test", arguments.is_wanted,
      "Run small programs, one for each family of operators, on a device, and compare outputs bit for bit with the "
      "virtual device and times with simulated ones");
  command
      .add_option("--device", arguments.device,
                  "With --test: auto (the first real one), usb:N, pci:N, a path, or virtual")
      .capture_default_str()
      .needs(test);
  command
      .add_option("--report", arguments.report, "With --test: write everything into this file, to attach to an issue")
      .needs(test)
      .writes();
  command
      .add_option("--firmware", arguments.firmware, "With --test: file with a stick's firmware, or a libedgetpu.so.1")
      .option_text("FILE")
      .needs(test);
}

Ending test_devices(const DeviceTestArguments& arguments, bool json) { return run_tests(arguments, json); }

}  // namespace reef::app
