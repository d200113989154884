// SPDX-License-Identifier: Apache-2.0
// A TFLite delegate that runs Edge TPU ops on one device, real or virtual.
#pragma once

#include <memory>

#include "runtime/edge_tpu.h"
#include "tflite_abi.h"

namespace reef::delegate {

// Of a delegate that destroy() frees.
tflite_abi::Delegate* create(std::shared_ptr<runtime::EdgeTpu> device);

// Null is allowed. While an interpreter still uses the delegate this is a mistake of the program, but no crash: what is
// prepared goes on working, preparing again is refused, and a few bytes stay allocated until the process ends.
void destroy(tflite_abi::Delegate* delegate);

}  // namespace reef::delegate
