// SPDX-License-Identifier: Apache-2.0
// Writes the tables of one Executable.
#pragma once

#include "formats/darwinn/table_writer.h"

namespace reef::darwinn {

Place write_executable_table(BufferWriter& buffer, const Executable& executable);
Place write_layer(BufferWriter& buffer, const Layer& layer);

}  // namespace reef::darwinn
