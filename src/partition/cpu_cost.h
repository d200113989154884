// SPDX-License-Identifier: Apache-2.0
// Estimated time of an op on one core of the host.
//
// Rates per kind of op were measured on one machine (cpu_rates.def). Other hosts differ by two factors: ops that
// multiply gain from wide vectors and 8-bit dot products that small cores do not have, others less so.
#pragma once

#include <span>
#include <string_view>

#include "ops/op_context.h"

namespace reef::partition {

struct HostCpu {
  std::string_view link;      // the link profile (chip/links.h) whose host it is
  std::string_view meaning;   // "Raspberry Pi 4"
  double products, elements;  // times as slow as the machine the rates were measured on
  std::string_view source;    // how it is known
};
std::span<const HostCpu> host_cpus();
const HostCpu& host_cpu(std::string_view link);  // the first one, for a link that has none of its own

// Microseconds. Ops that are not listed in cpu_rates.def are charged by their elements; shapes that are not known cost
// nothing but the call.
double cpu_microseconds(const ops::OpContext& ctx, const HostCpu& host);

}  // namespace reef::partition
