// SPDX-License-Identifier: Apache-2.0
// Opcode -> its fields, loop nests, watchers and producers.
#pragma once

#include <span>
#include <string_view>

#include "isa/layout.h"
#include "isa/opcode.h"

namespace reef::isa {

struct Format {
  Opcode opcode;
  std::span<const Field> fields;  // by bit, covering every bit of the instruction once
  std::span<const NestFields> nests;
  std::span<const WatcherFields> watchers;
  std::span<const ProducerFields> producers;
};

const Format& format(Opcode opcode);
inline std::span<const Field> fields(Opcode opcode) { return format(opcode).fields; }
inline std::span<const NestFields> nests(Opcode opcode) { return format(opcode).nests; }
inline std::span<const WatcherFields> watchers(Opcode opcode) { return format(opcode).watchers; }
inline std::span<const ProducerFields> producers(Opcode opcode) { return format(opcode).producers; }

// By full name ("scale", "in.delta_0"); null where the opcode has no such field.
const Field* find_field(Opcode opcode, std::string_view full_name);
// Where the opcode keeps the sequence number of a tile instruction; null for the others.
const Field* sequence_field(Opcode opcode);

}  // namespace reef::isa
