// SPDX-License-Identifier: Apache-2.0
// Writes the tables of one Executable.
#pragma once

#include "formats/darwinn/table_writer.h"

namespace reef::darwinn {

// `is_bare`: as one that stands without a package (Package::is_bare).
Place write_executable_table(BufferWriter& buffer, const Executable& executable, bool is_bare = false);
Place write_layer(BufferWriter& buffer, const Layer& layer, bool is_bare);

}  // namespace reef::darwinn
