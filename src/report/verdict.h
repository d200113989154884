// SPDX-License-Identifier: Apache-2.0
// Is the chip worth it for a model? The sentence that `reef check` and `reef compile` lead with, its figures, and the
// same parts on other hosts. All times are estimates (partition/cost.h).
#pragma once

#include <string>
#include <vector>

#include "chip/links.h"
#include "report/check_report.h"
#include "report/summary.h"

namespace reef::report {

// One inference of the model, its parts as they are, over a link.
struct LinkTime {
  const chip::LinkProfile* link = nullptr;
  double predicted_us = 0, all_cpu_us = 0;
  double times_as_fast() const { return predicted_us > 0 ? all_cpu_us / predicted_us : 1; }
};
// In the order of chip::link_profiles().
std::vector<LinkTime> times_over_links(const CheckSubject& subject);

// Verdict, share on the chip, time, memory. The caller adds files and the next step.
Summary judge(const CheckSubject& subject);

// A table of links and hosts: time, frames per second, and how that compares with the host's CPU alone.
std::string links_table(const CheckSubject& subject);

// "12 of 14 operators (86 %)".
std::string share_text(std::int64_t on_chip, std::int64_t all);

}  // namespace reef::report
