// SPDX-License-Identifier: Apache-2.0
// A compiled file tried out whole, before anybody relies on it.
//
// The bytes that are going to be written are read back as a runtime reads them and run from the model's inputs to its
// outputs: Edge TPU ops on the virtual device, all others on the CPU. The model that was compiled (with its rewrites)
// gets the same inputs; the operators that became Edge TPU ops are computed by the chip reference, the others by the
// CPU runtime. Every output must be equal to the last bit. Besides, the soundness checker (src/audit) must find nothing
// in the programs that depends on the speed of units.
//
// What that shows and what it does not: verification.h. A part whose operands are not the model's own inputs is also
// run by itself on pseudo-random operands, which what stands before it might not give.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/budget.h"
#include "base/bytes.h"
#include "base/status.h"
#include "compiler/verification.h"
#include "execute/cpu/interpreter.h"

namespace reef::compiler {

// A file that is tried out.
struct FileToVerify {
  Bytes data;                              // of the file
  std::shared_ptr<const ir::Model> model;  // that was compiled
  std::vector<VerifiedPart> parts;         // that became Edge TPU ops
};

// What was compared in one file.
struct FileComparison {
  bool is_whole = false;      // from the model's inputs to its outputs; else only part by part
  std::string why_not_whole;  // unless it is
  std::int64_t outputs = 0;   // of the model
  std::int64_t values = 0;    // in them, and equal
};

// Files that share one chip. Each runs once in a round: in the second one, the later ones must have left alone what the
// earlier ones keep on the chip.
class FileVerifier {
 public:
  explicit FileVerifier(Budget budget = {});

  // Reads the file back. Fails where a runtime could not prepare it.
  Status add(const FileToVerify& file);
  // Fails on a difference, on anything that the device or the checker reports, with what and where. Where the whole
  // cannot be computed here, parts are compared by themselves; kUnsupported: these cannot be computed either.
  Result<FileComparison> run(std::size_t file, std::uint32_t seed);

  // Something that was verified relies on the speed of units where Google's programs do (audit::is_googles_gather).
  bool rests_on_timing() const { return parts_.rests_on_timing(); }

 private:
  struct Loaded {
    FileToVerify file;
    std::shared_ptr<const ir::Model> compiled;
    std::vector<darwinn::Package> packages;
    std::vector<int> generations;
    std::unique_ptr<cpu::Interpreter> interpreter;  // null: see why_not_whole
    std::string why_not_whole;
    bool was_audited = false;
  };
  Status prepare_whole(Loaded& loaded) const;
  Status run_whole(Loaded& loaded, std::uint32_t seed, FileComparison& comparison);
  Status run_parts(Loaded& loaded, std::uint32_t seed, bool all);
  static bool begins_with_inputs(const ir::Model& model, const VerifiedPart& part);

  Budget budget_;
  std::shared_ptr<device::Device> device_;
  PartVerifier parts_;
  std::vector<Loaded> files_;
};

}  // namespace reef::compiler
