// SPDX-License-Identifier: Apache-2.0
// See README.md.
#pragma once

#include <cstddef>
#include <cstdint>

enum TfLiteStatus { kTfLiteOk, kTfLiteError };
union TfLitePtrUnion {
  float* f;
  int8_t* int8;
  uint8_t* uint8;
  char* raw;
};
struct TfLiteQuantizationParams {
  float scale;
  int32_t zero_point;
};
struct TfLiteTensor {
  TfLitePtrUnion data;
  TfLiteQuantizationParams params;
  size_t bytes;
};
struct TfLiteRegistration {};

namespace tflite {
struct Model {};
inline const Model* GetModel(const void*) { return nullptr; }
class MicroErrorReporter {};
class MicroAllocator {
 public:
  static MicroAllocator* Create(uint8_t*, size_t, MicroErrorReporter* = nullptr) { return nullptr; }
};
class MicroResourceVariables {
 public:
  static MicroResourceVariables* Create(MicroAllocator*, int) { return nullptr; }
};
template <unsigned kOps>
class MicroMutableOpResolver {
 public:
  TfLiteStatus AddCustom(const char*, TfLiteRegistration*) { return kTfLiteOk; }
#define STUB_OPERATOR(name) \
  TfLiteStatus name() { return kTfLiteOk; }
  STUB_OPERATOR(AddAdd)
  STUB_OPERATOR(AddAveragePool2D)
  STUB_OPERATOR(AddConcatenation)
  STUB_OPERATOR(AddConv2D)
  STUB_OPERATOR(AddDepthwiseConv2D)
  STUB_OPERATOR(AddDequantize)
  STUB_OPERATOR(AddDetectionPostprocess)
  STUB_OPERATOR(AddFullyConnected)
  STUB_OPERATOR(AddLogistic)
  STUB_OPERATOR(AddMaxPool2D)
  STUB_OPERATOR(AddMean)
  STUB_OPERATOR(AddPad)
  STUB_OPERATOR(AddQuantize)
  STUB_OPERATOR(AddReshape)
  STUB_OPERATOR(AddSoftmax)
#undef STUB_OPERATOR
};
class MicroInterpreter {
 public:
  template <typename Resolver, typename... Others>
  MicroInterpreter(const Model*, const Resolver&, Others...) {}
  TfLiteStatus AllocateTensors() { return kTfLiteOk; }
  TfLiteStatus Invoke() { return kTfLiteOk; }
  TfLiteTensor* input(size_t) { return nullptr; }
  TfLiteTensor* output(size_t) { return nullptr; }
  size_t inputs_size() const { return 1; }
  size_t outputs_size() const { return 1; }
};
inline void InitializeTarget() {}
}  // namespace tflite
inline void MicroPrintf(const char*, ...) {}
