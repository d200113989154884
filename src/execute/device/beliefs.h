// SPDX-License-Identifier: Apache-2.0
// The statements about the chip that the device relies on, as a list, so that each can be doubted by itself.
//
// Nothing of this has been tried on silicon. What stands in for that are public programs: one that no longer runs, or
// gives other outputs, when the device takes the alternative of a belief shows that the belief is needed. A device
// doubts at most one (Options::doubted); tools/doubt_device counts the programs that notice. Where that is possible
// the alternative is put into the decoded program (otherwise.cpp); the units look at it only outside of their loops.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/status.h"

namespace reef::device {

struct Program;

enum class Belief : std::uint8_t {
#define GROUP(title)
#define BELIEF(name, fact, statement, alternative) name,
#include "execute/device/beliefs.def"
#undef BELIEF
#undef GROUP
  kNone,  // no belief: nothing is doubted
};

struct BeliefInfo {
  Belief belief = Belief::kNone;
  std::string_view group;
  std::string_view name;  // without the leading k
  std::string_view fact;  // of chip/facts.def, without the leading k; empty: the statement is no number of that list
  std::string_view statement, alternative;
};

// In the order of beliefs.def; members of a group are consecutive.
std::span<const BeliefInfo> beliefs();

// Takes the alternative of a belief in a decoded program, as far as it shows there. False: the program has nothing that
// the belief is about, or it shows only while running. An error: the program does not fit into a smaller machine.
Result<bool> take_otherwise(Belief belief, Program& program);

}  // namespace reef::device
