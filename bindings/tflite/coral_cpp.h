// SPDX-License-Identifier: Apache-2.0
// The shape of Coral's C++ interface (its edgetpu.h), as far as the binary interface goes: names, order of virtual
// functions, bases. Programs that were built against Coral's header and libedgetpu.so.1, PyCoral's extension among
// them, find what they were linked with. Both sides must use the same standard library, as with the real one.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "tflite_abi.h"

namespace edgetpu {

enum class DeviceType { kApexPci = 0, kApexUsb = 1 };

class EdgeTpuContext;

class __attribute__((visibility("default"))) EdgeTpuManager {
 public:
  using DeviceOptions = std::unordered_map<std::string, std::string>;
  struct DeviceEnumerationRecord {
    DeviceType type;
    std::string path;
  };
  using Records = std::vector<DeviceEnumerationRecord>;

  static EdgeTpuManager* GetSingleton();

  // Devices are shared by all: these give the same devices as OpenDevice. Null: there is no such device, or it cannot
  // be opened; the reason goes to standard error.
  virtual std::unique_ptr<EdgeTpuContext> NewEdgeTpuContext() = 0;
  virtual std::unique_ptr<EdgeTpuContext> NewEdgeTpuContext(DeviceType type) = 0;
  virtual std::unique_ptr<EdgeTpuContext> NewEdgeTpuContext(DeviceType type, const std::string& path) = 0;
  virtual std::unique_ptr<EdgeTpuContext> NewEdgeTpuContext(DeviceType type, const std::string& path,
                                                            const DeviceOptions& options) = 0;
  virtual Records EnumerateEdgeTpu() const = 0;
  virtual std::shared_ptr<EdgeTpuContext> OpenDevice() = 0;
  virtual std::shared_ptr<EdgeTpuContext> OpenDevice(DeviceType type) = 0;
  virtual std::shared_ptr<EdgeTpuContext> OpenDevice(DeviceType type, const std::string& path) = 0;
  virtual std::shared_ptr<EdgeTpuContext> OpenDevice(DeviceType type, const std::string& path,
                                                     const DeviceOptions& options) = 0;
  virtual std::vector<std::shared_ptr<EdgeTpuContext>> GetOpenedDevices() const = 0;
  virtual reef::tflite_abi::Status SetVerbosity(int verbosity) = 0;
  virtual std::string Version() const = 0;

 protected:
  virtual ~EdgeTpuManager() = default;
};

// TFLite passes this to the op as an external context.
class __attribute__((visibility("default"))) EdgeTpuContext : public reef::tflite_abi::ExternalContext {
 public:
  virtual ~EdgeTpuContext() = 0;
  virtual const EdgeTpuManager::DeviceEnumerationRecord& GetDeviceEnumRecord() const = 0;
  virtual EdgeTpuManager::DeviceOptions GetDeviceOptions() const = 0;
  virtual bool IsReady() const = 0;
};

// For a resolver's AddCustom("edgetpu-custom-op", ...).
__attribute__((visibility("default"))) reef::tflite_abi::Registration* RegisterCustomOp();

}  // namespace edgetpu
