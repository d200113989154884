// SPDX-License-Identifier: Apache-2.0
// Any bytes as assembly: parsing ends in a result, and what it accepts survives printing and parsing.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "isa/assembler.h"
#include "isa/disassembler.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace reef::isa;
  const auto listing = parse_listing({reinterpret_cast<const char*>(data), size});
  if (!listing.ok()) return 0;
  const std::string text = print_listing(*listing);
  const auto again = parse_listing(text);
  if (!again.ok() || !(*again == *listing)) {
    std::fprintf(stderr, "%s\n%s\n", again.ok() ? "differs" : again.status().message().c_str(), text.c_str());
    std::abort();
  }
  return 0;
}
