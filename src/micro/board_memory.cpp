// SPDX-License-Identifier: Apache-2.0
#include "micro/board_memory.h"

#include <fmt/format.h>

#include "ir/describe.h"
#include "micro/board.h"
#include "micro/edge_tpu_rules.h"

namespace reef::micro {
namespace {

constexpr std::string_view kStaticMemory = "static SDRAM";

// Whether exported programs link the camera for this model (project_main.cpp).
bool takes_pictures(const ir::Model& model) {
  if (model.subgraphs[0].inputs.size() != 1) return false;
  const ir::Tensor& input = model.subgraphs[0].tensors[at(model.subgraphs[0].inputs[0])];
  return input.shape.rank() == 4 && ir::is_integer_8(input.type);
}

std::int64_t picture_bytes(const ir::Model& model) {
  const ir::Tensor& input = model.subgraphs[0].tensors[at(model.subgraphs[0].inputs[0])];
  return kBoardCameraBytes + input.shape.checked_elements().value_or(0);
}

std::vector<MemoryNeed> on_corals_board(const ir::Model& model, const AssessOptions& options,
                                        std::optional<std::int64_t> arena) {
  std::vector<MemoryNeed> needs;
  std::int64_t buffers = 0;
  for (const ir::Operator& op : model.subgraphs[0].operators) buffers += driver_buffer_bytes(op);
  const std::int64_t file = options.file_bytes;
  const bool is_exact = options.file_bytes_are_exact;
  constexpr std::string_view kSmallerInput =
      "Use a smaller input, or let more of the model run on the Edge TPU (`reef check` says what keeps it from that).";
  if (arena) {
    needs.push_back({{"tensor arena", kStaticMemory, *arena, kBoardStaticBytes}, std::string(kSmallerInput)});
    const std::int64_t pictures = takes_pictures(model) ? picture_bytes(model) : 0;
    const std::int64_t beside = pictures + (options.embeds_model ? file : 0);
    if (beside > 0 && needs.back().fits()) {
      const std::string_view what = !options.embeds_model ? "tensor arena with the camera's frames"
                                    : pictures > 0        ? "tensor arena with camera frames and model"
                                                          : "tensor arena with the model";
      needs.push_back(
          {{what, kStaticMemory, *arena + beside, kBoardStaticBytes, is_exact || !options.embeds_model},
           std::string(options.embeds_model ? "Leave out `--embed`: the heap takes the model then." : kSmallerInput)});
    }
  }
  if (options.embeds_model) {
    needs.push_back({{"driver's buffers", "heap", buffers, kBoardHeapBytes, is_exact}, "Use a smaller model."});
    return needs;
  }
  needs.push_back({{"model file", "file system", file, kBoardFileBytes, is_exact}, "Use a smaller model."});
  needs.push_back(
      {{"model with the driver's buffers", "heap", file + buffers, kBoardHeapBytes, is_exact},
       "Use a smaller model, give the heap more (`__heap_size__` of the SDK's linker script), or link the model as a C "
       "array (`reef export micro --embed`), which takes static SDRAM instead."});
  return needs;
}

std::vector<MemoryNeed> on_any_board(const AssessOptions& options, std::optional<std::int64_t> arena) {
  std::vector<MemoryNeed> needs;
  if (options.ram_bytes && arena) {
    needs.push_back({{"tensor arena", "RAM", *arena, *options.ram_bytes},
                     fmt::format("Use a smaller input or model, or a board with at least {} beside what the program "
                                 "itself takes.",
                                 ir::describe_bytes(*arena))});
  }
  if (options.flash_bytes) {
    needs.push_back({{"model", "flash", options.file_bytes, *options.flash_bytes, options.file_bytes_are_exact},
                     "Use a smaller model, or a board with more flash: the program takes some, too."});
  }
  return needs;
}

}  // namespace

std::vector<MemoryNeed> memory_needs(const ir::Model& model, const AssessOptions& options,
                                     std::optional<std::int64_t> arena) {
  return options.target == Target::kMicro ? on_corals_board(model, options, arena) : on_any_board(options, arena);
}

}  // namespace reef::micro
