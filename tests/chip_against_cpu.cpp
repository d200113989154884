// SPDX-License-Identifier: Apache-2.0
#include "chip_against_cpu.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "execute/cpu/interpreter.h"
#include "execute/reference/chip_reference.h"

namespace reef::testing {

Result<int> distance_from_tflite(const ir::Model& model, unsigned seed, std::optional<int> most) {
  const ir::Subgraph& graph = model.subgraphs[0];
  cpu::InterpreterOptions options;
  options.tflite_release = ops::TfliteRelease::kCurrent;
  REEF_ASSIGN_OR_RETURN(const auto interpreter,
                        cpu::Interpreter::create(std::make_shared<const ir::Model>(model), options));
  REEF_RETURN_IF_ERROR(interpreter->prepare());
  std::mt19937 random(seed);
  reference::TensorBytes given;
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    const std::span<std::byte> bytes = interpreter->input_bytes(static_cast<int>(i));
    std::vector<std::uint8_t>& copy = given[graph.inputs[i]];
    copy.resize(bytes.size());
    for (std::uint8_t& byte : copy) {
      const auto number = static_cast<int>(random() % 0x10000);
      byte = static_cast<std::uint8_t>(most ? number % (2 * *most + 1) - *most : number);
    }
    std::memcpy(bytes.data(), copy.data(), copy.size());
  }
  REEF_RETURN_IF_ERROR(interpreter->invoke());
  REEF_ASSIGN_OR_RETURN(const reference::TensorBytes chip,
                        reference::evaluate_tensors_as_chip(model, given, graph.outputs));
  int largest = 0;
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    const ir::Tensor& tensor = graph.tensors[static_cast<std::size_t>(graph.outputs[i])];
    const std::vector<std::uint8_t>& ours = chip.at(graph.outputs[i]);
    const auto theirs = interpreter->output(static_cast<int>(i)).values<std::byte>();
    REEF_REQUIRE(theirs.size() == ours.size(), "{} bytes, not {}", ours.size(), theirs.size());
    const int flip = tensor.type == ir::DataType::kInt8 ? 128 : 0;
    for (std::size_t k = 0; k < ours.size(); ++k) {
      const int difference = (ours[k] ^ flip) - (std::to_integer<int>(theirs[k]) ^ flip);
      largest = std::max(largest, std::abs(difference));
    }
  }
  return largest;
}

}  // namespace reef::testing
