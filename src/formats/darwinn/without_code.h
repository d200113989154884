// SPDX-License-Identifier: Apache-2.0
// A package without machine code: what a compiled file holds for operators that were chosen for the chip but for which
// the compiler has no code.
//
// It is well formed and says what it is; whatever would run it must refuse. Reef's runtime does so with require_code().
// Google's libedgetpu does so while the interpreter allocates its tensors: a package whose list of programs is empty is
// not registered ("No executables to register.").
#pragma once

#include <string_view>

#include "base/status.h"
#include "formats/darwinn/package.h"

namespace reef::darwinn {

// `maker`: "reef 0.1.0". `reason`: a clause.
Package package_without_code(int min_runtime_version, std::string_view maker, std::string_view reason);

// An error that says why and what to do, if the package holds no program at all.
Status require_code(const Package& package);

}  // namespace reef::darwinn
