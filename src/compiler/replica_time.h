// SPDX-License-Identifier: Apache-2.0
// Throughput of several Edge TPUs on one host, in simulated time: the samples of `replicas` copies of a model, each cut
// into segments on chips of their own, with what they share: the host's cores, and one USB controller.
//
// The cost of an inference comes from the timeline of the generated code on the virtual device (stage_time): bytes over
// the link each way, time on the chip that no transfer hides, and the host's part, of which all counts as work of a
// core. Devices on USB share a controller in each direction: `n` transfers at once get capacity / n each, and none more
// than its link alone. Cards on PCIe have lanes of their own. Not known, and so left out: what hubs cost, interrupts
// that are joined, a host's memory. Simulated, and nothing of it was measured on silicon.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/budget.h"
#include "base/status.h"
#include "chip/links.h"
#include "ir/model.h"

namespace reef::compiler {

// One inference of one segment.
struct StageTime {
  double host_us = 0;  // driver and operators that stay on the CPU
  double chip_us = 0;  // on the chip, beyond all transfers
  double in_bytes = 0, out_bytes = 0;

  double alone_us(const chip::LinkProfile& link) const;
};

// The cost of one inference of a compiled model. Runs the model twice with inputs of zeros on a virtual device, the
// second time with its parameters on the chip. `cpu_us`: estimate of the operators that stay on the CPU.
Result<StageTime> stage_time(const std::shared_ptr<const ir::Model>& compiled, const chip::LinkProfile& link,
                             double cpu_us, const Budget& budget);

// A model on `segments` chips, as one replica has it.
struct Split {
  std::vector<std::shared_ptr<const ir::Model>> models;  // compiled, in order
  std::vector<StageTime> stages;
};
// A compiled model is a split of one. A quantized one is compiled in memory for so many chips.
Result<Split> split_model(const std::shared_ptr<const ir::Model>& model, int segments, const chip::LinkProfile& link,
                          const Budget& budget);

// A host as far as devices share it.
struct SharedHost {
  int cores = 4;
  double controller_in = 0, controller_out = 0;  // bytes per second of all devices together; 0: no limit
};
// Four cores; one USB 3 (or USB 2) controller for USB links, lanes of their own for PCIe.
SharedHost usual_host(const chip::LinkProfile& link);

struct Throughput {
  int devices = 0, replicas = 0, segments = 0;
  double per_second = 0;
  double p50_ms = 0, p90_ms = 0, p99_ms = 0;  // from the host's call to its return
  // Shares in use, 0 to 1: of the time of the host's cores, of the controller's capacity in its busier direction, and
  // of the chips' time (their mean, transfers not counted).
  double host_share = 0, controller_share = 0, chip_share = 0;
};
// `replicas` copies, each with one sample more on its way than it has segments.
Throughput simulate_replicas(const std::vector<StageTime>& stages, int replicas, const chip::LinkProfile& link,
                             const SharedHost& host);

}  // namespace reef::compiler
