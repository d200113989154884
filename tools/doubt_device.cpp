// SPDX-License-Identifier: Apache-2.0
// Which of the virtual device's beliefs do public programs need?
//   doubt_device [--enough N] [--steps N] [--only NAME] [--add] -o src/execute/device/proofs.def FOLDER...
//
// Every package of every compiled .tflite below the folders is run as it is, with pseudo-random inputs. Then it is run
// again for each doubt: with the alternative of one belief (execute/device/beliefs.def), or with one field of one
// opcode taken to have its usual value in all instructions. A file notices if the run ends in an error or gives other
// outputs. For a file whose source is known, Reef's other tests show that its outputs are those of the source, so
// other outputs are wrong ones; the two are counted apart.
//
// The smallest files come first, and a doubt that enough files (8 unless told) have noticed is not tried on further
// ones. Files that take more steps than --steps (300 million unless told) are left out. Results do not depend on the
// machine. The table is written anew after every file, and counts the files so far: a run that is stopped keeps them.
//
// --add counts further files in addition to those of the table that this program was built with. They are tried only
// with doubts that no file has noticed: large files take too long for more. Fields that no file has noticed are tried
// together first; only if that is noticed, in halves, down to single fields. Two fields whose changes make up for each
// other could be missed by this, nothing is counted as noticed that was not noticed by itself.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/file.h"
#include "base/sha256.h"
#include "execute/device/device.h"
#include "execute/device/proofs.h"
#include "formats/darwinn/reader.h"
#include "formats/tflite/reader.h"
#include "isa/format.h"
#include "isa/program.h"

namespace {

namespace device = reef::device;
namespace isa = reef::isa;
namespace fs = std::filesystem;
using reef::darwinn::Package;

struct Doubt {
  device::Belief belief = device::Belief::kNone;  // or else:
  isa::Opcode opcode = isa::Opcode::kScalar;
  const isa::Field* field = nullptr;
  std::string name;
  device::Notices notices;
};

struct File {
  std::string path;
  bool has_source = false;
  std::vector<Package> packages;
  std::vector<std::string> outputs;              // of each package, hashed
  std::int64_t steps = 0;                        // of all
  std::set<std::pair<isa::Opcode, int>> fields;  // opcode and first bit of those that have another than the usual value
};

struct Ran {
  bool ok = false;
  std::string outputs;  // hashed
  std::int64_t steps = 0;
};

std::uint32_t usual_bits(const isa::Field& field) { return field.usual & field.mask(); }

std::vector<std::uint8_t> random_bytes(std::size_t count, std::uint32_t seed) {
  std::vector<std::uint8_t> bytes(count);
  std::uint32_t state = seed * 2654435761u + 1;
  for (std::uint8_t& byte : bytes) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<std::uint8_t>(state >> 24);
  }
  return bytes;
}

// Twice, so that what the first run leaves behind shows in the second.
Ran run(const Package& package, device::Belief doubted, std::int64_t most_steps) {
  const auto loaded = device::LoadedPackage::load(package, doubted);
  if (!loaded.ok()) return {};
  device::Options options;
  options.threads = 1;
  options.doubted = doubted;
  options.max_cycles = most_steps;
  device::Device chip(options);
  Ran ran;
  std::vector<std::uint8_t> all;
  for (std::uint32_t turn = 0; turn < 2; ++turn) {
    std::vector<std::vector<std::uint8_t>> inputs;
    for (const auto& layer : (*loaded)->inputs()) {
      const auto size = static_cast<std::size_t>(device::tensor_bytes(layer));
      inputs.push_back(random_bytes(size, 2 * static_cast<std::uint32_t>(inputs.size()) + turn + 1));
    }
    const auto outputs = chip.run(*loaded, {inputs.begin(), inputs.end()});
    if (!outputs.ok()) return {};
    for (const auto& output : *outputs) all.insert(all.end(), output.begin(), output.end());
    ran.steps += chip.chip().steps();
  }
  ran.ok = true;
  ran.outputs = reef::sha256_hex(all);
  return ran;
}

// The package with some fields at their usual values everywhere.
reef::Result<Package> without_fields(const Package& package, std::span<Doubt* const> doubts) {
  Package changed = package;
  for (auto& executable : changed.executables) {
    for (auto& chunk : executable.instruction_chunks) {
      REEF_ASSIGN_OR_RETURN(isa::Program program, isa::decode(chunk.bitstream.span()));
      for (isa::Instruction& instruction : program) {
        isa::Instruction usual(instruction.opcode());
        usual.set_usual();
        for (const Doubt* doubt : doubts) {
          if (instruction.opcode() != doubt->opcode) continue;
          REEF_RETURN_IF_ERROR(instruction.set(*doubt->field, usual.get(*doubt->field)));
        }
      }
      chunk.bitstream = reef::Bytes(isa::encode(program));
    }
  }
  return changed;
}

void note_fields(const Package& package, File& file) {
  for (const auto& executable : package.executables) {
    for (const auto& chunk : executable.instruction_chunks) {
      const auto program = isa::decode(chunk.bitstream.span());
      if (!program.ok()) continue;
      for (const isa::Instruction& instruction : *program) {
        for (const isa::Field& field : isa::fields(instruction.opcode())) {
          if (instruction.bits(field) != usual_bits(field)) file.fields.emplace(instruction.opcode(), field.bit);
        }
      }
    }
  }
}

std::vector<Package> packages_of(const reef::ir::Model& model) {
  std::vector<Package> packages;
  for (const auto& subgraph : model.subgraphs) {
    for (const auto& op : subgraph.operators) {
      if (!reef::darwinn::is_edge_tpu_op(op)) continue;
      auto options = reef::darwinn::read_custom_options(op.custom_options);
      if (options.ok()) packages.push_back(std::move(options->package));
    }
  }
  return packages;
}

// Beside the file stands `source.tflite`, or a file of its name without "_edgetpu" or with "source" for "compiled".
bool has_source(const fs::path& path) {
  const fs::path folder = path.parent_path();
  if (path.stem() != "source" && fs::exists(folder / "source.tflite")) return true;
  std::string name = path.stem().string();
  if (const auto at = name.rfind("_edgetpu"); at != std::string::npos) name.resize(at);
  if (const auto at = name.find("compiled"); at != std::string::npos) name.replace(at, 8, "source");
  return fs::exists(folder / (name + ".tflite")) && name != path.stem().string();
}

std::vector<File> files_below(const std::vector<std::string>& folders, std::int64_t most_steps) {
  std::vector<std::string> paths;
  for (const std::string& folder : folders) {
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (entry.path().extension() == ".tflite") paths.push_back(entry.path().string());
    }
  }
  std::sort(paths.begin(), paths.end());
  std::vector<File> files;
  std::set<std::string> known;
  for (const std::string& path : paths) {
    const auto bytes = reef::read_file(path, reef::tflite::kMaxFileBytes);
    if (!bytes.ok() || !known.insert(reef::sha256_hex(bytes->span())).second) continue;
    const auto model = reef::tflite::read_model(*bytes);
    if (!model.ok()) continue;
    File file{path, has_source(path), packages_of(*model), {}, 0, {}};
    bool is_complete = !file.packages.empty();
    for (const Package& package : file.packages) {
      const Ran ran = run(package, device::Belief::kNone, most_steps);
      is_complete = is_complete && ran.ok;
      if (!is_complete) break;
      file.outputs.push_back(ran.outputs);
      file.steps += ran.steps;
      note_fields(package, file);
    }
    if (!is_complete) {
      if (!file.packages.empty()) std::fprintf(stderr, "left out: %s\n", path.c_str());
      continue;
    }
    std::fprintf(stderr, "%s: %lld steps\n", path.c_str(), static_cast<long long>(file.steps));
    files.push_back(std::move(file));
  }
  std::stable_sort(files.begin(), files.end(), [](const File& a, const File& b) { return a.steps < b.steps; });
  return files;
}

std::vector<Doubt> all_doubts(const std::string& only) {
  std::vector<Doubt> doubts;
  for (const device::BeliefInfo& info : device::beliefs()) {
    doubts.push_back({info.belief, {}, nullptr, std::string(info.name), {}});
  }
  for (const isa::OpcodeInfo& op : isa::all_opcodes()) {
    for (const isa::Field& field : isa::fields(op.opcode)) {
      const isa::Field* sequence = isa::sequence_field(op.opcode);
      if (field.name == "opcode" || (sequence != nullptr && field == *sequence)) continue;
      doubts.push_back(
          {device::Belief::kNone, op.opcode, &field, fmt::format("{} {}", op.mnemonic, field.full_name()), {}});
    }
  }
  std::erase_if(doubts, [&](const Doubt& doubt) { return doubt.name.find(only) == std::string::npos; });
  return doubts;
}

struct Noticed {
  bool stopped = false, differs = false;
};

// One belief, or some fields at once.
Noticed run_with(const File& file, std::span<Doubt* const> doubts) {
  Noticed noticed;
  for (std::size_t i = 0; i < file.packages.size() && !noticed.stopped; ++i) {
    const std::int64_t most_steps = 8 * file.steps + 100'000;
    Ran ran;
    if (doubts.front()->field == nullptr) {
      ran = run(file.packages[i], doubts.front()->belief, most_steps);
    } else {
      const auto changed = without_fields(file.packages[i], doubts);
      if (changed.ok()) ran = run(*changed, device::Belief::kNone, most_steps);
    }
    noticed.stopped = !ran.ok;
    noticed.differs = noticed.differs || ran.outputs != file.outputs[i];
  }
  return noticed;
}

// All of them are fields, or there is one.
void try_doubts(const File& file, std::span<Doubt* const> doubts) {
  if (doubts.empty()) return;
  const Noticed noticed = run_with(file, doubts);
  if (doubts.size() > 1 && (noticed.stopped || noticed.differs)) {
    try_doubts(file, doubts.first(doubts.size() / 2));
    try_doubts(file, doubts.subspan(doubts.size() / 2));
    return;
  }
  for (Doubt* doubt : doubts) {
    ++doubt->notices.tried;
    if (noticed.stopped) {
      ++doubt->notices.stopped;
    } else if (noticed.differs) {
      ++(file.has_source ? doubt->notices.wrong : doubt->notices.other);
    }
  }
}

void try_file(const File& file, std::vector<Doubt>& doubts, std::int64_t enough, bool is_added) {
  std::vector<Doubt*> together;
  for (Doubt& doubt : doubts) {
    if (doubt.notices.noticed() >= (is_added ? 1 : enough)) continue;
    if (doubt.field != nullptr && !file.fields.contains({doubt.opcode, doubt.field->bit})) continue;
    if (is_added && doubt.field != nullptr) {
      together.push_back(&doubt);
    } else {
      Doubt* one = &doubt;
      try_doubts(file, {&one, 1});
    }
  }
  try_doubts(file, together);
}

// What the table says that this program was built with.
void begin_with_table(std::vector<Doubt>& doubts) {
  const device::Proofs& proofs = device::proofs();
  for (Doubt& doubt : doubts) {
    if (doubt.field == nullptr) {
      for (std::size_t i = 0; i < device::beliefs().size(); ++i) {
        if (device::beliefs()[i].belief == doubt.belief) doubt.notices = proofs.beliefs[i];
      }
      continue;
    }
    for (const device::FieldProof& proof : proofs.fields) {
      if (proof.opcode == doubt.opcode && proof.field->bit == doubt.field->bit) doubt.notices = proof.notices;
    }
  }
}

std::string line_of(const Doubt& doubt) {
  const device::Notices& n = doubt.notices;
  const std::string counts = fmt::format("{}, {}, {}, {}", n.tried, n.stopped, n.wrong, n.other);
  if (doubt.field == nullptr) return fmt::format("BELIEF_PROOF({}, {})\n", doubt.name, counts);
  return fmt::format("FIELD_PROOF({}, \"{}\", {})\n", isa::info(doubt.opcode).mnemonic, doubt.field->full_name(),
                     counts);
}

struct Counted {
  int files = 0, sources = 0, added = 0;
};

std::string table_of(const std::vector<Doubt>& doubts, const Counted& counted, std::int64_t enough) {
  std::string text =
      "// SPDX-License-Identifier: Apache-2.0\n"
      "// Written by tools/doubt_device; do not edit. How many public files notice each doubt (proofs.h):\n"
      "// BELIEF_PROOF(belief, tried, stopped, wrong, other), FIELD_PROOF(opcode, field, the same).\n"
      "// A field that is not here has its usual value in every file.\n";
  text += fmt::format("PROOF_FILES({}, {}, {}, {})\n", counted.files, counted.sources, enough, counted.added);
  for (const Doubt& doubt : doubts) {
    if (doubt.field == nullptr || doubt.notices.tried > 0) text += line_of(doubt);
  }
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> folders;
  std::string only, out;
  std::int64_t most_steps = 300'000'000, enough = 8;
  bool is_added = false;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--only" && i + 1 < argc) {
      only = argv[++i];
    } else if (word == "-o" && i + 1 < argc) {
      out = argv[++i];
    } else if (word == "--steps" && i + 1 < argc) {
      most_steps = std::atoll(argv[++i]);
    } else if (word == "--enough" && i + 1 < argc) {
      enough = std::atoll(argv[++i]);
    } else if (word == "--add") {
      is_added = true;
    } else {
      folders.push_back(word);
    }
  }
  if (folders.empty() || out.empty() || most_steps <= 0 || enough <= 0) {
    std::fprintf(stderr,
                 "usage: doubt_device [--enough N] [--steps N] [--only NAME] [--add] -o src/execute/device/proofs.def "
                 "FOLDER...\n");
    return 2;
  }
  const std::vector<File> files = files_below(folders, most_steps);
  std::vector<Doubt> doubts = all_doubts(only);
  Counted counted;
  if (is_added) {
    const device::Proofs& proofs = device::proofs();
    begin_with_table(doubts);
    counted = {proofs.files, proofs.sources, proofs.added};
    enough = proofs.enough;
  }
  std::size_t tried = 0;
  for (const File& file : files) {
    try_file(file, doubts, enough, is_added);
    ++counted.files;
    counted.sources += file.has_source ? 1 : 0;
    counted.added += is_added ? 1 : 0;
    std::fprintf(stderr, "tried %zu of %zu: %s\n", ++tried, files.size(), file.path.c_str());
    const std::string text = table_of(doubts, counted, enough);
    const reef::Status written = reef::write_file(out, text);
    if (!written.ok()) {
      std::fprintf(stderr, "%s\n", written.message().c_str());
      return 1;
    }
  }
  return 0;
}
