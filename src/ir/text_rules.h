// SPDX-License-Identifier: Apache-2.0
// Rules of the text form's grammar that are used by the rules above them. Each takes its part of the text from the
// cursor; docs/formats/ir_text.md says what that part looks like.
#pragma once

#include <optional>

#include "ir/model.h"
#include "ir/text_cursor.h"

namespace reef::ir::text {

// Content of a constant: hex"...", "..." or, with a type, [1, 2, 3].
Result<Bytes> parse_data(Cursor& cursor, std::optional<DataType> type);

// (union_type=..., ...), behind the word "opaque".
Status parse_opaque(Cursor& cursor, OpaqueTable& table);

// int8[1, 2]
Status parse_typed_shape(Cursor& cursor, DataType& type, std::vector<std::int32_t>& dims);

// Parse what follows the words "quant" and "sparse".
Status parse_quantization(Cursor& cursor, Tensor& tensor);
Status parse_sparsity(Cursor& cursor, Sparsity& sparsity);

// From the op's type on; outputs stand before that.
Status parse_operator(Cursor& cursor, Operator& op);

}  // namespace reef::ir::text
