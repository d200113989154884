// SPDX-License-Identifier: Apache-2.0
// Option tables <-> ir::Attributes, by what option_schema.h says about each table.
//
// Reading yields every field of the table in the order of ids, defaults included. Writing leaves out what equals the
// default; missing attributes take it.
#pragma once

#include <flatbuffers/flatbuffers.h>

#include "base/status.h"
#include "formats/tflite/option_schema.h"
#include "formats/tflite/read_context.h"
#include "ir/attributes.h"

namespace reef::tflite {

// `source` must have passed verification as a `table`. Running out of budget shows in context.status().
ir::Attributes read_options(ReadContext& context, const OptionTable& table, const flatbuffers::Table& source);

// Whether all attributes are notes that Reef's rewrites leave for its code generator ("reef_..."), which are never
// written.
bool has_only_notes(const ir::Attributes& attributes);

// Where the table is, as the builder counts. Errors: an attribute that the table does not have, that is of another
// type, or that does not fit.
Result<flatbuffers::uoffset_t> write_options(flatbuffers::FlatBufferBuilder& builder, const OptionTable& table,
                                             const ir::Attributes& attributes);

}  // namespace reef::tflite
