// SPDX-License-Identifier: Apache-2.0
// Joins the two executors: the interpreter runs a compiled model's CPU ops itself and its Edge TPU ops on a device.
#pragma once

#include <memory>

#include "execute/cpu/interpreter.h"
#include "execute/device/device.h"
#include "runtime/virtual_devices.h"

namespace reef::runtime {

// For InterpreterOptions::foreign_ops. The device may serve several interpreters of one thread.
cpu::ForeignOp edge_tpu_op(std::shared_ptr<device::Device> device);
// The same on a device that interpreters of several threads share.
cpu::ForeignOp edge_tpu_op(std::shared_ptr<VirtualDevice> device);

}  // namespace reef::runtime
