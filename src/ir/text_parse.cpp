// SPDX-License-Identifier: Apache-2.0
// Text -> model: the upper rules of the grammar in docs/formats/ir_text.md. No rule contains itself, so there is no
// recursion to bound; memory is bounded by a multiple of the text's size. The result is not verified: see ir/verify.h.
#include "ir/text.h"
#include "ir/text_rules.h"

namespace reef::ir {
namespace {

using text::Cursor;
using text::Token;
using text::TokenKind;

class Parser {
 public:
  // Every buffer but 0 is mentioned by its number somewhere, which takes at least 8 characters ("buffer=1").
  explicit Parser(std::string_view text) : cursor_(text), buffer_limit_(text.size() / 8 + 1) {}

  Result<Model> run() {
    REEF_RETURN_IF_ERROR(cursor_.expect_word("model"));
    for (;;) {
      if (cursor_.accept_word("version")) {
        REEF_RETURN_IF_ERROR(cursor_.assign(model_.version, "a version"));
      } else if (cursor_.accept_word("description")) {
        REEF_RETURN_IF_ERROR(cursor_.assign_string(model_.description, "a description"));
      } else if (cursor_.accept('{')) {
        break;
      } else {
        return cursor_.expected("version, description or '{'");
      }
    }
    while (!cursor_.accept('}')) REEF_RETURN_IF_ERROR(statement());
    if (cursor_.peek().kind != TokenKind::kEnd) return cursor_.expected("the end of the text behind the model's '}'");
    return std::move(model_);
  }

 private:
  Status statement() {
    if (cursor_.accept_word("subgraph")) return subgraph();
    if (cursor_.accept_word("buffer")) return buffer();
    if (cursor_.accept_word("metadata")) return metadata();
    if (cursor_.accept_word("signature")) return signature();
    if (cursor_.accept_word("external_buffer")) return external_buffer();
    if (cursor_.accept_word("external_group")) {
      REEF_ASSIGN_OR_RETURN(std::string name, cursor_.string("the name of a file"));
      model_.external_buffer_groups.push_back(std::move(name));
      return ok_status();
    }
    if (cursor_.accept_word("metadata_buffers")) {
      REEF_ASSIGN_OR_RETURN(model_.metadata_buffers, cursor_.numbers<std::int32_t>("a buffer's number"));
      return ok_status();
    }
    return cursor_.expected(
        "subgraph, buffer, metadata, metadata_buffers, signature, external_group, external_buffer or '}'");
  }

  Status external_buffer() {
    ExternalBuffer& row = model_.external_buffers.emplace_back();
    for (;;) {
      Status status;
      if (cursor_.accept_word("id")) {
        status = cursor_.assign(row.id, "an id");
      } else if (cursor_.accept_word("group")) {
        status = cursor_.assign(row.group, "the number of an external_group");
      } else if (cursor_.accept_word("offset")) {
        status = cursor_.assign(row.offset, "an offset in bytes");
      } else if (cursor_.accept_word("length")) {
        status = cursor_.assign(row.length, "a length in bytes");
      } else if (cursor_.accept_word("packing")) {
        status = cursor_.assign_string(row.packing, "a packing");
      } else {
        return ok_status();
      }
      REEF_RETURN_IF_ERROR(status);
    }
  }

  Status metadata() {
    Metadata& row = model_.metadata.emplace_back();
    REEF_ASSIGN_OR_RETURN(row.name, cursor_.string("the metadata's name"));
    REEF_RETURN_IF_ERROR(cursor_.expect_word("buffer"));
    return cursor_.assign(row.buffer, "a buffer's number");
  }

  Status signature() {
    Signature& row = model_.signatures.emplace_back();
    REEF_ASSIGN_OR_RETURN(row.key, cursor_.string("the signature's key"));
    REEF_RETURN_IF_ERROR(cursor_.expect_word("subgraph"));
    REEF_RETURN_IF_ERROR(cursor_.assign(row.subgraph, "a subgraph's number"));
    REEF_RETURN_IF_ERROR(cursor_.expect_word("inputs"));
    REEF_RETURN_IF_ERROR(signature_tensors(row.inputs));
    REEF_RETURN_IF_ERROR(cursor_.expect_word("outputs"));
    return signature_tensors(row.outputs);
  }

  // ("x" = %0, ...)
  Status signature_tensors(std::vector<SignatureTensor>& rows) {
    return cursor_.list('(', ')', [&]() -> Status {
      SignatureTensor& row = rows.emplace_back();
      REEF_ASSIGN_OR_RETURN(row.name, cursor_.string("a name in quotes"));
      return cursor_.assign_tensor(row.tensor);
    });
  }

  // Takes a buffer's number and makes sure that the buffer exists.
  Status buffer_number(std::int32_t& index) {
    const Token token = cursor_.peek();
    REEF_ASSIGN_OR_RETURN(index, cursor_.number<std::int32_t>("a buffer's number"));
    if (index < 0 || static_cast<std::size_t>(index) >= buffer_limit_) {
      return Cursor::expected_at(token, "a buffer's number; they count from 0 without large gaps");
    }
    mention(static_cast<std::size_t>(index));
    return ok_status();
  }
  void mention(std::size_t index) {
    if (index < model_.buffers.size()) return;
    model_.buffers.resize(index + 1);
    has_data_.resize(index + 1);
  }

  // Behind '='.
  Status buffer_data(std::int32_t index, std::optional<DataType> type) {
    const auto at = static_cast<std::size_t>(index);
    if (has_data_[at]) return cursor_.expected(fmt::format("no content: that of buffer {} was given before", index));
    has_data_[at] = true;
    REEF_ASSIGN_OR_RETURN(model_.buffers[at].data, text::parse_data(cursor_, type));
    return ok_status();
  }

  Status buffer() {
    std::int32_t index = 0;
    REEF_RETURN_IF_ERROR(buffer_number(index));
    Buffer& row = model_.buffers[reef::at(index)];
    for (;;) {
      if (cursor_.accept_word("external")) {
        row.is_external = true;
      } else if (cursor_.accept_word("empty_constant")) {
        row.is_empty_constant = true;
      } else {
        break;
      }
    }
    if (!cursor_.accept('=')) return ok_status();
    std::optional<DataType> type;
    if (cursor_.peek().kind == TokenKind::kWord) {
      type = type_from_name(cursor_.peek().text);
      if (!type) return cursor_.expected("a constant: hex\"...\", a string, or values behind their type");
      cursor_.take();
    }
    return buffer_data(index, type);
  }

  Status subgraph() {
    Subgraph& graph = model_.subgraphs.emplace_back();
    REEF_ASSIGN_OR_RETURN(graph.name, cursor_.string("the subgraph's name in quotes"));
    REEF_RETURN_IF_ERROR(cursor_.expect_word("inputs"));
    REEF_ASSIGN_OR_RETURN(graph.inputs, cursor_.tensors());
    REEF_RETURN_IF_ERROR(cursor_.expect_word("outputs"));
    REEF_ASSIGN_OR_RETURN(graph.outputs, cursor_.tensors());
    if (cursor_.accept_word("debug")) REEF_RETURN_IF_ERROR(cursor_.assign(graph.debug_metadata_index, "an index"));
    REEF_RETURN_IF_ERROR(cursor_.expect('{'));
    while (!cursor_.accept('}')) REEF_RETURN_IF_ERROR(tensor_or_operator(graph));
    return ok_status();
  }

  // Both begin with %: a tensor's name or more outputs and '=' tell them apart.
  Status tensor_or_operator(Subgraph& graph) {
    const Token token = cursor_.peek();
    std::vector<std::int32_t> outputs;
    if (cursor_.at_mark('(')) {
      REEF_ASSIGN_OR_RETURN(outputs, cursor_.tensors());
    } else if (cursor_.at_mark('%')) {
      do {
        REEF_ASSIGN_OR_RETURN(const std::int32_t index, cursor_.tensor());
        outputs.push_back(index);
      } while (cursor_.accept(','));
      if (outputs.size() == 1 && cursor_.peek().kind == TokenKind::kString) return tensor(graph, token, outputs[0]);
    } else {
      return cursor_.expected("a tensor (%0 \"name\" : ...), an op (%1 = ...; () = ... if it has no output) or '}'");
    }
    if (!cursor_.accept('=')) return cursor_.expected("'=' and an op, or a tensor's name in quotes");
    Operator& op = graph.operators.emplace_back();
    op.outputs = std::move(outputs);
    return text::parse_operator(cursor_, op);
  }

  Status tensor(Subgraph& graph, const Token& token, std::int32_t index) {
    if (index < 0 || static_cast<std::size_t>(index) != graph.tensors.size()) {
      return Cursor::expected_at(token, fmt::format("tensor %{}; tensors stand in order", graph.tensors.size()));
    }
    Tensor& tensor = graph.tensors.emplace_back();
    REEF_ASSIGN_OR_RETURN(tensor.name, cursor_.string("the tensor's name in quotes"));
    REEF_RETURN_IF_ERROR(cursor_.expect(':'));
    std::vector<std::int32_t> dims;
    REEF_RETURN_IF_ERROR(text::parse_typed_shape(cursor_, tensor.type, dims));
    tensor.shape = Shape(std::move(dims));
    while (cursor_.peek().kind == TokenKind::kWord) REEF_RETURN_IF_ERROR(tensor_field(tensor));
    if (tensor.buffer == 0) mention(0);
    if (cursor_.at_mark('=')) return cursor_.expected("the number of a buffer before a constant: buffer=1 = ...");
    return ok_status();
  }

  Status tensor_field(Tensor& tensor) {
    if (cursor_.accept_word("signature")) return cursor_.assign_list(tensor.shape_signature, "a size, or -1");
    if (cursor_.accept_word("ranked")) return tensor.has_rank = true, ok_status();
    if (cursor_.accept_word("variable")) return tensor.is_variable = true, ok_status();
    if (cursor_.accept_word("quant")) return text::parse_quantization(cursor_, tensor);
    if (cursor_.accept_word("sparse")) return text::parse_sparsity(cursor_, tensor.sparsity.emplace());
    if (cursor_.accept_word("external")) return cursor_.assign(tensor.external_buffer, "the id of an external_buffer");
    if (cursor_.accept_word("holds")) {
      VariantSubType& sub_type = tensor.variant_sub_types.emplace_back();
      REEF_RETURN_IF_ERROR(cursor_.expect('('));
      REEF_RETURN_IF_ERROR(text::parse_typed_shape(cursor_, sub_type.type, sub_type.shape));
      sub_type.has_rank = cursor_.accept_word("ranked");
      return cursor_.expect(')');
    }
    if (cursor_.accept_word("buffer")) {
      REEF_RETURN_IF_ERROR(cursor_.expect('='));
      REEF_RETURN_IF_ERROR(buffer_number(tensor.buffer));
      return cursor_.accept('=') ? buffer_data(tensor.buffer, tensor.type) : ok_status();
    }
    return cursor_.expected("signature, ranked, variable, quant, sparse, holds, external or buffer");
  }

  Cursor cursor_;
  const std::size_t buffer_limit_;
  Model model_;
  std::vector<bool> has_data_;  // by buffer
};

}  // namespace

Result<Model> parse(std::string_view text) { return Parser(text).run(); }

}  // namespace reef::ir
