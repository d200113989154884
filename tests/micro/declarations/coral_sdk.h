// SPDX-License-Identifier: Apache-2.0
// See README.md.
#pragma once

#include <initializer_list>
#include <memory>
#include <vector>

#include "micro_runtime.h"

#define STATIC_TENSOR_ARENA_IN_SDRAM(name, size) alignas(16) static uint8_t name[size]

inline void vTaskSuspend(void*) {}

namespace coralmicro {
inline bool LfsReadFile(const char*, std::vector<uint8_t>*) { return true; }
struct EdgeTpuContext {};
class EdgeTpuManager {
 public:
  static EdgeTpuManager* GetSingleton() { return nullptr; }
  std::shared_ptr<EdgeTpuContext> OpenDevice() { return nullptr; }
};
inline constexpr char kPosenetDecoderOp[] = "PosenetDecoderOp";
inline TfLiteRegistration* RegisterPosenetDecoderOp() { return nullptr; }
inline constexpr char kCustomOp[] = "edgetpu-custom-op";
inline TfLiteRegistration* RegisterCustomOp() { return nullptr; }
enum class CameraFormat { kRgb, kY8 };
enum class CameraFilterMethod { kBilinear };
enum class CameraRotation { k0 };
enum class CameraMode { kStreaming };
struct CameraFrameFormat {
  CameraFormat fmt;
  CameraFilterMethod filter;
  CameraRotation rotation;
  int width, height;
  bool preserve_ratio;
  uint8_t* buffer;
};
class CameraTask {
 public:
  static CameraTask* GetSingleton() { return nullptr; }
  bool SetPower(bool) { return true; }
  bool Enable(CameraMode) { return true; }
  bool GetFrame(const std::vector<CameraFrameFormat>&) { return false; }
};
}  // namespace coralmicro
