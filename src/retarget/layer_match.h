// SPDX-License-Identifier: Apache-2.0
// Whether a tensor op with parameters in a blob can be a certain layer: number and order of weight lines, kernel
// positions, stride.
#pragma once

#include <cstdint>
#include <string>

#include "formats/darwinn/parameters/layer_parameters.h"
#include "retarget/roles.h"

namespace reef::retarget {

darwinn::Presence presence_of(const OpView& op);

// As stored on the chip: a depthwise layer of one input channel is a convolution. The operator must have layer
// parameters and a weight tensor.
darwinn::LayerShape layer_shape_of(const Network& network, std::int32_t op);

struct LayerFit {
  std::string reason;  // why not; empty: it fits
  darwinn::LayerShape shape;
  darwinn::LoopOrder order;
};
// `start`: first byte of the chunk in its blob.
LayerFit fit_layer(const RoleContext& context, std::int32_t op, darwinn::LayerShape shape, std::uint32_t start);

// Compares kernel shape, dilation and stride with the addresses that the op visits. Returns what differs, or nothing.
std::string check_kernel(const Network& network, std::int32_t op, const OpView& view, const darwinn::LayerShape& shape);

// Compares the padding above and to the left of the first result with what the op reads there.
std::string check_padding(const RoleContext& context, std::int32_t op, const darwinn::LayerShape& shape);

// Compares which tensor each input channel comes from, where the input is put together from several.
std::string check_channels(const RoleContext& context, std::int32_t op, const darwinn::LayerShape& shape);

}  // namespace reef::retarget
