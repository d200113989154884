// SPDX-License-Identifier: Apache-2.0
// Sessions through /dev/apex_0, with a kernel of our own in place of the machine's: its calls as gasket defines them,
// and a virtual card behind them. Beside the calls that Google's runtime makes.
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <regex>

#include <gtest/gtest.h>

#include "driver/apex.h"
#include "driver/pcie_session.h"
#include "driver/virtual_card.h"
#include "driver_packages.h"
#include "edge_tpu_package.h"
#include "zoo.h"

namespace reef::driver {
namespace {

// Register windows are memory: what was written there is handed to the card when the driver makes a call that takes
// time.
class FakeKernel final : public ApexKernel {
 public:
  VirtualCard card{2};
  std::vector<std::string> calls;  // as the recordings write them
  int open_error = 0;
  int open_files = 0;

  int open(const std::string& path) override {
    calls.push_back("open " + path);
    if (open_error != 0) {
      error_ = open_error;
      return -1;
    }
    auto opened = card.open();
    if (!opened.ok()) {
      error_ = EBUSY;
      return -1;
    }
    device_ = std::move(*opened);
    for (auto& window : windows_) window.assign(4096 / 8, 0);
    last_ = windows_;
    show_registers();
    ++open_files;
    return kFile;
  }
  void close(int file) override {
    --open_files;
    if (file == kFile) device_.reset();
  }
  int ioctl(int file, unsigned long request, void* argument) override {
    EXPECT_EQ(file, kFile);
    settle();
    std::array<std::uint64_t, 5> w{};
    std::memcpy(w.data(), argument, _IOC_SIZE(request));
    const auto is = [&](unsigned type, unsigned number, unsigned size, unsigned direction = _IOC_WRITE) {
      return request == _IOC(direction, type, number, size);
    };
    const auto memory = [&] { return std::span(reinterpret_cast<std::uint8_t*>(w[2]), w[1]); };
    Status status;
    if (is(0x7f, 0, 16)) {
      calls.push_back(fmt::format("APEX_GATE_CLOCK enable={} force_idle={}", w[0], w[1]));
    } else if (is(0x7f, 1, 4)) {
      calls.push_back(fmt::format("APEX_PERFORMANCE_EXPECTATION {}", w[0] & 0xffffffff));
      status = device_->set_performance(static_cast<std::uint32_t>(w[0]));
    } else if (is(0xdc, 1, 16)) {
      calls.push_back(fmt::format("GASKET_SET_EVENTFD interrupt={}", w[0]));
      interrupt_of_[static_cast<int>(w[1])] = static_cast<int>(w[0]);
      if (interrupt_of_.size() == 1) status = device_->enable_interrupts();
    } else if (is(0xdc, 7, 32)) {
      calls.push_back(fmt::format("GASKET_PARTITION_PAGE_TABLE simple={}", w[1]));
    } else if (is(0xdc, 12, 40)) {
      const auto flags = static_cast<std::uint32_t>(w[4]);
      calls.push_back(fmt::format("GASKET_MAP_BUFFER_FLAGS device={:#x} size={:#x} flags={}", w[3], w[1], flags));
      status = device_->map(memory(), w[3], static_cast<DmaDirection>(flags >> 1));
    } else if (is(0xdc, 9, 32)) {
      calls.push_back(fmt::format("GASKET_UNMAP_BUFFER device={:#x} size={:#x}", w[3], w[1]));
      status = device_->unmap(memory(), w[3]);
    } else if (is(0xdc, 11, 32, _IOC_READ | _IOC_WRITE)) {
      calls.push_back(fmt::format("GASKET_CONFIG_COHERENT_ALLOCATOR enable={} size={:#x}", w[1], w[2]));
      if (w[1] == 1) coherent_ = *device_->coherent_memory(w[2]);
      w[3] = kCoherentOffset;
      std::memcpy(argument, w.data(), 32);
    } else {
      ADD_FAILURE() << "unknown call " << request;
      return -1;
    }
    error_ = EIO;
    return status.ok() ? 0 : -1;
  }
  void* map(int, std::size_t bytes, std::uint64_t offset) override {
    if (offset == kCoherentOffset) return coherent_.data();
    EXPECT_EQ(bytes, 4096u);
    for (std::size_t i = 0; i < 3; ++i) {
      if (offset == kBases[i]) return windows_[i].data();
    }
    error_ = EINVAL;
    return nullptr;
  }
  void unmap(void*, std::size_t) override {}
  int event_file() override {
    ++open_files;
    return next_event_++;
  }
  int poll(std::span<pollfd> files, int milliseconds) override {
    settle();
    const auto fired = device_->wait_for_interrupts(Milliseconds(milliseconds));
    show_registers();
    int ready = 0;
    for (pollfd& file : files) {
      const bool has_fired = (*fired >> interrupt_of_.at(file.fd) & 1) != 0;
      file.revents = has_fired ? POLLIN : 0;
      ready += has_fired ? 1 : 0;
    }
    return ready;
  }
  ssize_t read(int, void* to, std::size_t bytes) override {
    std::memset(to, 1, bytes);
    return static_cast<ssize_t>(bytes);
  }
  void sleep(Milliseconds time) override {
    settle();
    card.sleep(time);
  }
  int last_error() override { return error_; }

 private:
  static constexpr int kFile = 3;
  static constexpr std::uint64_t kCoherentOffset = 0x800000;
  static constexpr std::array<std::uint64_t, 3> kBases = {0x40000, 0x44000, 0x48000};

  // What was written since the last time, the doorbell last.
  void settle() {
    std::vector<std::pair<std::uint32_t, std::uint64_t>> written;
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t k = 0; k < windows_[i].size(); ++k) {
        if (windows_[i][k] == last_[i][k]) continue;
        written.emplace_back(static_cast<std::uint32_t>(kBases[i] + 8 * k), windows_[i][k]);
      }
    }
    std::stable_partition(written.begin(), written.end(), [](const auto& w) { return w.first != reg::kQueueTail; });
    for (const auto& [offset, value] : written) EXPECT_TRUE(device_->write(offset, value).ok());
    show_registers();
  }
  void show_registers() {
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t k = 0; k < windows_[i].size(); ++k) {
        windows_[i][k] = *device_->read(static_cast<std::uint32_t>(kBases[i] + 8 * k));
      }
    }
    last_ = windows_;
  }

  std::unique_ptr<PcieDevice> device_;
  std::array<std::vector<std::uint64_t>, 3> windows_, last_;
  std::span<std::uint8_t> coherent_;
  std::map<int, int> interrupt_of_;  // by file
  int next_event_ = 100, error_ = 0;
};

TEST(Apex, RunsAndGivesEverythingBack) {
  FakeKernel kernel;
  {
    ApexBus bus(kernel, "/dev/apex_0");
    const auto session = PcieSession::open(bus, {});
    ASSERT_TRUE(session.ok()) << session.status().message();
    const auto model = PcieModel::load(testing::echo_package());
    ASSERT_TRUE(model.ok());
    for (unsigned seed = 0; seed < 5; ++seed) {
      const std::vector<std::uint8_t> input = testing::echo_input(seed);
      const auto outputs = (*session)->run(*model, {input});
      ASSERT_TRUE(outputs.ok()) << outputs.status().message();
      EXPECT_EQ((*outputs)[0], testing::echo_output(input, 1));
    }
    EXPECT_TRUE((*session)->notes().empty());
  }
  EXPECT_EQ(kernel.open_files, 0);
  EXPECT_EQ(kernel.card.mapped_pages(), 0u);
}

TEST(Apex, ErrorsSayWhatToDo) {
  FakeKernel kernel;
  const std::string devices = ::testing::TempDir() + "reef_apex_" + std::to_string(::getpid());
  std::filesystem::create_directories(devices + "/apex_0");
  std::ofstream(devices + "/apex_0/device_owner") << "812\n";
  ApexBus bus(kernel, "/dev/apex_0", devices);
  const auto message = [&](int error) {
    kernel.open_error = error;
    const auto session = PcieSession::open(bus, {});
    EXPECT_FALSE(session.ok());
    return session.status().message();
  };
  EXPECT_NE(message(ENOENT).find("apex module"), std::string::npos);
  EXPECT_NE(message(EACCES).find("group"), std::string::npos);
  EXPECT_NE(message(EBUSY).find("process 812"), std::string::npos);
  EXPECT_NE(message(EIO).find("/dev/apex_0"), std::string::npos);
  std::filesystem::remove_all(devices);
}

TEST(Apex, DevicesAreListedByNumber) {
  const std::string devices = ::testing::TempDir() + "reef_apex_list_" + std::to_string(::getpid());
  for (const char* name : {"apex_10", "apex_2", "apex_0", "apex_", "apex_x", "other_1"}) {
    std::filesystem::create_directories(devices + "/" + name);
  }
  EXPECT_EQ(list_apex_devices(devices), (std::vector<std::string>{"/dev/apex_0", "/dev/apex_2", "/dev/apex_10"}));
  EXPECT_TRUE(list_apex_devices(devices + "/nowhere").empty());
  std::filesystem::remove_all(devices);
}

std::vector<std::uint8_t> bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Of a list of calls: those that set the device up, and what is mapped and unmapped, without device addresses (each
// driver chooses its own) and without switching the clock between inferences (which this driver does not do).
std::vector<std::string> comparable(const std::vector<std::string>& calls) {
  std::vector<std::string> kept;
  for (std::string call : calls) {
    if (call.starts_with("APEX_GATE_CLOCK") && !kept.empty()) continue;
    call = std::regex_replace(call, std::regex("device=0x8[0-9a-f]+"), "device=extended");
    if (!call.starts_with("open")) kept.push_back(call);
  }
  return kept;
}

TEST(Apex, MakesTheCallsOfGooglesRuntime) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  const std::string folder = zoo + "/../hardware/transcripts";
  std::ifstream file(folder + "/mobilenet_v1_0.25_128.pcie.log");
  if (!file) GTEST_SKIP() << "recordings of Google's runtime are absent: hardware/transcripts beside $REEF_ZOO";
  std::vector<std::string> theirs;
  for (std::string line; std::getline(file, line);) {
    if (const auto at = line.find("ioctl "); at != std::string::npos) theirs.push_back(line.substr(at + 6));
  }
  const auto packages = testing::packages_in(zoo + "/pairs/mobilenet_v1_0.25_128_quant/v15_edgetpu.tflite");
  ASSERT_EQ(packages.size(), 1u);
  const auto model = PcieModel::load(packages[0]);
  ASSERT_TRUE(model.ok());
  FakeKernel kernel;
  {
    ApexBus bus(kernel, "/dev/apex_0");
    const auto session = PcieSession::open(bus, {});
    ASSERT_TRUE(session.ok());
    for (const std::string name : {"003_input_49152.bin", "006_input_49152.bin"}) {
      const std::vector<std::uint8_t> input = bytes_of(folder + "/mobilenet_v1_payloads/" + name);
      ASSERT_TRUE((*session)->run(*model, {input}).ok());
    }
  }
  const std::vector<std::string> ours = comparable(kernel.calls), expected = comparable(theirs);
  // Opening: the same calls in the same order, up to the first buffer.
  const auto first_buffer = [](const std::vector<std::string>& calls) {
    return std::find_if(calls.begin(), calls.end(),
                        [](const auto& call) { return call.find("device=extended") != std::string::npos; });
  };
  EXPECT_EQ(std::vector(ours.begin(), first_buffer(ours)), std::vector(expected.begin(), first_buffer(expected)));
  // Then the same buffers in the same directions, each of them unmapped. Google's runtime maps inputs where they are,
  // which may take a page more, and parameters until the end.
  const auto count = [](const std::vector<std::string>& calls, const std::string& text) {
    return std::count_if(calls.begin(), calls.end(), [&](const auto& call) { return call.find(text) == 0; });
  };
  for (const char* buffer :
       {"size=0x8b000 flags=2", "size=0x4000 flags=2", "size=0x2a000 flags=2", "size=0x1000 flags=4"}) {
    const std::string call = std::string("GASKET_MAP_BUFFER_FLAGS device=extended ") + buffer;
    EXPECT_EQ(count(ours, call), count(expected, call)) << call;
    EXPECT_GT(count(ours, call), 0) << call;
  }
  EXPECT_EQ(count(ours, "GASKET_MAP_BUFFER_FLAGS"), count(expected, "GASKET_MAP_BUFFER_FLAGS"));
  EXPECT_EQ(count(ours, "GASKET_UNMAP_BUFFER"), count(expected, "GASKET_UNMAP_BUFFER"));
  EXPECT_EQ(ours.back(), expected.back());
}

}  // namespace
}  // namespace reef::driver
