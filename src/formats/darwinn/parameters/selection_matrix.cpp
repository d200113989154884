// SPDX-License-Identifier: Apache-2.0
#include "formats/darwinn/parameters/selection_matrix.h"

#include <algorithm>

namespace reef::darwinn {
namespace {

constexpr std::int32_t kMaxSelected = 4096;
constexpr std::int32_t kMaxSearchedWords = 256;
constexpr std::int32_t kMaxSearchedGroups = 16;  // spreads and aligns of 256 words have 1024 outputs

bool is_every_fourth(const SelectionMatrix& selection, std::int32_t input_stride) {
  if (selection.sources.size() % 4 != 0) return false;
  for (std::size_t i = 0; i < selection.sources.size(); ++i) {
    const std::int32_t expected = i % 4 == 0 ? static_cast<std::int32_t>(i / 4) * input_stride : -1;
    if (selection.sources[i] != expected) return false;
  }
  return true;
}

// Every output has a source, each behind the one before, and no word of the input is left unread.
bool is_gather(const SelectionMatrix& selection) {
  std::int32_t last = -1;
  for (const std::int32_t source : selection.sources) {
    if (source <= last || source / 4 > (last < 0 ? 0 : last / 4 + 1)) return false;
    last = source;
  }
  return last >= 0 && last / 4 == (selection.input_channels - 1) / 4;
}

}  // namespace

SelectionMatrix SelectionMatrix::gather(std::int32_t count, bool has_biases, LayerKind narrow) {
  SelectionMatrix selection;
  selection.kind = count <= 4 ? narrow : LayerKind::kFullyConnected;
  selection.input_channels = 4 * count;
  for (std::int32_t i = 0; i < count; ++i) selection.sources.push_back(4 * i);
  selection.has_biases = has_biases;
  return selection;
}

SelectionMatrix SelectionMatrix::spread(std::int32_t count, bool has_biases) {
  SelectionMatrix selection = align(count, has_biases);
  selection.input_channels = count;
  for (std::int32_t& source : selection.sources) source = source < 0 ? -1 : source / 4;
  return selection;
}

SelectionMatrix SelectionMatrix::align(std::int32_t count, bool has_biases) {
  SelectionMatrix selection;
  selection.kind = count == 1 ? LayerKind::kConvolution : LayerKind::kFullyConnected;
  selection.input_channels = 4 * count;
  for (std::int32_t i = 0; i < count; ++i) selection.sources.insert(selection.sources.end(), {4 * i, -1, -1, -1});
  selection.has_biases = has_biases;
  return selection;
}

std::string describe(const SelectionMatrix& selection) {
  const auto outputs = selection.sources.size();
  std::string what;
  if (is_every_fourth(selection, 4)) {
    what = fmt::format("align {}", outputs / 4);
  } else if (is_every_fourth(selection, 1)) {
    what = fmt::format("spread {}", outputs / 4);
  } else {
    what = fmt::format("gather {}", outputs);
    const bool firsts =
        std::all_of(selection.sources.begin(), selection.sources.end(), [](auto s) { return s % 4 == 0; });
    if (!firsts && outputs <= 8) what += fmt::format(" of inputs {}", fmt::join(selection.sources, ", "));
  }
  return fmt::format("{} ({} -> {}{})", what, selection.input_channels, outputs,
                     selection.has_biases ? ", zero biases" : "");
}

Result<LayerParameters> selection_layer(const SelectionMatrix& selection) {
  REEF_REQUIRE(selection.kind != LayerKind::kDepthwise && selection.input_channels >= 1 &&
                   selection.input_channels <= kMaxSelected && !selection.sources.empty() &&
                   selection.sources.size() <= kMaxSelected,
               "a selection of {} outputs from {} inputs is outside 1..{}", selection.sources.size(),
               selection.input_channels, kMaxSelected);
  LayerParameters layer;
  layer.shape = selection.shape();
  layer.weight_zero_point = 0;
  const auto inputs = static_cast<std::size_t>(selection.input_channels);
  layer.weights.assign(inputs * selection.sources.size(), 0);
  for (std::size_t output = 0; output < selection.sources.size(); ++output) {
    const std::int32_t source = selection.sources[output];
    REEF_REQUIRE(source >= -1 && source < selection.input_channels, "output {} copies input {}, of {}", output, source,
                 selection.input_channels);
    if (source >= 0) layer.weights[output * inputs + static_cast<std::size_t>(source)] = 1;
  }
  if (selection.has_biases) layer.biases.assign(selection.sources.size(), 0);
  return layer;
}

SelectionFinder::SelectionFinder(std::span<const std::uint8_t> blob)
    : rows_(blob.size() / kChunkAlignment), ones_before_{0}, others_before_{0} {
  for (std::size_t row = 0; row < rows_; ++row) {
    std::uint32_t others = 0;
    for (std::size_t i = row * kChunkAlignment; i < (row + 1) * kChunkAlignment; ++i) {
      if (blob[i] == 1) ones_.push_back(i);
      others += blob[i] > 1 ? 1 : 0;
    }
    ones_before_.push_back(ones_.size());
    others_before_.push_back(others_before_.back() + others);
  }
}

// Where the ones stand says which output copies which input; the shape then follows from the kind of selection.
std::optional<SelectionMatrix> SelectionFinder::parse(std::size_t offset, std::size_t size, const Storage& storage,
                                                      std::int32_t words, bool& hopeless) const {
  const std::size_t first = ones_before_[offset / kChunkAlignment];
  const std::size_t last = ones_before_[(offset + size) / kChunkAlignment];
  const std::size_t most = static_cast<std::size_t>(storage.cells * storage.groups);
  hopeless = last - first > most;
  if (first == last || hopeless) return std::nullopt;
  const std::size_t line_bytes = 4 * static_cast<std::size_t>(storage.cells);
  const std::size_t header_bytes = storage.has_biases ? line_bytes : 0;
  const std::size_t group_bytes = header_bytes + static_cast<std::size_t>(words) * line_bytes;
  SelectionMatrix selection{storage.kind, 4 * words, {}, storage.has_biases};
  for (std::size_t i = first; i < last; ++i) {
    const std::size_t at = ones_[i] - offset;
    const std::size_t in_group = at % group_bytes;
    if (in_group < header_bytes || at / group_bytes >= static_cast<std::size_t>(storage.groups)) return std::nullopt;
    const std::size_t output = at / group_bytes * static_cast<std::size_t>(storage.cells) + in_group % line_bytes / 4;
    const auto source = static_cast<std::int32_t>((in_group - header_bytes) / line_bytes * 4 + in_group % 4);
    if (output < selection.sources.size()) {  // sources ascend in all kinds
      hopeless = at < group_bytes;            // more words would leave this one where it is
      return std::nullopt;
    }
    selection.sources.resize(output, -1);
    selection.sources.push_back(source);
  }
  if (is_gather(selection)) return selection;
  selection.sources.resize((selection.sources.size() + 3) / 4 * 4, -1);
  if (is_every_fourth(selection, 4)) return selection;
  selection.input_channels = static_cast<std::int32_t>(selection.sources.size() / 4);
  if (is_every_fourth(selection, 1) && (selection.input_channels + 3) / 4 == words) return selection;
  return std::nullopt;
}

std::optional<SelectionFinder::Found> SelectionFinder::longest_at(std::size_t offset) const {
  const std::size_t first_row = offset / kChunkAlignment;
  if (offset % kChunkAlignment != 0 || first_row >= rows_) return std::nullopt;
  const std::size_t next_one = ones_before_[first_row];
  if (next_one == ones_.size()) return std::nullopt;
  std::optional<Found> best;
  const auto try_storage = [&](const Storage& storage) {
    // Output 0 copies a byte of word 0 in all kinds: that one comes first, right behind the biases.
    const std::size_t first_weight = offset + (storage.has_biases ? 4 * static_cast<std::size_t>(storage.cells) : 0);
    if (ones_[next_one] < first_weight || ones_[next_one] >= first_weight + 4) return;
    for (std::int32_t words = 1; words <= kMaxSearchedWords; ++words) {
      const std::size_t lines = static_cast<std::size_t>(words + (storage.has_biases ? 1 : 0));
      const std::size_t bytes = lines * 4 * static_cast<std::size_t>(storage.cells * storage.groups);
      const std::size_t end_row = first_row + (bytes + kChunkAlignment - 1) / kChunkAlignment;
      if (end_row > rows_ || others_before_[end_row] != others_before_[first_row]) return;
      const std::size_t size = (end_row - first_row) * kChunkAlignment;
      if (best && size <= best->size) continue;
      bool hopeless = false;
      std::optional<SelectionMatrix> selection = parse(offset, size, storage, words, hopeless);
      if (hopeless) return;
      if (!selection || cells_per_line(selection->shape()) != storage.cells) continue;
      const Result<std::size_t> needed = packed_size(selection->shape(), selection->presence());
      if (needed.ok() && *needed == size) best = Found{std::move(*selection), size};
    }
  };
  for (const bool has_biases : {false, true}) {
    try_storage({LayerKind::kConvolution, has_biases, 4, 1});
    for (const std::int32_t cells : {16, 32, 48, 64}) try_storage({LayerKind::kFullyConnected, has_biases, cells, 1});
    for (std::int32_t groups = 2; groups <= kMaxSearchedGroups; ++groups) {
      try_storage({LayerKind::kFullyConnected, has_biases, kCellsPerTile, groups});
    }
  }
  return best;
}

}  // namespace reef::darwinn
