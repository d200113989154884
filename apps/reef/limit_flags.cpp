// SPDX-License-Identifier: Apache-2.0
#include "limit_flags.h"

#include <unistd.h>

#include <cmath>

#include <fmt/format.h>

#include "usage.h"

namespace reef::app {
namespace {

constexpr double kMib = 1 << 20;
constexpr double kMostMib = 1 << 30;  // a pebibyte: no machine has it, and its bytes still fit a 64-bit number

}  // namespace

double most_mib() {
  const double bytes = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  return bytes > 0 ? std::floor(bytes * 0.75 / kMib) : kUsualMib;
}

void add_limit_flags(Command& command, LimitFlags& flags) {
  const OptionGroup group(command, "Limits");
  const auto shown = [](double value) { return value > 0 ? fmt::format("[{:g}]", value) : std::string("[none]"); };
  command
      .add_option("--time-limit", flags.seconds,
                  "Seconds after which the command gives up, all of its stages together; 0: no limit")
      .check(not_negative())
      .option_text("SECONDS " + shown(flags.seconds));
  command.add_option("--memory-limit", flags.mib, "MiB that tensors and decoded data may take together; 0: no limit")
      .check(between(0.0, kMostMib))
      .option_text("MIB " + shown(flags.mib));
}

Budget budget_of(const LimitFlags& flags) {
  BudgetLimits limits;
  limits.seconds = flags.seconds;
  // A part of a byte is a limit, and not none.
  limits.bytes = static_cast<std::int64_t>(std::ceil(flags.mib * kMib));
  return Budget(limits);
}

}  // namespace reef::app
