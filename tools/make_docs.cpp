// SPDX-License-Identifier: Apache-2.0
// Writes the generated documents: make_docs SOURCE_DIR
#include <cstdio>
#include <string>

#include "base/file.h"
#include "report/documents.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_docs SOURCE_DIR\n");
    return 2;
  }
  for (const reef::report::Document& document : reef::report::kDocuments) {
    const std::string path = std::string(argv[1]) + "/" + std::string(document.path);
    const reef::Status status = reef::write_file(path, document.text());
    if (!status.ok()) {
      std::fprintf(stderr, "make_docs: %s\n", status.message().c_str());
      return 1;
    }
  }
  return 0;
}
