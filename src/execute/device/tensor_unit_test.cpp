// SPDX-License-Identifier: Apache-2.0
// Random tensor instructions on random memory, some of it unknown: as matrices, step by step, and element by element in
// plain code must leave the same bytes and the same flags behind.
#include "execute/device/tensor_unit.h"

#include <bit>
#include <map>
#include <random>

#include <gtest/gtest.h>

#include "isa/assembler.h"
#include "numeric/chip_tensor.h"

namespace reef::device {
namespace {

using isa::NestShape;
using isa::Opcode;
using isa::TensorOperation;

// ---- Plain code ----

struct Memories {
  NarrowMemory narrow;
  WideMemory wide;
  ScalingMemory scaling;
  numeric::ChipTable table;
};

struct Sum {
  std::int64_t value = 0;
  bool is_known = true;
};

std::int32_t element(const std::uint8_t* bytes, bool is_16, int index) {
  return is_16 ? bytes[2 * index] | bytes[2 * index + 1] << 8 : bytes[index];
}

class PlainTensorUnit {
 public:
  PlainTensorUnit(const TensorOperation& op, Opcode opcode, Memories& memories)
      : op_(op),
        opcode_(opcode),
        m_(memories),
        loops_(op.loops, 0),
        in_(op.in, 0),
        param_(op.param, 0),
        psum_(op.psum, 0),
        out_(op.out, 0) {}

  void run() {
    for (; !loops_.done(); loops_.advance(), in_.advance(), param_.advance(), psum_.advance()) {
      auto& sums = results_[slot()];
      sums.resize(static_cast<std::size_t>(op_.cells));
      for (int c = 0; c < op_.cells; ++c) add(c, sums[reef::at(c)]);
      if (!isa::ends_result(op_, opcode_, loops_, psum_)) continue;
      store(sums);
      results_.erase(slot());
    }
  }

 private:
  std::int64_t slot() const {
    if (op_.group_level >= 0) return 0;
    std::int64_t slot = 0;
    for (int d = 0; d < op_.loops.dims; ++d) {
      if ((op_.reduce_dims >> d & 1) == 0) slot = slot * (std::int64_t{1} << 16) + loops_.index(d);
    }
    return slot;
  }
  int buffer() const { return static_cast<int>(loops_.position() / op_.loops.pass_length(op_.scaling_level) & 1); }

  void add(int cell, Sum& sum) {
    const Line& line = m_.wide.line(param_.address() >> 2);
    const int lane = static_cast<int>(param_.address() & 3);
    std::int32_t zero = op_.param_zero;
    if (op_.has_zero_line) {
      const Line& zeros = m_.wide.line(op_.zero_line + op_.zero_line_step * buffer());
      std::memcpy(&zero, zeros.bytes.data() + 4 * cell, 4);
    }
    const int size = op_.param_16 ? 2 : 1, in_size = op_.in_16 ? 2 : 1;
    const int products = opcode_ == Opcode::kMaximum ? 1 : op_.products;
    for (int j = 0; j < products; ++j) {
      int index = op_.products == 4 ? j : (lane + j) & 3;
      if (opcode_ == Opcode::kMaximum) index = lane;
      if (op_.param_16) index = op_.products == 1 || opcode_ == Opcode::kMaximum ? lane >> 1 : j;
      const std::int64_t w = element(line.bytes.data() + 4 * cell, op_.param_16, index);
      const int byte = 4 * cell + size * index;
      const bool w_known = line.is_known(byte) && line.is_known(byte + size - 1);
      if (opcode_ == Opcode::kMultiplyAdd) {
        const std::int64_t x = element(m_.narrow.bytes() + in_.address(), op_.in_16, j) - op_.in_zero;
        const std::uint8_t* known = m_.narrow.known() + in_.address() + j * in_size;
        const bool x_known = known[0] != 0 && known[in_size - 1] != 0;
        sum.value += x * (w - zero);
        if (!((w_known && x_known) || (w_known && w == zero) || (x_known && x == 0))) sum.is_known = false;
      } else {
        sum.value = opcode_ == Opcode::kSum ? sum.value + w - op_.param_zero : std::max(sum.value, w);
        sum.is_known &= w_known;
      }
    }
  }

  void store(const std::vector<Sum>& sums) {
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(4 * op_.out_words), 0), known(bytes.size(), 1);
    for (int c = 0; c < op_.cells; ++c) {
      const Sum& sum = sums[reef::at(c)];
      auto whole = static_cast<std::int32_t>(static_cast<std::uint64_t>(sum.value));  // sums wrap
      whole = numeric::chip_saturate(std::int64_t{whole} + op_.constant);
      if (op_.has_bias) whole = numeric::chip_saturate(std::int64_t{whole} + m_.scaling.biases(buffer())[c]);
      const float scaled = static_cast<float>(whole) * (op_.has_scales ? m_.scaling.scales(buffer())[c] : op_.scale);
      float value = std::min(std::max(scaled, op_.min), op_.max);
      if (op_.activation) value = m_.table.at(value);
      const std::int32_t number = numeric::chip_round(value, op_.out_zero, op_.out_16 ? 65535 : 255);
      bool is_known = sum.is_known;
      if (op_.has_bias) is_known &= (m_.scaling.known_biases(buffer()) >> c & 1) != 0;
      if (op_.has_scales) is_known &= (m_.scaling.known_scales(buffer()) >> c & 1) != 0;
      const std::size_t size = op_.out_16 ? 2 : 1, at = size * static_cast<std::size_t>(c);
      for (std::size_t i = 0; i < size; ++i) {
        bytes[at + i] = static_cast<std::uint8_t>(number >> 8 * i);
        known[at + i] = is_known ? 1 : 0;
      }
      if (op_.sums_are_results()) {
        Line& line = m_.wide.line(psum_.address() >> 2);
        Line::Flags flags = line.known();
        std::memcpy(line.bytes.data() + 4 * c, &whole, 4);
        std::fill_n(flags.begin() + 4 * c, 4, static_cast<std::uint8_t>(sum.is_known ? 1 : 0));
        line.set_known(flags);
      }
    }
    for (int word = 0; word < op_.out_words; ++word, out_.advance()) {
      m_.narrow.set_bytes(out_.address(), bytes.data() + 4 * word, known.data() + 4 * word, 4);
    }
  }

  const TensorOperation& op_;
  Opcode opcode_;
  Memories& m_;
  isa::NestCursor loops_, in_, param_, psum_, out_;
  std::map<std::int64_t, std::vector<Sum>> results_;
};

// ---- Random instructions ----

constexpr std::int64_t kInputs = 0, kResults = 100'000;                       // bytes of narrow memory
constexpr std::int64_t kParameters = 0, kZeroLines = 1000, kSumLines = 1100;  // lines of wide memory

class RandomInstructions {
 public:
  explicit RandomInstructions(unsigned seed) : random_(seed) {}

  int up_to(int most) { return static_cast<int>(random_() % static_cast<unsigned>(most + 1)); }
  bool one_in(int n) { return up_to(n - 1) == 0; }

  NestShape nest(std::int64_t base, const std::vector<std::int64_t>& counts, int unit, int most_units) {
    NestShape nest;
    nest.base = base;
    nest.dims = static_cast<int>(counts.size());
    nest.pass_lengths[0] = nest.steps = 1;
    for (std::size_t d = 0; d < counts.size(); ++d) {
      nest.count[d] = counts[d];
      nest.stride[d] = one_in(3) ? 0 : static_cast<std::uint64_t>(unit * up_to(most_units));
      nest.pass_lengths[d + 1] = nest.pass_lengths[d] * counts[d];
      nest.steps *= counts[d];
    }
    return nest;
  }

  void add_double_buffer(NestShape& nest, int stride) {
    if (!one_in(3)) return;
    nest.buffer_level = up_to(nest.dims);
    nest.buffer_stride = stride;
  }

  TensorOperation operation(Opcode opcode, bool is_clipped) {
    TensorOperation op;
    std::vector<std::int64_t> counts(static_cast<std::size_t>(1 + up_to(3)));
    for (auto& count : counts) count = 1 + up_to(one_in(4) ? 9 : 3);
    op.in_16 = opcode == Opcode::kMultiplyAdd && one_in(4);
    op.param_16 = one_in(4);
    op.out_16 = one_in(4);
    constexpr std::array<int, 3> kProducts = {1, 2, 4};
    op.products = op.in_16 ? 1 : op.param_16 ? 1 + up_to(1) : kProducts[reef::at(up_to(2))];
    op.cells = one_in(3) ? 4 : one_in(4) ? 64 : 1 + up_to(63);
    op.out_words = (op.cells * (op.out_16 ? 2 : 1) + 3) / 4;
    op.loops = nest(0, counts, 0, 0);
    op.in = nest(kInputs, counts, op.in_16 ? 2 : op.products, 5);
    op.param = nest(4 * kParameters, counts, op.products == 4 ? 4 : 1, 9);
    op.psum = nest(4 * kSumLines, counts, 4, 3);
    if (is_clipped && counts.size() > 1) clip(op);
    add_double_buffer(op.in, 64);
    add_double_buffer(op.param, 40);
    op.scaling_level = up_to(op.loops.dims);
    if (one_in(2)) {
      op.group_level = up_to(op.psum.dims);
    } else {
      op.reduce_dims = static_cast<std::uint32_t>(up_to((1 << counts.size()) - 1));
    }
    set_arithmetic(op);
    op.accumulate_inside = !one_in(4);
    // Results one after the other, the words of each side by side or apart.
    const int apart = one_in(2) ? 4 : 8;
    op.out = nest(kResults, {op.out_words, results_of(op, opcode)}, 0, 0);
    op.out.stride[0] = static_cast<std::uint64_t>(apart);
    op.out.stride[1] = static_cast<std::uint64_t>(apart * op.out_words);
    return op;
  }

  void fill(Memories& m) {
    const int unknown_one_in = one_in(3) ? 1000000 : one_in(2) ? 50 : 2;
    // Many bytes are what zero points are: a product with a known 0 is known.
    const auto byte = [&] { return static_cast<std::uint8_t>(one_in(3) ? 128 : random_()); };
    const auto flag = [&] { return static_cast<std::uint8_t>(one_in(unknown_one_in) ? 0 : 1); };
    for (std::int64_t i = 0; i < 4096; ++i) {
      const std::uint8_t value = byte(), known = flag();
      m.narrow.set_bytes(i, &value, &known, 1);
    }
    for (std::int64_t i = 0; i < kSumLines; ++i) {
      Line& line = m.wide.line(i);
      if (i > 200 && i < kZeroLines) continue;
      for (auto& b : line.bytes) b = byte();
      Line::Flags flags;
      for (auto& f : flags) f = flag();
      line.set_known(flags);
      if (one_in(4)) line.set_known_prefix(4 * up_to(64));
    }
    for (std::int64_t i = kZeroLines; i < kZeroLines + 2; ++i) {
      for (int c = 0; c < kLineWords; ++c) {
        const std::int32_t zero = one_in(2) ? 128 : up_to(255);
        std::memcpy(m.wide.line(i).bytes.data() + 4 * c, &zero, 4);
      }
    }
    for (int step = 0; step < ScalingMemory::kSteps; ++step) {
      std::array<std::int32_t, 2> numbers;
      for (auto& n : numbers) {
        n = step < ScalingMemory::kSteps / 2 ? std::bit_cast<std::int32_t>(0.001f * static_cast<float>(up_to(1000)))
            : one_in(20)                     ? std::numeric_limits<std::int32_t>::min()
                                             : up_to(100000) - 50000;
      }
      std::array<std::uint8_t, 8> known;
      for (auto& f : known) f = flag();
      m.scaling.set_step(step, reinterpret_cast<const std::uint8_t*>(numbers.data()), known.data());
    }
    for (std::size_t s = 0; s < m.table.segments.size(); ++s) {
      for (float& c : m.table.segments[s]) c = 0.01f * static_cast<float>(up_to(200) - 100);
      if (s < m.table.breaks.size()) m.table.breaks[s] = static_cast<float>(s) - 3.0f;
    }
  }

 private:
  void set_arithmetic(TensorOperation& op) {
    op.in_zero = one_in(2) ? 128 : up_to(op.in_16 ? 65535 : 255);
    op.param_zero = one_in(2) ? 128 : up_to(op.param_16 ? 65535 : 255);
    op.out_zero = up_to(255);
    op.has_zero_line = one_in(4);
    op.zero_line = kZeroLines;
    op.zero_line_step = up_to(1);
    op.constant = one_in(2) ? 0 : up_to(2000) - 1000;
    op.has_bias = one_in(2);
    op.has_scales = one_in(2);
    op.activation = one_in(6);
    op.scale = 0.0003f * static_cast<float>(1 + up_to(1000));
    op.min = one_in(2) ? -std::numeric_limits<float>::infinity() : -static_cast<float>(up_to(200));
    op.max = one_in(2) ? std::numeric_limits<float>::infinity() : static_cast<float>(up_to(300));
  }

  // The same clip for all: dimension 0 makes fewer steps at the end of another one, or more.
  void clip(TensorOperation& op) {
    const int dim = 1 + up_to(op.loops.dims - 2);
    const std::int64_t steps = std::max<std::int64_t>(1, op.loops.count[0] + up_to(2) - 1);
    for (NestShape* nest : {&op.loops, &op.in, &op.param, &op.psum}) {
      nest->clip_dim = dim;
      nest->clip_steps = steps;
    }
  }

  static std::int64_t results_of(const TensorOperation& op, Opcode opcode) {
    std::int64_t results = 0;
    isa::NestCursor loops(op.loops, 0), psum(op.psum, 0);
    for (; !loops.done(); loops.advance(), psum.advance()) {
      if (isa::ends_result(op, opcode, loops, psum)) ++results;
    }
    return results;
  }

  std::mt19937 random_;
};

// ---- Comparison ----

Program program_of(const TensorOperation& op, Opcode opcode, bool by_matrices) {
  const auto instructions = isa::assemble(R"(
start
tile_fence tiles=all drain=all
multiply_add tiles=0
  loops x1
  in narrow byte 0: for x1 +4
  out narrow byte 0: for x1 +4
  param wide quarter 0: for x1 +4
  psum wide quarter 0: rep x1
  set psum_group psum_group_level=1 cells=4 last_cells=4
halt code=16
end
)");
  EXPECT_TRUE(instructions.ok()) << instructions.status().message();
  darwinn::Executable executable = darwinn::new_executable(darwinn::ExecutableType::kStandAlone);
  executable.instruction_chunks.emplace_back().bitstream = Bytes(isa::encode(*instructions));
  isa::UnknownList unknown;
  auto program = decode_program(executable, unknown);
  EXPECT_TRUE(program.ok() && unknown.empty()) << program.status().message();
  std::int64_t budget = kMaxPlannedSteps;
  for (std::size_t i = 0; i < program->operations.size(); ++i) {
    if (program->operations[i].opcode != Opcode::kMultiplyAdd) continue;
    program->operations[i].code = op;
    program->operations[i].opcode = opcode;
    program->plans[i] = by_matrices ? plan_tensor(op, opcode, budget) : TensorPlan{};
    break;
  }
  return std::move(*program);
}

void expect_equal(const Memories& expected, const Tile& tile) {
  const std::size_t size = chip::kNarrowBytes;
  EXPECT_EQ(std::memcmp(expected.narrow.known(), tile.narrow.known(), size), 0) << "flags of narrow memory";
  EXPECT_EQ(std::memcmp(expected.narrow.bytes(), tile.narrow.bytes(), size), 0) << "narrow memory";
  for (int i = 0; i < kSumLines + 200; ++i) {
    EXPECT_EQ(expected.wide.line(i).bytes, tile.wide.line(i).bytes) << "line " << i;
    EXPECT_EQ(expected.wide.line(i).known(), tile.wide.line(i).known()) << "flags of line " << i;
  }
}

struct Tally {
  int instructions = 0, regular = 0, unknown = 0;
};

void compare(unsigned seed, Opcode opcode, bool is_clipped, Chip& chip, Tally& tally) {
  RandomInstructions random(seed);
  auto before = std::make_unique<Memories>();
  const TensorOperation op = random.operation(opcode, is_clipped);
  random.fill(*before);
  auto expected = std::make_unique<Memories>(*before);
  PlainTensorUnit(op, opcode, *expected).run();
  for (const bool by_matrices : {false, true}) {
    const Program program = program_of(op, opcode, by_matrices);
    // A program that writes such memory would be far longer than what is tested.
    Tile& tile = const_cast<Tile&>(chip.tile(0));
    tile.narrow = before->narrow;
    tile.wide = before->wide;
    tile.scaling = before->scaling;
    tile.table = before->table;
    HostMemory host;
    const Status status = chip.run(program, host);
    ASSERT_TRUE(status.ok()) << status.message() << ", seed " << seed;
    expect_equal(*expected, tile);
    if (::testing::Test::HasFailure()) FAIL() << "seed " << seed << (by_matrices ? ", by matrices" : ", step by step");
    tally.unknown += by_matrices && !chip.first_unknown().empty();
    for (const TensorPlan& plan : program.plans) tally.regular += plan.is_regular;
  }
  ++tally.instructions;
}

TEST(TensorUnit, MatricesAndStepsEqualPlainCode) {
  Chip chip;
  Tally tally;
  for (unsigned seed = 0; seed < 400 && !HasFailure(); ++seed) compare(seed, Opcode::kMultiplyAdd, false, chip, tally);
  EXPECT_GT(tally.regular, tally.instructions / 2);
  EXPECT_GT(tally.unknown, tally.instructions / 4);
}

TEST(TensorUnit, ClippedNestsEqualPlainCode) {
  Chip chip;
  Tally tally;
  for (unsigned seed = 1000; seed < 1100 && !HasFailure(); ++seed)
    compare(seed, Opcode::kMultiplyAdd, true, chip, tally);
}

TEST(TensorUnit, MaximaAndSumsEqualPlainCode) {
  Chip chip;
  Tally tally;
  for (unsigned seed = 2000; seed < 2100 && !HasFailure(); ++seed) {
    compare(seed, seed % 2 == 0 ? Opcode::kMaximum : Opcode::kSum, seed % 3 == 0, chip, tally);
  }
  EXPECT_GT(tally.unknown, tally.instructions / 4);
}

}  // namespace
}  // namespace reef::device
