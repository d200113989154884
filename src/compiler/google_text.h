// SPDX-License-Identifier: Apache-2.0
// What Google's compiler, version 16, prints and writes to its log, letter by letter: scripts read it.
//
// Known from logs that users published. Differences: rows of the table stand in the order of the operators' first
// appearance (Google's order changes from run to run), and an attempt's tensors in the order of the graph.
#pragma once

#include <string>
#include <string_view>

#include "compiler/compile.h"

namespace reef::compiler {

// The version that scripts take from the first line.
inline constexpr std::string_view kCompatibleVersion = "16.0.384591198";

std::string version_line();  // with the end of the line

// The .log file.
std::string log_text(const CompiledFile& file);

// Everything on standard output behind the version line. `show_operations`: -s. Google's compiler reports success where
// nothing of a model runs on the chip; `reports_nothing` says so in the first and in the last line instead.
std::string console_text(const CompileOptions& options, const CompileResult& result, bool show_operations,
                         bool reports_nothing = false);

// "0.00B", "768.00B", "6.25KiB", "3.86MiB".
std::string size_text(std::int64_t bytes);

}  // namespace reef::compiler
