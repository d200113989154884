// SPDX-License-Identifier: Apache-2.0
#include "trials.h"

#include <cstdlib>

#include "ir/text.h"

namespace reef::testing {

int number_from_environment(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

Seeds seeds_to_try(unsigned usual) {
  const auto first = static_cast<unsigned>(number_from_environment("REEF_CODEGEN_FIRST", 0));
  return {first, first + static_cast<unsigned>(number_from_environment("REEF_CODEGEN_COUNT", static_cast<int>(usual)))};
}

device::Schedule schedule_of(unsigned seed) {
  constexpr unsigned kUnits = 10;
  return {.seed = seed % 3, .reluctant = seed % 5 == 4 ? 1u << (seed / 5 % kUnits) : 0};
}

std::string describe(const ir::Model& model) {
  constexpr std::size_t kMostBytes = 64;
  return "\n" + ir::print(model, {.max_constant_bytes = kMostBytes});
}

}  // namespace reef::testing
