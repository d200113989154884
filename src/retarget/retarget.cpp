// SPDX-License-Identifier: Apache-2.0
#include "retarget/retarget.h"

#include <algorithm>

#include "base/sha256.h"
#include "formats/darwinn/reader.h"
#include "formats/darwinn/writer.h"
#include "formats/tflite/patch.h"
#include "formats/tflite/reader.h"
#include "formats/tflite/writer.h"
#include "ir/describe.h"
#include "ir/verify.h"
#include "ops/inferred_shapes.h"
#include "retarget/alignment.h"
#include "retarget/edits.h"
#include "retarget/matching.h"
#include "retarget/open_template.h"

namespace reef::retarget {

namespace {

using darwinn::ExecutableType;

std::uint64_t fresh_token(const NewContent& content, const Template& compiled) {
  // The cached parameters and where they go; the program itself where nothing is cached.
  std::vector<std::uint8_t> bytes = content.cached;
  if (compiled.caching) {
    for (const auto& chunk : compiled.caching->executable->instruction_chunks) {
      bytes.insert(bytes.end(), chunk.bitstream.span().begin(), chunk.bitstream.span().end());
    }
  } else {
    bytes = isa::encode(content.program);
  }
  const std::string digest = sha256_hex(bytes);
  std::uint64_t token = 0;
  for (int k = 0; k < 16; ++k) {
    const char c = digest[at(k)];
    token = token << 4 | static_cast<std::uint64_t>(c <= '9' ? c - '0' : c - 'a' + 10);
  }
  return token == 0 ? 1 : token;  // 0 says that there is none
}

class Retargeter {
 public:
  Retargeter(const Bytes& file, const ir::Model& model, const Options& options)
      : file_(file), model_(model), options_(options) {}

  Result<Retargeted> run() {
    REEF_ASSIGN_OR_RETURN(compiled_model_, tflite::read_model(file_));
    REEF_RETURN_IF_ERROR(ir::verify(compiled_model_));
    REEF_ASSIGN_OR_RETURN(alignment_, align(compiled_model_, model_));
    REEF_RETURN_IF_ERROR(check_shapes(model_, alignment_));
    ir::Operator& op = custom_op();
    auto options = darwinn::read_custom_options(op.custom_options);
    if (!options.ok()) return options.status().in("the template's package");
    custom_ = std::move(options).value();
    REEF_ASSIGN_OR_RETURN(compiled_, open_template(custom_.package, options_.max_steps, options_.budget));
    make_views(compiled_);
    REEF_RETURN_IF_ERROR(bind_layers(alignment_));
    MatchOptions match_options;
    if (options_.source != nullptr) {
      REEF_ASSIGN_OR_RETURN(match_options.ops, ops_of_source());
    }
    const Network network(model_, alignment_.chip_ops);
    REEF_RETURN_IF_ERROR(options_.budget.check("matching the template with the model"));
    REEF_ASSIGN_OR_RETURN(const Matching matching, match(compiled_, network, match_options));
    REEF_ASSIGN_OR_RETURN(NewContent content, new_content(compiled_, network, matching, report_));
    count(matching);
    REEF_RETURN_IF_ERROR(write_package(content));
    REEF_RETURN_IF_ERROR(write_tensors());
    REEF_ASSIGN_OR_RETURN(std::vector<std::uint8_t> file, write_file());
    return Retargeted{std::move(file), std::move(report_)};
  }

 private:
  ir::Subgraph& graph() { return compiled_model_.subgraphs[0]; }
  ir::Operator& custom_op() { return graph().operators[at(alignment_.custom_op)]; }
  const ir::Subgraph& model_graph() const { return model_.subgraphs[0]; }

  // Matching and new constants index by declared shapes.
  static Status check_shapes(const ir::Model& model, const Alignment& alignment) {
    for (const std::int32_t k : alignment.chip_ops) {
      const ir::Operator& op = model.subgraphs[0].operators[at(k)];
      REEF_RETURN_IF_ERROR(ops::check_declared_shapes(model, 0, op).in(fmt::format("op {}", k)));
    }
    return ok_status();
  }

  Status bind_layers(const Alignment& alignment) {
    return retarget::bind_layers(graph(), custom_op(), alignment, compiled_);
  }

  // The operator of each tensor op, found with the model that the template was compiled from.
  Result<std::vector<std::int32_t>> ops_of_source() {
    auto alignment = align(compiled_model_, *options_.source);
    if (!alignment.ok()) return alignment.status().in("template and --source");
    REEF_RETURN_IF_ERROR(check_shapes(*options_.source, *alignment).in("--source"));
    REEF_RETURN_IF_ERROR(same_structure(*options_.source, model_));
    REEF_RETURN_IF_ERROR(bind_layers(*alignment));
    const Network network(*options_.source, alignment->chip_ops);
    auto matching = match_source(compiled_, network);
    if (!matching.ok()) return matching.status().in("the template was not compiled from --source");
    std::vector<std::int32_t> ops;
    for (const Choice& choice : matching->choices) ops.push_back(choice.op);
    REEF_RETURN_IF_ERROR(bind_layers(alignment_));
    report_.notes.emplace_back("every constant and parameter of the template was first found to be that of its source");
    return ops;
  }

  static Status same_structure(const ir::Model& source, const ir::Model& model) {
    const ir::Subgraph &a = source.subgraphs[0], &b = model.subgraphs[0];
    REEF_REQUIRE(a.operators.size() == b.operators.size(),
                 "the architectures differ: the template's source has {} operators, the model {}", a.operators.size(),
                 b.operators.size());
    for (std::size_t i = 0; i < a.operators.size(); ++i) {
      const ir::Operator &x = a.operators[i], &y = b.operators[i];
      REEF_REQUIRE(x.type == y.type && x.inputs == y.inputs && x.outputs == y.outputs && x.attributes == y.attributes,
                   "the architectures differ at operator {}: {} in the template's source, {} in the model, with other "
                   "operands or attributes",
                   i, x.type, y.type);
      for (const std::int32_t t : x.outputs) {
        const auto k = static_cast<std::size_t>(t);
        REEF_REQUIRE(t < 0 || a.tensors[k].shape == b.tensors[k].shape,
                     "the architectures differ at operator {} {}: its result is {} in the template's source and {} in "
                     "the model",
                     i, x.type, a.tensors[k].shape.to_string(), b.tensors[k].shape.to_string());
      }
    }
    return ok_status();
  }

  void count(const Matching& matching) {
    report_.tensor_ops = static_cast<std::int64_t>(matching.choices.size());
    report_.copies = std::count_if(matching.choices.begin(), matching.choices.end(),
                                   [](const Choice& choice) { return choice.role == "copy"; });
    report_.parameter_bytes =
        static_cast<std::int64_t>(compiled_.blob(Origin::kCached).size() + compiled_.blob(Origin::kStreamed).size());
  }

  Status write_layer(darwinn::Layer& layer, std::int32_t t) {
    if (!layer.numerics) return ok_status();
    const ir::Tensor& tensor = model_graph().tensors[at(t)];
    const auto chip = chip_tensor(tensor);
    REEF_REQUIRE(chip.has_value(), "'{}' is not 8 or 16 bits wide with one scale", ir::describe_name(tensor.name));
    if (layer.numerics->zero_point != chip->zero_point || layer.numerics->dequantization_factor != chip->scale) {
      report_.metadata.push_back(fmt::format("layer '{}': zero point {} -> {}, scale {} -> {}",
                                             ir::describe_name(layer.name), layer.numerics->zero_point,
                                             chip->zero_point, layer.numerics->dequantization_factor, chip->scale));
    }
    layer.numerics->zero_point = chip->zero_point;
    layer.numerics->dequantization_factor = chip->scale;
    return ok_status();
  }

  Status write_package(const NewContent& content) {
    const bool has_token = compiled_.execution.executable->parameter_caching_token != 0;
    report_.old_token = compiled_.execution.executable->parameter_caching_token;
    report_.new_token = has_token ? fresh_token(content, compiled_) : 0;
    for (darwinn::Executable& executable : custom_.package.executables) {
      const bool is_caching = executable.type == ExecutableType::kParameterCaching;
      executable.parameters = Bytes(is_caching ? content.cached : content.streamed);
      if (executable.parameter_caching_token != 0) executable.parameter_caching_token = report_.new_token;
      if (is_caching) continue;
      for (std::size_t c = 0; c < executable.instruction_chunks.size(); ++c) {
        const std::size_t first = compiled_.execution.chunk_starts[c];
        const std::size_t end = c + 1 < compiled_.execution.chunk_starts.size()
                                    ? compiled_.execution.chunk_starts[c + 1]
                                    : content.program.size();
        executable.instruction_chunks[c].bitstream =
            Bytes(isa::encode(std::span(content.program).subspan(first, end - first)));
      }
      for (std::size_t i = 0; i < executable.input_layers.size(); ++i) {
        REEF_RETURN_IF_ERROR(write_layer(executable.input_layers[i], compiled_.input_tensors[i]));
      }
      for (std::size_t i = 0; i < executable.output_layers.size(); ++i) {
        REEF_RETURN_IF_ERROR(write_layer(executable.output_layers[i], compiled_.output_tensors[i]));
      }
    }
    REEF_ASSIGN_OR_RETURN(std::vector<std::uint8_t> bytes, darwinn::write_custom_options(custom_));
    custom_op().custom_options = Bytes(std::move(bytes));
    return ok_status();
  }

  // Tensors of the compiled file: quantization, and the constants of operators that run on the CPU.
  Status write_tensors() {
    for (const auto& [compiled, source] : alignment_.tensors) {
      ir::Tensor& target = graph().tensors[at(compiled)];
      const ir::Tensor& tensor = model_graph().tensors[at(source)];
      if (target.quantization.scale != tensor.quantization.scale ||
          target.quantization.zero_point != tensor.quantization.zero_point) {
        report_.metadata.push_back(fmt::format("tensor '{}': {} -> {}", ir::describe_name(target.name),
                                               ir::describe_quantization(target.quantization),
                                               ir::describe_quantization(tensor.quantization)));
        target.quantization.scale = tensor.quantization.scale;
        target.quantization.zero_point = tensor.quantization.zero_point;
        target.quantization.dimension = tensor.quantization.dimension;
      }
      ir::Buffer& buffer = compiled_model_.buffers[at(target.buffer)];
      const Bytes& data = ir::constant_data(model_, tensor);
      REEF_REQUIRE(buffer.data.size() == data.size(),
                   "the architectures differ: the constant '{}' has {} bytes in the template and {} in the model",
                   ir::describe_name(target.name), buffer.data.size(), data.size());
      if (buffer.data == data) continue;
      report_.metadata.push_back(
          fmt::format("constant '{}' of an operator on the CPU", ir::describe_name(target.name)));
      buffer.data = data;
    }
    return ok_status();
  }

  Result<std::vector<std::uint8_t>> write_file() {
    auto patched = tflite::patch_file(file_, compiled_model_);
    if (patched.ok() || patched.status().code() != StatusCode::kUnsupported) return patched;
    report_.notes.push_back("the file was laid out anew: " + patched.status().message());
    return tflite::write_model(compiled_model_);
  }

  const Bytes& file_;
  const ir::Model& model_;
  const Options& options_;
  ir::Model compiled_model_;
  Alignment alignment_;
  darwinn::CustomOptions custom_;
  Template compiled_;
  Report report_;
};

}  // namespace

Result<Retargeted> retarget(const Bytes& compiled_file, const ir::Model& model, const Options& options) {
  return Retargeter(compiled_file, model, options).run();
}

}  // namespace reef::retarget
