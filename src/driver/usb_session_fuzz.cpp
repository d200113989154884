// SPDX-License-Identifier: Apache-2.0
// A stick that lies: how each operation ends, what registers and transfers hold, which devices are listed, all come
// from the fuzzer. Opening a session, two inferences and closing end in results, whatever the stick does.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include "driver/usb_session.h"
#include "formats/darwinn/package.h"
#include "isa/assembler.h"

namespace {

using namespace reef;
using namespace reef::driver;

// The fuzzer's bytes, one after the other; behind their end zeros, and the stick counts as unplugged.
class Choices {
 public:
  Choices(const std::uint8_t* data, std::size_t size) : left_(data, size) {}
  bool is_over() const { return left_.empty(); }
  std::uint8_t byte() {
    if (left_.empty()) return 0;
    const std::uint8_t first = left_.front();
    left_ = left_.subspan(1);
    return first;
  }
  void fill(std::span<std::uint8_t> bytes) {
    for (std::uint8_t& b : bytes) b = byte();
  }

 private:
  std::span<const std::uint8_t> left_;
};

class LyingStick final : public UsbDevice {
 public:
  explicit LyingStick(Choices& choices) : choices_(choices) {}

  UsbSpeed speed() const override { return UsbSpeed::kSuper; }
  Outcome control(const SetupPacket& setup, std::span<std::uint8_t> data, Milliseconds) override {
    const Outcome outcome = end(data.size());
    if (setup.is_in()) choices_.fill(data.first(outcome.bytes));
    return outcome;
  }
  Status claim(int) override { return choices_.byte() == 255 ? in_use_error("somebody") : ok_status(); }
  Status release(int) override { return ok_status(); }
  Status reset() override { return choices_.byte() == 255 ? unsupported("no reset") : ok_status(); }

  void submit(Transfer& transfer) override {
    transfer.is_pending = choices_.byte() % 4 != 3;
    if (!transfer.is_pending) complete(transfer);
  }
  void wait_any(std::span<Transfer* const> transfers, Milliseconds) override {
    if (transfers.empty() || choices_.byte() % 8 == 7) return;  // the limit has passed
    Transfer& chosen = *transfers[choices_.byte() % transfers.size()];
    if (chosen.is_pending) complete(chosen);
  }
  void cancel(Transfer& transfer) override {
    if (!transfer.is_pending) return;
    transfer.is_pending = false;
    transfer.outcome = {TransferEnd::kCancelled, choices_.byte() % (transfer.buffer.size() + 1)};
  }

 private:
  Outcome end(std::size_t room) {
    if (choices_.is_over()) return {TransferEnd::kUnplugged, 0};
    constexpr TransferEnd kEnds[] = {TransferEnd::kTimedOut, TransferEnd::kStalled,   TransferEnd::kUnplugged,
                                     TransferEnd::kOverflow, TransferEnd::kCancelled, TransferEnd::kFailed};
    const std::uint8_t choice = choices_.byte();
    if (choice < 224) return {TransferEnd::kDone, room};
    if (choice < 240) return {TransferEnd::kDone, choices_.byte() % (room + 1)};
    return {kEnds[choice % std::size(kEnds)], choices_.byte() % (room + 1)};
  }
  void complete(Transfer& transfer) {
    transfer.is_pending = false;
    transfer.outcome = end(transfer.buffer.size());
    if (transfer.is_in()) choices_.fill(transfer.buffer.first(transfer.outcome.bytes));
  }

  Choices& choices_;
};

class LyingBus final : public UsbBus {
 public:
  explicit LyingBus(Choices& choices) : choices_(choices) {}

  Result<std::vector<UsbDeviceInfo>> list() override {
    std::vector<UsbDeviceInfo> all;
    if (choices_.is_over()) return all;
    const std::uint8_t choice = choices_.byte();
    if (choice == 255) return unsupported("no bus");
    if (choice < 240) all.push_back({choice % 4 == 0 ? kDfuId : kApplicationId, "1-1", UsbSpeed::kSuper});
    return all;
  }
  Result<std::unique_ptr<UsbDevice>> open(const std::string&) override {
    if (choices_.is_over() || choices_.byte() == 255) return unsupported("it is gone");
    return std::unique_ptr<UsbDevice>(std::make_unique<LyingStick>(choices_));
  }
  void sleep(Milliseconds) override {}

 private:
  Choices& choices_;
};

// A program that sends eight bytes to the host.
std::shared_ptr<const Model> small_model() {
  darwinn::Executable executable = darwinn::new_executable(darwinn::ExecutableType::kStandAlone);
  executable.instruction_chunks.emplace_back().bitstream = Bytes(std::vector<std::uint8_t>(64));
  executable.scratch_size_bytes = 256;
  darwinn::Package package;
  package.executables.push_back(std::move(executable));
  auto model = Model::load(std::move(package));
  return model.ok() ? *model : nullptr;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::shared_ptr<const Model> model = small_model();
  Choices choices(data, size);
  LyingBus bus(choices);
  UsbSessionOptions options;
  options.always_download = choices.byte() % 2 != 0;
  options.firmware = [&]() -> Result<Bytes> { return Bytes(std::vector<std::uint8_t>(choices.byte() * 8u + 16)); };
  const auto session = UsbSession::open(bus, options);
  if (!session.ok()) return 0;
  if (model != nullptr) {
    for (int i = 0; i < 2; ++i) (void)(*session)->run(model, {});
  }
  (void)(*session)->take_notes();
  (void)(*session)->close();
  return 0;
}
