// SPDX-License-Identifier: Apache-2.0
// Model -> text. The grammar, with the reason for each form, is in docs/formats/ir_text.md.
//
// Values that equal their default are left out. Small constants are shown as values beside the first tensor that uses
// them; other buffers follow at the end, so that the graph can be read without scrolling past weights. Works for models
// that do not verify too: printing one is how to find out what is wrong with it.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "ir/text.h"
#include "ir/text_writer.h"

namespace reef::ir {
namespace {

constexpr std::size_t kMostInlineElements = 64;
constexpr std::size_t kHexBytesPerLine = 48;

class Printer : text::Writer {
 public:
  Printer(const Model& model, const TextOptions& options)
      : model_(model), options_(options), is_used_(model.buffers.size()), is_shown_(model.buffers.size()) {}

  std::string run() {
    out_ += "model";
    if (model_.version != Model{}.version) put(" version={}", model_.version);
    if (!model_.description.empty()) put_quoted(" description=", model_.description);
    out_ += " {\n";
    for (const std::string& group : model_.external_buffer_groups) {
      put_quoted("  external_group ", group);
      out_ += '\n';
    }
    for (const ExternalBuffer& buffer : model_.external_buffers) external_buffer(buffer);
    for (const Subgraph& graph : model_.subgraphs) subgraph(graph);
    for (const Metadata& row : model_.metadata) {
      put_quoted("  metadata ", row.name);
      put(" buffer={}\n", row.buffer);
    }
    if (!model_.metadata_buffers.empty()) {
      out_ += "  metadata_buffers";
      put_list(model_.metadata_buffers);
      out_ += '\n';
    }
    for (const Signature& row : model_.signatures) signature(row);
    for (std::size_t i = 0; i < model_.buffers.size(); ++i) buffer(i);
    out_ += "}\n";
    return std::move(out_);
  }

 private:
  void external_buffer(const ExternalBuffer& buffer) {
    put("  external_buffer id={} group={} offset={} length={}", buffer.id, buffer.group, buffer.offset, buffer.length);
    if (!buffer.packing.empty()) put_quoted(" packing=", buffer.packing);
    out_ += '\n';
  }

  void signature(const Signature& row) {
    put_quoted("  signature ", row.key);
    put(" subgraph={}", row.subgraph);
    for (const auto* tensors : {&row.inputs, &row.outputs}) {
      out_ += tensors == &row.inputs ? " inputs(" : " outputs(";
      const char* separator = "";
      for (const SignatureTensor& tensor : *tensors) {
        put_quoted(separator, tensor.name);
        out_ += " = ";
        put_tensor(tensor.tensor);
        separator = ", ";
      }
      out_ += ')';
    }
    out_ += '\n';
  }

  void subgraph(const Subgraph& graph) {
    put_quoted("  subgraph ", graph.name);
    out_ += " inputs(";
    put_tensors(graph.inputs);
    out_ += ") outputs(";
    put_tensors(graph.outputs);
    out_ += ')';
    if (graph.debug_metadata_index != -1) put(" debug={}", graph.debug_metadata_index);
    out_ += " {\n";
    for (std::size_t i = 0; i < graph.tensors.size(); ++i) tensor(i, graph.tensors[i]);
    for (const Operator& op : graph.operators) operation(op);
    out_ += "  }\n";
  }

  void tensor(std::size_t index, const Tensor& tensor) {
    put("    %{} ", index);
    text::append_quoted(out_, tensor.name);
    put(" : {}", type_name(tensor.type));
    put_list(tensor.shape);
    if (!tensor.shape_signature.empty()) {
      out_ += " signature=";
      put_list(tensor.shape_signature);
    }
    if (tensor.has_rank) out_ += " ranked";
    if (tensor.is_variable) out_ += " variable";
    quantization(tensor);
    if (tensor.sparsity) sparsity(*tensor.sparsity);
    for (const VariantSubType& sub_type : tensor.variant_sub_types) {
      put(" holds({}", type_name(sub_type.type));
      put_list(sub_type.shape);
      out_ += sub_type.has_rank ? " ranked)" : ")";
    }
    if (tensor.external_buffer != 0) put(" external={}", tensor.external_buffer);
    constant(tensor);
    out_ += '\n';
  }

  void quantization(const Tensor& tensor) {
    const Quantization& quantization = tensor.quantization;
    if (!tensor.has_quantization && quantization == Quantization{}) return;
    out_ += " quant(";
    const char* separator = "";
    const auto field = [&](std::string_view name) {
      out_ += separator;
      out_ += name;
      separator = ", ";
    };
    const auto list = [&](std::string_view name, const auto& values) {
      if (values.empty()) return;
      field(name);
      put_list_or_one(values);
    };
    if (!tensor.has_quantization) field("absent");
    list("scale=", quantization.scale);
    list("zero_point=", quantization.zero_point);
    if (quantization.dimension != 0) {
      field("dimension=");
      put("{}", quantization.dimension);
    }
    list("min=", quantization.min);
    list("max=", quantization.max);
    if (!std::holds_alternative<std::monostate>(quantization.details)) {
      field("");
      std::visit([this](const auto& details) { put_details(details); }, quantization.details);
    }
    out_ += ')';
  }
  void put_details(const std::monostate&) {}
  void put_details(const CustomQuantization& details) {
    out_ += "custom=";
    put_hex(details.custom.span());
  }
  void put_details(const BlockwiseQuantization& details) {
    put_blocks("blockwise", details.scales, details.zero_points, details.block_size);
    out_ += ", block_shape=";
    put_list(details.block_shape);
    out_ += ')';
  }
  void put_details(const MultiAxisQuantization& details) {
    put_blocks("multi_axis", details.scales, details.zero_points, details.block_size);
    out_ += ", dimensions=";
    put_list(details.dimensions);
    out_ += ')';
  }
  void put_details(const OpaqueTable& details) { put_opaque(details); }
  void put_blocks(std::string_view name, std::int32_t scales, std::int32_t zero_points, std::int32_t block_size) {
    put("{}(scales=", name);
    put_tensor(scales);
    out_ += ", zero_points=";
    put_tensor(zero_points);
    put(", block_size={}", block_size);
  }

  void sparsity(const Sparsity& sparsity) {
    out_ += " sparse(order=";
    put_list(sparsity.traversal_order);
    out_ += ", block_map=";
    put_list(sparsity.block_map);
    for (const SparsityDimension& dimension : sparsity.dimensions) {
      put(", dimension(format={}, dense_size={}", dimension.format, dimension.dense_size);
      index_vector(", segments=", dimension.segments);
      index_vector(", indices=", dimension.indices);
      out_ += ')';
    }
    out_ += ')';
  }
  void index_vector(std::string_view name, const SparsityDimension::IndexVector& vector) {
    if (vector == SparsityDimension::IndexVector{}) return;
    put("{}wire{}", name, vector.wire_type);
    put_list(vector.values);
  }

  void operation(const Operator& op) {
    out_ += "    ";
    if (op.outputs.empty()) out_ += "()";
    put_tensors(op.outputs);
    out_ += " = ";
    put_word(op.type);
    out_ += '(';
    put_tensors(op.inputs);
    out_ += ')';
    if (op.builtin_code != 0) put(" code={}", op.builtin_code);
    if (op.version != 1) put(" version={}", op.version);
    if (!op.options_type.empty() || !op.attributes.empty()) attributes(op);
    if (op.opaque_options) {
      out_ += " options=";
      put_opaque(*op.opaque_options);
    }
    if (op.opaque_options_2) {
      out_ += " options_2=";
      put_opaque(*op.opaque_options_2);
    }
    if (!op.custom_options.empty()) {
      out_ += " custom_options=";
      put_hex(op.custom_options.span());
    }
    if (op.custom_options_are_large) out_ += " large_custom_options";
    if (op.custom_options_format != 0) put(" custom_options_format={}", op.custom_options_format);
    if (!op.intermediates.empty()) {
      out_ += " intermediates(";
      put_tensors(op.intermediates);
      out_ += ')';
    }
    if (!op.mutating_variable_inputs.empty()) {
      out_ += " mutating=";
      put_list(std::vector<int>(op.mutating_variable_inputs.begin(), op.mutating_variable_inputs.end()));
    }
    if (op.debug_metadata_index != -1) put(" debug={}", op.debug_metadata_index);
    out_ += '\n';
  }

  void attributes(const Operator& op) {
    out_ += ' ';
    put_word(op.options_type);
    out_ += '{';
    const char* separator = "";
    for (const Attribute& row : op.attributes) {
      out_ += separator;
      put_word(row.name);
      out_ += '=';
      std::visit([this](const auto& value) { put_attribute(value); }, row.value);
      separator = ", ";
    }
    out_ += '}';
  }
  void put_attribute(bool value) { out_ += value ? "true" : "false"; }
  void put_attribute(std::int64_t value) { put("{}", value); }
  // Never looks like an integer. Most are widened floats, for which the short spelling is 0.1f.
  void put_attribute(double value) {
    const bool is_float = std::isfinite(value) && std::fabs(value) <= std::numeric_limits<float>::max() &&
                          static_cast<double>(static_cast<float>(value)) == value;
    const std::size_t start = out_.size();
    if (is_float) {
      text::append_float(out_, static_cast<float>(value));
      out_ += 'f';
      return;
    }
    text::append_double(out_, value);
    if (std::isfinite(value) && out_.find_first_of(".e", start) == std::string::npos) out_ += ".0";
  }
  void put_attribute(const EnumName& value) {
    const bool is_plain = text::is_word(value.name) && !text::is_value_word(value.name);
    if (is_plain) {
      out_ += value.name;
    } else {
      put_quoted("enum ", value.name);
    }
  }
  void put_attribute(const std::string& value) { text::append_quoted(out_, value); }
  template <typename Element>
  void put_attribute(const std::vector<Element>& values) {
    if (values.empty()) {
      out_ += std::is_same_v<Element, std::int64_t> ? "ints" : std::is_same_v<Element, double> ? "floats" : "strings";
    }
    out_ += '[';
    const char* separator = "";
    for (const Element& value : values) {
      out_ += separator;
      put_attribute(value);
      separator = ", ";
    }
    out_ += ']';
  }

  // The buffer of a tensor, with its content where that is small enough to be read.
  void constant(const Tensor& tensor) {
    const auto index = static_cast<std::size_t>(tensor.buffer);
    if (index >= model_.buffers.size()) {  // negative ones too
      put(" buffer={}", tensor.buffer);
      return;
    }
    is_used_[index] = true;
    const Buffer& buffer = model_.buffers[index];
    const std::span<const std::uint8_t> data = buffer.data.span();
    const std::size_t element_bytes = text::value_bytes(tensor.type);
    const bool is_cut = data.size() > options_.max_constant_bytes;
    const bool is_plain = !buffer.is_external && !buffer.is_empty_constant && !data.empty() && !is_shown_[index];
    const bool is_inline = is_plain && element_bytes != 0 && data.size() % element_bytes == 0 &&
                           (is_cut || data.size() / element_bytes <= kMostInlineElements);
    if (tensor.buffer != 0 || is_inline) put(" buffer={}", tensor.buffer);
    if (!is_inline) return;
    is_shown_[index] = true;
    out_ += " = ";
    const std::size_t shown = is_cut ? options_.max_constant_bytes / element_bytes : data.size() / element_bytes;
    put_typed(tensor.type, data.first(shown * element_bytes), is_cut);
  }

  void buffer(std::size_t index) {
    const Buffer& buffer = model_.buffers[index];
    const bool has_more = !buffer.data.empty() && !is_shown_[index];
    if (is_used_[index] && !has_more && !buffer.is_external && !buffer.is_empty_constant) return;
    put("  buffer {}", index);
    if (buffer.is_external) out_ += " external";
    if (buffer.is_empty_constant) out_ += " empty_constant";
    if (has_more) {
      out_ += " = ";
      raw_bytes(buffer.data.span());
    }
    out_ += '\n';
  }

  // As a string where a person can read it (metadata often is text padded with zeros), else as hexadecimal digits.
  void raw_bytes(std::span<const std::uint8_t> data) {
    const std::span<const std::uint8_t> shown = data.first(std::min(data.size(), options_.max_constant_bytes));
    const bool is_text = std::all_of(shown.begin(), shown.end(),
                                     [](std::uint8_t c) { return (c >= 0x20 && c < 0x7f) || c == '\n' || c == 0; });
    const auto is_zero = [](std::uint8_t c) { return c == 0; };
    if (is_text && !std::all_of(shown.begin(), shown.end(), is_zero)) {
      text::append_quoted(out_, {reinterpret_cast<const char*>(shown.data()), shown.size()});
    } else if (shown.size() <= kHexBytesPerLine) {
      put_hex(shown);
    } else {
      out_ += "hex\"";
      for (std::size_t i = 0; i < shown.size(); i += kHexBytesPerLine) {
        out_ += "\n    ";
        text::append_hex(out_, shown.subspan(i, std::min(kHexBytesPerLine, shown.size() - i)));
      }
      out_ += '"';
    }
    if (shown.size() < data.size()) put(" ...  // {} bytes in all", data.size());
  }

  const Model& model_;
  const TextOptions& options_;
  std::vector<bool> is_used_;   // by buffer: named by a tensor
  std::vector<bool> is_shown_;  // by buffer: content is in the text
};

}  // namespace

std::string print(const Model& model, const TextOptions& options) { return Printer(model, options).run(); }

}  // namespace reef::ir
