// SPDX-License-Identifier: Apache-2.0
// Parameters and requantization constants, recomputed from source models, against the packages Google's compilers made
// of them: pairs/<name>/{source.tflite, v<generation>_edgetpu.tflite} of the model collection.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstring>
#include <set>

#include "formats/darwinn/parameters/blob_layout.h"
#include "formats/darwinn/parameters/from_operator.h"
#include "formats/darwinn/parameters/loop_order.h"
#include "formats/darwinn/reader.h"
#include "formats/tflite/reader.h"
#include "zoo.h"

namespace reef::darwinn {
namespace {

struct Pair {
  std::string name;  // folder and file
  ir::Model source, compiled;
  std::vector<Executable> executables;  // of all custom ops
};

ir::Model load(const std::string& path) {
  auto model = tflite::load_model(path);
  EXPECT_TRUE(model.ok()) << path << ": " << model.status().message();
  return model.ok() ? *model : ir::Model();
}

// Where a second, older source lies beside the first, files of the second compiler generation were made of that.
std::string source_of(const std::filesystem::path& compiled) {
  const auto older = compiled.parent_path() / "source_old.tflite";
  const bool second_generation = compiled.filename().string().starts_with("v2_");
  return second_generation && std::filesystem::exists(older) ? older : compiled.parent_path() / "source.tflite";
}

std::vector<std::string> compiled_files(const std::string& zoo) {
  std::vector<std::string> files = testing::tflite_files(zoo + "/pairs");
  std::erase_if(files, [](const std::string& path) { return path.find("_edgetpu.tflite") == std::string::npos; });
  return files;
}

Pair load_pair(const std::filesystem::path& path) {
  Pair pair;
  pair.name = path.parent_path().filename().string() + "/" + path.filename().string();
  pair.source = load(source_of(path));
  pair.compiled = load(path);
  for (const ir::Operator& op : pair.compiled.subgraphs[0].operators) {
    if (op.type != kCustomOpName) continue;
    const auto options = read_custom_options(op.custom_options);
    EXPECT_TRUE(options.ok()) << pair.name << ": " << options.status().message();
    if (!options.ok()) continue;
    pair.executables.insert(pair.executables.end(), options->package.executables.begin(),
                            options->package.executables.end());
  }
  return pair;
}

// Operators the compiler left to the CPU: the compiled file has an operator of that type with that output.
bool runs_on_cpu(const Pair& pair, const ir::Operator& op) {
  const std::string& output = pair.source.subgraphs[0].tensors[static_cast<std::size_t>(op.outputs[0])].name;
  for (const ir::Operator& other : pair.compiled.subgraphs[0].operators) {
    if (other.type != op.type) continue;
    if (pair.compiled.subgraphs[0].tensors[static_cast<std::size_t>(other.outputs[0])].name == output) return true;
  }
  return false;
}

struct LocatedLayer {
  std::int32_t op = 0;
  BlobChunk chunk;
  std::span<const std::uint8_t> bytes;
};

// The layers of the source that run on the chip, with their chunks; fails the test for one that has none.
std::vector<LocatedLayer> locate_layers(const Pair& pair, bool expect_all = true) {
  std::vector<LocatedLayer> layers;
  std::set<std::int32_t> found;
  for (const Executable& executable : pair.executables) {
    const std::span<const std::uint8_t> blob = executable.parameters.span();
    const auto layout = locate(pair.source, blob);
    EXPECT_TRUE(layout.ok()) << pair.name << ": " << layout.status().message();
    if (!layout.ok()) continue;
    for (const BlobChunk& chunk : layout->chunks) {
      if (chunk.kind != ChunkKind::kLayer || !chunk.role.empty() || !found.insert(chunk.op).second) continue;
      layers.push_back({chunk.op, chunk, blob.subspan(chunk.offset, chunk.size)});
    }
  }
  const std::vector<ir::Operator>& operators = pair.source.subgraphs[0].operators;
  for (std::size_t i = 0; expect_all && i < operators.size(); ++i) {
    if (!has_layer_parameters(operators[i]) || runs_on_cpu(pair, operators[i])) continue;
    EXPECT_TRUE(found.contains(static_cast<std::int32_t>(i))) << pair.name << ": op " << i << " " << operators[i].type;
  }
  return layers;
}

const ir::Operator& operator_of(const Pair& pair, const LocatedLayer& layer) {
  return pair.source.subgraphs[0].operators[static_cast<std::size_t>(layer.op)];
}

TEST(ZooParameters, EveryByteIsExplained) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  std::array<std::array<std::size_t, kChunkKinds>, 2> bytes{};  // cached, streamed
  std::size_t files = 0, blobs = 0, total = 0;
  for (const std::string& path : compiled_files(zoo)) {
    const Pair pair = load_pair(path);
    ++files;
    for (const Executable& executable : pair.executables) {
      if (executable.parameters.empty()) continue;
      ++blobs;
      total += executable.parameters.size();
      const auto layout = locate(pair.source, executable.parameters.span());
      ASSERT_TRUE(layout.ok()) << pair.name << ": " << layout.status().message();
      const bool streamed = executable.type != ExecutableType::kParameterCaching;
      for (const BlobChunk& chunk : layout->chunks) {
        bytes[streamed][static_cast<std::size_t>(chunk.kind)] += chunk.size;
        EXPECT_NE(chunk.kind, ChunkKind::kUnknown) << pair.name << ": " << chunk.size << " bytes at " << chunk.offset;
      }
    }
  }
  fmt::print("{} files, {} blobs, {} bytes\n{:<24}{:>12}{:>12}\n", files, blobs, total, "", "cached", "streamed");
  for (std::size_t kind = 0; kind < kChunkKinds; ++kind) {
    fmt::print("{:<24}{:>12}{:>12}\n", chunk_kind_name(static_cast<ChunkKind>(kind)), bytes[0][kind], bytes[1][kind]);
  }
  EXPECT_GT(files, 0u);
}

TEST(ZooParameters, EveryLayerUnpacksToItsSource) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  std::map<std::string, int> counts;
  for (const std::string& path : compiled_files(zoo)) {
    const Pair pair = load_pair(path);
    SCOPED_TRACE(pair.name);
    for (const LocatedLayer& located : locate_layers(pair)) {
      const ir::Operator& op = operator_of(pair, located);
      SCOPED_TRACE(fmt::format("op {} {}", located.op, op.type));
      const BlobChunk& chunk = located.chunk;
      const auto layer = unpack(located.bytes, chunk.shape, chunk.presence, chunk.order);
      ASSERT_TRUE(layer.ok()) << layer.status().message();
      const auto packed = pack(*layer);
      ASSERT_TRUE(packed.ok()) << packed.status().message();
      EXPECT_TRUE(std::equal(packed->begin(), packed->end(), located.bytes.begin(), located.bytes.end()));

      const ir::Subgraph& graph = pair.source.subgraphs[0];
      const ir::Tensor& weights = graph.tensors[static_cast<std::size_t>(op.inputs[1])];
      const auto source = source_weights_of(*layer, op.type, weights.type);
      ASSERT_TRUE(source.ok()) << source.status().message();
      EXPECT_EQ(source->shape, weights.shape);
      const auto expected = ir::constant_data(pair.source, weights).span();
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), source->weights.begin(), source->weights.end()));
      if (op.inputs.size() > 2 && op.inputs[2] >= 0) {
        const ir::Tensor& bias = graph.tensors[static_cast<std::size_t>(op.inputs[2])];
        std::vector<std::int32_t> values(static_cast<std::size_t>(bias.shape.elements()));
        std::memcpy(values.data(), ir::constant_data(pair.source, bias).data(), 4 * values.size());
        std::vector<std::int32_t> back = source->biases;
        back.resize(values.size(), 0);  // an all-zero bias may have been dropped
        EXPECT_EQ(back, values);
      }
      ++counts[fmt::format("{} {}, {}", ir::type_name(weights.type), op.type,
                           chunk.presence.multipliers ? "per channel" : "per tensor")];
    }
  }
  int total = 0;
  for (const auto& [kind, count] : counts) {
    fmt::print("{:<44}{:>6}\n", kind, count);
    total += count;
  }
  fmt::print("{:<44}{:>6}\n", "layers unpacked to their source", total);
  EXPECT_GT(total, 0);
}

TEST(ZooParameters, LoopOrderFollowsTheRule) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  int checked = 0, in_blocks = 0;
  for (const std::string& path : compiled_files(zoo)) {
    const Pair pair = load_pair(path);
    for (const LocatedLayer& located : locate_layers(pair)) {
      const LayerShape& shape = located.chunk.shape;
      if (shape.kind != LayerKind::kConvolution || shape.kernel_height * shape.kernel_width == 1) continue;
      if (shape.input_channels <= 4) continue;  // one word: all orders are the same
      const ir::Tensor& output =
          pair.source.subgraphs[0].tensors[static_cast<std::size_t>(operator_of(pair, located).outputs[0])];
      const LoopOrder order = compiler_loop_order(shape, pixels_per_tile(output.shape[1], output.shape[2]));
      EXPECT_EQ(located.chunk.order, order) << pair.name << " op " << located.op;
      ++checked;
      in_blocks += order.block_words != 0;
    }
  }
  fmt::print("{} kernels of more than one word, {} of them in blocks\n", checked, in_blocks);
  EXPECT_GT(in_blocks, 0);
  EXPECT_GT(checked, in_blocks);
}

// A program as rows of 128 bits.
class Rows {
 public:
  explicit Rows(const Executable& executable) {
    for (const InstructionChunk& chunk : executable.instruction_chunks) {
      const auto bytes = chunk.bitstream.span();
      bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    }
  }
  std::size_t size() const { return bytes_.size() / 16; }
  // Up to 32 bits of a row, lowest first.
  std::uint32_t bits(std::size_t row, int low, int count) const {
    std::uint64_t value = 0;
    for (int i = 0; i < 5; ++i) {
      const std::size_t at = row * 16 + static_cast<std::size_t>(low / 8 + i);
      if (at < bytes_.size()) value |= std::uint64_t{bytes_[at]} << (8 * i);
    }
    return static_cast<std::uint32_t>((value >> (low % 8)) & ((std::uint64_t{1} << count) - 1));
  }

 private:
  std::vector<std::uint8_t> bytes_;
};

// A tensor instruction has its float constants in one row: multiplier, upper and lower bound; the zero points of
// weights and input stand in the row before, that of the output with the flags "bias" and "multipliers" in the row
// after.
bool has_constants(const Rows& rows, const LayerRequantization& c, Presence presence) {
  const std::uint32_t flags = (presence.biases ? 1u : 0u) | (presence.multipliers ? 2u : 0u);
  for (std::size_t row = 1; row + 1 < rows.size(); ++row) {
    if (rows.bits(row, 29, 32) != std::bit_cast<std::uint32_t>(c.multiplier)) continue;
    if (rows.bits(row, 61, 32) == std::bit_cast<std::uint32_t>(c.clamp.max) &&
        rows.bits(row, 93, 32) == std::bit_cast<std::uint32_t>(c.clamp.min) &&
        rows.bits(row - 1, 62, 16) == static_cast<std::uint32_t>(c.weight_zero_point) &&
        rows.bits(row - 1, 78, 16) == static_cast<std::uint32_t>(c.input_zero_point) &&
        rows.bits(row + 1, 29, 32) == (flags << 16 | static_cast<std::uint32_t>(c.output_zero_point))) {
      return true;
    }
  }
  return false;
}

TEST(ZooParameters, EveryLayersConstantsAreInItsProgram) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  int found = 0;
  for (const std::string& path : compiled_files(zoo)) {
    const Pair pair = load_pair(path);
    std::vector<Rows> programs;
    for (const Executable& executable : pair.executables) {
      if (executable.type != ExecutableType::kParameterCaching) programs.emplace_back(executable);
    }
    for (const LocatedLayer& located : locate_layers(pair)) {
      const ir::Operator& op = operator_of(pair, located);
      const auto constants = layer_requantization_of(pair.source, pair.source.subgraphs[0], op, located.chunk.presence);
      ASSERT_TRUE(constants.ok()) << constants.status().message();
      const bool present = std::any_of(programs.begin(), programs.end(), [&](const Rows& rows) {
        return has_constants(rows, *constants, located.chunk.presence);
      });
      EXPECT_TRUE(present) << pair.name << ": op " << located.op << " " << op.type;
      found += present;
    }
  }
  fmt::print("{} layers have their multiplier, bounds, zero points and flags in the program\n", found);
  EXPECT_GT(found, 0);
}

// ADD of two computed tensors: the same row, with the offset of the sum straddling its end.
bool has_addition(const Rows& rows, const numeric::ChipAdd& add, numeric::ChipClamp clamp, std::int32_t zero_point) {
  for (std::size_t row = 1; row + 1 < rows.size(); ++row) {
    if (rows.bits(row, 29, 32) != std::bit_cast<std::uint32_t>(add.multiplier)) continue;
    if (rows.bits(row, 61, 32) == std::bit_cast<std::uint32_t>(clamp.max) &&
        rows.bits(row, 93, 32) == std::bit_cast<std::uint32_t>(clamp.min) &&
        (rows.bits(row, 125, 3) | rows.bits(row + 1, 0, 29) << 3) == static_cast<std::uint32_t>(add.offset) &&
        rows.bits(row + 1, 29, 32) == static_cast<std::uint32_t>(zero_point)) {
      return true;
    }
  }
  return false;
}

TEST(ZooParameters, EveryAdditionsConstantsAreInItsProgram) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  int found = 0;
  for (const std::string& path : compiled_files(zoo)) {
    const Pair pair = load_pair(path);
    const ir::Subgraph& graph = pair.source.subgraphs[0];
    for (const ir::Operator& op : graph.operators) {
      if (op.type != "ADD" || runs_on_cpu(pair, op)) continue;
      const ir::Tensor& a = graph.tensors[static_cast<std::size_t>(op.inputs[0])];
      const ir::Tensor& b = graph.tensors[static_cast<std::size_t>(op.inputs[1])];
      const ir::Tensor& sum = graph.tensors[static_cast<std::size_t>(op.outputs[0])];
      if (!ir::constant_data(pair.source, a).empty() || !ir::constant_data(pair.source, b).empty()) continue;
      const auto zero_point = [](const ir::Tensor& tensor) {
        const int shift = tensor.type == ir::DataType::kInt8 ? 128 : 0;
        return static_cast<std::int32_t>(tensor.quantization.zero_point[0]) + shift;
      };
      ASSERT_EQ(op.attributes.get_enum("fused_activation_function", "NONE"), "NONE") << pair.name;
      const auto add = numeric::chip_add(a.quantization.scale[0], zero_point(a), b.quantization.scale[0], zero_point(b),
                                         sum.quantization.scale[0]);
      ASSERT_TRUE(add.has_value());
      const auto clamp =
          numeric::chip_clamp(sum.quantization.scale[0], zero_point(sum), numeric::ChipActivation::kNone);
      bool present = false;
      for (const Executable& executable : pair.executables) {
        present = present || has_addition(Rows(executable), *add, clamp, zero_point(sum));
      }
      EXPECT_TRUE(present) << pair.name << ": " << sum.name;
      found += present;
    }
  }
  fmt::print("{} additions have their multiplier, bounds, offset and zero point in the program\n", found);
  EXPECT_GT(found, 0);
}

// One bit of the first weight of every layer changed: none of them may be found any more.
TEST(ZooParameters, ChangedWeightsAreNotFound) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  std::size_t layers = 0, found = 0;
  for (const std::string& path : compiled_files(zoo)) {
    Pair pair = load_pair(path);
    std::set<std::int32_t> changed;
    for (const ir::Operator& op : pair.source.subgraphs[0].operators) {
      if (!has_layer_parameters(op)) continue;
      const ir::Tensor& weights = pair.source.subgraphs[0].tensors[static_cast<std::size_t>(op.inputs[1])];
      Bytes& data = pair.source.buffers[static_cast<std::size_t>(weights.buffer)].data;
      if (data.empty() || !changed.insert(weights.buffer).second) continue;
      std::vector<std::uint8_t> copy(data.span().begin(), data.span().end());
      copy[0] ^= 1;
      data = Bytes(std::move(copy));
      ++layers;
    }
    found += locate_layers(pair, false).size();
  }
  fmt::print("{} changed layers, {} found\n", layers, found);
  EXPECT_EQ(found, 0u);
  EXPECT_GT(layers, 0u);
}

// The same architecture, trained on something else.
TEST(ZooParameters, AnotherNetworksWeightsAreNotFound) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  const std::pair<const char*, const char*> kSameShapes[] = {
      {"mobilenet_v2_1.0_224_quant", "mobilenet_v2_inat_bird"},
      {"asr_tflite_model_ASR_Model", "asr_tflite_model_test_compile_fm15_ASR_Model10"}};
  for (const auto& [one, other] : kSameShapes) {
    Pair pair = load_pair(zoo + "/pairs/" + one + "/v2_edgetpu.tflite");
    EXPECT_FALSE(locate_layers(pair).empty());
    pair.source = load(zoo + "/pairs/" + other + "/source.tflite");
    EXPECT_TRUE(locate_layers(pair, false).empty()) << one << " with the source of " << other;
  }
}

}  // namespace
}  // namespace reef::darwinn
