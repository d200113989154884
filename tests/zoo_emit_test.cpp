// SPDX-License-Identifier: Apache-2.0
// Google's compiled files rebuilt from their sources: with the machine code and the choice of operators taken from
// Google's file, what is left (operators, tensors, names, quantization, order, metadata) must come out the same.
#include <map>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/sha256.h"
#include "emit/compiled_model.h"
#include "formats/darwinn/reader.h"
#include "formats/tflite/exported_writer.h"
#include "formats/tflite/reader.h"
#include "ops/dependencies.h"
#include "zoo.h"
#include "zoo_pairs.h"

namespace reef::testing {
namespace {

// Files that a tool of Google's put together after compiling (an op of the CPU appended): tensors in another order.
constexpr char kOtherTool[] = "EdgeTpu CustomOp Model.";

// The first of the fields that differ, or "".
std::string first_difference(const ir::Model& ours, const ir::Model& theirs) {
  if (ours.description != theirs.description) return "description";
  if (ours.metadata != theirs.metadata) return "metadata";
  if (ours.signatures != theirs.signatures) return "signatures";
  if (ours.subgraphs.size() != theirs.subgraphs.size()) return "subgraphs";
  const ir::Subgraph& a = ours.subgraphs[0];
  const ir::Subgraph& b = theirs.subgraphs[0];
  if (a.name != b.name) return "name of the subgraph";
  if (a.inputs != b.inputs || a.outputs != b.outputs) return "inputs and outputs";
  if (a.tensors.size() != b.tensors.size()) return "number of tensors";
  for (std::size_t i = 0; i < a.tensors.size(); ++i) {
    if (!(a.tensors[i] == b.tensors[i])) return "tensor " + a.tensors[i].name;
  }
  if (a.operators.size() != b.operators.size()) return "number of operators";
  for (std::size_t i = 0; i < a.operators.size(); ++i) {
    if (!(a.operators[i] == b.operators[i])) return "operator " + std::to_string(i) + " " + a.operators[i].type;
  }
  if (ours.buffers != theirs.buffers) return "buffers";
  return ours == theirs ? "" : "something else";
}

// What other writers than the newest compiler's do otherwise, undone, so that everything else can be compared.
void forget_writers_habits(ir::Model& model) {
  model.description.clear();
  model.subgraphs[0].name.clear();
}

struct Rebuilt {
  ir::Model ours, theirs;
};

Result<Rebuilt> rebuild(const Pair& pair, const std::vector<std::int32_t>& ops) {
  Rebuilt result;
  REEF_ASSIGN_OR_RETURN(result.theirs, tflite::load_model(pair.compiled));
  REEF_ASSIGN_OR_RETURN(const ir::Model source, tflite::load_model(pair.source));
  emit::CompiledPart part;
  part.ops = ops;
  const ops::Dependencies::Border border = ops::Dependencies(source).border(ops);
  part.inputs = border.inputs;
  part.outputs = border.outputs;
  for (const ir::Operator& op : result.theirs.subgraphs[0].operators) {
    if (darwinn::is_edge_tpu_op(op)) part.custom_options = op.custom_options;
  }
  REEF_ASSIGN_OR_RETURN(result.ours, emit::compiled_model(source, {part}));
  return result;
}

TEST(ZooEmit, GooglesFilesComeOutTheSame) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  REEF_SKIP_WITHOUT_TRUTH(truth);
  std::map<std::string, std::vector<std::int32_t>> mapped;  // by the hash of the compiled file
  for (const Mapping& mapping : mappings_of(truth)) mapped[mapping.compiled_sha256] = mapping.ops;
  int files = 0, same = 0, same_but_habits = 0, same_bytes = 0;
  for (const Pair& pair : pairs_of(zoo)) {
    const auto file = read_file(pair.compiled, tflite::kMaxFileBytes);
    ASSERT_TRUE(file.ok());
    const auto found = mapped.find(sha256_hex(file->span()));
    if (found == mapped.end() || found->second.empty()) continue;
    auto rebuilt = rebuild(pair, found->second);
    ASSERT_TRUE(rebuilt.ok()) << pair.name << ": " << rebuilt.status().message();
    if (rebuilt->theirs.description == kOtherTool) continue;
    ++files;
    if (first_difference(rebuilt->ours, rebuilt->theirs).empty()) ++same;
    const auto written = tflite::write_exported_model(rebuilt->ours);
    ASSERT_TRUE(written.ok()) << written.status().message();
    const bool is_equal = std::equal(written->begin(), written->end(), file->span().begin(), file->span().end());
    same_bytes += is_equal ? 1 : 0;
    EXPECT_TRUE(is_equal || pair.generation != 16) << pair.name;
    forget_writers_habits(rebuilt->ours);
    forget_writers_habits(rebuilt->theirs);
    const std::string difference = first_difference(rebuilt->ours, rebuilt->theirs);
    if (difference.empty()) ++same_but_habits;
    EXPECT_EQ(difference, "") << pair.name;
  }
  std::printf("%d files: %d the same structure, %d with the habits of other writers set aside, %d the same bytes\n",
              files, same, same_but_habits, same_bytes);
  EXPECT_EQ(files, same_but_habits);
  EXPECT_GT(same, 0);
}

}  // namespace
}  // namespace reef::testing
