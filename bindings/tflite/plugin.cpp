// SPDX-License-Identifier: Apache-2.0
// What others call: TFLite's entrance for external delegates, and Coral's public C interface (libedgetpu.so.1).
//
// Options are those of libedgetpu: "device" chooses one (":0", "usb", "usb:1", "pci", ..., or "virtual"), "Performance"
// the clock of a real one, "Usb.AlwaysDfu" whether a stick that runs gets firmware again. Others are taken without
// effect. $REEF_DEVICES says which devices there are: real ones if the machine has any, else virtual ones.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/printable.h"
#include "base/version.h"
#include "delegate.h"
#include "runtime/devices.h"
#include "settings.h"

namespace {

using reef::Result;
using reef::Status;
using reef::driver::SessionSettings;
using reef::runtime::Connection;
using reef::runtime::DeviceList;
using reef::runtime::EdgeTpu;
using TfLiteDelegate = reef::tflite_abi::Delegate;

constexpr int kRuntimeVersion = 14;  // of libedgetpu, that compiled models ask for at most

std::atomic<int> verbosity{0};

void say(const std::string& message) { std::fprintf(stderr, "reef: %s\n", reef::printable_text(message).c_str()); }

using reef::delegate::Option;

Result<TfLiteDelegate*> make_delegate(std::string_view selector, std::span<const Option> options) {
  REEF_ASSIGN_OR_RETURN(const SessionSettings settings, reef::delegate::settings_of(options));
  REEF_ASSIGN_OR_RETURN(std::shared_ptr<EdgeTpu> device, reef::runtime::open_device(selector, settings));
  if (verbosity > 0) say(fmt::format("{} opened", reef::runtime::describe(*device)));
  return reef::delegate::create(std::move(device));
}

// Null, with the reason told to `tell`, where that fails.
template <typename Tell>
TfLiteDelegate* make_or_tell(std::string_view selector, std::span<const Option> options, const Tell& tell) noexcept {
  try {
    const Result<TfLiteDelegate*> made = make_delegate(selector, options);
    if (made.ok()) return *made;
    tell(made.status().message());
  } catch (const std::exception& error) {
    tell(std::string(error.what()));
  }
  return nullptr;
}

}  // namespace

#define REEF_EXPORT extern "C" __attribute__((visibility("default")))

REEF_EXPORT TfLiteDelegate* tflite_plugin_create_delegate(char** keys, char** values, std::size_t count,
                                                          void (*report_error)(const char*)) {
  std::string_view selector;
  std::vector<Option> options;
  for (std::size_t i = 0; i < count; ++i) {
    if (keys == nullptr || values == nullptr || keys[i] == nullptr || values[i] == nullptr) continue;
    if (std::string_view(keys[i]) == "device") selector = values[i];
    options.push_back({keys[i], values[i]});
  }
  return make_or_tell(selector, options, [&](const std::string& message) {
    if (report_error != nullptr) report_error(message.c_str());
  });
}

REEF_EXPORT void tflite_plugin_destroy_delegate(TfLiteDelegate* delegate) { reef::delegate::destroy(delegate); }

// As in Coral's edgetpu_c.h.
struct edgetpu_device {
  int type;  // 0: PCIe, 1: USB
  const char* path;
};
struct edgetpu_option {
  const char* name;
  const char* value;
};

REEF_EXPORT edgetpu_device* edgetpu_list_devices(std::size_t* count) {
  if (count == nullptr) return nullptr;
  *count = 0;
  try {
    const Result<DeviceList> devices = reef::runtime::devices();
    if (!devices.ok()) say(devices.status().message());
    if (!devices.ok() || devices->empty()) return nullptr;
    // One block, texts behind the structures: one free() is all that the caller's edgetpu_free_devices needs.
    std::size_t bytes = devices->size() * sizeof(edgetpu_device);
    for (const auto& device : *devices) bytes += device->path().size() + 1;
    auto* const list = static_cast<edgetpu_device*>(std::malloc(bytes));
    if (list == nullptr) return nullptr;
    char* text = reinterpret_cast<char*>(list + devices->size());
    for (std::size_t i = 0; i < devices->size(); ++i) {
      const EdgeTpu& device = *(*devices)[i];
      list[i] = {device.connection() == Connection::kUsb ? 1 : 0, text};
      std::memcpy(text, device.path().c_str(), device.path().size() + 1);
      text += device.path().size() + 1;
    }
    *count = devices->size();
    return list;
  } catch (const std::exception& error) {
    say(error.what());
    return nullptr;
  }
}

REEF_EXPORT void edgetpu_free_devices(edgetpu_device* devices) { std::free(devices); }

// `name`: a path as listed, or null for any device of the type.
REEF_EXPORT TfLiteDelegate* edgetpu_create_delegate(int type, const char* name, const edgetpu_option* options,
                                                    std::size_t count) {
  const std::string_view any = type == 1 ? "usb" : "pci";
  std::vector<Option> given;
  for (std::size_t i = 0; i < count && options != nullptr; ++i) {
    if (options[i].name != nullptr && options[i].value != nullptr) given.push_back({options[i].name, options[i].value});
  }
  return make_or_tell(name != nullptr ? std::string_view(name) : any, given, say);
}

REEF_EXPORT void edgetpu_free_delegate(TfLiteDelegate* delegate) { reef::delegate::destroy(delegate); }

REEF_EXPORT void edgetpu_verbosity(int level) { verbosity = level; }

REEF_EXPORT const char* edgetpu_version() {
  static const std::string version =
      fmt::format("BuildLabel(Reef {}), RuntimeVersion({})", reef::reef_version(), kRuntimeVersion);
  return version.c_str();
}
