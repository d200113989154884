// SPDX-License-Identifier: Apache-2.0
// What tests on generated networks have in common: which seeds, in which order units work, how a network is shown.
#pragma once

#include <string>

#include "execute/device/device.h"
#include "ir/model.h"

namespace reef::testing {

// Of an environment variable, by which tests are made longer.
int number_from_environment(const char* name, int otherwise);

// From REEF_CODEGEN_FIRST (0) on, as many as REEF_CODEGEN_COUNT (`usual`) says.
struct Seeds {
  unsigned begin = 0, end = 0;
};
Seeds seeds_to_try(unsigned usual);

// Units of tiles and scalar core take turns in another order with each seed; every fifth time one of them works only
// when no other can.
device::Schedule schedule_of(unsigned seed);

// The model as text, long constants cut short.
std::string describe(const ir::Model& model);

}  // namespace reef::testing
