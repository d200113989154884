// SPDX-License-Identifier: Apache-2.0
// Joins the two executors: the interpreter runs a compiled model's CPU ops itself and its Edge TPU ops on a device.
#pragma once

#include <memory>

#include "execute/cpu/interpreter.h"
#include "execute/device/device.h"
#include "runtime/edge_tpu.h"

namespace reef::runtime {

// For InterpreterOptions::foreign_ops. Interpreters of several threads may share the device.
cpu::ForeignOp edge_tpu_op(std::shared_ptr<EdgeTpu> device);
// The same on the caller's own emulated chip, which may serve several interpreters of one thread.
cpu::ForeignOp edge_tpu_op(std::shared_ptr<device::Device> chip);

}  // namespace reef::runtime
