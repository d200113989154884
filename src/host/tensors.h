// SPDX-License-Identifier: Apache-2.0
// Tensors as TFLite holds them, and as the chip takes and returns them.
//
// The chip knows only unsigned numbers: the host flips the top bit of every signed element on the way in and out.
// Inputs are padded to the size that the package states. Outputs arrive tile after tile; tables in the package say
// where each element is. The virtual device and the drivers of real devices share this code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "formats/darwinn/package.h"

namespace reef::host {

std::size_t element_bytes(darwinn::DataType type);

// Bytes of a layer's tensor, without padding: y * x * z elements. The largest number where that is too much for one.
std::int64_t tensor_bytes(const darwinn::Layer& layer);

void flip_signs(std::span<std::uint8_t> data, darwinn::DataType type);

// A tensor as the chip takes it: signs flipped, padded with zeros. An error if it has another size than the layer.
Result<std::vector<std::uint8_t>> padded_input(const darwinn::Layer& layer, std::span<const std::uint8_t> tensor);

// The same into memory that may have been used before.
Status fill_input(const darwinn::Layer& layer, std::span<const std::uint8_t> tensor, std::vector<std::uint8_t>& data);

// True: the chip takes the tensor as TFLite holds it, without padding or flipped signs.
bool is_taken_as_it_is(const darwinn::Layer& layer);

// The chip's bytes for an output, in the order of the tensor's elements. Signs are not flipped: the same function
// gathers flags of bytes.
Result<std::vector<std::uint8_t>> gathered(const darwinn::Layer& layer, std::span<const std::uint8_t> buffer);

// The memory that one run of a program takes on the host is bounded, whatever the package says.
Status check_sizes(const darwinn::Executable& executable);

}  // namespace reef::host
