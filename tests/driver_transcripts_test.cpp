// SPDX-License-Identifier: Apache-2.0
// The driver's traffic beside that of Google's runtime, operation by operation.
//
// The recordings were made of Google's runtime, built from its public source, with a stick in software; how it opens a
// stick equals two published logs of real ones. They are in hardware/transcripts beside the model collection.
#include <fstream>
#include <map>
#include <regex>

#include <gtest/gtest.h>

#include "driver/transcript.h"
#include "driver/usb_session.h"
#include "driver/virtual_stick.h"
#include "edge_tpu_package.h"
#include "zoo.h"

namespace reef::driver {
namespace {

std::string recordings() {
  const std::string folder = testing::zoo_folder() + "/../hardware/transcripts";
  return !testing::zoo_folder().empty() && std::filesystem::is_directory(folder) ? folder : "";
}

std::vector<std::string> lines_of(const std::string& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(line.substr(line.find(' ') + 1));
  return lines;
}

std::vector<std::uint8_t> bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string hexadecimal(std::span<const std::uint8_t> bytes, std::size_t most) {
  std::string text;
  for (std::size_t i = 0; i < std::min(bytes.size(), most); ++i) text += fmt::format("{:02x}", bytes[i]);
  return text;
}

// The recordings' own hash.
std::string hash_of(std::span<const std::uint8_t> bytes) {
  std::uint64_t hash = 1469598103934665603ull;
  for (const std::uint8_t byte : bytes) hash = (hash ^ byte) * 1099511628211ull;
  return fmt::format("{:016x}", hash);
}

// What is compared: operations of the host in their order, what arrived on each endpoint in its order, and what was
// waited for. (How both interleave is a matter of time.) Hashes of instructions are left out: they hold addresses.
struct Traffic {
  std::vector<std::string> operations;
  std::map<int, std::vector<std::string>> arrived;        // by endpoint
  std::vector<std::string> awaited;                       // each once
  std::vector<std::vector<std::uint8_t>> sent, received;  // data of bulk transfers; ours only
};

void add_once(std::vector<std::string>& list, const std::string& text) {
  if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(text);
}

Traffic recorded(const std::vector<std::string>& lines) {
  Traffic traffic;
  const auto match = [](const std::string& line, const char* pattern) {
    std::smatch found;
    return std::regex_match(line, found, std::regex(pattern)) ? std::vector<std::string>(found.begin(), found.end())
                                                              : std::vector<std::string>();
  };
  for (const std::string& line : lines) {
    auto& operations = traffic.operations;
    if (line.starts_with("OPEN")) operations.push_back("open");
    if (line.starts_with("CLOSE")) operations.push_back("close");
    if (line.starts_with("CLAIM")) operations.push_back("claim");
    if (line.starts_with("RELEASE")) operations.push_back("release");
    if (line.starts_with("PORT RESET")) operations.push_back("reset");
    if (const auto m = match(line, "CTRL IN  80 06 value=(....) index=.... len=(\\d+) get_descriptor -> (.*)");
        !m.empty())
      operations.push_back("descriptor " + m[1] + " " + m[2] + " " + m[3]);
    if (const auto m = match(line, "CTRL OUT 21 00 value=(\\d+) .*"); !m.empty())
      operations.push_back("detach " + m[1]);
    if (const auto m = match(line, "CTRL OUT 21 01 value=(\\d+) index=0 len=(\\d+) DFU_DNLOAD ([0-9a-f]*).*");
        !m.empty())
      operations.push_back("download " + m[1] + " " + m[2] + " " + m[3]);
    if (const auto m = match(line, "CTRL IN  a1 03 DFU_GETSTATUS -> (.*)"); !m.empty())
      operations.push_back("status " + m[1]);
    if (const auto m = match(line, "CTRL IN  a1 02 value=(\\d+) len=256 DFU_UPLOAD -> (\\d+) bytes"); !m.empty())
      operations.push_back("upload " + m[1] + " " + m[2]);
    if (const auto m = match(line, "CTRL (IN |OUT) (c0|40) (..) (.....) len=(.) .* (?:->|:=) (?:0x)?([0-9a-f]+)");
        !m.empty())
      operations.push_back((m[2] == "c0" ? "read " : "write ") + m[3] + " " + m[4] + " " + m[5] + " " + m[6]);
    if (const auto m = match(line, "BULK OUT ep(..) n=8 header ([0-9a-f]+) .*"); !m.empty())
      operations.push_back("out " + m[1] + " 8 " + m[2]);
    if (const auto m = match(line, "BULK OUT ep(..) n=(\\d+) data tag=(.) fnv=(\\w+) ([0-9a-f]{32}).*"); !m.empty())
      operations.push_back("out " + m[1] + " " + m[2] + " " + m[5] + (m[3] == "0" ? "" : " " + m[4]));
    if (const auto m = match(line, "BULK IN  ep82 n=16 (.*)"); !m.empty()) traffic.arrived[0x82].push_back(m[1]);
    if (const auto m = match(line, "BULK IN  ep81 asked=(\\d+) n=(\\d+) fnv=(\\w+) .*"); !m.empty())
      traffic.arrived[0x81].push_back(m[1] + " " + m[2] + " " + m[3]);
    if (const auto m = match(line, "SUBMIT IN ep(..) length=(\\d+) .*"); !m.empty())
      add_once(traffic.awaited, m[1] + " " + m[2]);
  }
  return traffic;
}

void add_control(Traffic& traffic, const TranscriptEntry& entry) {
  const SetupPacket& s = entry.setup;
  auto& operations = traffic.operations;
  if (s.type == 0x80) {
    operations.push_back(fmt::format("descriptor {:04x} {} {}", s.value, entry.asked, hexadecimal(entry.data, 999)));
  } else if (s.type == 0x21 && s.request == 0) {
    operations.push_back(fmt::format("detach {}", s.value));
  } else if (s.type == 0x21) {
    operations.push_back(fmt::format("download {} {} {}", s.value, entry.asked, hexadecimal(entry.data, 8)));
  } else if (s.type == 0xa1 && s.request == 3) {
    operations.push_back("status " + hexadecimal(entry.data, 99));
  } else if (s.type == 0xa1) {
    operations.push_back(fmt::format("upload {} {}", s.value, entry.outcome.bytes));
  } else {
    std::uint64_t value = 0;
    for (std::size_t i = entry.data.size(); i-- > 0;) value = value << 8 | entry.data[i];
    operations.push_back(fmt::format("{} {:02x} {:05x} {} {:x}", s.is_in() ? "read" : "write", s.request,
                                     s.value | std::uint32_t{s.index} << 16, entry.asked, value));
  }
}

Traffic ours(const Transcript& transcript) {
  using Kind = TranscriptEntry::Kind;
  static const std::map<Kind, std::string> kPlain = {{Kind::kOpen, "open"},
                                                     {Kind::kClose, "close"},
                                                     {Kind::kClaim, "claim"},
                                                     {Kind::kRelease, "release"},
                                                     {Kind::kReset, "reset"}};
  Traffic traffic;
  std::uint8_t tag = 0;
  for (const TranscriptEntry& entry : transcript.entries()) {
    const bool is_in = (entry.endpoint & 0x80) != 0;
    if (kPlain.contains(entry.kind)) {
      traffic.operations.push_back(kPlain.at(entry.kind));
    } else if (entry.kind == Kind::kControl) {
      add_control(traffic, entry);
    } else if (entry.kind == Kind::kSubmitIn) {
      add_once(traffic.awaited, fmt::format("{:02x} {}", entry.endpoint, entry.asked));
    } else if (!is_in && entry.data.size() == 8) {
      tag = entry.data[4];
      traffic.operations.push_back("out 01 8 " + hexadecimal(entry.data, 8));
    } else if (!is_in) {
      traffic.operations.push_back(fmt::format("out 01 {} {}{}", entry.data.size(), hexadecimal(entry.data, 16),
                                               tag == 0 ? "" : " " + hash_of(entry.data)));
      traffic.sent.push_back(entry.data);
    } else if (entry.endpoint == 0x82) {
      traffic.arrived[0x82].push_back(hexadecimal(entry.data, 16));
    } else {
      traffic.arrived[entry.endpoint].push_back(
          fmt::format("{} {} {}", entry.asked, entry.data.size(), hash_of(entry.data)));
      traffic.received.push_back(entry.data);
    }
  }
  return traffic;
}

// 10,783 bytes that begin each block as the recording shows; the bytes between are not in it.
Bytes firmware_of(const Traffic& traffic) {
  std::vector<std::uint8_t> firmware;
  for (const std::string& operation : traffic.operations) {
    if (!operation.starts_with("download ")) continue;
    std::istringstream words(operation);
    std::string word, head;
    std::size_t block = 0, bytes = 0;
    words >> word >> block >> bytes >> head;
    const std::size_t from = firmware.size();
    firmware.resize(from + bytes, 0x5a);
    for (std::size_t i = 0; 2 * i + 1 < head.size(); ++i)
      firmware[from + i] = static_cast<std::uint8_t>(std::stoul(head.substr(2 * i, 2), nullptr, 16));
  }
  return Bytes(std::move(firmware));
}

struct Scenario {
  std::string_view recording;
  int inferences = 1;
  StickOptions stick{};
  Clock clock = Clock::kMax;
  bool always_download = false;
};

void expect_same_traffic(const Scenario& scenario) {
  const std::string folder = recordings();
  if (folder.empty())
    GTEST_SKIP() << "recordings of Google's runtime are absent: hardware/transcripts beside $REEF_ZOO";
  const Traffic theirs = recorded(lines_of(folder + "/" + std::string(scenario.recording)));
  ASSERT_GT(theirs.operations.size(), 100u);
  const auto packages =
      testing::packages_in(testing::zoo_folder() + "/pairs/mobilenet_v1_0.25_128_quant/v15_edgetpu.tflite");
  ASSERT_EQ(packages.size(), 1u);
  const auto model = Model::load(packages[0]);
  ASSERT_TRUE(model.ok()) << model.status().message();

  VirtualBus bus({&scenario.stick, 1});
  Transcript transcript(1 << 22);
  LoggedBus logged(bus, transcript);
  UsbSessionOptions options;
  options.clock = scenario.clock;
  options.always_download = scenario.always_download;
  options.firmware = [&]() -> Result<Bytes> { return firmware_of(theirs); };
  {
    const auto session = UsbSession::open(logged, options);
    ASSERT_TRUE(session.ok()) << session.status().message();
    for (const char* name : {"003_input_49152.bin", "006_input_49152.bin"}) {
      if (name[2] == '6' && scenario.inferences == 1) break;
      const std::vector<std::uint8_t> input = bytes_of(folder + "/mobilenet_v1_payloads/" + name);
      const auto outputs = (*session)->run(*model, {input});
      ASSERT_TRUE(outputs.ok()) << outputs.status().message();
    }
    EXPECT_TRUE((*session)->notes().empty());
  }
  const Traffic traffic = ours(transcript);
  ASSERT_EQ(traffic.operations.size(), theirs.operations.size());
  for (std::size_t i = 0; i < theirs.operations.size(); ++i) {
    ASSERT_EQ(traffic.operations[i], theirs.operations[i]) << "operation " << i;
  }
  EXPECT_EQ(traffic.arrived, theirs.arrived);
  EXPECT_EQ(traffic.awaited, theirs.awaited);
  fmt::print("{}: {} operations of the host are equal\n", scenario.recording, theirs.operations.size());
}

TEST(DriverTranscripts, FreshStick) { expect_same_traffic({"mobilenet_v1_0.25_128.fresh_stick.super.max.log", 2}); }

TEST(DriverTranscripts, UsedStickAtHalfTheClock) {
  Scenario scenario{"mobilenet_v1_0.25_128.used_stick.super.high.log"};
  scenario.stick.was_put_to_sleep = true;
  scenario.clock = Clock::kHigh;
  expect_same_traffic(scenario);
}

TEST(DriverTranscripts, StartsInApplicationMode) {
  Scenario scenario{"mobilenet_v1_0.25_128.starts_in_app_mode.log"};
  scenario.stick.has_firmware = true;
  expect_same_traffic(scenario);
}

TEST(DriverTranscripts, AlwaysDownloads) {
  Scenario scenario{"mobilenet_v1_0.25_128.starts_in_app_mode.always_dfu.log"};
  scenario.stick.has_firmware = true;
  scenario.always_download = true;
  expect_same_traffic(scenario);
}

TEST(DriverTranscripts, UsbTwo) {
  Scenario scenario{"mobilenet_v1_0.25_128.usb2.log"};
  scenario.stick.speed = UsbSpeed::kHigh;
  expect_same_traffic(scenario);
}

// Byte for byte; only addresses in instructions differ, which Google's runtime takes from its heap.
TEST(DriverTranscripts, PayloadsOfTwoInferences) {
  const std::string folder = recordings() + "/mobilenet_v1_payloads/";
  if (recordings().empty())
    GTEST_SKIP() << "recordings of Google's runtime are absent: hardware/transcripts beside $REEF_ZOO";
  const auto packages =
      testing::packages_in(testing::zoo_folder() + "/pairs/mobilenet_v1_0.25_128_quant/v15_edgetpu.tflite");
  ASSERT_EQ(packages.size(), 1u);
  const auto model = Model::load(packages[0]);
  ASSERT_TRUE(model.ok()) << model.status().message();
  StickOptions stick;
  stick.has_firmware = true;
  VirtualBus bus({&stick, 1});
  Transcript transcript(1 << 22);
  LoggedBus logged(bus, transcript);
  const auto session = UsbSession::open(logged, {});
  ASSERT_TRUE(session.ok()) << session.status().message();
  for (const char* name : {"003_input_49152.bin", "006_input_49152.bin"}) {
    const std::vector<std::uint8_t> input = bytes_of(folder + name);
    ASSERT_TRUE((*session)->run(*model, {input}).ok());
  }
  const Traffic traffic = ours(transcript);
  const std::vector<std::string> names = {
      "000_instructions_12624.bin",  "001_parameters_566912.bin", "002_instructions_170032.bin", "003_input_49152.bin",
      "005_instructions_170032.bin", "006_input_49152.bin",       "004_output_1008.bin",         "007_output_1008.bin"};
  std::vector<std::vector<std::uint8_t>> payloads = traffic.sent;
  payloads.insert(payloads.end(), traffic.received.begin(), traffic.received.end());
  ASSERT_EQ(payloads.size(), names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    std::vector<std::uint8_t> expected = bytes_of(folder + names[i]), found = payloads[i];
    ASSERT_FALSE(expected.empty()) << names[i];
    if (names[i].find("instructions") != std::string::npos) {
      const auto type = i == 0 ? darwinn::ExecutableType::kParameterCaching : darwinn::ExecutableType::kExecutionOnly;
      for (const darwinn::FieldOffset& field : packages[0].find(type)->instruction_chunks[0].field_offsets) {
        for (int bit = field.bit_offset; bit < field.bit_offset + 32; ++bit) {
          const auto mask = static_cast<std::uint8_t>(~(1u << bit % 8));
          expected[static_cast<std::size_t>(bit) / 8] &= mask;
          found[static_cast<std::size_t>(bit) / 8] &= mask;
        }
      }
    }
    EXPECT_TRUE(expected == found) << names[i];
  }
}

}  // namespace
}  // namespace reef::driver
