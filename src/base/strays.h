// SPDX-License-Identifier: Apache-2.0
// Temporary files of processes that were killed (SIGKILL) before they could remove them.
//
// A temporary file's name says which process made it: its number and when it started, on which machine since which boot
// and in which namespace of processes. Whoever later writes into the folder removes files whose process is gone. What
// another machine made, or this one before it was started again, stays: nobody can tell whether it is in use.
#pragma once

#include <string>

namespace reef {

// The start of all names of temporary files.
inline constexpr const char* kTemporaryPrefix = ".reef-";

// ".reef-", this process, and random digits that nobody can guess: at most 63 bytes.
std::string new_temporary_name();
// The same for the only copy of an older file, which is never removed but by its own process.
std::string new_name_of_only_copy();

// Removes files that processes which have ended left in the folder (a descriptor). Failures do not matter: the next one
// tries again.
void remove_strays(int folder);

}  // namespace reef
