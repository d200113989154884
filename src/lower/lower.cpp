// SPDX-License-Identifier: Apache-2.0
#include "lower/lower.h"

#include <fmt/format.h>

#include "lower/builder.h"
#include "lower/part_lowering.h"
#include "lower/rearrangement_cache.h"

namespace reef::lower {
namespace {

Result<tiled::TiledProgram> lower_part(Builder& builder, const PartBorder& part, const LowerOptions& options,
                                       std::vector<RefusedOp>& refused) {
  PartLowering lowering(builder, part, options);
  const Status lowered = lowering.lower();
  refused = lowering.take_refused();
  REEF_RETURN_IF_ERROR(lowered);
  std::int32_t at = -1;
  auto program = std::move(builder).finish(at);
  if (!program.ok() && at >= 0) {
    if (program.status().code() == StatusCode::kUnsupported) refused.push_back({at, program.status().message()});
    return program.status().in(fmt::format("op {} {}", at, builder.op(at).type));
  }
  return program;
}

}  // namespace

Result<tiled::TiledProgram> lower(const ir::Model& model, const std::vector<std::int32_t>& ops,
                                  const std::vector<std::int32_t>& inputs, const std::vector<std::int32_t>& outputs,
                                  const LowerOptions& options) {
  Builder builder(model, ops);
  builder.program().level = options.level;
  builder.set_lstm_arguments(options.lstm_arguments);
  builder.set_sketch(options.sketch, options.sizes);
  builder.set_patches(options.patches);
  RearrangementCache own;
  builder.set_movements(options.movements != nullptr ? options.movements : &own);
  std::vector<RefusedOp> refused;
  auto program = lower_part(builder, {model, ops, inputs, outputs}, options, refused);
  if (options.refused != nullptr) *options.refused = std::move(refused);
  return program;
}

}  // namespace reef::lower
