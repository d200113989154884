// SPDX-License-Identifier: Apache-2.0
#include "emit/package.h"

#include <bit>

#include <algorithm>

#include "emit/blocks.h"
#include "emit/registers.h"

namespace reef::emit {
namespace {

using tiled::TiledProgram;

constexpr int kCopiesFromRuntime = 13;

darwinn::DmaHint transfer_hint(darwinn::BaseAddress base, const std::string& name, std::int64_t offset,
                               std::int64_t bytes, darwinn::Direction direction) {
  darwinn::DescriptorHint descriptor;
  descriptor.use = host_address(base, name, darwinn::AddressHalf::kLower);
  descriptor.offset_bytes = static_cast<std::int32_t>(offset);
  descriptor.size_bytes = static_cast<std::int32_t>(bytes);
  darwinn::DmaHint hint;
  hint.hint = std::move(descriptor);
  hint.direction = direction;
  return hint;
}

darwinn::DmaHint instructions(std::size_t chunk) {
  darwinn::DmaHint hint;
  darwinn::InstructionHint which;
  which.chunk_index = static_cast<std::int32_t>(chunk);
  hint.hint = which;
  return hint;
}
darwinn::DmaHint interrupt() {
  darwinn::DmaHint hint;
  hint.hint = darwinn::InterruptHint{};
  hint.direction = darwinn::Direction::kToHost;
  return hint;
}

// The new value of a variable has a name of its own, as in Google's packages; libedgetpu writes it back by that.
constexpr std::string_view kStateSuffix = "_variable_output";
std::string name_of_result(const ir::Tensor& tensor, const tiled::Outfeed& outfeed) {
  return outfeed.is_state ? tensor.name + std::string(kStateSuffix) : tensor.name;
}

darwinn::Layer layer_of(const ir::Tensor& tensor, const TiledTensor& tiled) {
  darwinn::Layer layer;
  layer.name = tensor.name;
  layer.y_dim = tiled.height;
  layer.x_dim = tiled.width;
  layer.z_dim = tiled.channels;
  layer.size_bytes = tiled.height * tiled.width * tiled.channels;
  const bool is_16 = tensor.type == ir::DataType::kInt16;  // a state: a single pixel of whole words
  if (is_16) layer.z_dim = static_cast<std::int32_t>(tensor.shape.elements());
  darwinn::Numerics numerics;
  numerics.zero_point = tiled.zero_point;
  numerics.dequantization_factor = tensor.quantization.scale[0];
  layer.numerics = numerics;
  layer.data_type = is_16                                ? darwinn::DataType::kInt16
                    : tensor.type == ir::DataType::kInt8 ? darwinn::DataType::kInt8
                                                         : darwinn::DataType::kUint8;
  return layer;
}

// A result, which may go out in several pieces of some rows each.
using Pieces = std::vector<const TiledTensor*>;

// Where the host finds pixel (y, x) in the stream of tiles. The tiles of each piece are counted as others.
darwinn::OutputLayout layout_of(const Pieces& pieces) {
  const TiledTensor& tensor = *pieces.front();
  darwinn::OutputLayout layout;
  if (tensor.spread != tiled::Spread::kGrid) {
    const OutputStream stream = output_stream(tensor);
    layout.tile_offset.assign(stream.offset.begin(), stream.offset.end());
  }
  if (tensor.spread == tiled::Spread::kVector) {
    layout.y_to_tile = {0};
    layout.y_to_local_row = {0};
    layout.x_to_tile = {0};
    layout.x_to_local_offset = {0};
    layout.x_to_row_size = {static_cast<std::int32_t>(tensor.tile_bytes())};
    return layout;
  }
  if (tensor.spread == tiled::Spread::kCopies) {
    for (std::int32_t y = 0; y < tensor.height; ++y) {
      layout.y_to_tile.push_back(0);
      layout.y_to_local_row.push_back(y);
    }
    for (std::int32_t x = 0; x < tensor.width; ++x) {
      layout.x_to_tile.push_back(std::countr_zero(tensor.tiles));
      layout.x_to_local_offset.push_back(x * tensor.pitch);
      layout.x_to_row_size.push_back(tensor.width * tensor.pitch);
    }
    return layout;
  }
  layout.y_to_tile.resize(static_cast<std::size_t>(tensor.height));
  layout.y_to_local_row.resize(static_cast<std::size_t>(tensor.height));
  std::int32_t before = 0;  // bytes of other pieces
  for (const TiledTensor* piece : pieces) {
    const OutputStream stream = output_stream(*piece);
    const auto first_tile = static_cast<std::int32_t>(layout.tile_offset.size());
    for (int row = 0; row < chip::kTileRows; ++row) {
      const tiled::TileShare& rows = piece->rows.tile(row);
      for (std::int32_t y = rows.begin; y < rows.end; ++y) {
        layout.y_to_tile[at(y)] = first_tile + chip::kTileColumns * row;
        layout.y_to_local_row[at(y)] = y - rows.begin;
      }
    }
    for (const std::int32_t offset : stream.offset) layout.tile_offset.push_back(before + offset);
    before += stream.bytes;
  }
  for (int column = 0; column < chip::kTileColumns; ++column) {
    const std::int32_t own = tensor.columns.tile(column).own();
    for (std::int32_t x = 0; x < own; ++x) {
      layout.x_to_tile.push_back(column);
      layout.x_to_local_offset.push_back(x * tensor.pitch);
      layout.x_to_row_size.push_back(own * tensor.pitch);
    }
  }
  return layout;
}

darwinn::Layer output_layer(const ir::Tensor& tensor, const Pieces& pieces) {
  darwinn::Layer layer = layer_of(tensor, *pieces.front());
  layer.size_bytes = 0;
  for (const TiledTensor* piece : pieces) layer.size_bytes += output_stream(*piece).bytes;
  darwinn::OutputInfo info;
  info.layout = layout_of(pieces);
  layer.info = std::move(info);
  darwinn::TensorShape shape;
  for (const std::int32_t size : tensor.shape.dims()) shape.dimensions.push_back({0, size - 1});
  layer.shape = std::move(shape);
  return layer;
}

// Instructions, and all transfers in their order: those of a piece of the program follow its instructions.
void add_program(std::vector<ProgramPiece> pieces, std::vector<Emission::Hint> transfers,
                 darwinn::Executable& executable) {
  darwinn::DmaHints hints;
  std::size_t next = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    hints.hints.push_back(instructions(i));
    for (; next < transfers.size() && transfers[next].position <= pieces[i].end; ++next) {
      hints.hints.push_back(std::move(transfers[next].hint));
    }
    darwinn::InstructionChunk& chunk = executable.instruction_chunks.emplace_back();
    chunk.bitstream = Bytes(isa::encode(pieces[i].program));
    chunk.field_offsets = std::move(pieces[i].field_offsets);
  }
  hints.hints.push_back(interrupt());
  executable.dma_hints = std::move(hints);
}

// The host's view of inputs and results, in the order of the custom op's operands.
void describe_borders(const ir::Model& model, const TiledProgram& program, darwinn::Executable& executable) {
  const auto source = [&](std::int32_t index) -> const ir::Tensor& { return model.subgraphs[0].tensors[at(index)]; };
  for (const std::int32_t step : program.inputs) {
    const auto& infeed = std::get<tiled::Infeed>(program.steps[at(step)].work);
    const TiledTensor& tensor = program.tensor(infeed.tensor);
    darwinn::Layer layer = layer_of(source(infeed.border), tensor);
    layer.info = darwinn::InputInfo{};
    layer.size_bytes = tiled::input_bytes(tensor);
    executable.input_layers.push_back(std::move(layer));
  }
  for (const std::int32_t step : program.outputs) {
    const auto& first = std::get<tiled::Outfeed>(program.steps[at(step)].work);
    const std::int32_t border = first.border;
    Pieces pieces;
    for (std::size_t i = static_cast<std::size_t>(step); i < program.steps.size(); ++i) {
      const auto* outfeed = std::get_if<tiled::Outfeed>(&program.steps[i].work);
      if (outfeed == nullptr || outfeed->border != border || outfeed->is_state != first.is_state) continue;
      if (outfeed->piece != static_cast<std::int32_t>(pieces.size())) break;
      pieces.push_back(&program.tensor(outfeed->tensor));
    }
    executable.output_layers.push_back(output_layer(source(border), pieces));
    executable.output_layers.back().name = name_of_result(source(border), first);
  }
}

// Steps without a barrier of their own get one where many follow each other: long programs are cut there.
constexpr std::int64_t kMostRowsBetweenBarriers = isa::kMaxContentRows / 4;

// The first piece of a program that is to begin soon: little more than what brings in its input.
constexpr std::int64_t kFirstPieceRows = 128;

Result<darwinn::Executable> execution(const ir::Model& model, const TiledProgram& program, bool has_cached,
                                      AddressCode address_code, EmittedPackage& result) {
  darwinn::Executable executable = darwinn::new_executable(has_cached ? darwinn::ExecutableType::kExecutionOnly
                                                                      : darwinn::ExecutableType::kStandAlone);
  describe_borders(model, program, executable);
  ProgramWriter writer(0, address_code);
  if (program.level >= tiled::Level::kFast) writer.split_from(kFirstPieceRows);
  Emission to{writer, program, model};
  prologue_of_execution(writer);
  const auto note_begin = [&] {
    result.step_begins.push_back(static_cast<std::int32_t>(writer.position()) + 1);
    result.step_rows.push_back(writer.rows());
  };
  for (const tiled::Step& step : program.steps) {
    note_begin();
    if (writer.rows_since_barrier() > kMostRowsBetweenBarriers) writer.barrier();
    for (const std::int32_t chunk : step.parameters_used) fetch_parameters(to, program.chunk(chunk));
    std::visit([&](const auto& work) { emit_step(to, work); }, step.work);
  }
  note_begin();
  epilogue_of_execution(writer);
  executable.used_narrow_memory_bytes = program.narrow_bytes;
  executable.scratch_size_bytes = static_cast<std::int32_t>(program.host_bytes);
  executable.parameters = Bytes(std::move(to.parameters));
  REEF_ASSIGN_OR_RETURN(auto pieces, std::move(writer).finish());
  add_program(std::move(pieces), std::move(to.hints), executable);
  return executable;
}

Result<darwinn::Executable> caching(const TiledProgram& program, AddressCode address_code) {
  darwinn::Executable executable = darwinn::new_executable(darwinn::ExecutableType::kParameterCaching);
  std::vector<std::uint8_t> blob;
  for (const tiled::ParameterChunk& chunk : program.parameters) {
    if (!chunk.is_cached()) continue;
    const auto bytes = chunk.bytes.span();
    blob.insert(blob.end(), bytes.begin(), bytes.end());
  }
  REEF_ASSIGN_OR_RETURN(auto pieces, caching_program(program, address_code));
  add_program(std::move(pieces),
              {{transfer_hint(darwinn::BaseAddress::kParameter, "", 0, static_cast<std::int64_t>(blob.size()),
                              darwinn::Direction::kToDevice)}},
              executable);
  executable.parameters = Bytes(std::move(blob));
  return executable;
}

}  // namespace

std::string Emission::name_of(const tiled::Outfeed& output) const {
  return name_of_result(model.subgraphs[0].tensors[at(output.border)], output);
}

void Emission::hint_transfer(darwinn::BaseAddress base, const std::string& name, std::int64_t offset,
                             std::int64_t bytes, darwinn::Direction direction) {
  hints.push_back({transfer_hint(base, name, offset, bytes, direction), writer.position()});
}

void Emission::hint_fence() {
  Hint& fence = hints.emplace_back();
  fence.hint.hint.emplace<darwinn::FenceHint>();
  fence.position = writer.position();
}

Result<EmittedPackage> package(const ir::Model& model, const TiledProgram& program, const PackageOptions& options) {
  EmittedPackage emitted;
  darwinn::Package& result = emitted.package;
  result.min_runtime_version = options.min_runtime_version;
  result.compiler_version = options.compiler_version;
  const AddressCode address_code =
      options.min_runtime_version >= kCopiesFromRuntime ? AddressCode::kCopies : AddressCode::kAdditions;
  // With nothing to keep, a program needs no other.
  const bool caches = std::any_of(program.parameters.begin(), program.parameters.end(),
                                  [](const tiled::ParameterChunk& chunk) { return chunk.is_cached(); });
  REEF_ASSIGN_OR_RETURN(darwinn::Executable execute, execution(model, program, caches, address_code, emitted));
  if (!caches) {
    result.executables.push_back(std::move(execute));
    return emitted;
  }
  REEF_ASSIGN_OR_RETURN(darwinn::Executable cache, caching(program, address_code));
  execute.parameter_caching_token = options.caching_token;
  cache.parameter_caching_token = options.caching_token;
  result.executables.push_back(std::move(execute));
  result.executables.push_back(std::move(cache));
  return emitted;
}

}  // namespace reef::emit
