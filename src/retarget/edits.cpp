// SPDX-License-Identifier: Apache-2.0
#include "retarget/edits.h"

#include <algorithm>

#include "ir/describe.h"
#include "ir/op.h"
#include "isa/mesh.h"
#include "isa/scalar.h"
#include "retarget/roles.h"
#include "retarget/scalar_softmax.h"

namespace reef::retarget {

namespace {

// Fills that no op reads take the value of a neighbour that held the same: they are the parts of a border that the
// network's strides never touch.
constexpr std::uint32_t kNeighbourhood = 32;  // instructions

class Editor {
 public:
  Editor(const Template& compiled, const Network& network, const Matching& matching, Report& report)
      : compiled_(compiled), network_(network), matching_(matching), report_(report) {
    content_.program = compiled.execution.program;
    const auto cached = compiled.blob(Origin::kCached), streamed = compiled.blob(Origin::kStreamed);
    content_.cached.assign(cached.begin(), cached.end());
    content_.streamed.assign(streamed.begin(), streamed.end());
  }

  Result<NewContent> run() {
    for (std::size_t i = 0; i < matching_.choices.size(); ++i) REEF_RETURN_IF_ERROR(edit_tensor_op(i));
    REEF_RETURN_IF_ERROR(edit_fills());
    REEF_RETURN_IF_ERROR(edit_scalar_softmax());
    for (const LayerChunk& chunk : matching_.chunks) REEF_RETURN_IF_ERROR(edit_chunk(chunk));
    for (const Choice& choice : matching_.choices) {
      for (const BlobWords& words : choice.words) REEF_RETURN_IF_ERROR(edit_words(words, choice));
    }
    for (auto& [key, change] : changes_) report_.parameters.push_back(std::move(change));
    return std::move(content_);
  }

 private:
  std::string owner(const Choice& choice) const {
    return choice.op < 0 ? choice.role : fmt::format("{}: {}", network_.describe(choice.op), choice.role);
  }

  Status set(std::uint32_t instruction, const isa::Field& field, std::uint32_t value, const std::string& what) {
    isa::Instruction& code = content_.program[instruction];
    const std::uint32_t before = code.bits(field);
    ++report_.constants;
    if (before == value) return ok_status();
    const bool is_signed = field.kind == isa::Kind::kSigned;
    const Status status =
        code.set(field, is_signed ? std::int64_t{static_cast<std::int32_t>(value)} : std::int64_t{value});
    if (!status.ok()) return status.in(what);
    report_.instructions.push_back({instruction, field.full_name(), before, value, what});
    return ok_status();
  }

  Status edit_tensor_op(std::size_t index) {
    const Choice& choice = matching_.choices[index];
    const std::string what = owner(choice);
    for (int k = 0; k < kConstants; ++k) {
      const auto& value = choice.constants[reef::at(k)];
      if (!value) continue;
      REEF_RETURN_IF_ERROR(
          set(compiled_.ops[index].instruction, constant_field(static_cast<Constant>(k)), *value, what));
    }
    return ok_status();
  }

  Status edit_fills() {
    std::map<std::uint32_t, std::uint32_t> fills = matching_.fills;
    for (const OutputTrace& output : compiled_.trace.outputs) {
      REEF_RETURN_IF_ERROR(add_output_fills(output, fills));
    }
    for (const std::uint32_t unread : compiled_.trace.unread_fills) {
      if (fills.count(unread) > 0) continue;
      for (const auto& [instruction, value] : matching_.fills) {
        const std::uint32_t distance = instruction > unread ? instruction - unread : unread - instruction;
        if (distance > kNeighbourhood || compiled_.fill_value(instruction) != compiled_.fill_value(unread)) continue;
        fills[unread] = value;
        break;
      }
    }
    for (const auto& [instruction, value] : fills) {
      REEF_RETURN_IF_ERROR(set(instruction, isa::mesh::kFillValue, value, "constant word"));
    }
    return ok_status();
  }

  // Collects the bytes that pad an output that is a PAD operator's result.
  Status add_output_fills(const OutputTrace& output, std::map<std::uint32_t, std::uint32_t>& fills) {
    if (output.sources.fills.empty()) return ok_status();
    const auto& layers = compiled_.execution.executable->output_layers;
    for (std::size_t layer = 0; layer < layers.size() && layer < compiled_.output_tensors.size(); ++layer) {
      const std::int32_t t = compiled_.output_tensors[layer];
      if (layers[layer].name != output.layer || t < 0) continue;
      const auto tensor = network_.chip(t);
      REEF_REQUIRE(tensor.has_value(), "output '{}' is not 8 bits wide with one scale",
                   ir::describe_name(network_.tensor(t).name));
      const std::uint32_t word = static_cast<std::uint32_t>(tensor->zero_point & 0xff) * 0x01010101u;
      for (const std::uint32_t fill : output.sources.fills) {
        const auto [at, is_new] = fills.emplace(fill, word);
        REEF_REQUIRE(is_new || at->second == word, "instruction {} pads two tensors of different zero points", fill);
      }
    }
    return ok_status();
  }

  Status edit_scalar_softmax() {
    for (const std::int32_t k : network_.chip_ops()) {
      const ir::Operator& op = network_.op(k);
      const bool is_on_tiles = std::any_of(matching_.choices.begin(), matching_.choices.end(),
                                           [&](const Choice& choice) { return choice.op == k; });
      if (op.type != Op::SOFTMAX || is_on_tiles) continue;
      auto code = find_scalar_softmax(content_.program);
      if (!code.ok()) return code.status().in(network_.describe(k));
      const auto in = network_.chip(op.inputs[0]), out = network_.chip(op.outputs[0]);
      if (!in || !out || !(*out == ChipTensor{1.0f / 256, 0}) || op.attributes.get_float("beta", 1) != 1) {
        return unsupported("{}: only beta 1 and output scale 1/256 are known", network_.describe(k));
      }
      const std::string what = network_.describe(k) + ": scalar code";
      for (const std::uint32_t i : code->zero_points) {
        REEF_RETURN_IF_ERROR(set(i, isa::bundle::kAluOperand, static_cast<std::uint32_t>(in->zero_point), what));
      }
      for (const std::uint32_t i : code->scales) {
        REEF_RETURN_IF_ERROR(set(i, isa::bundle::kAluOperand, float_bits(in->scale), what));
      }
    }
    return ok_status();
  }

  Status write(Origin blob, std::uint32_t offset, std::span<const std::uint8_t> bytes, const std::string& what) {
    std::vector<std::uint8_t>& target = blob == Origin::kCached ? content_.cached : content_.streamed;
    REEF_REQUIRE(offset + bytes.size() <= target.size(), "{}: its parameters lie outside of the blob", what);
    const auto key = std::make_pair(blob, what);
    ParameterChange& change = changes_[key];
    if (change.bytes == 0) {
      change.is_cached = blob == Origin::kCached;
      change.offset = offset;
      change.what = what;
    }
    change.bytes += static_cast<std::uint32_t>(bytes.size());
    std::vector<bool>& written = blob == Origin::kCached ? cached_written_ : streamed_written_;
    written.resize(target.size());
    for (std::size_t k = 0; k < bytes.size(); ++k) {
      report_.replaced_parameter_bytes += written[offset + k] ? 0 : 1;
      written[offset + k] = true;
      if (target[offset + k] == bytes[k]) continue;
      target[offset + k] = bytes[k];
      ++change.changed;
      ++report_.changed_parameter_bytes;
    }
    return ok_status();
  }

  Status edit_chunk(const LayerChunk& chunk) {
    std::string what = network_.describe(chunk.op);
    if (!chunk.part.empty()) what += ": " + chunk.part;
    if (chunk.parameters) {
      auto bytes = darwinn::pack(*chunk.parameters);
      if (!bytes.ok()) return bytes.status().in(what);
      ++report_.layers;
      return write(chunk.range.blob, chunk.range.offset, *bytes, what);
    }
    const ir::Tensor& tensor = network_.tensor(chunk.tensor);
    const auto data = ir::constant_data(network_.model(), tensor).span();
    std::vector<std::uint8_t> bytes(data.begin(), data.end());
    if (tensor.type == ir::DataType::kInt8) {
      for (std::uint8_t& byte : bytes) byte ^= 0x80;
    }
    return write(chunk.range.blob, chunk.range.offset, bytes, what);
  }

  Status edit_words(const BlobWords& words, const Choice& choice) {
    const std::string what = owner(choice);
    for (const auto& [offset, value] : words.words) {
      std::array<std::uint8_t, 4> bytes;
      for (std::size_t k = 0; k < 4; ++k) bytes[k] = static_cast<std::uint8_t>(value >> (8 * k));
      REEF_RETURN_IF_ERROR(write(words.blob, offset, bytes, what));
    }
    return ok_status();
  }

  const Template& compiled_;
  const Network& network_;
  const Matching& matching_;
  Report& report_;
  NewContent content_;
  std::vector<bool> cached_written_, streamed_written_;
  std::map<std::pair<Origin, std::string>, ParameterChange> changes_;
};

}  // namespace

Result<NewContent> new_content(const Template& compiled, const Network& network, const Matching& matching,
                               Report& report) {
  return Editor(compiled, network, matching, report).run();
}

std::string difference_to_template(const Template& compiled, const NewContent& content) {
  for (std::size_t i = 0; i < content.program.size(); ++i) {
    if (!(content.program[i] == compiled.execution.program[i])) return fmt::format("instruction {} differs", i);
  }
  const std::pair<Origin, const std::vector<std::uint8_t>*> kBlobs[] = {{Origin::kCached, &content.cached},
                                                                        {Origin::kStreamed, &content.streamed}};
  for (const auto& [origin, bytes] : kBlobs) {
    const auto before = compiled.blob(origin);
    const auto at = std::mismatch(bytes->begin(), bytes->end(), before.begin(), before.end()).first;
    if (at != bytes->end()) {
      return fmt::format("byte {} of the {} parameters differs", at - bytes->begin(),
                         origin == Origin::kCached ? "cached" : "streamed");
    }
  }
  return "";
}

}  // namespace reef::retarget
