// SPDX-License-Identifier: Apache-2.0
// Any bytes as a text: the parser must end in a result, and what it accepts must survive printing and parsing.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "ir/text.h"
#include "ir/verify.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace reef;
  const Result<ir::Model> model = ir::parse({reinterpret_cast<const char*>(data), size});
  if (!model.ok()) return 0;
  static_cast<void>(ir::verify(*model).ok());
  const std::string text = ir::print(*model);
  const Result<ir::Model> again = ir::parse(text);
  if (!again.ok() || !(*again == *model)) {
    std::fprintf(stderr, "%s\n%s\n", again.ok() ? "differs" : again.status().message().c_str(), text.c_str());
    std::abort();
  }
  return 0;
}
