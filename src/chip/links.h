// SPDX-License-Identifier: Apache-2.0
// Hosts and how they reach the chip: what a byte costs to send and to fetch.
#pragma once

#include <span>
#include <string_view>

namespace reef::chip {

// A host and its link to the chip.
struct LinkProfile {
  std::string_view name;
  std::string_view meaning;
  double overhead_us;           // of every inference, on the host
  double in_bytes_per_second;   // instructions, inputs, parameters
  double out_bytes_per_second;  // outputs
  std::string_view source;      // how it is known
  bool is_guess = false;        // nobody has published measurements: good for a rough idea, never for a headline
};

std::span<const LinkProfile> link_profiles();
const LinkProfile* find_link(std::string_view name);

}  // namespace reef::chip
