// SPDX-License-Identifier: Apache-2.0
// A model of one fully connected layer and a package for it, written by hand: for tests that run from a clone alone.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "formats/darwinn/parameters/from_operator.h"
#include "formats/darwinn/writer.h"
#include "formats/tflite/writer.h"
#include "ir/model.h"
#include "isa/assembler.h"
#include "isa/fence.h"
#include "isa/host_queues.h"
#include "isa/movers.h"
#include "isa/program.h"
#include "isa/ring.h"
#include "isa/scalar.h"
#include "isa/tensor_op.h"

namespace reef::retarget::testing {

// Four inputs, four outputs, 8 bits.
struct SampleLayer {
  std::array<std::uint8_t, 16> weights{};
  std::array<std::int32_t, 4> biases{};
  float input_scale = 0.5f, weight_scale = 0.25f, output_scale = 1.0f;
  int input_zero = 3, weight_zero = 120, output_zero = 17;
};

inline ir::Tensor sample_tensor(std::string name, ir::DataType type, ir::Shape shape, int buffer, float scale,
                                int zero) {
  ir::Tensor tensor;
  tensor.name = std::move(name);
  tensor.type = type;
  tensor.shape = std::move(shape);
  tensor.buffer = buffer;
  tensor.has_quantization = true;
  tensor.quantization.scale = {scale};
  tensor.quantization.zero_point = {zero};
  return tensor;
}

inline ir::Model sample_model(const SampleLayer& layer) {
  ir::Model model;
  model.buffers.resize(3);
  model.buffers[1].data = Bytes::copy_of(layer.weights);
  model.buffers[2].data = Bytes::copy_of(
      {reinterpret_cast<const std::uint8_t*>(layer.biases.data()), layer.biases.size() * sizeof(std::int32_t)});
  ir::Subgraph graph;
  const float bias_scale = layer.input_scale * layer.weight_scale;
  graph.tensors = {
      sample_tensor("in", ir::DataType::kUInt8, {1, 4}, 0, layer.input_scale, layer.input_zero),
      sample_tensor("weights", ir::DataType::kUInt8, {4, 4}, 1, layer.weight_scale, layer.weight_zero),
      sample_tensor("biases", ir::DataType::kInt32, {4}, 2, bias_scale, 0),
      sample_tensor("out", ir::DataType::kUInt8, {1, 4}, 0, layer.output_scale, layer.output_zero),
  };
  graph.inputs = {0};
  graph.outputs = {3};
  ir::Operator op;
  op.type = "FULLY_CONNECTED";
  op.builtin_code = 9;
  op.options_type = "FullyConnectedOptions";
  op.inputs = {0, 1, 2};
  op.outputs = {3};
  graph.operators = {op};
  model.subgraphs = {graph};
  return model;
}

// Builds programs instruction by instruction; the first value that does not fit its field is remembered.
class ProgramBuilder {
 public:
  isa::Instruction& add(isa::Opcode opcode) {
    program_.emplace_back(opcode);
    program_.back().set_usual();
    if (isa::is_tile_instruction(opcode)) set(isa::tile::kTiles, 1);
    return program_.back();
  }
  ProgramBuilder& set(const isa::Field& field, std::int64_t value) {
    keep(program_.back().set(field, value));
    return *this;
  }
  ProgramBuilder& set_float(const isa::Field& field, float value) {
    keep(program_.back().set_float(field, value));
    return *this;
  }
  // One dimension of unit stride.
  ProgramBuilder& nest(const isa::NestFields& fields, std::uint32_t base, std::uint32_t count) {
    isa::Nest nest;
    nest.base = base;
    nest.dims[0] = {1, count, true};
    keep(program_.back().write_nest(fields, nest));
    return *this;
  }
  // Everything before is done.
  void fence() {
    add(isa::Opcode::kTileFence);
    set(isa::tile_fence::kDrain, 0x3ff);
  }
  // Asks the host for a transfer: a package says where the host is to write the buffer's address.
  void ask_for(darwinn::BaseAddress base, std::string layer, int bytes, isa::bundle::DescriptorTag purpose) {
    std::int32_t row = 0;
    for (const isa::Instruction& instruction : program_) row += instruction.rows();
    for (const darwinn::AddressHalf half : {darwinn::AddressHalf::kLower, darwinn::AddressHalf::kUpper}) {
      darwinn::FieldOffset& field = fields_.emplace_back();
      field.use->base = base;
      field.use->name = layer;
      field.use->half = half;
      field.bit_offset = row++ * isa::kRowBits + isa::bundle::kAluOperand.bit;
    }
    add_text(
        fmt::format("scalar r0 = mov 0\nscalar r1 = mov 0\nscalar dma.address_lo = r0\n"
                    "scalar r2 = mov {} | dma.address_hi = r1\n"
                    "scalar r3 = mov {} | dma.bytes = r2\n"
                    "scalar dma.tag = r3\nscalar dma.issue\n",
                    bytes, static_cast<int>(purpose)));
  }
  // Instructions in assembly language.
  void add_text(const std::string& text) {
    const auto more = isa::assemble(text);
    keep(more.status());
    if (more.ok()) program_.insert(program_.end(), more->begin(), more->end());
  }
  isa::Instruction& at(std::size_t index) { return program_[index]; }
  const isa::Program& program() const { return program_; }
  const Status& status() const { return status_; }
  darwinn::InstructionChunk chunk() const {
    darwinn::InstructionChunk chunk;
    chunk.bitstream = Bytes(isa::encode(program_));
    chunk.field_offsets = fields_;
    return chunk;
  }

 private:
  void keep(const Status& status) {
    if (status_.ok()) status_ = status;
  }
  isa::Program program_;
  std::vector<darwinn::FieldOffset> fields_;
  Status status_;
};

// Two lines of 64 bytes, biases and weights, to lines 0 and 1 of tile 0.
inline darwinn::InstructionChunk sample_caching_program() {
  namespace q = isa::host_queues;
  ProgramBuilder b;
  b.ask_for(darwinn::BaseAddress::kParameter, "", 128, isa::bundle::DescriptorTag::kParameters);
  b.add(isa::Opcode::kInfeed);
  b.nest(q::kInfeedOut, 0, 2);
  b.add(isa::Opcode::kRingReceiveA);
  b.nest(isa::ring::kReceiveOut, 1, 1).set(isa::ring::kHeader, 1).set(isa::ring::kHeaderStep, 1);
  b.add(isa::Opcode::kPop);
  b.nest(q::kPopIn, 0, 2).set(q::kPopLineWords, 16).set(q::kPopTiles, 1);
  b.fence();
  return b.chunk();
}

inline darwinn::InstructionChunk sample_execution_program(const darwinn::LayerRequantization& constants) {
  namespace q = isa::host_queues;
  namespace t = isa::tensor_op;
  namespace m = isa::movers;
  ProgramBuilder b;
  b.ask_for(darwinn::BaseAddress::kInput, "in", 8, isa::bundle::DescriptorTag::kInput);
  b.ask_for(darwinn::BaseAddress::kOutput, "out", 8, isa::bundle::DescriptorTag::kOutput);
  b.add(isa::Opcode::kInfeed);  // 8 bytes of input
  b.nest(q::kInfeedOut, 0, 1).set(q::kInfeedBuffer, 1);
  b.add(isa::Opcode::kRingReceiveA);
  b.nest(isa::ring::kReceiveOut, 10, 1);
  b.add(isa::Opcode::kPop);
  b.nest(q::kPopIn, 0, 1).set(q::kPopSource, 1).set(q::kPopLineWords, 2).set(q::kPopTiles, 1);
  b.fence();
  b.add(isa::Opcode::kWideToNarrow);  // to narrow word 0
  b.nest(m::kToNarrowIn, 10, 1).nest(m::kToNarrowOut, 0, 1).set(m::kToNarrowLineLevel, 1);
  b.fence();
  b.add(isa::Opcode::kWideToNarrow);  // biases to scaling memory
  b.nest(m::kToNarrowIn, 0, 1).nest(m::kToNarrowOut, 64, 2).set(m::kToScaling, 1).set(m::kToNarrowLineLevel, 1);
  b.fence();
  b.add(isa::Opcode::kMultiplyAdd);
  b.nest(t::kIn, 0, 1).nest(t::kOut, 64, 1).nest(t::kParam, 4, 1).nest(t::kPsum, 0, 1);
  b.set(t::kStaticParams, 1).set(t::kAccumulateInside, 1).set(t::kReduceDims, 1).set(t::kCells, 4).set(t::kBias, 1);
  b.set(t::kParamZero, constants.weight_zero_point).set(t::kInZero, constants.input_zero_point);
  b.set(t::kOutZero, constants.output_zero_point).set_float(t::kScale, constants.multiplier);
  b.set_float(t::kMax, constants.clamp.max).set_float(t::kMin, constants.clamp.min);
  b.fence();
  b.add(isa::Opcode::kNarrowToWide);
  b.nest(m::kToWideIn, 16, 1).nest(m::kToWideOut, 20, 1).set(m::kToWideLineLevel, 1);
  b.fence();
  b.add(isa::Opcode::kRingSend);
  b.nest(isa::ring::kSendIn, 20, 1).set(isa::ring::kToScalar, 1);
  b.add(isa::Opcode::kOutfeed);
  b.nest(q::kOutfeedOut, 0, 1).set(q::kOutfeedTarget, 1);
  b.fence();
  return b.chunk();
}

inline darwinn::DmaHint sample_transfer(darwinn::BaseAddress base, std::string layer, int bytes) {
  darwinn::DescriptorHint descriptor;
  descriptor.use->base = base;
  descriptor.use->name = std::move(layer);
  descriptor.size_bytes = bytes;
  darwinn::DmaHint hint;
  hint.hint = descriptor;
  if (base == darwinn::BaseAddress::kOutput) hint.direction = darwinn::Direction::kToHost;
  return hint;
}

inline darwinn::Layer sample_layer(std::string name, float scale, int zero, bool is_output) {
  darwinn::Layer layer;
  layer.name = std::move(name);
  layer.size_bytes = 8;
  layer.y_dim = layer.x_dim = 1;
  layer.z_dim = 4;
  layer.numerics = darwinn::Numerics{zero, scale};
  if (is_output) {
    layer.info = darwinn::OutputInfo();
  } else {
    layer.info = darwinn::InputInfo();
  }
  return layer;
}

// A package that a compiler could have made of sample_model(layer).
inline Result<std::vector<std::uint8_t>> sample_compiled(const SampleLayer& layer) {
  const ir::Model model = sample_model(layer);
  const ir::Subgraph& graph = model.subgraphs[0];
  const darwinn::Presence presence{false, true, false};
  REEF_ASSIGN_OR_RETURN(const auto parameters, darwinn::layer_parameters_of(model, graph, graph.operators[0],
                                                                            {.order = {}, .presence = presence}));
  REEF_ASSIGN_OR_RETURN(const auto chunk, darwinn::pack(parameters));
  REEF_ASSIGN_OR_RETURN(const auto constants,
                        darwinn::layer_requantization_of(model, graph, graph.operators[0], presence));
  darwinn::CustomOptions options;
  darwinn::Executable execution = darwinn::new_executable(darwinn::ExecutableType::kExecutionOnly);
  execution.instruction_chunks = {sample_execution_program(constants)};
  execution.input_layers = {sample_layer("in", layer.input_scale, layer.input_zero, false)};
  execution.output_layers = {sample_layer("out", layer.output_scale, layer.output_zero, true)};
  execution.dma_hints = darwinn::DmaHints();
  execution.dma_hints->hints = {sample_transfer(darwinn::BaseAddress::kInput, "in", 8),
                                sample_transfer(darwinn::BaseAddress::kOutput, "out", 8)};
  darwinn::Executable caching = darwinn::new_executable(darwinn::ExecutableType::kParameterCaching);
  caching.instruction_chunks = {sample_caching_program()};
  caching.parameters = Bytes(chunk);
  execution.parameter_caching_token = caching.parameter_caching_token = 0x1122334455667788;
  options.package.executables = {execution, caching};
  REEF_ASSIGN_OR_RETURN(auto bytes, darwinn::write_custom_options(options));
  ir::Model compiled;
  compiled.buffers.resize(1);
  ir::Subgraph compiled_graph;
  compiled_graph.tensors = {graph.tensors[0], graph.tensors[3]};
  compiled_graph.inputs = {0};
  compiled_graph.outputs = {1};
  ir::Operator op;
  op.type = "edgetpu-custom-op";
  op.builtin_code = ir::kCustomBuiltinCode;
  op.inputs = {0};
  op.outputs = {1};
  op.custom_options = Bytes(std::move(bytes));
  compiled_graph.operators = {op};
  compiled.subgraphs = {compiled_graph};
  return tflite::write_model(compiled);
}

}  // namespace reef::retarget::testing
