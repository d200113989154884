// SPDX-License-Identifier: Apache-2.0
// The sandbox: the program gives up rights that a command does not need, before it reads files of strangers.
//
// Problem: a reader of foreign bytes may have a fault that a crafted file turns into the attacker's code. That code
// would have all rights of whoever started the program. Approach: from the moment the command line has been understood,
// the process cannot start programs, use the network, look into other processes, make memory executable, or write to
// any folder but those that the command line names for its results, the folder for temporary files, and /dev (where
// Edge TPUs are). Linux does this for processes without privileges: Landlock (files, since 5.13; TCP, since 6.7) and
// seccomp (system calls). Both hold for the process's threads and cannot be undone.
//
// Not guaranteed: reading stays possible wherever the user may read, because data sets are often folders of links; what
// is read cannot leave but by the results. A kernel without Landlock leaves files as they were, one without seccomp
// leaves programs and the network. Commands that exist to start programs (exec, shell, train, virtual-usb, anything
// with
// --cluster) are not confined; a converter of another framework runs before the result of its work is read.
//
// Only the program `reef` does this, never a process that loaded libreef or the delegate (docs/trust.md).
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace reef::app {

// Environment variable REEF_SANDBOX: "off" leaves the process as it is, "require" makes it an error if the kernel
// cannot confine it fully; otherwise as much is done as the kernel can do.
enum class SandboxWish : std::uint8_t { kBestEffort, kOff, kRequired };
Result<SandboxWish> sandbox_wish();

// Confines this thread and those that it starts; call it before there are others. `outputs`: files and folders that
// will be written, whether they exist or not.
Status enter_sandbox(const std::vector<std::string>& outputs);

}  // namespace reef::app
