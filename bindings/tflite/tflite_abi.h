// SPDX-License-Identifier: Apache-2.0
// The part of TFLite's C structures that a delegate touches, laid out as every release from 2.2 to LiteRT 2.3 has them.
//
// TFLite only ever appends fields. What TFLite allocates (context, node, tensor) is declared here up to the last field
// that is used, and never made or copied by us. What we allocate (delegate, registration) is longer than any known
// release's and zero-filled, so that a runtime that knows more fields finds "not there". The registration is passed by
// value: a newer runtime reads behind a short one, which is why it is padded too. Sizes are checked below.
#pragma once

#include <cstddef>
#include <cstdint>

namespace reef::tflite_abi {

enum Status : int { kOk = 0, kError = 1, kDelegateError = 2 };

struct IntArray {
  int size;
  int data[];  // NOLINT: a flexible array, as in C
};

struct Delegate;

struct Tensor {
  int type;
  void* data;
  IntArray* dims;
  float scale;
  std::int32_t zero_point;
  int allocation_type;
  std::size_t bytes;
  const void* allocation;
  const char* name;
  Delegate* delegate;
  int buffer_handle;
  bool data_is_stale;
  bool is_variable;
  int quantization_type;
  void* quantization_params;
  void* sparsity;
  const IntArray* dims_signature;
};
static_assert(sizeof(Tensor) == 112 && offsetof(Tensor, name) == 56 && offsetof(Tensor, is_variable) == 77);

struct Node {
  IntArray* inputs;
  IntArray* outputs;
  IntArray* intermediates;
  IntArray* temporaries;
  void* user_data;
  void* builtin_data;
  const void* custom_initial_data;
  int custom_initial_data_size;
  Delegate* delegate;
};
static_assert(offsetof(Node, custom_initial_data) == 48 && offsetof(Node, delegate) == 64);

struct Context;

inline constexpr std::int32_t kCustomBuiltinCode = 32;

struct Registration {
  void* (*init)(Context*, const char* buffer, std::size_t length);
  void (*free)(Context*, void* buffer);
  int (*prepare)(Context*, Node*);
  int (*invoke)(Context*, Node*);
  const char* (*profiling_string)(const Context*, const Node*);
  std::int32_t builtin_code;
  const char* custom_name;
  int version;
  void* unknown[16];  // 3 of them are known to exist
};
static_assert(offsetof(Registration, custom_name) == 48 && offsetof(Registration, unknown) == 64);

struct Context {
  std::size_t tensors_size;
  int (*GetExecutionPlan)(Context*, IntArray** plan);
  Tensor* tensors;
  void* impl;
  int (*ResizeTensor)(Context*, Tensor*, IntArray* new_size);
  void (*ReportError)(Context*, const char* format, ...);
  int (*AddTensors)(Context*, int count, int* first);
  int (*GetNodeAndRegistration)(Context*, int node_index, Node** node, Registration** registration);
  int (*ReplaceNodeSubsetsWithDelegateKernels)(Context*, Registration, const IntArray* nodes, Delegate*);
};
static_assert(offsetof(Context, ReplaceNodeSubsetsWithDelegateKernels) == 64);

// What a delegate's kernel gets as `buffer` in init.
struct DelegateParams {
  Delegate* delegate;
  IntArray* nodes_to_replace;
  IntArray* input_tensors;
  IntArray* output_tensors;
};
static_assert(sizeof(DelegateParams) == 32);

inline constexpr std::int64_t kAllowDynamicTensors = 1;

struct Delegate {
  void* data;
  int (*Prepare)(Context*, Delegate*);
  int (*CopyFromBufferHandle)(Context*, Delegate*, int, Tensor*);
  int (*CopyToBufferHandle)(Context*, Delegate*, int, Tensor*);
  void (*FreeBufferHandle)(Context*, Delegate*, int*);
  std::int64_t flags;
  void* unknown[16];  // 1 of them is known to exist
};
static_assert(offsetof(Delegate, flags) == 40 && offsetof(Delegate, unknown) == 48);

}  // namespace reef::tflite_abi
