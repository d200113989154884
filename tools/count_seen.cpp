// SPDX-License-Identifier: Apache-2.0
// Counts which values the fields of instructions have in compiled files, for src/isa/seen.def, or which of them are
// used together, for src/isa/seen_combinations.def:
//   count_seen FOLDER... > src/isa/seen.def
//   count_seen --combinations FOLDER... > src/isa/seen_combinations.def
// Every .tflite below the folders that has programs for the Edge TPU counts once, however often its bytes occur.
//   count_seen --held-out FOLDER...
// says for each file how many of its combinations no other file has: what a file that was not counted would score.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/sha256.h"
#include "formats/darwinn/listing.h"
#include "formats/tflite/reader.h"
#include "isa/combination.h"
#include "isa/seen.h"

namespace {

using reef::isa::Program;

std::vector<std::string> files_below(int argc, char** argv, int first) {
  std::vector<std::string> files;
  for (int i = first; i < argc; ++i) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[i])) {
      if (entry.path().extension() == ".tflite") files.push_back(entry.path().string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

using Combinations = std::set<std::pair<reef::isa::Opcode, std::string>>;

void print_held_out(const std::vector<std::pair<std::string, Combinations>>& files) {
  std::map<std::pair<reef::isa::Opcode, std::string>, int> holders;
  for (const auto& [path, combinations] : files) {
    for (const auto& combination : combinations) ++holders[combination];
  }
  for (const auto& [path, combinations] : files) {
    const auto alone = std::count_if(combinations.begin(), combinations.end(),
                                     [&](const auto& combination) { return holders[combination] == 1; });
    std::printf("%zd of %zu %s\n", static_cast<ssize_t>(alone), combinations.size(), path.c_str());
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 && argv[1][0] == '-' ? argv[1] : "";
  const int first = mode.empty() ? 1 : 2;
  if (argc <= first || (!mode.empty() && mode != "--combinations" && mode != "--held-out")) {
    std::fprintf(stderr, "usage: count_seen [--combinations | --held-out] FOLDER...\n");
    return 2;
  }
  reef::isa::SeenCounter counter;
  reef::isa::CombinationCounter combinations;
  std::vector<std::pair<std::string, Combinations>> by_file;
  std::set<std::string> known;
  for (const std::string& path : files_below(argc, argv, first)) {
    const auto file = reef::read_file(path, reef::tflite::kMaxFileBytes);
    if (!file.ok() || !known.insert(reef::sha256_hex(file->span())).second) continue;
    const auto model = reef::tflite::read_model(*file);
    if (!model.ok()) continue;
    const auto listing = reef::darwinn::list_programs(*model);
    if (!listing.ok()) {
      std::fprintf(stderr, "count_seen: %s: %s\n", path.c_str(), listing.status().message().c_str());
      return 1;
    }
    std::vector<Program> programs;
    for (const auto& program : listing->programs) programs.push_back(program.program);
    if (programs.empty()) continue;
    counter.add_file(programs);
    combinations.add_file(programs);
    auto& own = by_file.emplace_back(path, Combinations{}).second;
    for (const Program& program : programs) {
      for (const auto& instruction : program) {
        own.emplace(instruction.opcode(), reef::isa::combination_of(instruction));
      }
    }
  }
  if (mode == "--held-out") {
    print_held_out(by_file);
  } else {
    std::fputs((mode.empty() ? counter.to_def() : combinations.to_def()).c_str(), stdout);
  }
  return 0;
}
