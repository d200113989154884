// SPDX-License-Identifier: Apache-2.0
#include "execute/device/proofs.h"

namespace reef::device {
namespace {

Proofs read_proofs() {
  Proofs proofs;
  proofs.beliefs.resize(beliefs().size());
  [[maybe_unused]] const auto add_belief = [&](std::string_view name, const Notices& notices) {
    for (std::size_t i = 0; i < beliefs().size(); ++i) {
      if (beliefs()[i].name == name) proofs.beliefs[i] = notices;
    }
  };
  [[maybe_unused]] const auto add_field = [&](std::string_view mnemonic, std::string_view name,
                                              const Notices& notices) {
    const auto opcode = isa::opcode_from_mnemonic(mnemonic);
    const isa::Field* field = opcode ? isa::find_field(*opcode, name) : nullptr;
    if (field != nullptr) proofs.fields.push_back({*opcode, field, notices});
  };
#define PROOF_FILES(all, with_source, enough_files, added_files) \
  proofs.files = all;                                            \
  proofs.sources = with_source;                                  \
  proofs.enough = enough_files;                                  \
  proofs.added = added_files;
#define BELIEF_PROOF(name, tried, stopped, wrong, other) add_belief(#name, {tried, stopped, wrong, other});
#define FIELD_PROOF(opcode, field, tried, stopped, wrong, other) \
  add_field(#opcode, field, {tried, stopped, wrong, other});
#include "execute/device/proofs.def"
#undef FIELD_PROOF
#undef BELIEF_PROOF
#undef PROOF_FILES
  return proofs;
}

}  // namespace

const Proofs& proofs() {
  static const Proofs list = read_proofs();
  return list;
}

}  // namespace reef::device
