// SPDX-License-Identifier: Apache-2.0
// Finds what an instruction asks for that no known program asks for, so that whoever executes it would have to
// guess.
//
// Every such thing of a program is found by one walk, when the program is loaded: a user learns at once, and of all of
// it, what keeps a file from running. (Values that are unusual but mean something are another matter: isa/seen.h.)
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "isa/operation.h"

namespace reef::isa {

// Sentences such as "an unknown store kind 5"; empty: everything is known. Errors of operation_of() are not among them.
std::vector<std::string> unknowns_of(const Instruction& instruction);

// Collects what is unknown over a walk through a program, and says it.
class UnknownList {
 public:
  // `place`: "row 12 (scalar)".
  void add(const std::string& place, const std::string& what);
  bool empty() const { return found_.empty(); }
  // All of it in one error, the same things at several places together, with a sentence that asks for the file.
  Status to_status() const;

 private:
  struct Entry {
    std::string what, first_place;
    int times = 0;
  };
  std::vector<Entry> found_;  // in the order of their first places
};

// Ends every list of things that were never seen.
inline constexpr char kPleaseSendTheFile[] =
    "No public file that Reef was built on has this, so it would be a guess: please open an issue and attach the file";

}  // namespace reef::isa
