// SPDX-License-Identifier: Apache-2.0
#include "partition/cost.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "ops/static_ops.h"
#include "partition/cpu_cost.h"
#include "partition/free_moves.h"

namespace reef::partition {
namespace {

constexpr double kMicrosecondsPerSecond = 1e6;
// Instructions that belong to no operator: input into the tiles, output out of them. From compiled files.
constexpr double kMapInputRows = 165, kRowsPerVectorInput = 0.25, kMostVectorInputRows = 500;
constexpr double kMapOutputRows = 145, kVectorOutputRows = 55, kRowsPerVectorOutput = 0.09;
// Lines of every tile that programs take for lines under way, beside what layers need: with maps, without, and where
// maps are computed in parts. From compiled files.
constexpr std::int64_t kMapScratchLines = 36, kVectorScratchLines = 8, kPartScratchLines = 150;
// Parameters wait in a FIFO: so many can be sent ahead of their use.
constexpr double kAheadBytes = double{chip::kParameterFifoUnits} * chip::kParameterFifoUnitBytes;
// Of a program, that the chip's instruction memory holds at a time.
constexpr std::int64_t kPieceBytes = std::int64_t{chip::kInstructionChunkRows} * chip::kInstructionRowBytes;

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

bool is_vector(const ir::Shape& shape) {
  for (int i = 1; i < std::min(shape.rank(), 3); ++i) {
    if (shape.last(i) > 1) return false;
  }
  return true;
}

// Tensors that cross the link, as instructions.
double input_rows(const ir::Tensor& tensor, double bytes) {
  return is_vector(tensor.shape) ? std::min(kRowsPerVectorInput * bytes, kMostVectorInputRows) : kMapInputRows;
}
double output_rows(const ir::Tensor& tensor, double bytes) {
  if (!is_vector(tensor.shape)) return kMapOutputRows;
  return std::min(kVectorOutputRows + kRowsPerVectorOutput * bytes, 2 * kMapOutputRows);
}

// On its way out, a pixel's channels fill whole words.
std::int64_t padded_bytes(const ir::Tensor& tensor, std::int64_t bytes) {
  if (tensor.shape.rank() == 0 || tensor.shape.last() <= 0 || !ir::is_integer_8(tensor.type)) return bytes;
  const std::int64_t channels = tensor.shape.last();
  return round_up(bytes / channels * round_up(channels, chip::kNarrowWordBytes), chip::kHostAlignmentBytes);
}

// How far a transfer of parameters may be ahead of the operator that uses them: the scalar core asks for them when it
// comes to the operator's instructions, and it is ahead of the tiles by what their queues hold. From simulated times.
constexpr std::int64_t kInstructionBytesAhead = 4096;

// The link and the chip, one operator after the other. The link carries a piece of the program, then inputs, then the
// parameters that the piece asks for, then the next piece.
class Course {
 public:
  Course(const chip::LinkProfile& link, std::vector<std::int64_t> pieces) : link_(link), pieces_(std::move(pieces)) {
    sent_ = link.overhead_us;
    send_piece();
  }

  double now() const { return now_; }
  void send_input(std::int64_t bytes) { wait(send(bytes)); }

  // `streamed`: parameters. Returns how long the chip waits for them.
  double run(double chip_us, std::int64_t instructions, std::int64_t streamed) {
    while (at_ >= sent_instructions_ && next_piece_ < pieces_.size()) send_piece();
    begins_.emplace_back(at_, now_);
    at_ += instructions;
    const double done = now_ + chip_us;
    now_ = done;
    if (streamed == 0) return 0;
    while (begins_.size() > 1 && begins_.front().first < at_ - instructions - kInstructionBytesAhead)
      begins_.pop_front();
    // Nothing is sent before there is room for it, behind what is used up.
    const double begin = done - chip_us, in_time = in_us(static_cast<double>(streamed));
    sent_ = std::max(sent_, begins_.front().second) + in_time;
    sent_ = std::max(sent_, begin + in_time - in_us(kAheadBytes));
    wait(sent_);
    return now_ - done;
  }

 private:
  double in_us(double bytes) const { return bytes * kMicrosecondsPerSecond / link_.in_bytes_per_second; }
  double send(std::int64_t bytes) { return sent_ += in_us(static_cast<double>(bytes)); }
  void wait(double until) { now_ = std::max(now_, until); }
  void send_piece() {
    if (next_piece_ >= pieces_.size()) return wait(sent_);
    sent_instructions_ += pieces_[next_piece_];
    wait(send(pieces_[next_piece_++]));
  }

  const chip::LinkProfile& link_;
  const std::vector<std::int64_t> pieces_;
  std::size_t next_piece_ = 0;
  std::int64_t sent_instructions_ = 0, at_ = 0;         // bytes of the program: on the chip, begun
  std::deque<std::pair<std::int64_t, double>> begins_;  // of operators: where in the program, when
  double sent_ = 0, now_ = 0;                           // microseconds from the call on: of the link, of the chip
};

std::vector<std::int64_t> pieces_of(std::int64_t bytes) {
  std::vector<std::int64_t> pieces;
  for (; bytes > 0; bytes -= pieces.back()) pieces.push_back(std::min(bytes, kPieceBytes));
  return pieces;
}

}  // namespace

CostModel::CostModel(const ir::Model& model, const CostOptions& options) : options_(options) {
  if (options_.link == nullptr) options_.link = chip::link_profiles().data();
  if (model.subgraphs.empty()) return;
  const ops::StaticOps ops(model);
  const HostCpu& host = host_cpu(options_.link->name);
  const std::vector<bool> is_free = moves_of_attention(model);
  for (std::int32_t i = 0; i < ops.count(); ++i) {
    const ops::OpContext context = ops.context(i);
    OpCost cost;
    cost.cpu = cpu_microseconds(context, host);
    const bool has_work = ops.definition(i) != nullptr && !is_free[at(i)];
    const ops::ChipWork work = has_work ? ops::chip_work(context) : ops::ChipWork{};
    cost.chip = (work.tensor_cycles + work.move_cycles) / options_.clock_hz * kMicrosecondsPerSecond;
    cost.parameter_bytes = work.parameter_bytes + work.always_streamed_bytes;
    cost.instruction_bytes = work.instruction_bytes;
    ops_.push_back(cost);
    works_.push_back(work);
  }
  for (const ir::Tensor& tensor : ops.graph().tensors) {
    const std::int64_t bytes = tensor.shape.is_usable() ? ir::byte_size(tensor.shape, tensor.type).value_or(0) : 0;
    tensor_bytes_.push_back(round_up(bytes, chip::kHostAlignmentBytes));
    output_bytes_.push_back(padded_bytes(tensor, bytes));
    const auto size = static_cast<double>(bytes);
    input_instructions_.push_back(static_cast<std::int64_t>(input_rows(tensor, size)) * chip::kInstructionRowBytes);
    output_instructions_.push_back(static_cast<std::int64_t>(output_rows(tensor, size)) * chip::kInstructionRowBytes);
  }
}

double CostModel::in_us(double bytes) const {
  return bytes * kMicrosecondsPerSecond / options_.link->in_bytes_per_second;
}
double CostModel::out_us(double bytes) const {
  return bytes * kMicrosecondsPerSecond / options_.link->out_bytes_per_second;
}

CacheModel CostModel::cache_model(std::span<const std::int32_t> ops) const {
  CacheModel model;
  bool has_maps = false, has_parts = false;
  for (const std::int32_t index : ops) {
    const ops::ChipWork& work = this->work(index);
    CacheLayer layer = CacheLayer::of(work);
    layer.us_per_byte = in_us(work.passes);
    layer.hidden_bytes = static_cast<std::int64_t>(std::min(op(index).chip / layer.us_per_byte, 1e15));
    model.layers.push_back(layer);
    model.scratch_lines = std::max(model.scratch_lines, work.scratch_lines);
    has_maps = has_maps || (work.parameter_bytes > 0 && !work.stays_in_tiles);
    has_parts = has_parts || work.passes > 1;
  }
  model.scratch_lines += has_parts ? kPartScratchLines : has_maps ? kMapScratchLines : kVectorScratchLines;
  return model;
}

CostModel CostModel::with_code(std::vector<PartInCode> parts) const {
  CostModel changed = *this;
  changed.codes_ = std::move(parts);
  for (const PartInCode& part : changed.codes_) {
    for (std::size_t i = 0; i < part.ops.size(); ++i) {
      const OpInCode& code = part.of_op[i];
      const ops::ChipWork& work = this->work(part.ops[i]);
      // Without parameters, the shapes' copies are the code's copies.
      const bool is_counted = work.parameter_bytes + work.always_streamed_bytes == 0;
      double cycles = code.move_cycles;
      if (code.computes) {
        cycles = work.tensor_cycles + (is_counted ? std::max(work.move_cycles, cycles) : work.move_cycles + cycles);
      }
      OpCost& cost = changed.ops_[at(part.ops[i])];
      cost.chip = cycles / options_.clock_hz * kMicrosecondsPerSecond;
      cost.instruction_bytes = code.instruction_bytes;
    }
  }
  return changed;
}

const PartInCode* CostModel::code_of(std::span<const std::int32_t> ops, std::int64_t cache_bytes) const {
  const auto known = std::find_if(codes_.begin(), codes_.end(),
                                  [&](const PartInCode& code) { return std::ranges::equal(code.ops, ops); });
  if (known == codes_.end() || (cache_bytes >= 0 && cache_bytes < known->cache_used)) return nullptr;
  return &*known;
}

// Until the chip is done; what it has computed and waited for is added to `cost`.
double CostModel::run(std::span<const std::int32_t> ops, std::span<const std::int64_t> streamed, const PartInCode* code,
                      PartCost& cost) const {
  Course course(*options_.link, code != nullptr ? code->piece_bytes : pieces_of(cost.instruction_bytes));
  course.send_input(cost.input_bytes);
  if (code != nullptr) course.run(0, code->first_bytes, 0);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const OpCost& one = op(ops[i]);
    cost.compute += one.chip;
    cost.streaming += course.run(one.chip, one.instruction_bytes, streamed[i]);
  }
  return course.now();
}

PartCost CostModel::part(std::span<const std::int32_t> ops, std::span<const std::int32_t> inputs,
                         std::span<const std::int32_t> outputs, std::int64_t cache_bytes) const {
  PartCost cost;
  const PartInCode* code = code_of(ops, cache_bytes);
  std::vector<std::int64_t> streamed(ops.size());
  if (code != nullptr) {
    cost.cached_bytes = code->cached_bytes;
    cost.cache_used = code->cache_used;
    cost.cache_capacity = cache_bytes < 0 ? code->cache_capacity : std::min(code->cache_capacity, cache_bytes);
    cost.input_bytes = code->in_bytes;
    cost.output_bytes = code->out_bytes;
    for (const std::int64_t piece : code->piece_bytes) cost.instruction_bytes += piece;
    for (std::size_t i = 0; i < ops.size(); ++i) streamed[i] = code->of_op[i].streamed_bytes;
    for (const std::int64_t bytes : streamed) cost.streamed_bytes += bytes;
  } else {
    const CacheModel cache = cache_model(ops);
    const std::int64_t limit = cache_bytes < 0 ? -1 : cache_bytes / chip::kWideLineBytes;
    const CacheShare share = share_cache({&cache, 1}, options_.cache_policy, limit)[0];
    cost.cache_used = share.lines * chip::kWideLineBytes;
    cost.cache_capacity = cost.cache_used + share.lines_left * chip::kWideLineBytes;
    for (const std::int32_t tensor : inputs) {
      cost.input_bytes += tensor_bytes(tensor);
      cost.instruction_bytes += input_instructions_[at(tensor)];
    }
    for (const std::int32_t tensor : outputs) {
      cost.output_bytes += output_bytes_[at(tensor)];
      cost.instruction_bytes += output_instructions_[at(tensor)];
    }
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const ops::ChipWork& work = this->work(ops[i]);
      const std::int64_t bytes = work.parameter_bytes - share.cached_bytes[i] + work.always_streamed_bytes;
      cost.instruction_bytes += op(ops[i]).instruction_bytes;
      cost.cached_bytes += share.cached_bytes[i];
      cost.streamed_bytes += bytes;
      streamed[i] = bytes * work.passes;
    }
  }
  const double chip_done = run(ops, streamed, code, cost);
  cost.transfer = chip_done - cost.compute - cost.streaming + out_us(static_cast<double>(cost.output_bytes));
  return cost;
}

}  // namespace reef::partition
