// SPDX-License-Identifier: Apache-2.0
#include "driver/dfu.h"

#include <algorithm>
#include <array>
#include <vector>

namespace reef::driver {
namespace {

constexpr int kInterface = 0;
constexpr SetupPacket kDetach = {0x21, 0, 100, 0};  // within 100 ms
constexpr std::uint8_t kDownloadType = 0x21, kDownload = 1, kUploadType = 0xa1, kUpload = 2;
constexpr SetupPacket kGetStatus = {0xa1, 3, 0, 0};
constexpr SetupPacket kGetConfiguration = {0x80, 6, 0x0200, 0};
constexpr std::size_t kMostDescriptorBytes = 521;  // as Google's runtime asks for
constexpr std::uint8_t kFunctionalDescriptor = 0x21;
constexpr std::uint8_t kStateIdle = 2, kStateDownloadIdle = 5;
constexpr std::size_t kLeastBlock = 8, kMostBlock = 4096;
constexpr std::uint16_t kMostUploads = 1024;  // blocks; a stick has 128

// Bytes of a block, from the functional descriptor. What is asked for and what is used differ on sticks, whose
// descriptor says 256 as Google's runtime uses.
Result<std::size_t> block_size(UsbDevice& device, Milliseconds limit) {
  std::array<std::uint8_t, kMostDescriptorBytes> bytes{};
  const Outcome outcome = device.control(kGetConfiguration, bytes, limit);
  if (!outcome.ok()) return transfer_error("reading the configuration descriptor", outcome);
  for (std::size_t at = 0; at + 2 <= outcome.bytes && bytes[at] >= 2; at += bytes[at]) {
    if (bytes[at + 1] != kFunctionalDescriptor || bytes[at] < 7 || at + 7 > outcome.bytes) continue;
    const std::size_t size = bytes[at + 5] | std::size_t{bytes[at + 6]} << 8;
    if (size >= kLeastBlock && size <= kMostBlock) return size;
    return make_error(StatusCode::kIoError, "the stick wants its firmware in blocks of {} bytes", size);
  }
  return make_error(StatusCode::kIoError, "the stick's {} bytes of descriptors do not say how it takes firmware",
                    outcome.bytes);
}

Status expect_state(UsbDevice& device, std::uint8_t wanted, Milliseconds limit) {
  std::array<std::uint8_t, 6> status{};
  const Outcome outcome = device.control(kGetStatus, status, limit);
  if (!outcome.ok() || outcome.bytes != status.size())
    return transfer_error("reading the state of the download", outcome);
  if (status[0] == 0 && status[4] == wanted) return ok_status();
  return make_error(StatusCode::kIoError, "the stick does not take its firmware: status {}, state {} instead of {}",
                    status[0], status[4], wanted);
}

Status send_block(UsbDevice& device, std::uint16_t number, std::span<const std::uint8_t> block, Milliseconds limit) {
  std::vector<std::uint8_t> copy(block.begin(), block.end());
  const Outcome outcome = device.control({kDownloadType, kDownload, number, 0}, copy, limit);
  if (!outcome.ok() || outcome.bytes != block.size()) {
    return transfer_error(fmt::format("sending block {} of the firmware", number), outcome);
  }
  return expect_state(device, block.empty() ? kStateIdle : kStateDownloadIdle, limit);
}

// A stick returns all of its memory; only as much as was sent is compared.
Status compare_firmware(UsbDevice& device, std::span<const std::uint8_t> firmware, std::size_t block,
                        Milliseconds limit) {
  std::vector<std::uint8_t> found, bytes(block);
  for (std::uint16_t number = 0; number < kMostUploads; ++number) {
    const Outcome outcome = device.control({kUploadType, kUpload, number, 0}, bytes, limit);
    if (!outcome.ok() || outcome.bytes > block) {
      return transfer_error(fmt::format("reading block {} of the firmware", number), outcome);
    }
    found.insert(found.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(outcome.bytes));
    if (outcome.bytes < block) break;
  }
  if (found.size() >= firmware.size() && std::equal(firmware.begin(), firmware.end(), found.begin())) {
    return ok_status();
  }
  return make_error(StatusCode::kIoError, "the stick holds other firmware than was sent");
}

Status transfer_firmware(UsbDevice& device, std::span<const std::uint8_t> firmware, std::size_t block,
                         Milliseconds limit) {
  std::uint16_t number = 0;
  for (std::size_t at = 0; at < firmware.size(); at += block, ++number) {
    REEF_RETURN_IF_ERROR(
        send_block(device, number, firmware.subspan(at, std::min(block, firmware.size() - at)), limit));
  }
  REEF_RETURN_IF_ERROR(send_block(device, number, {}, limit));
  return compare_firmware(device, firmware, block, limit);
}

}  // namespace

Status download_firmware(UsbDevice& device, std::span<const std::uint8_t> firmware, Milliseconds limit) {
  REEF_ASSIGN_OR_RETURN(const std::size_t block, block_size(device, limit));
  REEF_RETURN_IF_ERROR(device.claim(kInterface));
  const Status status = transfer_firmware(device, firmware, block, limit);
  const Status released = device.release(kInterface);
  return status.ok() ? released : status;
}

Status detach(UsbDevice& device, Milliseconds limit) {
  REEF_RETURN_IF_ERROR(device.claim(kInterface));
  const Outcome outcome = device.control(kDetach, {}, limit);
  const Status released = device.release(kInterface);
  return outcome.ok() ? released : transfer_error("asking the stick to wait for firmware", outcome);
}

}  // namespace reef::driver
