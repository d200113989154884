// SPDX-License-Identifier: Apache-2.0
// Measures what the USB driver itself costs an inference: CPU time of the thread that calls it, without the time
// inside the USB stack, whose place the virtual stick takes. Beside it what the same inference costs on the virtual
// device directly, and what moves over the link. The least of all runs: the stick's emulation disturbs caches.
//
//   build/driver_overhead [--runs N] FILE_edgetpu.tflite...
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "driver/usb_session.h"
#include "driver/virtual_stick.h"
#include "execute/device/device.h"
#include "formats/darwinn/reader.h"
#include "formats/tflite/reader.h"

namespace {

using reef::Result;
using reef::Status;
namespace driver = reef::driver;
namespace device = reef::device;

double thread_microseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

// Adds up what is spent inside another bus.
class TimedBus final : public driver::UsbBus {
 public:
  explicit TimedBus(driver::UsbBus& bus) : bus_(bus) {}
  double spent = 0;            // microseconds of the thread
  std::int64_t transfers = 0;  // that were started

  Result<std::vector<driver::UsbDeviceInfo>> list() override { return bus_.list(); }
  void sleep(driver::Milliseconds time) override { bus_.sleep(time); }
  Result<std::unique_ptr<driver::UsbDevice>> open(const std::string& path) override {
    REEF_ASSIGN_OR_RETURN(auto device, bus_.open(path));
    return std::unique_ptr<driver::UsbDevice>(std::make_unique<Device>(*this, std::move(device)));
  }

 private:
  class Device final : public driver::UsbDevice {
   public:
    Device(TimedBus& bus, std::unique_ptr<driver::UsbDevice> device) : bus_(bus), device_(std::move(device)) {}
    driver::UsbSpeed speed() const override { return device_->speed(); }
    driver::Outcome control(const driver::SetupPacket& setup, std::span<std::uint8_t> data,
                            driver::Milliseconds limit) override {
      return device_->control(setup, data, limit);
    }
    Status claim(int interface) override { return device_->claim(interface); }
    Status release(int interface) override { return device_->release(interface); }
    Status reset() override { return device_->reset(); }
    void submit(driver::Transfer& transfer) override {
      ++bus_.transfers;
      timed([&] { device_->submit(transfer); });
    }
    void wait_any(std::span<driver::Transfer* const> transfers, driver::Milliseconds limit) override {
      timed([&] { device_->wait_any(transfers, limit); });
    }
    void cancel(driver::Transfer& transfer) override {
      timed([&] { device_->cancel(transfer); });
    }

   private:
    template <typename Action>
    void timed(const Action& action) {
      const double start = thread_microseconds();
      action();
      bus_.spent += thread_microseconds() - start;
    }
    TimedBus& bus_;
    std::unique_ptr<driver::UsbDevice> device_;
  };
  driver::UsbBus& bus_;
};

// CPU time of reading the clock once. Every call into the bus reads it twice, which is subtracted.
double clock_cost() {
  constexpr int kReads = 10000;
  const double start = thread_microseconds();
  for (int i = 0; i < kReads; ++i) (void)thread_microseconds();
  return (thread_microseconds() - start) / kReads;
}

struct Figures {
  double driver = std::numeric_limits<double>::max();  // microseconds
  double direct = std::numeric_limits<double>::max();
  std::int64_t transfers = 0;
  std::size_t in = 0, out = 0;  // bytes of tensors
};

Result<Figures> measure(const reef::darwinn::Package& package, int runs) {
  REEF_ASSIGN_OR_RETURN(const auto model, driver::Model::load(package));
  REEF_ASSIGN_OR_RETURN(const auto loaded, device::LoadedPackage::load(package));
  std::vector<std::vector<std::uint8_t>> inputs;
  Figures figures;
  for (const reef::darwinn::Layer& layer : loaded->inputs()) {
    inputs.emplace_back(static_cast<std::size_t>(device::tensor_bytes(layer)), std::uint8_t{100});
    figures.in += inputs.back().size();
  }
  const driver::Session::Inputs given(inputs.begin(), inputs.end());
  driver::StickOptions stick;
  stick.has_firmware = true;
  driver::VirtualBus sticks({&stick, 1});
  TimedBus bus(sticks);
  REEF_ASSIGN_OR_RETURN(const auto session, driver::UsbSession::open(bus, {}));
  device::Device direct({.threads = 1});
  const double clock = clock_cost();
  for (int run = 0; run <= runs; ++run) {
    bus.spent = 0;
    const std::int64_t before = bus.transfers;
    const double start = thread_microseconds();
    REEF_ASSIGN_OR_RETURN(const auto outputs, session->run(model, given));
    const double all = thread_microseconds() - start;
    const double middle = thread_microseconds();
    REEF_ASSIGN_OR_RETURN(const auto expected, direct.run(loaded, given));
    const double computed = thread_microseconds() - middle;
    if (outputs != expected) return reef::internal_error("the stick gives other results than the virtual device");
    if (run == 0) continue;  // brings the parameters to the chip
    figures.transfers = bus.transfers - before;
    figures.driver = std::min(figures.driver, all - bus.spent - static_cast<double>(figures.transfers) * clock);
    figures.direct = std::min(figures.direct, computed);
    figures.out = 0;
    for (const auto& output : outputs) figures.out += output.size();
  }
  return figures;
}

}  // namespace

int main(int argc, char** argv) {
  int runs = 20;
  std::vector<std::string> files;
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--runs" && i + 1 < argc) {
      runs = std::max(std::atoi(argv[++i]), 1);
    } else {
      files.emplace_back(argv[i]);
    }
  }
  fmt::print("{:<48} {:>12} {:>14} {:>10} {:>10} {:>9}\n", "CPU time of one inference (measured, least)", "driver us",
             "emulated us", "bytes in", "bytes out", "transfers");
  for (const std::string& file : files) {
    const auto model = reef::tflite::load_model(file);
    if (!model.ok()) {
      fmt::print(stderr, "{}: {}\n", file, model.status().message());
      return 1;
    }
    for (const reef::ir::Operator& op : model->subgraphs[0].operators) {
      if (!reef::darwinn::is_edge_tpu_op(op)) continue;
      const auto options = reef::darwinn::read_custom_options(op.custom_options);
      const auto figures = options.ok() ? measure(options->package, runs) : options.status();
      if (!figures.ok()) {
        fmt::print(stderr, "{}: {}\n", file, figures.status().message());
        return 1;
      }
      const std::string name = file.size() > 48 ? "..." + file.substr(file.size() - 45) : file;
      fmt::print("{:<48} {:>12.1f} {:>14.0f} {:>10} {:>10} {:>9}\n", name, figures->driver, figures->direct,
                 figures->in, figures->out, figures->transfers);
    }
  }
  return 0;
}
