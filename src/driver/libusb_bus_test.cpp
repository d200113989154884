// SPDX-License-Identifier: Apache-2.0
// The libusb side, with a libusb of our own in its place that has virtual sticks plugged in.
#include "driver/libusb_bus.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "base/sha256.h"
#include "driver/firmware.h"
#include "driver/holders.h"
#include "driver/usb_session.h"
#include "driver/virtual_stick.h"
#include "driver_packages.h"

namespace reef::driver {

// Stand-ins for the library's own types.
struct libusb_context {};
struct libusb_device {
  UsbDeviceInfo info;
};
struct libusb_device_handle {
  std::unique_ptr<UsbDevice> device;
  std::vector<std::pair<std::unique_ptr<Transfer>, LibusbTransfer*>> pending;
};

namespace {

VirtualBus* plugged_in = nullptr;
int open_error = 0, claim_error = 0;
int contexts = 0, handles = 0, transfers = 0;  // that were not given back
std::vector<libusb_device_handle*> open_handles;

int code_of(TransferEnd end) {
  switch (end) {
    case TransferEnd::kTimedOut:
      return libusb_number::kTimeout;
    case TransferEnd::kStalled:
      return libusb_number::kPipe;
    case TransferEnd::kUnplugged:
      return libusb_number::kNoDevice;
    case TransferEnd::kOverflow:
      return libusb_number::kOverflow;
    default:
      return -1;
  }
}

int status_of(TransferEnd end) {
  switch (end) {
    case TransferEnd::kDone:
      return libusb_number::kCompleted;
    case TransferEnd::kTimedOut:
      return libusb_number::kTimedOut;
    case TransferEnd::kCancelled:
      return libusb_number::kCancelled;
    case TransferEnd::kStalled:
      return libusb_number::kStall;
    case TransferEnd::kUnplugged:
      return libusb_number::kGone;
    case TransferEnd::kOverflow:
      return libusb_number::kTooMuch;
    default:
      return 1;
  }
}

// Callbacks of all transfers that have ended.
bool call_back(libusb_device_handle* handle) {
  for (std::size_t i = 0; i < handle->pending.size(); ++i) {
    if (handle->pending[i].first->is_pending) continue;
    const auto ended = std::move(handle->pending[i]);
    handle->pending.erase(handle->pending.begin() + static_cast<std::ptrdiff_t>(i));
    ended.second->status = status_of(ended.first->outcome.end);
    ended.second->actual_length = static_cast<int>(ended.first->outcome.bytes);
    ended.second->callback(ended.second);
    return true;
  }
  return false;
}

LibusbApi make_api() {
  LibusbApi api{};
  api.init = [](libusb_context** context) {
    *context = new libusb_context;
    ++contexts;
    return 0;
  };
  api.exit = [](libusb_context* context) {
    delete context;
    --contexts;
  };
  api.get_device_list = [](libusb_context*, libusb_device*** list) -> ssize_t {
    plugged_in->sleep(Milliseconds(500));
    const auto found = plugged_in->list();
    *list = new libusb_device*[found->size() + 1]();
    for (std::size_t i = 0; i < found->size(); ++i) (*list)[i] = new libusb_device{(*found)[i]};
    return static_cast<ssize_t>(found->size());
  };
  api.free_device_list = [](libusb_device** list, int) {
    for (libusb_device** device = list; *device != nullptr; ++device) delete *device;
    delete[] list;
  };
  api.get_device_descriptor = [](libusb_device* device, LibusbDeviceDescriptor* descriptor) {
    descriptor->vendor = device->info.id.vendor;
    descriptor->product = device->info.id.product;
    return 0;
  };
  api.get_bus_number = [](libusb_device*) { return std::uint8_t{1}; };
  api.get_device_address = [](libusb_device*) { return std::uint8_t{5}; };
  api.get_port_numbers = [](libusb_device* device, std::uint8_t* ports, int) {
    ports[0] = static_cast<std::uint8_t>(device->info.path.back() - '0');
    return 1;
  };
  api.get_device_speed = [](libusb_device*) { return libusb_number::kSuperSpeed; };
  api.open = [](libusb_device* device, libusb_device_handle** handle) {
    if (open_error != 0) return open_error;
    auto opened = plugged_in->open(device->info.path);
    if (!opened.ok()) return libusb_number::kNoDevice;
    *handle = new libusb_device_handle{std::move(*opened), {}};
    open_handles.push_back(*handle);
    ++handles;
    return 0;
  };
  api.close = [](libusb_device_handle* handle) {
    EXPECT_TRUE(handle->pending.empty()) << "closed with transfers under way";
    std::erase(open_handles, handle);
    delete handle;
    --handles;
  };
  api.claim_interface = [](libusb_device_handle* handle, int interface) {
    if (claim_error != 0) return claim_error;
    return handle->device->claim(interface).ok() ? 0 : libusb_number::kBusy;
  };
  api.release_interface = [](libusb_device_handle* handle, int interface) {
    return handle->device->release(interface).ok() ? 0 : libusb_number::kNoDevice;
  };
  api.reset_device = [](libusb_device_handle* handle) {
    return handle->device->reset().ok() ? 0 : libusb_number::kNoDevice;
  };
  api.control_transfer = [](libusb_device_handle* handle, std::uint8_t type, std::uint8_t request, std::uint16_t value,
                            std::uint16_t index, unsigned char* data, std::uint16_t length, unsigned int limit) {
    const Outcome outcome = handle->device->control({type, request, value, index}, {data, length}, Milliseconds(limit));
    return outcome.ok() ? static_cast<int>(outcome.bytes) : code_of(outcome.end);
  };
  api.alloc_transfer = [](int) {
    ++transfers;
    return new LibusbTransfer{};
  };
  api.free_transfer = [](LibusbTransfer* transfer) {
    delete transfer;
    --transfers;
  };
  api.submit_transfer = [](LibusbTransfer* raw) {
    auto transfer = std::make_unique<Transfer>();
    transfer->endpoint = raw->endpoint;
    transfer->buffer = {raw->buffer, static_cast<std::size_t>(raw->length)};
    raw->device->device->submit(*transfer);
    if (!transfer->is_pending && transfer->outcome.end == TransferEnd::kUnplugged) return libusb_number::kNoDevice;
    raw->device->pending.emplace_back(std::move(transfer), raw);
    return 0;
  };
  api.cancel_transfer = [](LibusbTransfer* raw) {
    for (auto& [transfer, other] : raw->device->pending) {
      if (other == raw && transfer->is_pending) raw->device->device->cancel(*transfer);
    }
    return 0;
  };
  api.handle_events_timeout_completed = [](libusb_context*, timeval*, int*) {
    for (libusb_device_handle* handle : open_handles) {
      handle->device->wait_any({}, Milliseconds(0));
      while (call_back(handle)) {
      }
    }
    return 0;
  };
  return api;
}

class LibusbBusTest : public ::testing::Test {
 protected:
  LibusbBusTest() : sticks({&options, 1}), api(make_api()), bus(api, proc()) {
    plugged_in = &sticks;
    open_error = claim_error = 0;
  }
  ~LibusbBusTest() override {
    EXPECT_EQ(contexts, 0);
    EXPECT_EQ(handles, 0);
    EXPECT_EQ(transfers, 0);
    plugged_in = nullptr;
    std::filesystem::remove_all(proc());
  }
  static std::string proc() { return ::testing::TempDir() + "reef_proc_" + std::to_string(::getpid()); }

  StickOptions options;
  VirtualBus sticks;
  LibusbApi api;
  LibusbBus bus;
};

TEST_F(LibusbBusTest, AFreshStickRuns) {
  UsbSessionOptions with_firmware;
  with_firmware.firmware = []() -> Result<Bytes> { return Bytes(std::vector<std::uint8_t>(600, 3)); };
  const auto session = UsbSession::open(bus, with_firmware);
  ASSERT_TRUE(session.ok()) << session.status().message();
  EXPECT_EQ((*session)->path(), "1-1");
  const auto model = Model::load(testing::echo_package());
  ASSERT_TRUE(model.ok());
  for (unsigned seed = 0; seed < 3; ++seed) {
    const std::vector<std::uint8_t> input = testing::echo_input(seed);
    const auto outputs = (*session)->run(*model, {input});
    ASSERT_TRUE(outputs.ok()) << outputs.status().message();
    EXPECT_EQ((*outputs)[0], testing::echo_output(input, 1));
  }
  sticks.stick(0).unplug();
  sticks.stick(0).plug_in();
  const std::vector<std::uint8_t> input = testing::echo_input(9);
  const auto outputs = (*session)->run(*model, {input});
  ASSERT_TRUE(outputs.ok()) << outputs.status().message();
  EXPECT_EQ((*outputs)[0], testing::echo_output(input, 1));
  const std::vector<std::string> notes = (*session)->notes();
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_NE(notes[0].find("unplugged"), std::string::npos) << notes[0];
  EXPECT_EQ(notes[1], kRepeatedNote);
}

TEST_F(LibusbBusTest, MissingPermissionNamesTheRule) {
  open_error = libusb_number::kAccess;
  const auto session = UsbSession::open(bus, {});
  ASSERT_FALSE(session.ok());
  EXPECT_NE(session.status().message().find("60-reef-edgetpu.rules"), std::string::npos) << session.status().message();
  EXPECT_NE(session.status().message().find("/dev/bus/usb/001/005"), std::string::npos) << session.status().message();
}

TEST_F(LibusbBusTest, ABusyDeviceNamesWhoHoldsIt) {
  namespace fs = std::filesystem;
  fs::create_directories(proc() + "/812/fd");
  fs::create_directories(proc() + "/9/fd");
  fs::create_directories(proc() + "/self");
  fs::create_symlink("/dev/bus/usb/001/005", proc() + "/812/fd/7");
  fs::create_symlink("/dev/null", proc() + "/9/fd/0");
  std::ofstream(proc() + "/812/comm") << "frigate\n";
  EXPECT_EQ(holders_of(proc(), "/dev/bus/usb/001/005"), "frigate (process 812)");
  EXPECT_EQ(holders_of(proc(), "/dev/bus/usb/001/006"), "");
  EXPECT_EQ(holders_of(proc() + "/nowhere", "/dev/bus/usb/001/005"), "");
  const auto device = bus.open("1-1");
  ASSERT_TRUE(device.ok());
  claim_error = libusb_number::kBusy;
  const Status status = (*device)->claim(0);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find("frigate (process 812)"), std::string::npos) << status.message();
  const auto second = bus.open("1-1");
  ASSERT_FALSE(second.ok()) << "it would be reset next, under the hands of its user";
  EXPECT_NE(second.status().message().find("frigate (process 812)"), std::string::npos) << second.status().message();
}

TEST_F(LibusbBusTest, OtherPortsAreNotFound) {
  const auto device = bus.open("1-7");
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.status().code(), StatusCode::kNotFound);
}

// Whether or not the library is there.
TEST(Libusb, IsLoadedOrSaidToBeMissing) {
  const auto api = load_libusb();
  if (api.ok()) {
    EXPECT_NE((*api)->init, nullptr);
  } else {
    EXPECT_NE(api.status().message().find("libusb-1.0-0"), std::string::npos) << api.status().message();
  }
}

TEST(Firmware, IsFoundByItsHash) {
  std::vector<std::uint8_t> image(100);
  for (std::size_t i = 0; i < image.size(); ++i) image[i] = static_cast<std::uint8_t>(i * 5 + 1);
  const std::string digest = sha256_hex(image);
  FirmwareImage wanted{image.size(), digest, {}};
  std::copy_n(image.begin(), 8, wanted.begins.begin());
  // A library that first has the image's beginning without the image.
  std::vector<std::uint8_t> library(5000, 9);
  std::copy_n(image.begin(), 50, library.begin() + 17);
  std::copy(image.begin(), image.end(), library.begin() + 3001);
  EXPECT_EQ(find_image(library, wanted), 3001u);
  library[3050] ^= 1;
  EXPECT_EQ(find_image(library, wanted), std::nullopt);
  library[3050] ^= 1;
  EXPECT_EQ(find_image(std::span(library).first(3100), wanted), std::nullopt) << "cut short";
  EXPECT_EQ(find_image({}, wanted), std::nullopt);

  const std::string path = ::testing::TempDir() + "reef_libedgetpu_" + std::to_string(::getpid());
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(library.data()), 5000);
  const std::vector<std::string> places = {path + ".absent", path};
  for (const std::string& file : {std::string(), path}) {
    const auto found = find_firmware(file, places, wanted);
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_EQ(*found, Bytes(image));
  }
  const auto absent = find_firmware("", std::span(places).first(1), wanted);
  ASSERT_FALSE(absent.ok());
  EXPECT_NE(absent.status().message().find("libedgetpu1-std"), std::string::npos);
  EXPECT_FALSE(find_firmware(path, {}).ok()) << "no other bytes are ever sent";
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace reef::driver
