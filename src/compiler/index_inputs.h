// SPDX-License-Identifier: Apache-2.0
// Inputs that select rows of a table (words of a text), which must lie inside of it: random numbers do not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ir/model.h"

namespace reef::compiler {

// How many rows input `input` of the main graph selects from: the smallest table that it goes to, through operators
// that leave values as they are. 0: it selects nothing.
std::int64_t rows_selected_by(const ir::Model& model, int input);

// Makes row numbers of any integers of this type.
void wrap_indices(ir::DataType type, std::int64_t rows, std::span<std::byte> values);

// Fills an input of the main graph with pseudo-random values. Inputs that select rows of a table select existing ones.
void fill_made_up_input(const ir::Model& model, int input, ir::DataType type, std::uint32_t seed,
                        std::span<std::byte> values);

}  // namespace reef::compiler
