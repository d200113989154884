// SPDX-License-Identifier: Apache-2.0
#include "partition/cpu_cost.h"

#include <algorithm>
#include <string_view>

#include "ops/cpu_work.h"

namespace reef::partition {
namespace {

enum class Counted { kProducts, kElements };
struct Rate {
  std::string_view op;
  Counted counted;
  double ns_8bit, ns_float;
};
using enum Counted;
constexpr Rate kRates[] = {
#define CPU_RATE(op, counted, ns_8bit, ns_float) {op, counted, ns_8bit, ns_float},
#include "partition/cpu_rates.def"
#undef CPU_RATE
};
// Ops without a rate: kernels that nobody has optimized take nanoseconds an element.
constexpr Rate kOther = {"", kElements, 2, 1};
constexpr double kCallMicroseconds = 0.46;  // of an op, whatever it does; measured with the rates

// Only their order of magnitude is known.
constexpr HostCpu kHosts[] = {
    {"usb3", "desktop", 1, 1, "taken as the machine the rates were measured on"},
    {"usb3-jetson", "Jetson Nano (Cortex-A57)", 15, 3, "estimated: no 8-bit dot products, 128-bit vectors, 1.4 GHz"},
    {"usb2", "Jetson Nano (Cortex-A57)", 15, 3, "estimated, as above"},
    {"usb3-rpi4", "Raspberry Pi 4 (Cortex-A72)", 15, 3, "estimated, as above"},
    {"pcie", "PC with M.2 or PCIe", 1, 1, "as desktop"},
    {"pcie-devboard", "Coral Dev Board (Cortex-A53)", 20, 3.5,
     "estimated; 3.5 is the ratio of Coral's published CPU times, embedded to desktop, over 18 networks"},
    {"usb3-rpi5", "Raspberry Pi 5 (Cortex-A76)", 5, 1.7, "a guess: 8-bit dot products, 2.4 GHz; not measured"},
    {"usb3-n100", "N100-class NAS", 2, 1.6, "a guess: 256-bit vectors with 8-bit dot products, 3.4 GHz; not measured"},
    {"usb2-mini", "Coral Dev Board Mini (Cortex-A35)", 30, 5, "a guess: in-order cores at 1.5 GHz; not measured"},
};

}  // namespace

std::span<const HostCpu> host_cpus() { return kHosts; }

const HostCpu& host_cpu(std::string_view link) {
  const auto* at = std::find_if(std::begin(kHosts), std::end(kHosts), [&](const HostCpu& h) { return h.link == link; });
  return at == std::end(kHosts) ? kHosts[0] : *at;
}

double cpu_microseconds(const ops::OpContext& ctx, const HostCpu& host) {
  const auto* listed =
      std::find_if(std::begin(kRates), std::end(kRates), [&](const Rate& rate) { return rate.op == ctx.op().type; });
  const Rate& rate = listed == std::end(kRates) ? kOther : *listed;
  const bool is_8bit = ctx.has_input(0) && ir::is_integer_8(ctx.input(0).type);
  const double ns = is_8bit ? rate.ns_8bit : rate.ns_float;
  if (rate.counted == kProducts)
    return kCallMicroseconds * host.elements + ops::products_of(ctx) * ns / 1e3 * host.products;
  return (kCallMicroseconds + ops::elements_of(ctx) * ns / 1e3) * host.elements;
}

}  // namespace reef::partition
