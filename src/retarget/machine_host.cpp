// SPDX-License-Identifier: Apache-2.0
// The queues between host and tiles: infeed, pop, outfeed, and the host's side of them.
#include <algorithm>

#include "retarget/machine.h"

namespace reef::retarget {

namespace {

constexpr std::size_t kMaxSentBytes = std::size_t{1} << 26;     // more than any network's outputs
constexpr std::array<std::int64_t, 3> kUnitBytes = {64, 8, 4};  // parameters, activations, loop-back

// Addresses wrap.
std::int64_t unit_at(const isa::NestCursor& walk, std::int64_t units) {
  return (walk.address() % units + units) % units;
}

bool uses_scratch(const std::vector<HostTransfer>& transfers) {
  return std::any_of(transfers.begin(), transfers.end(), [](const HostTransfer& transfer) {
    return transfer.kind == HostTransfer::Kind::kScratchRead || transfer.kind == HostTransfer::Kind::kScratchWrite;
  });
}

}  // namespace

void Machine::count_host(const isa::Signal& signal, const isa::NestCursor& walk) {
  if (signal.enabled) scalar_counters_[signal.counter] += static_cast<std::uint16_t>(walk.ended(signal.level));
}

bool Machine::start_host(HostUnit unit) {
  HostQueue& queue = host_[unit];
  if (queue.running) return true;
  if (queue.queue.empty()) return false;
  queue.running = std::make_unique<HostRunning>();
  queue.running->instruction = queue.queue.front();
  queue.running->code = &job_->program[queue.queue.front()];
  queue.queue.pop_front();
  const isa::OperationCode& code = queue.running->code->code;
  if (const auto* infeed = std::get_if<isa::Infeed>(&code)) queue.running->walk = isa::NestCursor(infeed->out, 0);
  if (const auto* pop = std::get_if<isa::Pop>(&code)) queue.running->walk = isa::NestCursor(pop->in, 0);
  if (const auto* outfeed = std::get_if<isa::Outfeed>(&code)) queue.running->walk = isa::NestCursor(outfeed->out, 0);
  return true;
}

// Lets the host do the next transfers of its list. Where nothing goes through host scratch memory, inputs do not depend
// on outputs, and the host is taken to be ahead with them.
void Machine::feed_host() {
  const bool ordered = uses_scratch(job_->transfers);
  for (; next_transfer_ < job_->transfers.size(); ++next_transfer_) {
    const HostTransfer& transfer = job_->transfers[next_transfer_];
    const auto bytes = static_cast<std::size_t>(transfer.bytes);
    const auto offset = static_cast<std::size_t>(transfer.offset);
    switch (transfer.kind) {
      case HostTransfer::Kind::kInput:
        activations_.insert(activations_.end(), bytes, make_tag(Origin::kInput, transfer.layer));
        break;
      case HostTransfer::Kind::kScratchRead:
        activations_.insert(activations_.end(), scratch_.begin() + static_cast<std::ptrdiff_t>(offset),
                            scratch_.begin() + static_cast<std::ptrdiff_t>(offset + bytes));
        break;
      case HostTransfer::Kind::kScratchWrite:
      case HostTransfer::Kind::kOutput:
        if (!ordered) break;
        if (sent_.size() - sent_at_ < bytes) return;
        if (transfer.kind == HostTransfer::Kind::kScratchWrite) {
          std::copy_n(sent_.begin() + static_cast<std::ptrdiff_t>(sent_at_), bytes,
                      scratch_.begin() + static_cast<std::ptrdiff_t>(offset));
        }
        sent_at_ += bytes;
        break;
    }
  }
}

Result<bool> Machine::run_infeed() {
  bool moved = false;
  while (start_host(kInfeedUnit)) {
    HostRunning& running = *host_[kInfeedUnit].running;
    const auto& code = std::get<isa::Infeed>(running.code->code);
    const std::size_t which = code.activations ? 1 : 0;
    std::vector<Tag>& buffer = buffers_[which];
    const std::int64_t unit_bytes = kUnitBytes[which];
    const auto units = static_cast<std::int64_t>(buffer.size()) / unit_bytes;
    while (!running.walk.done()) {
      if (!may_step(code.waits, running.walk, scalar_counters_)) return moved;
      if (code.activations && activations_.empty()) feed_host();
      if (code.activations && activations_.empty()) {
        // The list of transfers ends at the loop of a recurrent network: what was sent out last comes back.
        if (job_->transfers_are_complete || last_sent_ == 0) return moved;
        activations_.insert(activations_.end(), static_cast<std::size_t>(unit_bytes), last_sent_);
      }
      if (!code.activations && parameters_fed_ >= job_->parameter_bytes) return moved;
      const std::int64_t at = unit_at(running.walk, units) * unit_bytes;
      for (std::int64_t k = 0; k < unit_bytes; ++k) {
        buffer[static_cast<std::size_t>(at + k)] = next_host_byte(code.activations);
      }
      running.walk.advance();
      count_host(code.signal, running.walk);
      moved = true;
      if (!spend(1)) return moved;
    }
    host_[kInfeedUnit].running.reset();
    moved = true;
  }
  return moved;
}

Tag Machine::next_host_byte(bool activations) {
  if (!activations) {
    const std::int64_t offset = parameters_fed_++;
    return offset < job_->parameter_bytes ? make_tag(job_->parameters, static_cast<std::uint32_t>(offset)) : 0;
  }
  if (activations_.empty()) return 0;
  const Tag tag = activations_.front();
  activations_.pop_front();
  return tag;
}

Result<bool> Machine::run_pop() {
  bool moved = false;
  while (start_host(kPopUnit)) {
    HostRunning& running = *host_[kPopUnit].running;
    const auto& code = std::get<isa::Pop>(running.code->code);
    const auto which = static_cast<std::size_t>(code.source);
    const std::vector<Tag>& buffer = buffers_[which];
    const std::int64_t unit_bytes = kUnitBytes[which];
    const auto units = static_cast<std::int64_t>(buffer.size()) / unit_bytes;
    while (!running.walk.done()) {
      if (!may_step(code.waits, running.walk, scalar_counters_)) return moved;
      const std::int64_t at = unit_at(running.walk, units) * unit_bytes;
      running.buffer.insert(running.buffer.end(), buffer.begin() + at, buffer.begin() + at + unit_bytes);
      running.walk.advance();
      const auto line_bytes = static_cast<std::size_t>(code.line_bytes);
      while (running.buffer.size() >= line_bytes || (running.walk.done() && !running.buffer.empty())) {
        REEF_ASSIGN_OR_RETURN(const std::shared_ptr<Line> line, new_line());
        line->fill(0);
        const auto taken = static_cast<std::ptrdiff_t>(std::min(line_bytes, running.buffer.size()));
        std::copy_n(running.buffer.begin(), taken, line->begin());
        running.buffer.erase(running.buffer.begin(), running.buffer.begin() + taken);
        send_line(code.to_tiles, 0, false, line);
      }
      count_host(code.signal, running.walk);
      if (code.ring_producer.enabled) count_ring(0, running.walk.ended(code.ring_producer.level));
      moved = true;
      if (!spend(1)) return moved;
    }
    host_[kPopUnit].running.reset();
    moved = true;
  }
  return moved;
}

Result<bool> Machine::run_outfeed() {
  bool moved = false;
  while (start_host(kOutfeedUnit)) {
    HostRunning& running = *host_[kOutfeedUnit].running;
    const auto& code = std::get<isa::Outfeed>(running.code->code);
    const auto unit_bytes = static_cast<std::size_t>(code.unit_bytes);
    if (running.walk.position() == 0 && !code.loop_back) sent_marks_.push_back(sent_.size());
    while (!running.walk.done()) {
      if (!may_step(code.waits, running.walk, scalar_counters_)) return moved;
      if (outgoing_bytes_.size() - outgoing_at_ < unit_bytes) {
        if (outgoing_.empty()) return moved;
        outgoing_bytes_.assign(outgoing_.front()->begin(), outgoing_.front()->end());
        outgoing_at_ = 0;
        outgoing_.pop_front();
      }
      const auto first = outgoing_bytes_.begin() + static_cast<std::ptrdiff_t>(outgoing_at_);
      outgoing_at_ += unit_bytes;
      if (code.loop_back) {
        std::vector<Tag>& buffer = buffers_[2];
        const auto units = static_cast<std::int64_t>(buffer.size()) / 4;
        std::copy_n(first, 4, buffer.begin() + unit_at(running.walk, units) * 4);
      } else {
        if (sent_.size() > kMaxSentBytes) {
          return make_error(StatusCode::kResourceExhausted, "more than {} bytes are sent to the host", kMaxSentBytes);
        }
        sent_.insert(sent_.end(), first, first + code.unit_bytes);
        for (std::size_t k = 0; k < unit_bytes; ++k) {
          if (first[static_cast<std::ptrdiff_t>(k)] != 0) last_sent_ = first[static_cast<std::ptrdiff_t>(k)];
        }
      }
      running.walk.advance();
      count_host(code.signal, running.walk);
      moved = true;
      if (!spend(1)) return moved;
    }
    // The rest of the line is padding.
    outgoing_bytes_.clear();
    outgoing_at_ = 0;
    host_[kOutfeedUnit].running.reset();
    moved = true;
  }
  return moved;
}

// Where the host's list has as many bytes as were sent, they belong to the layers in that order. Otherwise the scalar
// core pads each transfer to 8 bytes: it ends at the last outfeed that is less than 8 bytes short of it.
void Machine::attribute_outputs() {
  std::int64_t listed = 0;
  for (const HostTransfer& transfer : job_->transfers) {
    if (transfer.kind == HostTransfer::Kind::kOutput || transfer.kind == HostTransfer::Kind::kScratchWrite) {
      listed += transfer.bytes;
    }
  }
  const bool is_padded = listed != static_cast<std::int64_t>(sent_.size());
  sent_marks_.push_back(sent_.size());
  std::size_t at = 0;
  for (const HostTransfer& transfer : job_->transfers) {
    if (transfer.kind != HostTransfer::Kind::kOutput && transfer.kind != HostTransfer::Kind::kScratchWrite) continue;
    std::size_t end = std::min(at + static_cast<std::size_t>(transfer.bytes), sent_.size());
    if (is_padded) {
      for (const std::size_t mark : sent_marks_) {
        if (mark > at && mark <= end && end - mark < 8) end = mark;
      }
    }
    if (transfer.kind == HostTransfer::Kind::kOutput) {
      outputs_.push_back({transfer.layer, transfer.offset,
                          std::vector<Tag>(sent_.begin() + static_cast<std::ptrdiff_t>(at),
                                           sent_.begin() + static_cast<std::ptrdiff_t>(end))});
    }
    at = end;
  }
}

}  // namespace reef::retarget
