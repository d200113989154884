// SPDX-License-Identifier: Apache-2.0
#include "isa/format.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

#include "isa/scalar.h"
#include "isa/tensor_op.h"

namespace reef::isa {
namespace {

TEST(IsaFormat, FieldsCoverEveryBitOfEveryOpcodeOnce) {
  for (const OpcodeInfo& op : all_opcodes()) {
    int next = 0;
    for (const Field& field : fields(op.opcode)) {
      EXPECT_EQ(field.bit, next) << op.mnemonic << " " << field.full_name();
      EXPECT_GT(field.width, 0);
      EXPECT_LE(field.width, kMaxFieldWidth);
      next = field.end();
    }
    EXPECT_EQ(next, op.rows * kRowBits) << op.mnemonic;
  }
}

TEST(IsaFormat, NamesAreUniqueAndMeaningsAreGiven) {
  for (const OpcodeInfo& op : all_opcodes()) {
    std::set<std::string> names;
    for (const Field& field : fields(op.opcode)) {
      EXPECT_TRUE(names.insert(field.full_name()).second) << op.mnemonic << " has two fields " << field.full_name();
      EXPECT_EQ(find_field(op.opcode, field.full_name()), &field);
      if (field.evidence == Evidence::kUnknown) {
        EXPECT_EQ(field.name, "raw_" + std::to_string(field.bit)) << op.mnemonic;
        EXPECT_EQ(field.kind, Kind::kRaw);
      } else {
        EXPECT_FALSE(field.meaning.empty()) << op.mnemonic << " " << field.full_name();
      }
      EXPECT_EQ(field.usual & ~field.mask(), 0u) << field.full_name();
      if (field.kind == Kind::kFlag) {
        EXPECT_EQ(field.width, 1) << field.full_name();
      }
      if (field.kind == Kind::kMask) {
        EXPECT_EQ(field.values.size(), field.width) << field.full_name();
      }
      if (field.kind == Kind::kTileMask) {
        EXPECT_EQ(field.width, 16) << field.full_name();
      }
      if (field.kind == Kind::kFloat32) {
        EXPECT_EQ(field.width, 32) << field.full_name();
      }
    }
  }
}

TEST(IsaFormat, CompositesPointIntoTheTable) {
  const auto in_table = [](Opcode opcode, const Field& field) {
    const Field* found = find_field(opcode, field.full_name());
    return found != nullptr && *found == field;
  };
  for (const OpcodeInfo& op : all_opcodes()) {
    for (const NestFields& nest : nests(op.opcode)) {
      for (int k = 0; k < nest.dims; ++k) {
        EXPECT_TRUE(in_table(op.opcode, nest.limit[k])) << op.mnemonic << nest.name;
        EXPECT_TRUE(!nest.has_addresses || in_table(op.opcode, nest.delta[k])) << op.mnemonic << nest.name;
      }
      EXPECT_TRUE(in_table(op.opcode, nest.clip_limit) && in_table(op.opcode, nest.clip_dim)) << op.mnemonic;
    }
    for (const WatcherFields& watcher : watchers(op.opcode)) {
      EXPECT_TRUE(in_table(op.opcode, watcher.threshold)) << op.mnemonic;
      EXPECT_LT(watcher.nest[0], nests(op.opcode).size());
      EXPECT_LT(watcher.nest[1], nests(op.opcode).size());
    }
    for (const ProducerFields& producer : producers(op.opcode)) {
      EXPECT_TRUE(in_table(op.opcode, producer.enabled) && in_table(op.opcode, producer.level)) << op.mnemonic;
      EXPECT_LT(producer.nest, nests(op.opcode).size());
    }
  }
}

// Positions that the emulation of whole programs depends on, as anchors against a shift of a whole table.
TEST(IsaFormat, KnownPositions) {
  EXPECT_EQ(tensor_op::kIn.buffer_stride.bit, 516);
  EXPECT_EQ(tensor_op::kOut.base.bit, 574);
  EXPECT_EQ(tensor_op::kParam.clip_limit.bit, 1229);
  EXPECT_EQ(tensor_op::kPsum.clip_limit.bit, 1532);
  EXPECT_EQ(tensor_op::kWatchers[5].enabled.bit, 1578 + 5 * 41 + 40);
  EXPECT_EQ(tensor_op::kScale.bit, 1949);
  EXPECT_EQ(find_field(Opcode::kWideToNarrow, "wait_5.side")->bit, 866);
  EXPECT_EQ(find_field(Opcode::kMeshEast, "wait_5.side")->bit, 726);
  EXPECT_EQ(find_field(Opcode::kPop, "wait_1.enabled")->bit, 391);
  EXPECT_EQ(bundle::kAluOperand.bit, 70);
}

TEST(IsaFormat, OpcodesByCodeAndMnemonic) {
  int known = 0;
  for (unsigned code = 0; code < 70; ++code) {
    const auto opcode = opcode_from_code(code);
    if (!opcode) continue;
    ++known;
    EXPECT_EQ(static_cast<unsigned>(*opcode), code);
    EXPECT_EQ(opcode_from_mnemonic(info(*opcode).mnemonic), opcode);
    EXPECT_EQ(format(*opcode).opcode, *opcode);
  }
  EXPECT_EQ(known, 25);
  EXPECT_FALSE(opcode_from_mnemonic("multiply").has_value());
}

}  // namespace
}  // namespace reef::isa
