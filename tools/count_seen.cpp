// SPDX-License-Identifier: Apache-2.0
// Counts which values the fields of instructions have in compiled files, for src/isa/seen.def:
//   count_seen FOLDER... > src/isa/seen.def
// Every .tflite below the folders that has programs for the Edge TPU counts once, however often its bytes occur.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/sha256.h"
#include "formats/darwinn/listing.h"
#include "formats/tflite/reader.h"
#include "isa/seen.h"

namespace {

std::vector<std::string> files_below(int argc, char** argv) {
  std::vector<std::string> files;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[i])) {
      if (entry.path().extension() == ".tflite") files.push_back(entry.path().string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: count_seen FOLDER... > src/isa/seen.def\n");
    return 2;
  }
  reef::isa::SeenCounter counter;
  std::set<std::string> known;
  for (const std::string& path : files_below(argc, argv)) {
    const auto file = reef::read_file(path, reef::tflite::kMaxFileBytes);
    if (!file.ok() || !known.insert(reef::sha256_hex(file->span())).second) continue;
    const auto model = reef::tflite::read_model(*file);
    if (!model.ok()) continue;
    const auto listing = reef::darwinn::list_programs(*model);
    if (!listing.ok()) {
      std::fprintf(stderr, "count_seen: %s: %s\n", path.c_str(), listing.status().message().c_str());
      return 1;
    }
    std::vector<reef::isa::Program> programs;
    for (const auto& program : listing->programs) programs.push_back(program.program);
    if (!programs.empty()) counter.add_file(programs);
  }
  std::fputs(counter.to_def().c_str(), stdout);
  return 0;
}
