// SPDX-License-Identifier: Apache-2.0
#include "emit/package.h"

#include "emit/blocks.h"
#include "emit/registers.h"

namespace reef::emit {
namespace {

using tiled::TiledProgram;
using tiled::TiledTensor;

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

darwinn::DmaHint instructions() {
  darwinn::DmaHint hint;
  hint.hint = darwinn::InstructionHint{};
  return hint;
}
darwinn::DmaHint interrupt() {
  darwinn::DmaHint hint;
  hint.hint = darwinn::InterruptHint{};
  hint.direction = darwinn::Direction::kToHost;
  return hint;
}

darwinn::Layer layer_of(const ir::Tensor& tensor, const TiledTensor& tiled) {
  darwinn::Layer layer;
  layer.name = tensor.name;
  layer.y_dim = tiled.height;
  layer.x_dim = tiled.width;
  layer.z_dim = tiled.channels;
  layer.size_bytes = tiled.height * tiled.width * tiled.channels;
  darwinn::Numerics numerics;
  numerics.zero_point = tiled.zero_point;
  numerics.dequantization_factor = tensor.quantization.scale[0];
  layer.numerics = numerics;
  layer.data_type = tensor.type == ir::DataType::kInt8 ? darwinn::DataType::kInt8 : darwinn::DataType::kUint8;
  return layer;
}

// Where the host finds pixel (y, x) in the stream of tiles.
darwinn::OutputLayout layout_of(const TiledTensor& tensor, const OutputStream& stream) {
  darwinn::OutputLayout layout;
  for (int row = 0; row < chip::kTileRows; ++row) {
    for (std::int32_t y = 0; y < tensor.rows.tile(row).own(); ++y) {
      layout.y_to_tile.push_back(chip::kTileColumns * row);
      layout.y_to_local_row.push_back(y);
    }
  }
  for (int column = 0; column < chip::kTileColumns; ++column) {
    const std::int32_t own = tensor.columns.tile(column).own();
    for (std::int32_t x = 0; x < own; ++x) {
      layout.x_to_tile.push_back(column);
      layout.x_to_local_offset.push_back(x * tensor.pitch);
      layout.x_to_row_size.push_back(own * tensor.pitch);
    }
  }
  layout.tile_offset.assign(stream.offset.begin(), stream.offset.end());
  return layout;
}

darwinn::Layer output_layer(const ir::Tensor& tensor, const TiledTensor& tiled, const OutputStream& stream) {
  darwinn::Layer layer = layer_of(tensor, tiled);
  layer.size_bytes = stream.bytes;
  darwinn::OutputInfo info;
  info.layout = layout_of(tiled, stream);
  layer.info = std::move(info);
  darwinn::TensorShape shape;
  for (const std::int32_t size : tensor.shape.dims()) shape.dimensions.push_back({0, size - 1});
  layer.shape = std::move(shape);
  return layer;
}

darwinn::InstructionChunk chunk_of(const isa::Program& program, std::vector<darwinn::FieldOffset> fields) {
  darwinn::InstructionChunk chunk;
  chunk.bitstream = Bytes(isa::encode(program));
  chunk.field_offsets = std::move(fields);
  return chunk;
}

darwinn::DmaHints with_frame(std::vector<darwinn::DmaHint> transfers) {
  darwinn::DmaHints hints;
  hints.hints.push_back(instructions());
  for (darwinn::DmaHint& hint : transfers) hints.hints.push_back(std::move(hint));
  hints.hints.push_back(interrupt());
  return hints;
}

// The host's view of inputs and results, in the order of the custom op's operands.
void describe_borders(const ir::Model& model, const TiledProgram& program, darwinn::Executable& executable) {
  const auto source = [&](std::int32_t index) -> const ir::Tensor& {
    return model.subgraphs[0].tensors[static_cast<std::size_t>(index)];
  };
  for (const std::int32_t step : program.inputs) {
    const auto& infeed = std::get<tiled::Infeed>(program.steps[static_cast<std::size_t>(step)].work);
    const TiledTensor& tensor = program.tensor(infeed.tensor);
    darwinn::Layer layer = layer_of(source(infeed.border), tensor);
    layer.info = darwinn::InputInfo{};
    layer.size_bytes = tiled::input_bytes(tensor);
    executable.input_layers.push_back(std::move(layer));
  }
  for (const std::int32_t step : program.outputs) {
    const auto& outfeed = std::get<tiled::Outfeed>(program.steps[static_cast<std::size_t>(step)].work);
    const TiledTensor& tensor = program.tensor(outfeed.tensor);
    executable.output_layers.push_back(output_layer(source(outfeed.border), tensor, output_stream(tensor)));
  }
}

Result<darwinn::Executable> execution(const ir::Model& model, const TiledProgram& program,
                                      std::vector<std::int32_t>& step_begins) {
  darwinn::Executable executable = darwinn::new_executable(darwinn::ExecutableType::kExecutionOnly);
  describe_borders(model, program, executable);
  ProgramWriter writer(0);
  Emission to{writer, program, model};
  prologue_of_execution(writer);
  for (const tiled::Step& step : program.steps) {
    step_begins.push_back(writer.instruction_count());
    std::visit([&](const auto& work) { emit_step(to, work); }, step.work);
  }
  step_begins.push_back(writer.instruction_count());
  epilogue_of_execution(writer);
  executable.dma_hints = with_frame(std::move(to.hints));
  executable.used_narrow_memory_bytes = program.narrow_bytes;
  std::vector<darwinn::FieldOffset> fields = writer.field_offsets();
  REEF_ASSIGN_OR_RETURN(const isa::Program code, std::move(writer).finish());
  executable.instruction_chunks.push_back(chunk_of(code, std::move(fields)));
  return executable;
}

Result<darwinn::Executable> caching(const TiledProgram& program) {
  darwinn::Executable executable = darwinn::new_executable(darwinn::ExecutableType::kParameterCaching);
  std::vector<std::uint8_t> blob;
  for (const tiled::ParameterChunk& chunk : program.parameters) {
    const auto bytes = chunk.bytes.span();
    blob.insert(blob.end(), bytes.begin(), bytes.end());
  }
  std::vector<darwinn::FieldOffset> fields;
  REEF_ASSIGN_OR_RETURN(const isa::Program code, caching_program(program, fields));
  executable.dma_hints = with_frame({transfer_hint(
      darwinn::BaseAddress::kParameter, "", 0, static_cast<std::int64_t>(blob.size()), darwinn::Direction::kToDevice)});
  executable.parameters = Bytes(std::move(blob));
  executable.instruction_chunks.push_back(chunk_of(code, std::move(fields)));
  return executable;
}

}  // namespace

void Emission::hint_transfer(darwinn::BaseAddress base, const std::string& name, std::int64_t offset,
                             std::int64_t bytes, darwinn::Direction direction) {
  hints.push_back(transfer_hint(base, name, offset, bytes, direction));
}

Result<EmittedPackage> package(const ir::Model& model, const TiledProgram& program, const PackageOptions& options) {
  EmittedPackage emitted;
  darwinn::Package& result = emitted.package;
  result.min_runtime_version = options.min_runtime_version;
  result.compiler_version = options.compiler_version;
  REEF_ASSIGN_OR_RETURN(darwinn::Executable execute, execution(model, program, emitted.step_begins));
  REEF_ASSIGN_OR_RETURN(darwinn::Executable cache, caching(program));
  execute.parameter_caching_token = options.caching_token;
  cache.parameter_caching_token = options.caching_token;
  result.executables.push_back(std::move(execute));
  result.executables.push_back(std::move(cache));
  return emitted;
}

}  // namespace reef::emit
