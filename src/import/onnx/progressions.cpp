// SPDX-License-Identifier: Apache-2.0
#include "import/onnx/progressions.h"

namespace reef::import {
namespace {

constexpr std::size_t kMostLevels = 5;

std::int64_t position(const Progressions& pattern, std::int64_t number) {
  std::int64_t at = pattern.first;
  for (std::size_t i = pattern.levels.size(); i-- > 0;) {
    at += number % pattern.levels[i].count * pattern.levels[i].stride;
    number /= pattern.levels[i].count;
  }
  return at;
}

// A box of a tensor: along each dimension `sizes` elements from `begins` on.
struct Box {
  Dims dims, begins, sizes;
};

// Rows [n] seen with so many dimensions that the positions are a box: a level with stride s lies in a dimension whose
// elements are s rows each.
std::optional<Box> box_of(const Progressions& positions, std::int64_t rows) {
  Box box;
  std::int64_t outer = rows, first = positions.first;
  const auto add = [&](std::int64_t stride, std::int64_t count) {
    if (stride <= 0 || outer % stride != 0) return false;
    box.dims.push_back(outer / stride);
    box.begins.push_back(first / stride);
    box.sizes.push_back(count);
    first %= stride;
    outer = stride;
    return box.begins.back() + count <= box.dims.back();
  };
  if (first < 0) return {};
  for (const Progressions::Level& level : positions.levels) {
    if (!add(level.stride, level.count)) return {};
  }
  if (outer > 1 && !add(1, 1)) return {};
  return box;
}

}  // namespace

std::optional<Progressions> progressions_of(std::span<const std::int64_t> positions) {
  if (positions.empty()) return {};
  Progressions found;
  found.first = positions[0];
  for (std::size_t length = 1; length < positions.size();) {
    const std::int64_t stride = positions[length] - positions[0];
    std::size_t count = 1;
    while ((count + 1) * length <= positions.size() &&
           positions[count * length] - positions[(count - 1) * length] == stride) {
      ++count;
    }
    if (count == 1 || found.levels.size() == kMostLevels) return {};
    found.levels.insert(found.levels.begin(), {stride, static_cast<std::int64_t>(count)});
    length *= count;
    if (length > positions.size() || positions.size() % length != 0) return {};
  }
  for (std::size_t i = 0; i < positions.size(); ++i) {
    if (position(found, static_cast<std::int64_t>(i)) != positions[i]) return {};
  }
  return found;
}

std::optional<Id> read_progressions(GraphBuilder& b, Id row, const Progressions& positions) {
  std::vector<Progressions::Level> levels = positions.levels;
  if (levels.empty() || levels.size() > 3) return {};
  if (levels.size() == 1) levels.insert(levels.begin(), {levels[0].count, 1});
  const std::int64_t all = b.elements(row);
  // Whole blocks, one after the other (heads), in each of which the same is read.
  if (levels.size() == 2) levels.insert(levels.begin(), {all, 1});
  const auto [block, blocks] = levels[0];
  const auto [pitch, lines] = levels[1];
  const auto [step, length] = levels[2];
  if (block <= 0 || blocks * block != all || (step != 1 && step != -1) || pitch < length) return {};
  const std::int64_t low = positions.first - (step < 0 ? length - 1 : 0);
  const std::int64_t used = (lines - 1) * pitch + length, wanted = lines * pitch;
  if (low < 0 || low + used > block) return {};
  // Lines that are `pitch` apart are the beginnings of rows of `pitch` elements.
  Id x = reshape(b, row, {blocks, block});
  if (low + wanted <= block) {
    x = slice_axis(b, x, 1, low, wanted);
  } else {
    x = pad_constant(b, slice_axis(b, x, 1, low, used), {0, 0}, {0, wanted - used}, 0);
  }
  x = slice_axis(b, reshape(b, x, {blocks, lines, pitch}), 2, 0, length);
  if (step < 0) x = reverse(b, x, 2);
  return reshape(b, x, {blocks * lines * length});
}

std::optional<Id> write_progressions(GraphBuilder& b, Id rows, const Progressions& positions, Id updates,
                                     std::string_view combine) {
  const std::int64_t width = b.dim(rows, 1);
  std::optional<Box> box = box_of(positions, b.dim(rows, 0));
  if (!box) return {};
  for (Dims* sizes : {&box->dims, &box->sizes}) sizes->push_back(width);
  box->begins.push_back(0);
  const Id data = reshape(b, rows, box->dims);
  Id result = reshape(b, updates, box->sizes);
  if (!combine.empty()) result = binary(b, combine, slice(b, data, box->begins, box->sizes), result);
  // From the last dimension to the first: what lies in front of the box and behind it. Dimensions before are still cut
  // to the box, those behind are whole.
  Dims begins = box->begins, sizes = box->sizes;
  for (std::size_t d = box->dims.size(); d-- > 0;) {
    const std::int64_t end = box->begins[d] + box->sizes[d];
    std::vector<Id> parts;
    const auto add_slice = [&](std::int64_t from, std::int64_t to) {
      if (from == to) return;
      begins[d] = from;
      sizes[d] = to - from;
      parts.push_back(slice(b, data, begins, sizes));
    };
    add_slice(0, box->begins[d]);
    parts.push_back(result);
    add_slice(end, box->dims[d]);
    if (parts.size() > 1) result = concat(b, parts, static_cast<int>(d));
    begins[d] = 0;
    sizes[d] = box->dims[d];
  }
  return reshape(b, result, {b.dim(rows, 0), width});
}

}  // namespace reef::import
