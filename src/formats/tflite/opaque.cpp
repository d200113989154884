// SPDX-License-Identifier: Apache-2.0
#include "formats/tflite/opaque.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <span>
#include <string_view>

namespace reef::tflite {
namespace {

using Range = std::pair<std::uint64_t, std::uint64_t>;  // [first, second)

// A vtable this close to its table is covered in place; one farther away is copied.
constexpr std::int64_t kNearBytes = 4096;
// Bound on the words looked at for one table, so that overlapping candidates cannot take quadratic time.
constexpr std::uint64_t kMaxWords = 1 << 16;
// Longest vector whose elements are assumed to be 8 bytes wide even if it looks like a string.
constexpr std::uint64_t kShortVector = 64;
constexpr std::uint64_t kAlignment = 16;
constexpr std::string_view kFrameMark = "REEFopq1";
constexpr std::uint64_t kFrameBytes = 16;

struct Frame {
  std::uint32_t bytes = 0;
  std::uint32_t table_offset = 0;
};

Frame read_frame(const Bytes& file, std::uint64_t position) {
  Frame result;
  std::memcpy(&result.bytes, file.data() + position + 8, sizeof result.bytes);
  std::memcpy(&result.table_offset, file.data() + position + 12, sizeof result.table_offset);
  return result;
}

// Does a table that starts at `table_offset` lie in `bytes`, and its vtable too?
bool is_piece(std::span<const std::uint8_t> bytes, std::uint32_t table_offset) {
  // Copied vtables may come on top of the limit.
  if (bytes.size() > 2 * std::uint64_t{kMaxOpaqueBytes} || bytes.size() < std::uint64_t{table_offset} + 4) return false;
  std::int32_t back = 0;
  std::memcpy(&back, bytes.data() + table_offset, sizeof back);
  const std::int64_t vtable = std::int64_t{table_offset} - back;
  return vtable >= 0 && vtable + 4 <= static_cast<std::int64_t>(bytes.size());
}

struct VTable {
  std::uint64_t position = 0;
  std::uint16_t bytes = 0;
  std::uint16_t inline_bytes = 0;  // of the table
};

// One run of cut(). Positions are bytes from the start of the file.
class Scan {
 public:
  Scan(std::span<const std::uint8_t> file, const std::vector<Range>& barriers) : file_(file), barriers_(barriers) {}

  bool run(std::uint64_t root) {
    const std::optional<VTable> vtable = vtable_of(root);
    if (!vtable) return false;
    lo_ = root;
    hi_ = root + vtable->inline_bytes;
    visited_.insert(root);
    add_table(root, *vtable);
    while (!pending_.empty() && words_left_ > 0) {
      const std::uint64_t target = pending_.back();
      pending_.pop_back();
      explore(target);
    }
    if (!pending_.empty()) complete_ = false;
    return true;
  }

  bool complete() const { return complete_; }

  ir::OpaqueTable piece(const Bytes& file, std::uint64_t root) const {
    ir::OpaqueTable result;
    if (relocated_.empty()) {
      result.bytes = file.slice(lo_, hi_ - lo_);
      result.table_offset = static_cast<std::uint32_t>(root - lo_);
      result.alignment_phase = static_cast<std::uint32_t>(lo_ % kAlignment);
      return result;
    }
    std::vector<std::uint8_t> bytes;
    std::vector<std::uint64_t> copied_to;
    for (const auto& [table, vtable] : relocated_) {
      copied_to.push_back(bytes.size());
      bytes.insert(bytes.end(), file_.begin() + static_cast<std::ptrdiff_t>(vtable.position),
                   file_.begin() + static_cast<std::ptrdiff_t>(vtable.position + vtable.bytes));
    }
    const std::uint64_t front = bytes.size();
    bytes.insert(bytes.end(), file_.begin() + static_cast<std::ptrdiff_t>(lo_),
                 file_.begin() + static_cast<std::ptrdiff_t>(hi_));
    for (std::size_t i = 0; i < relocated_.size(); ++i) {
      const std::uint64_t table = relocated_[i].first - lo_ + front;
      const auto back = static_cast<std::int32_t>(table - copied_to[i]);
      std::memcpy(bytes.data() + table, &back, sizeof back);
    }
    result.bytes = Bytes(std::move(bytes));
    result.table_offset = static_cast<std::uint32_t>(root - lo_ + front);
    result.alignment_phase = static_cast<std::uint32_t>((lo_ + kAlignment * front - front) % kAlignment);
    return result;
  }

 private:
  template <typename T>
  T read(std::uint64_t position) const {
    T value;
    std::memcpy(&value, file_.data() + position, sizeof value);
    return value;
  }

  // Inside the file and clear of all barriers.
  bool is_free(std::uint64_t begin, std::uint64_t end) const {
    if (end > file_.size() || begin > end) return false;
    const auto after = std::upper_bound(barriers_.begin(), barriers_.end(), Range{end, 0});
    return after == barriers_.begin() || std::prev(after)->second <= begin || std::prev(after)->first >= end;
  }

  // nullopt unless what is at `position` is well formed as a table.
  std::optional<VTable> vtable_of(std::uint64_t position) const {
    if (position % 4 != 0 || position + 4 > file_.size()) return std::nullopt;
    const std::int64_t at = static_cast<std::int64_t>(position) - read<std::int32_t>(position);
    if (at < 0 || at % 2 != 0 || at + 4 > static_cast<std::int64_t>(file_.size())) return std::nullopt;
    VTable result;
    result.position = static_cast<std::uint64_t>(at);
    result.bytes = read<std::uint16_t>(result.position);
    result.inline_bytes = read<std::uint16_t>(result.position + 2);
    if (result.bytes < 4 || result.bytes % 2 != 0 || result.inline_bytes < 4) return std::nullopt;
    if (result.position + result.bytes > file_.size()) return std::nullopt;
    if (!is_free(position, position + result.inline_bytes)) return std::nullopt;
    for (std::uint16_t entry = 4; entry < result.bytes; entry += 2) {
      const auto field = read<std::uint16_t>(result.position + entry);
      if (field != 0 && (field < 4 || field >= result.inline_bytes)) return std::nullopt;
    }
    return result;
  }

  bool is_string(std::uint64_t position) const {
    const std::uint64_t end = position + 4 + read<std::uint32_t>(position);
    return is_free(position, end + 1) && file_[end] == 0;
  }

  // Extends the piece unless it would become too large.
  bool include(std::uint64_t begin, std::uint64_t end) {
    const std::uint64_t lo = std::min(lo_, begin);
    const std::uint64_t hi = std::max(hi_, end);
    if (hi - lo > kMaxOpaqueBytes) return false;
    lo_ = lo;
    hi_ = hi;
    return true;
  }

  void add_table(std::uint64_t position, const VTable& vtable) {
    if (!include(position, position + vtable.inline_bytes)) {
      complete_ = false;
      return;
    }
    const std::int64_t distance = static_cast<std::int64_t>(position) - static_cast<std::int64_t>(vtable.position);
    const bool near = distance <= kNearBytes && distance >= -kNearBytes;
    if (!near || !include(vtable.position, vtable.position + vtable.bytes)) relocated_.emplace_back(position, vtable);

    std::vector<std::uint16_t> fields;
    for (std::uint16_t entry = 4; entry < vtable.bytes; entry += 2) {
      const auto field = read<std::uint16_t>(vtable.position + entry);
      if (field != 0) fields.push_back(field);
    }
    std::sort(fields.begin(), fields.end());
    fields.push_back(vtable.inline_bytes);
    for (std::size_t i = 0; i + 1 < fields.size(); ++i) {
      if (fields[i + 1] - fields[i] < 4) continue;  // too narrow for an offset
      if (const auto target = target_of(position + fields[i])) add_pending(*target);
    }
  }

  // Where the word at `position` points if it is an offset to something.
  std::optional<std::uint64_t> target_of(std::uint64_t position) {
    if (position % 4 != 0 || words_left_ == 0) return std::nullopt;
    --words_left_;
    const std::uint64_t target = position + read<std::uint32_t>(position);
    if (target < position + 4 || target % 4 != 0 || !is_free(target, target + 4)) return std::nullopt;
    return target;
  }

  void add_pending(std::uint64_t target) {
    if (visited_.insert(target).second) pending_.push_back(target);
  }

  void explore(std::uint64_t target) {
    const std::optional<VTable> vtable = vtable_of(target);
    if (vtable) add_table(target, *vtable);
    add_vector(target, !vtable);
  }

  void add_vector(std::uint64_t position, bool may_hold_offsets) {
    const std::uint64_t count = read<std::uint32_t>(position);
    bool too_large = false;
    // A long vector that reads like a string is one; otherwise the widest elements that fit are assumed.
    const std::uint64_t widest = count > kShortVector && is_string(position) ? 1 : 8;
    for (std::uint64_t width = widest; width > 0; width /= 2) {
      const std::uint64_t end = position + 4 + count * width + (width == 1 ? 1 : 0);
      if (!is_free(position, end)) continue;
      if (include(position, end)) {
        if (width >= 4 && may_hold_offsets) add_offsets(position + 4, count);
        return;
      }
      too_large = true;
    }
    if (too_large) {
      complete_ = false;
    } else if (is_free(position, position + 4 + count)) {
      include(position, position + 4 + count);  // bytes up to the very end of the file
    }
  }

  // If each of the words is an offset to a table or a string, follows them all.
  void add_offsets(std::uint64_t begin, std::uint64_t count) {
    std::vector<std::uint64_t> targets;
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto target = target_of(begin + 4 * i);
      if (!target || !(vtable_of(*target) || is_string(*target))) return;
      targets.push_back(*target);
    }
    for (const std::uint64_t target : targets) add_pending(target);
  }

  std::span<const std::uint8_t> file_;
  const std::vector<Range>& barriers_;
  std::uint64_t lo_ = 0, hi_ = 0;
  std::set<std::uint64_t> visited_;
  std::vector<std::uint64_t> pending_;
  std::vector<std::pair<std::uint64_t, VTable>> relocated_;  // tables whose vtables are copied
  std::uint64_t words_left_ = kMaxWords;
  bool complete_ = true;
};

}  // namespace

void OpaqueFinder::add_barrier(std::uint64_t begin, std::uint64_t end) {
  if (begin < end) barriers_.emplace_back(begin, end);
}

void OpaqueFinder::prepare(const Bytes& file) {
  // Overlapping barriers become one, so that a binary search for the last one before a position is enough.
  std::sort(barriers_.begin(), barriers_.end());
  std::vector<Range> merged;
  for (const Range& barrier : barriers_) {
    if (!merged.empty() && barrier.first <= merged.back().second) {
      merged.back().second = std::max(merged.back().second, barrier.second);
    } else {
      merged.push_back(barrier);
    }
  }
  barriers_ = std::move(merged);

  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  for (std::size_t at = text.find(kFrameMark); at != text.npos; at = text.find(kFrameMark, at + kFrameMark.size())) {
    if (text.size() - at < kFrameBytes) break;
    const Frame frame = read_frame(file, at);
    const std::uint64_t start = at + kFrameBytes;
    if (frame.bytes > text.size() - start) continue;
    const std::uint64_t table = start + frame.table_offset;
    if (!is_piece(file.span().subspan(start, frame.bytes), frame.table_offset) || table % 4 != 0) continue;
    frames_.emplace_back(static_cast<std::uint32_t>(table), static_cast<std::uint32_t>(start));
  }
  std::sort(frames_.begin(), frames_.end());
  prepared_ = true;
}

Result<OpaquePiece> OpaqueFinder::cut(const Bytes& file, std::uint64_t position, int union_type) {
  if (!prepared_) prepare(file);
  const auto framed =
      std::lower_bound(frames_.begin(), frames_.end(), std::pair{static_cast<std::uint32_t>(position), 0u});
  if (framed != frames_.end() && framed->first == position) {
    const std::uint64_t start = framed->second;
    const Frame frame = read_frame(file, start - kFrameBytes);
    return OpaquePiece{{union_type, file.slice(start, frame.bytes), frame.table_offset,
                        static_cast<std::uint32_t>(start % kAlignment)},
                       true};
  }
  Scan scan(file.span(), barriers_);
  REEF_REQUIRE(scan.run(position), "the table at byte {}, of a type newer than this version knows ({}), is damaged",
               position, union_type);
  OpaquePiece result{scan.piece(file, position), scan.complete()};
  result.table.union_type = union_type;
  return result;
}

Result<flatbuffers::uoffset_t> put_opaque(flatbuffers::FlatBufferBuilder& builder, const ir::OpaqueTable& table) {
  REEF_REQUIRE(is_piece(table.bytes.span(), table.table_offset) && table.alignment_phase < kAlignment &&
                   (table.alignment_phase + table.table_offset) % 4 == 0,
               "the {} bytes of an opaque table do not hold a table at byte {}", table.bytes.size(),
               table.table_offset);
  // Addresses count from the end, and the finished size is a multiple of 16: byte 0 of the piece ends up at
  // -(size after pushing) modulo 16.
  builder.TrackMinAlign(kAlignment);
  const std::uint64_t end = std::uint64_t{builder.GetSize()} + table.bytes.size() + table.alignment_phase;
  builder.Pad((kAlignment - end % kAlignment) % kAlignment);
  builder.PushBytes(table.bytes.data(), table.bytes.size());
  const flatbuffers::uoffset_t start = builder.GetSize();
  const auto bytes = static_cast<std::uint32_t>(table.bytes.size());
  builder.PushBytes(reinterpret_cast<const std::uint8_t*>(&table.table_offset), sizeof table.table_offset);
  builder.PushBytes(reinterpret_cast<const std::uint8_t*>(&bytes), sizeof bytes);
  builder.PushBytes(reinterpret_cast<const std::uint8_t*>(kFrameMark.data()), kFrameMark.size());
  return start - table.table_offset;
}

}  // namespace reef::tflite
