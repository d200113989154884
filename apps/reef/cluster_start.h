// SPDX-License-Identifier: Apache-2.0
// --cluster: the command's work is spread over processes, by Reef's Python package (reef.cluster), which starts this
// program again for every piece: on Ray, or without it in processes of this machine.
#pragma once

#include <string>

#include "base/status.h"
#include "command.h"

namespace reef::app {

// --cluster ADDRESS.
void add_cluster_option(Command& command, std::string& address);

// The process becomes reef.cluster with the words that it was given itself, --cluster aside. Returns only to say why
// it could not.
Status become_cluster(const std::string& command, const std::string& address);

}  // namespace reef::app
