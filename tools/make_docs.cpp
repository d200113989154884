// SPDX-License-Identifier: Apache-2.0
// Writes the generated documents: make_docs SOURCE_DIR
#include <cstdio>
#include <string>

#include "base/file.h"
#include "report/isa_reference.h"
#include "report/ops_reference.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_docs SOURCE_DIR\n");
    return 2;
  }
  const std::string docs = std::string(argv[1]) + "/docs/";
  reef::Status status = reef::write_file(docs + "ops.md", reef::report::ops_reference());
  if (status.ok()) status = reef::write_file(docs + "hardware/isa.md", reef::report::isa_reference());
  if (!status.ok()) std::fprintf(stderr, "make_docs: %s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
