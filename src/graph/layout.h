// SPDX-License-Identifier: Apache-2.0
// Layouts: a tensor with its axes in another order, with axes of size 1 added or left out.
//
// Axis i of the other form is axis layout[i] of the tensor, or a new axis of size 1 where that is kNewAxis. Axes that
// are left out must have size 1. TRANSPOSE and those RESHAPEs that only touch axes of size 1 are layouts; two are the
// same to a tensor if they give the same shape and the same order of axes larger than 1.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/shape.h"

namespace reef::graph {

inline constexpr int kNewAxis = -1;
using Layout = std::vector<int>;

Layout identity_layout(int rank);
ir::Shape laid_out(const ir::Shape& shape, const Layout& layout);
// From the other form back to a tensor of this rank.
Layout inverse(const Layout& layout, int rank);
// First `first`, then `second` of what that gives.
Layout compose(const Layout& first, const Layout& second);
bool is_same(const Layout& a, const Layout& b, const ir::Shape& shape);
bool is_identity(const Layout& layout, const ir::Shape& shape);
// Elements change places: axes larger than 1 come in another order.
bool moves_elements(const Layout& layout, const ir::Shape& shape);
// The layout is one of tensors of this shape: axes are there, none comes twice, those left out have size 1.
bool fits_shape(const Layout& layout, const ir::Shape& shape);
// Where an axis of the tensor is in the other form; kNewAxis: nowhere.
int position_of(int axis, const Layout& layout);

// What bringing a tensor of this shape into a layout costs, in elements moved; an operator as such counts too, so that
// fewer are better. 0 for the identity.
std::int64_t conversion_cost(const Layout& layout, const ir::Shape& shape);

}  // namespace reef::graph
