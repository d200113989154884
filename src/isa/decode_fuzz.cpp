// SPDX-License-Identifier: Apache-2.0
// Any bytes as a program: decoding ends in a result, and what it accepts survives encoding, text and assembling.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "isa/assembler.h"
#include "isa/disassembler.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace reef::isa;
  const auto program = decode({data, size});
  if (!program.ok()) return 0;
  const auto bytes = encode(*program);
  if (!std::equal(bytes.begin(), bytes.end(), data, data + size)) std::abort();
  const std::string text = disassemble(*program);
  const auto again = assemble(text);
  if (!again.ok() || !(*again == *program)) {
    std::fprintf(stderr, "%s\n%s\n", again.ok() ? "differs" : again.status().message().c_str(), text.c_str());
    std::abort();
  }
  return 0;
}
