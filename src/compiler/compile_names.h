// SPDX-License-Identifier: Apache-2.0
// What the compiler's files are called, and whether they may be written.
//
// -o names a folder ("<stem>_edgetpu.tflite" and "<stem>_edgetpu.log" go there) or, for one model, the compiled file
// itself: a name that ends with .tflite, or that a file has already. The log is called as it, with .log.
#pragma once

#include <string>
#include <vector>

#include "compiler/compile.h"

namespace reef::compiler {

// Does options.out_dir name the compiled file?
bool names_a_file(const CompileOptions& options);

// The folder that results go to; "." for the current one.
std::string output_folder(const CompileOptions& options);
std::string compiled_path(const CompileOptions& options, const std::string& stem);
std::string log_path(const CompileOptions& options, const std::string& stem);

// "<stem>_segment_0_of_2", which stands for a model's stem in the names of its segments' files.
std::string segment_stem(const std::string& stem, std::size_t segment, std::size_t segments);

// Everything that compile() would write, as far as that is known before it begins.
std::vector<std::string> planned_outputs(const CompileOptions& options);

// Can this be done at all? Looks at names and folders only; the models need not exist yet.
Status check_compile_request(const CompileOptions& options);

}  // namespace reef::compiler
