// SPDX-License-Identifier: Apache-2.0
// Reads the tables of one Executable. Failures go to the buffer's ReadState.
#pragma once

#include "formats/darwinn/wire.h"

namespace reef::darwinn {

// `is_bare`: one that stands without a package (Package::is_bare) and does not say its chip.
Executable read_executable_buffer(const FlatBuffer& buffer, bool is_bare = false);
std::vector<Layer> read_layers(Table& executable, int slot, const char* name, bool is_bare);
std::optional<AddressUse> read_address_use(Table& parent, int slot);

}  // namespace reef::darwinn
