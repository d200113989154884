// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "data/flow_plan.h"

namespace reef::data {
namespace {

// The sample as one row: its pixels, or its values.
struct Row {
  ir::DataType type = ir::DataType::kUInt8;
  std::vector<std::int64_t> shape;  // without the batch dimension
  std::span<const std::uint8_t> bytes;
};

Result<Row> row_of(const FlowSample& sample) {
  if (sample.picture.width > 0) {
    return Row{ir::DataType::kUInt8,
               {sample.picture.height, sample.picture.width, sample.picture.channels},
               sample.picture.samples};
  }
  REEF_REQUIRE(sample.file.empty() && !sample.values.shape.empty(), "it is not decoded");
  return Row{
      sample.values.type, {sample.values.shape.begin() + 1, sample.values.shape.end()}, sample.values.data.span()};
}

// Row i becomes share * row i + (1 - share) * row (i + by), of 8-bit numbers.
std::vector<std::uint8_t> mixed_rows(const std::vector<std::uint8_t>& rows, std::size_t count, std::size_t by,
                                     double share) {
  std::vector<std::uint8_t> result(rows.size());
  const std::size_t bytes = rows.size() / count;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint8_t *const own = rows.data() + i * bytes, *const other = rows.data() + (i + by) % count * bytes;
    for (std::size_t k = 0; k < bytes; ++k)
      result[i * bytes + k] = static_cast<std::uint8_t>(std::floor(share * own[k] + (1 - share) * other[k] + 0.5));
  }
  return result;
}

}  // namespace

Result<Batch> make_batch(std::vector<FlowSample> samples, double mixup, const VariationKey& key) {
  Batch batch;
  REEF_ASSIGN_OR_RETURN(const Row first, row_of(samples[0]));
  std::vector<std::uint8_t> bytes;
  bytes.reserve(first.bytes.size() * samples.size());
  for (FlowSample& sample : samples) {
    REEF_ASSIGN_OR_RETURN(const Row row, row_of(sample));
    REEF_REQUIRE(row.type == first.type && row.shape == first.shape,
                 "samples of a batch must be alike, but sample {} is {} and sample {} is {}; resize them, or use "
                 "batches of one",
                 samples[0].number, numpy::Array{first.type, first.shape, {}}.describe(), sample.number,
                 numpy::Array{row.type, row.shape, {}}.describe());
    bytes.insert(bytes.end(), row.bytes.begin(), row.bytes.end());
    batch.numbers.push_back(sample.number);
    batch.truths.push_back(sample.truth);
  }
  const std::size_t count = samples.size();
  if (mixup > 0 && count > 1) {
    REEF_REQUIRE(first.type == ir::DataType::kUInt8, "mixup needs pictures");
    KeyedRandom random(key);
    const double drawn = random.beta(mixup);
    batch.share = std::max(drawn, 1 - drawn);
    const auto by = static_cast<std::size_t>(1 + random.below(static_cast<std::int64_t>(count) - 1));
    bytes = mixed_rows(bytes, count, by, batch.share);
    for (std::size_t i = 0; i < count; ++i) batch.mixed_with.push_back(static_cast<std::int64_t>((i + by) % count));
  }
  batch.samples = {first.type, first.shape, Bytes(std::move(bytes))};
  batch.samples.shape.insert(batch.samples.shape.begin(), static_cast<std::int64_t>(count));
  return batch;
}

}  // namespace reef::data
