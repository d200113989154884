// SPDX-License-Identifier: Apache-2.0
#include "emit/package.h"

#include "emit/blocks.h"
#include "emit/registers.h"

namespace reef::emit {
namespace {

using tiled::TiledProgram;
using tiled::TiledTensor;

darwinn::AddressUse buffer(darwinn::BaseAddress base, const std::string& name) {
  return host_address(base, name, darwinn::AddressHalf::kLower);
}

darwinn::DmaHint transfer(darwinn::AddressUse use, std::int64_t bytes, darwinn::Direction direction) {
  darwinn::DescriptorHint descriptor;
  descriptor.use = std::move(use);
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

Result<darwinn::Executable> execution(const ir::Model& model, const TiledProgram& program) {
  const auto tensor = [&](std::int32_t index) -> const ir::Tensor& {
    return model.subgraphs[0].tensors[static_cast<std::size_t>(index)];
  };
  const auto tiled = [&](std::int32_t index) -> const TiledTensor& {
    return program.tensors[static_cast<std::size_t>(index)];
  };
  darwinn::Executable executable = darwinn::new_executable(darwinn::ExecutableType::kExecutionOnly);
  darwinn::DmaHints hints;
  hints.hints.push_back(instructions());
  ProgramWriter writer(0);
  prologue_of_execution(writer);
  for (std::size_t i = 0; i < program.inputs.size(); ++i) {
    const ir::Tensor& source = tensor(program.input_names[i]);
    infeed(writer, program, program.inputs[i], source.name);
    darwinn::Layer layer = layer_of(source, tiled(program.inputs[i].tensor));
    layer.info = darwinn::InputInfo{};
    hints.hints.push_back(
        transfer(buffer(darwinn::BaseAddress::kInput, source.name), layer.size_bytes, darwinn::Direction::kToDevice));
    executable.input_layers.push_back(std::move(layer));
  }
  for (const tiled::TiledLayer& each : program.layers) layer(writer, program, each);
  for (std::size_t i = 0; i < program.outputs.size(); ++i) {
    const ir::Tensor& source = tensor(program.output_names[i]);
    const OutputStream stream = output_stream(tiled(program.outputs[i].tensor));
    if (i > 0) writer.barrier();
    outfeed(writer, program, program.outputs[i], source.name);
    hints.hints.push_back(
        transfer(buffer(darwinn::BaseAddress::kOutput, source.name), stream.bytes, darwinn::Direction::kToHost));
    executable.output_layers.push_back(output_layer(source, tiled(program.outputs[i].tensor), stream));
  }
  epilogue_of_execution(writer);
  hints.hints.push_back(interrupt());
  executable.dma_hints = std::move(hints);
  executable.used_narrow_memory_bytes = program.narrow_bytes;
  std::vector<darwinn::FieldOffset> fields = writer.field_offsets();
  REEF_ASSIGN_OR_RETURN(const isa::Program code, std::move(writer).finish());
  executable.instruction_chunks.push_back(chunk_of(code, std::move(fields)));
  return executable;
}

Result<darwinn::Executable> caching(const TiledProgram& program) {
  darwinn::Executable executable = darwinn::new_executable(darwinn::ExecutableType::kParameterCaching);
  std::vector<std::uint8_t> blob;
  for (const tiled::TiledLayer& layer : program.layers) {
    const auto bytes = layer.parameters.bytes.span();
    blob.insert(blob.end(), bytes.begin(), bytes.end());
  }
  std::vector<darwinn::FieldOffset> fields;
  REEF_ASSIGN_OR_RETURN(const isa::Program code, caching_program(program, fields));
  darwinn::DmaHints hints;
  hints.hints.push_back(instructions());
  hints.hints.push_back(transfer(buffer(darwinn::BaseAddress::kParameter, ""), static_cast<std::int64_t>(blob.size()),
                                 darwinn::Direction::kToDevice));
  hints.hints.push_back(interrupt());
  executable.parameters = Bytes(std::move(blob));
  executable.dma_hints = std::move(hints);
  executable.instruction_chunks.push_back(chunk_of(code, std::move(fields)));
  return executable;
}

}  // namespace

Result<darwinn::Package> package(const ir::Model& model, const TiledProgram& program, const PackageOptions& options) {
  darwinn::Package result;
  result.min_runtime_version = options.min_runtime_version;
  result.compiler_version = options.compiler_version;
  REEF_ASSIGN_OR_RETURN(darwinn::Executable execute, execution(model, program));
  REEF_ASSIGN_OR_RETURN(darwinn::Executable cache, caching(program));
  execute.parameter_caching_token = options.caching_token;
  cache.parameter_caching_token = options.caching_token;
  result.executables.push_back(std::move(execute));
  result.executables.push_back(std::move(cache));
  return result;
}

}  // namespace reef::emit
