// SPDX-License-Identifier: Apache-2.0
// Putting channels into the order in which a following chain of views wants them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "passes/chip/view.h"

namespace reef::passes {

struct ChannelOrder {
  std::vector<std::int32_t> channels;  // new channel i is old channel channels[i]
  std::vector<Factor> factors;         // the view of the reordered tensor
};

// The order of the innermost `channels` elements in which their factors lie as in the result. Nothing if they do
// already, or if a factor straddles channels and places.
std::optional<ChannelOrder> channel_order(const std::vector<Factor>& factors, std::int32_t channels);

// `x`, [1, h, w, c], with its channels in another order: by the CONV_2D that computes it with its weights in that order
// if nothing else reads x, else by a 1x1 convolution. -1: neither can be.
std::int32_t reordered(ChipGraph& edit, OpList& list, std::int32_t x, const std::vector<std::int32_t>& channels);
// Whether that costs nothing.
bool is_ordered_for_free(const ChipGraph& edit, std::int32_t x);

}  // namespace reef::passes
