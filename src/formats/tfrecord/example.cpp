// SPDX-License-Identifier: Apache-2.0
#include "formats/tfrecord/example.h"

#include <fmt/format.h>

#include "formats/onnx/wire.h"

namespace reef::tfrecord {
namespace {

using onnx::WireReader;

constexpr int kFeatures = 1, kFeatureLists = 2;  // of Example and SequenceExample
constexpr int kEntry = 1, kKey = 1, kValue = 2;  // of a map
constexpr int kBytesList = 1, kFloatList = 2, kInt64List = 3, kItem = 1;
constexpr std::size_t kMostFeatures = 1 << 16;

Status read_feature(WireReader wire, Feature& feature) {
  while (wire.next()) {
    const int list = wire.field();
    if (list != kBytesList && list != kFloatList && list != kInt64List) continue;
    WireReader items = wire.message();
    feature = {};  // of several the last counts
    feature.kind = list == kBytesList   ? Feature::Kind::kBytes
                   : list == kFloatList ? Feature::Kind::kFloats
                                        : Feature::Kind::kIntegers;
    while (items.next()) {
      if (items.field() != kItem) continue;
      if (list == kBytesList) feature.bytes.push_back(items.bytes());
      if (list == kFloatList) items.append_floats(feature.floats);
      if (list == kInt64List) items.append_varints(feature.integers);
    }
    REEF_RETURN_IF_ERROR(items.status());
  }
  return wire.status();
}

}  // namespace

std::string Feature::describe() const {
  switch (kind) {
    case Kind::kBytes:
      return bytes.size() == 1 ? fmt::format("{} bytes", bytes[0].size())
                               : fmt::format("{} byte strings", bytes.size());
    case Kind::kFloats:
      return fmt::format("{} float{}", floats.size(), floats.size() == 1 ? "" : "s");
    case Kind::kIntegers:
      return fmt::format("{} integer{}", integers.size(), integers.size() == 1 ? "" : "s");
    case Kind::kNone:
      break;
  }
  return "nothing";
}

Result<Example> read_example(const Bytes& record) {
  constexpr std::string_view kWhat = "a tf.train.Example";
  Example example;
  WireReader wire(record, 0, kWhat);
  while (wire.next()) {
    REEF_REQUIRE(wire.field() != kFeatureLists,
                 "the record is a tf.train.SequenceExample, which Reef does not read; write tf.train.Example");
    if (wire.field() != kFeatures) continue;
    WireReader features = wire.message();
    while (features.next()) {
      if (features.field() != kEntry) continue;
      WireReader entry = features.message();
      std::string key;
      Feature feature;
      while (entry.next()) {
        if (entry.field() == kKey) key = entry.string();
        if (entry.field() == kValue) REEF_RETURN_IF_ERROR(read_feature(entry.message(), feature));
      }
      REEF_RETURN_IF_ERROR(entry.status());
      REEF_REQUIRE(example.size() < kMostFeatures, "the record has more than {} features", kMostFeatures);
      example[key] = std::move(feature);
    }
    REEF_RETURN_IF_ERROR(features.status());
  }
  REEF_RETURN_IF_ERROR(wire.status());
  return example;
}

}  // namespace reef::tfrecord
