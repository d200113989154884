// SPDX-License-Identifier: Apache-2.0
// TfIdfVectorizer: how often each of a list of n-grams is in a row of numbers, its elements next to each other or with
// up to max_skip_count others between each two. Every window is compared with every n-gram.
#include <algorithm>

#include "import/onnx/converter.h"

namespace reef::import {
namespace {

constexpr std::int64_t kMostComparisons = std::int64_t{1} << 24;

struct Grams {
  std::int64_t length = 1;
  Dims numbers;  // [count, length]
  std::int64_t count() const { return static_cast<std::int64_t>(numbers.size()) / length; }
};

// The pool holds all n-grams of length 1, then 2 and so on; ngram_counts says where each length starts.
Result<std::vector<Grams>> read_pool(const NodeContext& ctx) {
  const Dims pool = ctx.ints_attribute("pool_int64s"), starts = ctx.ints_attribute("ngram_counts");
  if (pool.empty()) return unsupported("attribute pool_int64s is left out: n-grams of strings are not converted");
  std::vector<Grams> result;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const auto size = static_cast<std::int64_t>(pool.size());
    const std::int64_t begin = starts[i], end = i + 1 < starts.size() ? starts[i + 1] : size;
    Grams grams;
    grams.length = static_cast<std::int64_t>(i) + 1;
    REEF_REQUIRE(begin >= 0 && begin <= end && end <= size && (end - begin) % grams.length == 0,
                 "attribute ngram_counts has {} for n-grams of {}", begin, grams.length);
    grams.numbers.assign(pool.begin() + begin, pool.begin() + end);
    result.push_back(std::move(grams));
  }
  return result;
}

// float32 [rows, grams]: how often they are in x [rows, columns], `gap` elements after each other.
Result<Id> occurrences(GraphBuilder& b, Id x, const Grams& grams, std::int64_t gap) {
  const std::int64_t rows = b.dim(x, 0), windows = b.dim(x, 1) - (grams.length - 1) * gap;
  if (windows <= 0) return b.filled(ir::DataType::kFloat32, shape_from({rows, grams.count()}), 0);
  REEF_REQUIRE(rows * windows <= kMostComparisons / (grams.count() * grams.length),
               "{} windows of {} rows against {} n-grams are too many to compare", windows, rows, grams.count());
  Dims places;
  for (std::int64_t i = 0; i < windows * grams.length; ++i) {
    places.push_back(i / grams.length + i % grams.length * gap);
  }
  const Id elements = gather(b, x, b.ints(places, shape_from({windows, grams.length})), 1);
  const Id wanted = b.ints(grams.numbers, shape_from({1, 1, grams.count(), grams.length}), ir::DataType::kInt64);
  const Id equal = compare(b, Op::EQUAL, reshape(b, elements, {rows, windows, 1, grams.length}), wanted);
  const Id found = reduce(b, Op::REDUCE_ALL, equal, {3}, false);
  return reduce(b, Op::SUM, cast(b, found, ir::DataType::kFloat32), {1}, false);
}

}  // namespace

Status convert_tf_idf_vectorizer(NodeContext& ctx, GraphBuilder& b) {
  const int rank = b.rank(ctx.in(0));
  REEF_REQUIRE(rank == 1 || rank == 2, "the input has {} dimensions; one or two are needed", rank);
  const std::int64_t rows = rank == 2 ? b.dim(ctx.in(0), 0) : 1;
  const Id x = cast(b, reshape(b, ctx.in(0), {rows, b.dim(ctx.in(0), rank - 1)}), ir::DataType::kInt64);
  const std::int64_t shortest = ctx.int_attribute("min_gram_length", 1),
                     longest = ctx.int_attribute("max_gram_length", 1);
  const std::int64_t skips = std::clamp<std::int64_t>(ctx.int_attribute("max_skip_count", 0), 0, b.dim(x, 1));
  const std::string mode = ctx.string_attribute("mode", "TF");
  REEF_REQUIRE(mode == "TF" || mode == "IDF" || mode == "TFIDF", "attribute mode is '{}'", mode);
  REEF_ASSIGN_OR_RETURN(const std::vector<Grams> pool, read_pool(ctx));
  const Dims columns = ctx.ints_attribute("ngram_indexes");
  const std::vector<float> weights = ctx.floats_attribute("weights");
  std::int64_t width = 0, total = 0;
  for (const Grams& grams : pool) total += grams.count();
  for (const std::int64_t column : columns) {
    REEF_REQUIRE(column >= 0 && column < (1 << 24), "attribute ngram_indexes has {}", column);
    width = std::max(width, column + 1);
  }
  REEF_REQUIRE(
      static_cast<std::int64_t>(columns.size()) == total && (weights.empty() || weights.size() == columns.size()),
      "there are {} n-grams, but {} numbers in ngram_indexes and {} in weights", total, columns.size(), weights.size());
  if (total > kMostComparisons / std::max<std::int64_t>(1, width)) {
    return unsupported("{} n-grams for {} columns are too many to convert", total, width);
  }
  std::vector<Id> parts;
  for (const Grams& grams : pool) {
    if (grams.count() == 0) continue;
    Id sum = b.filled(ir::DataType::kFloat32, shape_from({rows, grams.count()}), 0);
    const bool is_wanted = grams.length >= shortest && grams.length <= longest;
    // Single elements have nothing between them.
    for (std::int64_t gap = 1; is_wanted && gap <= (grams.length == 1 ? 1 : skips + 1); ++gap) {
      REEF_ASSIGN_OR_RETURN(const Id found, occurrences(b, x, grams, gap));
      sum = gap == 1 ? found : add(b, sum, found);
    }
    parts.push_back(sum);
  }
  REEF_REQUIRE(!parts.empty(), "the pool of n-grams is empty");
  Id counts = concat(b, parts, 1);
  if (mode == "IDF") counts = minimum(b, counts, b.scalar(ir::DataType::kFloat32, 1));
  // To their columns, weighted.
  std::vector<float> placement(static_cast<std::size_t>(width * total), 0.0f);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const float weight = mode == "TF" || weights.empty() ? 1.0f : weights[i];
    placement[static_cast<std::size_t>(columns[i] * total) + i] = weight;
  }
  const Id result = fully_connected(b, counts, b.floats(placement, shape_from({width, total})), kAbsent);
  return ctx.give({reshape(b, result, rank == 1 ? Dims{width} : Dims{rows, width}), onnx::ElementType::kFloat, {}});
}

}  // namespace reef::import
