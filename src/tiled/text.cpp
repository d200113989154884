// SPDX-License-Identifier: Apache-2.0
#include "tiled/text.h"

#include <cctype>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ir/describe.h"

namespace reef::tiled {
namespace {

// The name of a type as the compiler spells it, so that new kinds of work need no list here.
template <typename T>
std::string_view spelled_type() {
  std::string_view name = __PRETTY_FUNCTION__;  // "... [with T = reef::tiled::Pool; ...]" or "[T = reef::tiled::Pool]"
  name.remove_prefix(name.find("T = ") + 4);
  name = name.substr(0, name.find_first_of(";]"));
  return name.substr(name.rfind(':') + 1);
}

std::string in_words(std::string_view type) {
  std::string words;
  for (const char c : type) {
    if (std::isupper(static_cast<unsigned char>(c)) != 0 && !words.empty()) words += ' ';
    words += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return words;
}

std::string window(const Window& y, const Window& x) {
  std::string text = fmt::format("kernel {}x{}, stride {}x{}", y.kernel, x.kernel, y.stride, x.stride);
  if (y.dilation != 1 || x.dilation != 1) text += fmt::format(", dilation {}x{}", y.dilation, x.dilation);
  if (y.pad_before != 0 || x.pad_before != 0) text += fmt::format(", padding {}+{}", y.pad_before, x.pad_before);
  return text;
}

std::string details(const Convolution& layer) {
  std::string text = fmt::format("{}, {}, {} groups of {} channels", layer.depthwise ? "depthwise" : "full",
                                 window(layer.y, layer.x), layer.groups, layer.cells);
  if (layer.is_in_patches()) text += fmt::format(" of {}x{} pixels", layer.patch_rows, layer.patch_columns);
  if (layer.last_cells != layer.cells) text += fmt::format(" (the last {})", layer.last_cells);
  text += layer.partial_sums
              ? fmt::format("; {} blocks of {} lines, sums wait in wide memory", layer.blocks, layer.block_lines)
              : fmt::format("; {} lines a group, sums stay in the cells", layer.block_lines);
  return text + (layer.buffers == 2 ? ", double buffered" : ", single buffered");
}
std::string details(const Infeed& infeed) {
  return infeed.strips ? "whole strips, then copied" : "row by row, two slots";
}
template <typename T>
std::string details(const T&) {
  return "";
}

std::string axis_text(const AxisPartition& axis) {
  std::vector<std::string> shares;
  for (const TileShare& tile : axis.tiles) {
    shares.push_back(tile.before + tile.after == 0 ? fmt::format("{}", tile.own())
                                                   : fmt::format("{}+{}+{}", tile.before, tile.own(), tile.after));
  }
  return fmt::format("{}", fmt::join(shares, " "));
}

std::string tensor_text(const ir::Model& model, const TiledProgram& program, std::size_t index) {
  const TiledTensor& tensor = program.tensors[index];
  std::string text = fmt::format("  t{:<3} {}x{}x{}", index, tensor.height, tensor.width, tensor.channels);
  if (tensor.source >= 0) {
    text += fmt::format(" '{}'", ir::describe_name(model.subgraphs[0].tensors[at(tensor.source)].name));
  }
  switch (tensor.spread) {
    case Spread::kGrid:
      text += fmt::format(", grid: rows {}, columns {}", axis_text(tensor.rows), axis_text(tensor.columns));
      break;
    case Spread::kVector:
      text += fmt::format(", vector: {} channels a tile", tensor.run);
      break;
    case Spread::kCopies:
      text += fmt::format(", copies on tiles {:#06x}", tensor.tiles);
      break;
  }
  text += fmt::format("; {} bytes a pixel in n{}", tensor.pitch, tensor.object);
  if (tensor.offset != 0) text += fmt::format(" + {}", tensor.offset);
  if (tensor.address != kNowhere) text += fmt::format(" at {}", tensor.address);
  return text + "\n";
}

std::string life_text(const Lifetime& life) {
  return life.first == kNowhere ? "never used" : fmt::format("steps {} to {}", life.first, life.last);
}

std::string parameters_text(const ParameterChunk& chunk, std::size_t index) {
  std::string text = fmt::format("  p{:<3} {} bytes, {} lines", index, chunk.bytes.size(), chunk.lines);
  if (chunk.is_fetched()) return text + fmt::format(": brought to w{} with every use\n", chunk.landing);
  if (chunk.is_streamed()) return text + "\n";
  std::vector<std::string> pieces;
  for (const ParameterPiece& piece : chunk.at) {
    pieces.push_back(fmt::format("tile {} lines {} to {}", piece.tile, piece.line, piece.line + piece.lines - 1));
  }
  return text + fmt::format(": kept on {}\n", fmt::join(pieces, ", "));
}

void append_list(std::string& text, std::string_view before, char letter, const std::vector<std::int32_t>& numbers) {
  if (numbers.empty()) return;
  text += before;
  for (const std::int32_t number : numbers) text += fmt::format(" {}{}", letter, number);
}

std::string step_text(const ir::Model& model, const Step& step, std::size_t index) {
  std::string text = fmt::format("  {:<3} {}", index, step_title(model, step));
  append_list(text, ":", 't', step.reads);
  append_list(text, " ->", 't', step.writes);
  append_list(text, "; parameters", 'p', step.parameters_used);
  append_list(text, "; narrow", 'n', step.narrow_used);
  append_list(text, "; wide", 'w', step.wide_used);
  const std::string more = work_details(step.work);
  return text + (more.empty() ? "\n" : fmt::format("\n      {}\n", more));
}

}  // namespace

std::string kind_name(const Work& work) {
  return std::visit([](const auto& kind) { return in_words(spelled_type<std::decay_t<decltype(kind)>>()); }, work);
}

std::string step_title(const ir::Model& model, const Step& step) {
  if (step.op < 0) return kind_name(step.work);
  const ir::Operator& op = model.subgraphs[0].operators[at(step.op)];
  return fmt::format("op {} {}, {}", step.op, op.type, kind_name(step.work));
}

std::string work_details(const Work& work) {
  return std::visit([](const auto& kind) { return details(kind); }, work);
}

std::string to_text(const ir::Model& model, const TiledProgram& program) {
  const bool is_scheduled = program.narrow_bytes > 0;
  std::string text = "tensors (before+own+after pixels of the four tiles where there are halos)\n";
  for (std::size_t i = 0; i < program.tensors.size(); ++i) text += tensor_text(model, program, i);
  text += is_scheduled ? fmt::format("narrow memory: {} of {} bytes of each tile\n", program.narrow_bytes,
                                     std::int32_t{chip::kNarrowBytes})
                       : "narrow memory\n";
  for (std::size_t i = 0; i < program.narrow.size(); ++i) {
    const NarrowObject& object = program.narrow[i];
    text += fmt::format("  n{:<3} {} bytes, {}", i, object.bytes, life_text(object.life));
    text += object.address == kNowhere ? "\n" : fmt::format(", at {}\n", object.address);
  }
  text += is_scheduled
              ? fmt::format("wide memory: scratch from line {} on, parameters below\n", program.lowest_scratch_line)
              : "wide memory\n";
  for (std::size_t i = 0; i < program.wide.size(); ++i) {
    const WideObject& object = program.wide[i];
    text += fmt::format("  w{:<3} {} lines, {}", i, object.lines, life_text(object.life));
    text += object.line == kNowhere ? "\n" : fmt::format(", from line {}\n", object.line);
  }
  text += "parameters\n";
  for (std::size_t i = 0; i < program.parameters.size(); ++i) {
    const ParameterChunk& chunk = program.parameters[i];
    text += parameters_text(chunk, i);
    if (is_scheduled && chunk.is_streamed()) text.insert(text.size() - 1, ": sent with every inference");
  }
  text += "steps\n";
  for (std::size_t i = 0; i < program.steps.size(); ++i) text += step_text(model, program.steps[i], i);
  return text;
}

}  // namespace reef::tiled
