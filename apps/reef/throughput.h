// SPDX-License-Identifier: Apache-2.0
// reef run --throughput: how many samples a second several Edge TPUs do, and how a model is best spread over them.
#pragma once

#include <memory>

#include "base/status.h"
#include "ir/model.h"
#include "run_report.h"

namespace reef::app {

// Predicts (simulated) every way to use options.device.devices devices as copies of the model cut into segments, says
// which is best, and with --bench runs samples in that way.
Status run_throughput(const RunOptions& options, const std::shared_ptr<const ir::Model>& model);

}  // namespace reef::app
