// SPDX-License-Identifier: Apache-2.0
#include "report/documents.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "isa/format.h"

namespace reef::report {
namespace {

TEST(IsaReference, NamesEveryOpcodeAndItsFields) {
  const std::string text = isa_reference();
  for (const isa::OpcodeInfo& op : isa::all_opcodes()) {
    EXPECT_NE(text.find(fmt::format("{:02x} {}", static_cast<unsigned>(op.opcode), op.mnemonic)), std::string::npos)
        << op.mnemonic;
    for (const isa::Field& field : isa::fields(op.opcode)) {
      if (field.group.empty()) {
        EXPECT_NE(text.find(fmt::format("| {}:{} | `{}` |", field.bit, field.width, field.name)), std::string::npos)
            << op.mnemonic << " " << field.full_name();
      } else {
        EXPECT_NE(text.find(std::string(field.group).substr(0, 5)), std::string::npos) << field.full_name();
      }
    }
  }
}

}  // namespace
}  // namespace reef::report
