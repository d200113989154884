// SPDX-License-Identifier: Apache-2.0
// Steps that bring inputs in and send results out.
#pragma once

#include "lower/builder.h"

namespace reef::lower {

// `source`: a tensor of the model at the border of the part. add_infeed: the step, which may be one of several in work
// by slices. add_outfeed: `is_state`: what a variable has become.
Result<std::int32_t> add_infeed(Builder& builder, std::int32_t source);
Status add_outfeed(Builder& builder, std::int32_t source, bool is_state = false);

}  // namespace reef::lower
