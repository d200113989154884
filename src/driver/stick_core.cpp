// SPDX-License-Identifier: Apache-2.0
#include "driver/stick_core.h"

#include <algorithm>
#include <limits>

#include "driver/model.h"

namespace reef::driver {
namespace {

constexpr std::size_t kInstructionFifo = 28672;
// By tag; instructions are counted with their chunks.
constexpr std::array<std::size_t, 3> kCapacity = {0, 32768, 49152};
constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();
constexpr std::size_t kMaxUnclaimedBytes = 1 << 24;
constexpr std::size_t kMostEvents = 1 << 16;
constexpr std::size_t kMostChunkBytes = 1 << 28;  // what a header may announce before the core gives up

std::size_t index_of(device::Purpose stream) { return static_cast<std::size_t>(stream); }

}  // namespace

void StickCore::Fifo::append(std::span<const std::uint8_t> more) {
  if (from == bytes.size()) {
    bytes.clear();
    from = 0;
  }
  bytes.insert(bytes.end(), more.begin(), more.end());
}

void StickCore::Fifo::take(std::uint8_t* to, std::size_t count) {
  std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(from), count, to);
  from += count;
}

void StickCore::power_cycle() {
  runner_.power_cycle();
  is_running_ = false;
  reported_tags_ = 0;
  output_chunk_ = 1024;
  chunks_.clear();
  fifos_ = {};
  asked_ = {};
  outputs_.clear();
  unclaimed_.clear();
  events_.clear();
  diagnosis_.clear();
  has_new_failure_ = false;
}

bool StickCore::core_is_free() const { return is_running_ && diagnosis_.empty() && runner_.is_free(); }

std::size_t StickCore::instruction_room() const {
  if (!is_strict_ || (core_is_free() && chunks_.size() <= 1)) return kNoLimit;
  std::size_t waiting = 0;
  for (const Chunk& chunk : chunks_) waiting += chunk.bytes.size();
  return waiting >= kInstructionFifo ? 0 : kInstructionFifo - waiting;
}

void StickCore::begin_piece(std::uint8_t tag, std::size_t bytes) {
  if (tag == static_cast<std::uint8_t>(Tag::kInstructions)) {
    chunks_.emplace_back().length = bytes;
    if (bytes > kMostChunkBytes) fail(invalid_input("a chunk of {} bytes of instructions is announced", bytes));
  }
  if (tag > static_cast<std::uint8_t>(Tag::kParameters)) {
    fail(invalid_input("{} bytes with tag {} are announced, which the chip does not take", bytes, tag));
  }
}

std::size_t StickCore::accept(std::uint8_t tag, std::span<const std::uint8_t> bytes) {
  if (tag > static_cast<std::uint8_t>(Tag::kParameters)) return bytes.size();  // nobody wants them
  if (tag == static_cast<std::uint8_t>(Tag::kInstructions)) {
    if (chunks_.empty()) return bytes.size();
    Chunk& chunk = chunks_.back();
    const std::size_t part =
        std::min({bytes.size(), instruction_room(), chunk.length - std::min(chunk.length, chunk.bytes.size())});
    chunk.bytes.insert(chunk.bytes.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(part));
    return part;
  }
  Fifo& fifo = fifos_[tag];
  const std::size_t room = is_strict_ ? kCapacity[tag] - std::min(kCapacity[tag], fifo.size()) : kNoLimit;
  const std::size_t part = std::min(bytes.size(), room);
  fifo.append(bytes.first(part));
  return part;
}

bool StickCore::start_chunk() {
  if (!core_is_free() || chunks_.empty() || chunks_.front().bytes.size() < chunks_.front().length) return false;
  const std::vector<std::uint8_t> bytes = std::move(chunks_.front().bytes);
  chunks_.pop_front();
  if (const Status status = runner_.start(bytes, *this); !status.ok()) {
    fail(status);
    return false;
  }
  return true;
}

void StickCore::advance() {
  do {
    if (!is_running_ || !diagnosis_.empty()) return;
    if (const Status status = runner_.advance(); !status.ok()) fail(status);
  } while (start_chunk());
}

void StickCore::fail(const Status& status) {
  if (!diagnosis_.empty()) return;
  diagnosis_ = status.message();
  has_new_failure_ = true;
}

// ---- The chip's side ----

Status StickCore::issue(std::uint64_t address, std::uint64_t bytes, std::uint32_t tag) {
  REEF_REQUIRE(tag >= 1 && tag < static_cast<std::uint32_t>(Tag::kInterrupt0) + kInterrupts,
               "a transfer with unknown tag {}", tag);
  REEF_REQUIRE(bytes <= std::numeric_limits<std::uint32_t>::max(), "a transfer of {} bytes", bytes);
  if (tag <= static_cast<std::uint32_t>(Tag::kParameters)) {
    asked_[tag] += bytes;
  } else if (tag == static_cast<std::uint32_t>(Tag::kOutput)) {
    outputs_.emplace_back().missing = bytes;
    claim();
  } else {
    runner_.interrupted();
  }
  if ((reported_tags_ >> tag & 1) == 0) return ok_status();
  REEF_REQUIRE(events_.size() < kMostEvents, "nobody reads events");
  std::array<std::uint8_t, 16> event{};
  for (std::size_t i = 0; i < 8; ++i) event[i] = static_cast<std::uint8_t>(address >> (8 * i));
  for (std::size_t i = 0; i < 4; ++i) event[8 + i] = static_cast<std::uint8_t>(bytes >> (8 * i));
  event[12] = static_cast<std::uint8_t>(tag);
  events_.push_back(event);
  return ok_status();
}

std::size_t StickCore::available(device::Purpose stream) {
  const std::size_t tag = index_of(stream);
  return static_cast<std::size_t>(std::min<std::uint64_t>(asked_[tag], fifos_[tag].size()));
}

void StickCore::take(device::Purpose stream, std::uint8_t* to, std::uint8_t* known, std::size_t bytes) {
  const std::size_t tag = index_of(stream);
  fifos_[tag].take(to, bytes);
  asked_[tag] -= bytes;
  std::fill_n(known, bytes, std::uint8_t{1});
}

// The link cannot tell bytes that depend on unknown memory from others: it sends them, too.
bool StickCore::put(const std::uint8_t* data, const std::uint8_t* /*known*/, std::size_t bytes) {
  pushed_ += bytes;
  unclaimed_.insert(unclaimed_.end(), data, data + bytes);
  claim();
  return unclaimed_.size() <= kMaxUnclaimedBytes;
}

void StickCore::claim() {
  std::size_t from = 0;
  for (Output& output : outputs_) {
    const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(output.missing, unclaimed_.size() - from));
    output.bytes.append(std::span(unclaimed_).subspan(from, part));
    output.missing -= part;
    from += part;
    if (output.missing > 0) break;
  }
  unclaimed_.erase(unclaimed_.begin(), unclaimed_.begin() + static_cast<std::ptrdiff_t>(from));
}

std::string StickCore::left_over() const {
  if (!unclaimed_.empty()) return fmt::format("{} bytes were sent that nobody asked for", unclaimed_.size());
  for (const Output& output : outputs_) {
    if (output.missing > 0) return fmt::format("{} bytes of output were promised and not sent", output.missing);
  }
  for (std::size_t tag = 1; tag < asked_.size(); ++tag) {
    if (asked_[tag] != 0) return fmt::format("{} bytes with tag {} were asked for and not taken", asked_[tag], tag);
  }
  return "";
}

// ---- The link's side ----

std::optional<std::size_t> StickCore::read_output(std::span<std::uint8_t> to, std::size_t packet) {
  while (!outputs_.empty() && outputs_.front().missing == 0 && outputs_.front().bytes.size() == 0) {
    outputs_.pop_front();
  }
  if (outputs_.empty()) return std::nullopt;
  Output& output = outputs_.front();
  const auto next = static_cast<std::size_t>(
      std::min<std::uint64_t>(std::min(output_chunk_, packet), output.bytes.size() + output.missing));
  if (to.size() < next) {
    if (output.bytes.size() < next) return std::nullopt;
    output.bytes.drop(next);
    return next;
  }
  const std::size_t whole = std::min(to.size(), output_chunk_);
  if (output.bytes.size() < whole && output.missing > 0) return std::nullopt;
  const std::size_t part = std::min(whole, output.bytes.size());
  output.bytes.take(to.data(), part);
  return part;
}

std::optional<std::array<std::uint8_t, 16>> StickCore::next_event() {
  if (events_.empty()) return std::nullopt;
  const auto event = events_.front();
  events_.pop_front();
  return event;
}

}  // namespace reef::driver
