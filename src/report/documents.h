// SPDX-License-Identifier: Apache-2.0
// The documents that are generated from code, once: make_docs writes them, a test compares them with what is committed.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "report/codegen_example.h"
#include "report/isa_reference.h"
#include "report/machine_reference.h"
#include "report/micro_reference.h"
#include "report/ops_reference.h"
#include "report/passes_reference.h"
#include "report/proofs_reference.h"
#include "report/registers_reference.h"
#include "report/seen_reference.h"
#include "report/table_reference.h"

namespace reef::report {

struct Document {
  std::string_view path;  // below the source folder
  std::string (*text)();
};

inline constexpr std::array kDocuments = {
    Document{"docs/ops.md", ops_reference},
    Document{"docs/micro_ops.md", micro_reference},
    Document{"docs/passes.md", passes_reference},
    Document{"docs/table_functions.md", table_reference},
    Document{"docs/codegen_example.md", codegen_example},
    Document{"docs/hardware/isa.md", isa_reference},
    Document{"docs/hardware/machine.md", machine_reference},
    Document{"docs/hardware/proofs.md", proofs_reference},
    Document{"docs/hardware/registers.md", registers_reference},
    Document{"docs/hardware/seen.md", seen_reference},
};

}  // namespace reef::report
