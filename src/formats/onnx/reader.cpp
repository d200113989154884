// SPDX-License-Identifier: Apache-2.0
// Field numbers are those of onnx.proto.
#include "formats/onnx/reader.h"

#include "base/file.h"
#include "formats/foreign/foreign_file.h"
#include "formats/onnx/external_data.h"
#include "formats/onnx/tensor_reader.h"
#include "formats/onnx/wire.h"

namespace reef::onnx {
namespace {

// Graphs in attributes of nodes in graphs ...: real models nest three deep.
constexpr int kMaxNesting = 32;

Result<Graph> read_graph(WireReader message, int nesting);
Result<Node> read_node(WireReader message, int nesting);

Result<ValueInfo> read_type(WireReader message, int nesting);

Status read_tensor_type(WireReader message, ValueInfo& info) {
  while (message.next()) {
    if (message.field() == 1) {
      info.type = static_cast<ElementType>(message.int64());
    } else if (message.field() == 2) {
      info.has_shape = true;
      WireReader shape = message.message();
      while (shape.next()) {
        if (shape.field() != 1) continue;
        Dimension dimension;
        WireReader dim = shape.message();
        while (dim.next()) {
          if (dim.field() == 1) dimension.size = dim.int64();
          if (dim.field() == 2) dimension.symbol = dim.string();
        }
        REEF_RETURN_IF_ERROR(dim.status());
        info.dims.push_back(std::move(dimension));
      }
      REEF_RETURN_IF_ERROR(shape.status());
    }
  }
  return message.status();
}

// TypeProto. Of a sequence or optional only the element's type is kept.
Result<ValueInfo> read_type(WireReader message, int nesting) {
  REEF_REQUIRE(nesting < kMaxNesting, "types are nested more than {} deep", kMaxNesting);
  ValueInfo info;
  while (message.next()) {
    const int field = message.field();
    if (field == 1) {
      info.kind = ValueKind::kTensor;
      REEF_RETURN_IF_ERROR(read_tensor_type(message.message(), info));
    } else if (field == 4 || field == 9) {
      info.kind = field == 4 ? ValueKind::kSequence : ValueKind::kOptional;
      WireReader container = message.message();
      while (container.next()) {
        if (container.field() != 1) continue;
        REEF_ASSIGN_OR_RETURN(const ValueInfo element, read_type(container.message(), nesting + 1));
        info.type = element.type;
      }
      REEF_RETURN_IF_ERROR(container.status());
    } else if (field == 5 || field == 8) {
      info.kind = ValueKind::kOther;  // map, sparse tensor
      message.skip();
    }
  }
  REEF_RETURN_IF_ERROR(message.status());
  return info;
}

Result<ValueInfo> read_value_info(WireReader message) {
  ValueInfo info;
  std::string name;
  while (message.next()) {
    if (message.field() == 1) {
      name = message.string();
    } else if (message.field() == 2) {
      REEF_ASSIGN_OR_RETURN(info, read_type(message.message(), 0));
    }
  }
  REEF_RETURN_IF_ERROR(message.status());
  info.name = std::move(name);
  return info;
}

Result<Attribute> read_attribute(WireReader message, int nesting) {
  Attribute a;
  while (message.next()) {
    switch (message.field()) {
      case 1:
        a.name = message.string();
        break;
      case 2:
        a.f = message.float32();
        break;
      case 3:
        a.i = message.int64();
        break;
      case 4:
        a.s = message.string();
        break;
      case 5: {
        REEF_ASSIGN_OR_RETURN(Tensor tensor, read_tensor(message.message()));
        a.tensor = std::make_shared<const Tensor>(std::move(tensor));
        break;
      }
      case 6: {
        REEF_ASSIGN_OR_RETURN(Graph graph, read_graph(message.message(), nesting + 1));
        a.graph = std::make_shared<const Graph>(std::move(graph));
        break;
      }
      case 7:
        message.append_floats(a.floats);
        break;
      case 8:
        message.append_varints(a.ints);
        break;
      case 9:
        a.strings.push_back(message.string());
        break;
      case 20:
        a.kind = static_cast<AttributeKind>(message.int64());
        break;
      case 21:
        a.reference = message.string();
        break;
      default:
        message.skip();
    }
  }
  REEF_RETURN_IF_ERROR(message.status());
  return a;
}

Result<Node> read_node(WireReader message, int nesting) {
  Node node;
  while (message.next()) {
    switch (message.field()) {
      case 1:
        node.inputs.push_back(message.string());
        break;
      case 2:
        node.outputs.push_back(message.string());
        break;
      case 3:
        node.name = message.string();
        break;
      case 4:
        node.op_type = message.string();
        break;
      case 5: {
        REEF_ASSIGN_OR_RETURN(Attribute attribute, read_attribute(message.message(), nesting));
        node.attributes.push_back(std::move(attribute));
        break;
      }
      case 7:
        node.domain = message.string();
        break;
      default:
        message.skip();
    }
  }
  REEF_RETURN_IF_ERROR(message.status());
  if (node.domain == "ai.onnx") node.domain.clear();
  return node;
}

Result<Graph> read_graph(WireReader message, int nesting) {
  REEF_REQUIRE(nesting < kMaxNesting, "graphs are nested more than {} deep", kMaxNesting);
  Graph graph;
  while (message.next()) {
    switch (message.field()) {
      case 1: {
        REEF_ASSIGN_OR_RETURN(Node node, read_node(message.message(), nesting));
        graph.nodes.push_back(std::move(node));
        break;
      }
      case 2:
        graph.name = message.string();
        break;
      case 5: {
        REEF_ASSIGN_OR_RETURN(Tensor tensor, read_tensor(message.message()));
        graph.initializers.push_back(std::move(tensor));
        break;
      }
      case 11:
      case 12:
      case 13: {
        auto& list = message.field() == 11 ? graph.inputs : message.field() == 12 ? graph.outputs : graph.values;
        REEF_ASSIGN_OR_RETURN(ValueInfo info, read_value_info(message.message()));
        list.push_back(std::move(info));
        break;
      }
      case 15:
        ++graph.sparse_initializers;
        message.skip();
        break;
      default:
        message.skip();
    }
  }
  REEF_RETURN_IF_ERROR(message.status());
  return graph;
}

Result<OpsetImport> read_opset(WireReader message) {
  OpsetImport row;
  while (message.next()) {
    if (message.field() == 1) row.domain = message.string();
    if (message.field() == 2) row.version = message.int64();
  }
  REEF_RETURN_IF_ERROR(message.status());
  return row;
}

Result<Function> read_function(WireReader message) {
  Function f;
  while (message.next()) {
    switch (message.field()) {
      case 1:
        f.name = message.string();
        break;
      case 4:
        f.inputs.push_back(message.string());
        break;
      case 5:
        f.outputs.push_back(message.string());
        break;
      case 6:
        f.attributes.push_back(message.string());
        break;
      case 7: {
        REEF_ASSIGN_OR_RETURN(Node node, read_node(message.message(), 0));
        f.nodes.push_back(std::move(node));
        break;
      }
      case 9: {
        REEF_ASSIGN_OR_RETURN(OpsetImport row, read_opset(message.message()));
        f.opsets.push_back(std::move(row));
        break;
      }
      case 10:
        f.domain = message.string();
        break;
      case 11: {
        REEF_ASSIGN_OR_RETURN(Attribute attribute, read_attribute(message.message(), 0));
        f.defaults.push_back(std::move(attribute));
        break;
      }
      default:
        message.skip();
    }
  }
  REEF_RETURN_IF_ERROR(message.status());
  return f;
}

Result<std::pair<std::string, std::string>> read_property(WireReader message) {
  std::pair<std::string, std::string> row;
  while (message.next()) {
    if (message.field() == 1) row.first = message.string();
    if (message.field() == 2) row.second = message.string();
  }
  REEF_RETURN_IF_ERROR(message.status());
  return row;
}

}  // namespace

Result<Tensor> read_tensor(const Bytes& file) { return read_tensor(WireReader(file)); }

Result<Model> read_model(const Bytes& file) {
  Model model;
  bool has_graph = false;
  WireReader message(file);
  while (message.next()) {
    switch (message.field()) {
      case 1:
        model.ir_version = message.int64();
        break;
      case 2:
        model.producer = message.string();
        break;
      case 3:
        model.producer_version = message.string();
        break;
      case 4:
        model.domain = message.string();
        break;
      case 5:
        model.model_version = message.int64();
        break;
      case 7: {
        REEF_ASSIGN_OR_RETURN(model.graph, read_graph(message.message(), 0));
        has_graph = true;
        break;
      }
      case 8: {
        REEF_ASSIGN_OR_RETURN(OpsetImport row, read_opset(message.message()));
        model.opsets.push_back(std::move(row));
        break;
      }
      case 14: {
        REEF_ASSIGN_OR_RETURN(auto row, read_property(message.message()));
        model.metadata.push_back(std::move(row));
        break;
      }
      case 25: {
        REEF_ASSIGN_OR_RETURN(Function function, read_function(message.message()));
        model.functions.push_back(std::move(function));
        break;
      }
      default:
        message.skip();
    }
  }
  REEF_RETURN_IF_ERROR(message.status());
  REEF_REQUIRE(has_graph, "there is no graph in this file; it is no ONNX model, or was cut off");
  return model;
}

bool looks_like_onnx(std::span<const std::uint8_t> file) {
  // Exporters write ir_version (field 1, a small number) first; protobuf writes fields in order of their numbers.
  return file.size() > 4 && file[0] == 0x08 && file[1] >= 1 && file[1] < 64;
}

Result<Model> load_model(const std::string& path) {
  auto file = read_file(path, kMaxFileBytes);
  if (!file.ok() && file.status().code() == StatusCode::kResourceExhausted) {
    return Status(StatusCode::kResourceExhausted,
                  fmt::format("{}; an ONNX model of 2 GiB or more does not fit into a TFLite file either",
                              file.status().message()));
  }
  REEF_RETURN_IF_ERROR(file.status());
  auto model = read_model(*file);
  if (!model.ok()) {
    const formats::ForeignFile foreign = formats::recognize_foreign(*file, path);
    if (!foreign.advice.empty()) return invalid_input("'{}': not an ONNX model: {}", path, foreign.advice);
    return model.status().in(path);
  }
  const Status external = read_external_data(*model, path);
  if (!external.ok()) return external.in(path);
  return model;
}

}  // namespace reef::onnx
