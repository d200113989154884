// SPDX-License-Identifier: Apache-2.0
#include "coral_cpp.h"

#include <cstdio>
#include <exception>
#include <mutex>
#include <ostream>

#include "base/fork.h"
#include "base/printable.h"
#include "partition.h"
#include "runtime/devices.h"
#include "settings.h"

extern "C" {
void edgetpu_verbosity(int level);
const char* edgetpu_version();
}

namespace edgetpu {
namespace {

using reef::Result;
using reef::Status;
using reef::runtime::Connection;
using reef::runtime::EdgeTpu;
namespace abi = reef::tflite_abi;

DeviceType type_of(const EdgeTpu& device) {
  return device.connection() == Connection::kUsb ? DeviceType::kApexUsb : DeviceType::kApexPci;
}

class Context final : public EdgeTpuContext {
 public:
  explicit Context(std::shared_ptr<EdgeTpu> device)
      : device_(std::move(device)), record_{type_of(*device_), device_->path()} {
    type = abi::kEdgeTpuContext;
    Refresh = [](abi::Context*) { return int{abi::kOk}; };
  }
  const EdgeTpuManager::DeviceEnumerationRecord& GetDeviceEnumRecord() const override { return record_; }
  EdgeTpuManager::DeviceOptions GetDeviceOptions() const override { return {{"IsReady", "True"}}; }
  bool IsReady() const override { return true; }
  const std::shared_ptr<EdgeTpu>& device() const { return device_; }

 private:
  std::shared_ptr<EdgeTpu> device_;
  EdgeTpuManager::DeviceEnumerationRecord record_;
};

// Coral's interface has no room for a reason: it goes to standard error.
std::shared_ptr<EdgeTpu> open(std::string_view selector, const EdgeTpuManager::DeviceOptions& given = {}) {
  std::vector<reef::delegate::Option> options;
  for (const auto& [name, value] : given) options.push_back({name, value});
  auto settings = reef::delegate::settings_of(options);
  auto opened = settings.ok() ? reef::runtime::open_device(selector, *settings) : settings.status();
  if (opened.ok()) return std::move(opened).value();
  std::fprintf(stderr, "reef: %s\n", reef::printable_text(opened.status().message()).c_str());
  return nullptr;
}
std::string_view any_of(DeviceType type) { return type == DeviceType::kApexUsb ? "usb" : "pci"; }

class Manager final : public EdgeTpuManager {
 public:
  std::unique_ptr<EdgeTpuContext> NewEdgeTpuContext() override { return fresh(""); }
  std::unique_ptr<EdgeTpuContext> NewEdgeTpuContext(DeviceType type) override { return fresh(any_of(type)); }
  std::unique_ptr<EdgeTpuContext> NewEdgeTpuContext(DeviceType type, const std::string& path) override {
    return fresh(path.empty() ? any_of(type) : path);
  }
  std::unique_ptr<EdgeTpuContext> NewEdgeTpuContext(DeviceType type, const std::string& path,
                                                    const DeviceOptions& options) override {
    return fresh(path.empty() ? any_of(type) : path, options);
  }
  Records EnumerateEdgeTpu() const override {
    Records records;
    const auto devices = reef::runtime::devices();
    if (!devices.ok()) return records;
    for (const auto& device : *devices) records.push_back({type_of(*device), device->path()});
    return records;
  }
  std::shared_ptr<EdgeTpuContext> OpenDevice() override { return opened(""); }
  std::shared_ptr<EdgeTpuContext> OpenDevice(DeviceType type) override { return opened(any_of(type)); }
  std::shared_ptr<EdgeTpuContext> OpenDevice(DeviceType type, const std::string& path) override {
    return opened(path.empty() ? any_of(type) : path);
  }
  std::shared_ptr<EdgeTpuContext> OpenDevice(DeviceType type, const std::string& path,
                                             const DeviceOptions& options) override {
    return opened(path.empty() ? any_of(type) : path, options);
  }
  std::vector<std::shared_ptr<EdgeTpuContext>> GetOpenedDevices() const override {
    const std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<EdgeTpuContext>> result;
    for (const auto& each : opened_) {
      if (auto context = each.lock()) result.push_back(std::move(context));
    }
    return result;
  }
  abi::Status SetVerbosity(int verbosity) override {
    edgetpu_verbosity(verbosity);
    return abi::kOk;
  }
  std::string Version() const override { return edgetpu_version(); }

 private:
  static std::unique_ptr<EdgeTpuContext> fresh(std::string_view selector, const DeviceOptions& options = {}) {
    auto device = open(selector, options);
    return device == nullptr ? nullptr : std::make_unique<Context>(std::move(device));
  }
  // The context of a device that is open already, or a new one.
  std::shared_ptr<EdgeTpuContext> opened(std::string_view selector, const DeviceOptions& options = {}) {
    auto device = open(selector, options);
    if (device == nullptr) return nullptr;
    const std::lock_guard lock(mutex_);
    std::erase_if(opened_, [](const auto& each) { return each.expired(); });
    for (const auto& each : opened_) {
      if (auto context = each.lock(); context != nullptr && context->device() == device) return context;
    }
    auto context = std::make_shared<Context>(std::move(device));
    opened_.push_back(context);
    return context;
  }

  mutable reef::ForkSafeMutex mutex_;
  std::vector<std::weak_ptr<Context>> opened_;
};

// ---- The op for resolvers ----

struct Op {
  reef::Bytes options;
  std::unique_ptr<reef::delegate::Partition> partition;
};

template <typename Action>
int told(abi::Context* context, const Action& action) noexcept {
  std::string message;
  try {
    const Status status = action();
    if (status.ok()) return abi::kOk;
    message = status.message();
  } catch (const std::exception& error) {
    message = error.what();
  }
  context->ReportError(context, "Reef's Edge TPU op: %s. ", message.c_str());
  return abi::kError;
}

void* init(abi::Context*, const char* buffer, std::size_t length) {
  try {
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(buffer);
    auto op = std::make_unique<Op>();
    if (buffer != nullptr) op->options = reef::Bytes::copy_of({bytes, length});
    return op.release();
  } catch (...) {
    return nullptr;
  }
}

void free_op(abi::Context*, void* op) { delete static_cast<Op*>(op); }

std::shared_ptr<EdgeTpu> device_of(abi::Context* context) {
  abi::ExternalContext* const given = context->GetExternalContext(context, abi::kEdgeTpuContext);
  if (given == nullptr) return open("");
  return static_cast<const Context&>(static_cast<EdgeTpuContext&>(*given)).device();
}

int prepare(abi::Context* context, abi::Node* node) {
  return told(context, [&]() -> Status {
    auto* const op = static_cast<Op*>(node->user_data);
    REEF_REQUIRE(op != nullptr, "there is no memory for the op");
    auto device = device_of(context);
    REEF_REQUIRE(device != nullptr, "there is no Edge TPU (REEF_DEVICES)");
    op->partition = std::make_unique<reef::delegate::Partition>(std::move(device));
    REEF_RETURN_IF_ERROR(op->partition->add(context, *node, op->options));
    return op->partition->prepare(context);
  });
}

int invoke(abi::Context* context, abi::Node* node) {
  return told(context, [&]() -> Status {
    auto* const op = static_cast<Op*>(node->user_data);
    REEF_REQUIRE(op != nullptr && op->partition != nullptr, "the op was not prepared");
    return op->partition->invoke(context);
  });
}

}  // namespace

EdgeTpuContext::~EdgeTpuContext() = default;

EdgeTpuManager* EdgeTpuManager::GetSingleton() {
  static Manager* const manager = new Manager;  // never destroyed, as Coral's
  return manager;
}

abi::Registration* RegisterCustomOp() {
  static abi::Registration registration = [] {
    abi::Registration made = {};
    made.init = init;
    made.free = free_op;
    made.prepare = prepare;
    made.invoke = invoke;
    made.version = 1;
    return made;
  }();
  return &registration;
}

__attribute__((visibility("default"))) std::ostream& operator<<(std::ostream& out, DeviceType type) {
  return out << (type == DeviceType::kApexUsb ? "ApexUsb" : "ApexPci");
}

}  // namespace edgetpu
