// SPDX-License-Identifier: Apache-2.0
// tf.train.Example: features by name, each a row of byte strings, floats or integers
// (tensorflow/core/example/example.proto). Byte strings are slices of the record.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"

namespace reef::tfrecord {

struct Feature {
  enum class Kind { kNone, kBytes, kFloats, kIntegers };
  Kind kind = Kind::kNone;
  std::vector<Bytes> bytes;
  std::vector<float> floats;
  std::vector<std::int64_t> integers;

  std::string describe() const;  // "3 floats"
};

using Example = std::map<std::string, Feature, std::less<>>;
Result<Example> read_example(const Bytes& record);

}  // namespace reef::tfrecord
