// SPDX-License-Identifier: Apache-2.0
// Recorded cases from a real TFLite runtime (tests/vectors/*.jsonl, written by tools/oracle) and how to replay them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "ir/shape.h"
#include "ops/op_context.h"

namespace reef::testing {

struct RecordedTensor {
  ir::DataType type = ir::DataType::kFloat32;
  ir::Shape shape;
  std::vector<std::byte> data;
};

struct VectorCase {
  std::string name;
  Bytes model;
  int invocations = 1;
  std::vector<RecordedTensor> inputs;                         // one set, or one set per invocation
  std::vector<RecordedTensor> outputs;                        // of the first invocation, then of the second, ...
  double float_tolerance = 0;                                 // |a - b| <= tolerance * max(1, |b|); 0: equal bits
  ops::TfliteRelease release = ops::TfliteRelease::kCurrent;  // which runtime recorded it
  bool runtime_refused = false;                               // the recording runtime returned an error
};

Result<std::vector<VectorCase>> read_vector_file(const std::string& path);

// `elements` elements from ir::fill_pseudo_random; whole models of recorded digests prove that it is the recorder's.
std::vector<std::byte> lcg_fill(ir::DataType type, std::int64_t elements, std::uint32_t seed);

// Replays `vector` on `threads` threads. The status says what differs, or why the model does not run.
Status replay(const VectorCase& vector, int threads);

// Describes the first difference; ok if equal under the case's rule.
Status compare(const RecordedTensor& expected, ir::DataType type, const ir::Shape& shape, const std::byte* data,
               double float_tolerance);

}  // namespace reef::testing
