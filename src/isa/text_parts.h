// SPDX-License-Identifier: Apache-2.0
// The statements of an instruction that are more than single fields: loop nests, waits, signals, tables.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "isa/instruction.h"
#include "isa/text_line.h"

namespace reef::isa::text {

// Whether any bit of the nest is set. A nest without is not printed.
bool is_empty(const Instruction& instruction, const NestFields& fields);
// "in     narrow byte 1024: for x16 +4, rep x3, swap +64 each level 1, clip dim 1 to x3 short 52"
std::string print_nest(const Instruction& instruction, const NestFields& fields);
// Reads what follows the nest's name.
Status read_nest(Line& line, Instruction& instruction, const NestFields& fields);

// "wait   AVDATA >= 4 + 1*pass(level 2) on out". `next_slot` is the slot that a wait without a number takes.
std::string print_watcher(const Instruction& instruction, const WatcherFields& fields, int next_slot);
// Reads what follows "wait" and sets next_slot to the slot behind the one that was used.
Status read_watcher(Line& line, Instruction& instruction, int& next_slot);

// "signal AVDATA each level 1"
std::string print_producer(const Instruction& instruction, const ProducerFields& fields);
// A signal names a counter; that the instruction counts this one can only be checked when all of it is known.
struct SignalCheck {
  const ProducerFields* producer = nullptr;
  std::uint32_t counter = 0;
  Place place;
};
Result<SignalCheck> read_producer(Line& line, Instruction& instruction);
Status check_signal(const Instruction& instruction, const SignalCheck& check);

// Scalar fence: "wait   RING_PRODUCER_A >= 4", one line per counter that is compared.
std::vector<std::string> print_compares(const Instruction& instruction);
Status read_compare(Line& line, Instruction& instruction);

// Activation table: "segment 0: 0.5, 0.25, 0, 0, 0" and "breaks -4, ...".
std::vector<std::string> print_table(const Instruction& instruction);
Status read_segment(Line& line, Instruction& instruction);
Status read_breaks(Line& line, Instruction& instruction);

}  // namespace reef::isa::text
