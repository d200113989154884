// SPDX-License-Identifier: Apache-2.0
// Steps that bring inputs in and send results out.
#pragma once

#include "lower/builder.h"

namespace reef::lower {

// `source`: a tensor of the model at the border of the part. add_infeed: the step, which may be one of several in work
// by slices. add_outfeed: `is_state`: what a variable has become.
Result<std::int32_t> add_infeed(Builder& builder, std::int32_t source);
// `tensor`: the source's values, or some rows of them: `piece` then says how many came before. The step.
std::int32_t add_outfeed(Builder& builder, std::int32_t source, std::int32_t tensor, std::int32_t piece,
                         bool is_state = false);

// Room in the host's memory for an image on the grid.
tiled::HostImage new_host_image(Builder& builder, std::int32_t tensor);
// `tensor`: on the grid, as a whole or some rows.
void add_host_store(Builder& builder, std::int32_t tensor, const tiled::HostImage& image);
// A new tensor for the model's tensor: in a slice the rows that it needs.
Result<std::int32_t> add_host_load(Builder& builder, std::int32_t source, const tiled::HostImage& image);

}  // namespace reef::lower
