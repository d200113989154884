// SPDX-License-Identifier: Apache-2.0
// An ONNX model as plain structures: what the file says, nothing inferred, nothing checked beyond its encoding.
//
// Field by field the messages of onnx.proto (https://github.com/onnx/onnx/blob/main/onnx/onnx.proto), less what no
// importer needs (documentation strings, training information). Data of tensors is little-endian and dense, as in
// raw_data, however the file stored it; large tensors are slices of the file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"

namespace reef::onnx {

// Values of TensorProto.DataType.
enum class ElementType : std::int32_t {
  kUndefined = 0,
  kFloat = 1,
  kUInt8 = 2,
  kInt8 = 3,
  kUInt16 = 4,
  kInt16 = 5,
  kInt32 = 6,
  kInt64 = 7,
  kString = 8,
  kBool = 9,
  kFloat16 = 10,
  kDouble = 11,
  kUInt32 = 12,
  kUInt64 = 13,
  kComplex64 = 14,
  kComplex128 = 15,
  kBFloat16 = 16,
  kFloat8E4M3FN = 17,
  kFloat8E4M3FNUZ = 18,
  kFloat8E5M2 = 19,
  kFloat8E5M2FNUZ = 20,
  kUInt4 = 21,
  kInt4 = 22,
  kFloat4E2M1 = 23,
};

// "float32", "int64", ...; "type 99" for a number this version does not know.
std::string element_type_name(ElementType type);
// Bits of one element; 0 for strings and unknown types.
int bits_of(ElementType type);

struct Tensor {
  std::string name;
  ElementType type = ElementType::kUndefined;
  std::vector<std::int64_t> dims;
  Bytes data;                        // dense, little-endian; 4-bit types two a byte, low half first
  std::vector<std::string> strings;  // of a string tensor, instead
  std::string external_location;     // data is in this file, not read yet (see external_data.h); empty: it is here
  std::int64_t external_offset = 0;
  std::int64_t external_length = -1;  // -1: to the end
};

struct Graph;

// Values of AttributeProto.AttributeType.
enum class AttributeKind : std::int32_t {
  kUndefined = 0,
  kFloat = 1,
  kInt = 2,
  kString = 3,
  kTensor = 4,
  kGraph = 5,
  kFloats = 6,
  kInts = 7,
  kStrings = 8,
  kTensors = 9,
  kGraphs = 10,
  kSparseTensor = 11,
  kSparseTensors = 12,
  kType = 13,
  kTypes = 14,
};

struct Attribute {
  std::string name;
  AttributeKind kind = AttributeKind::kUndefined;
  std::string reference;  // inside a function: the attribute of the call whose value this is
  float f = 0;
  std::int64_t i = 0;
  std::string s;
  std::vector<float> floats;
  std::vector<std::int64_t> ints;
  std::vector<std::string> strings;
  std::shared_ptr<const Tensor> tensor;
  std::shared_ptr<const Graph> graph;
};

struct Node {
  std::string name, op_type, domain;
  std::vector<std::string> inputs, outputs;  // empty name: an optional one left out
  std::vector<Attribute> attributes;

  const Attribute* find(std::string_view attribute) const;
};

struct Dimension {
  std::int64_t size = -1;  // -1: open
  std::string symbol;      // its name, where it has one
};

enum class ValueKind { kNone, kTensor, kSequence, kOptional, kOther };

struct ValueInfo {
  std::string name;
  ValueKind kind = ValueKind::kNone;
  ElementType type = ElementType::kUndefined;  // of a tensor, or of a sequence's or optional's elements
  bool has_shape = false;
  std::vector<Dimension> dims;
};

struct Graph {
  std::string name;
  std::vector<Node> nodes;
  std::vector<Tensor> initializers;
  std::vector<ValueInfo> inputs, outputs, values;
  int sparse_initializers = 0;
};

struct OpsetImport {
  std::string domain;
  std::int64_t version = 0;
};

// A model-local function: nodes of type (domain, name) stand for its body.
struct Function {
  std::string name, domain;
  std::vector<std::string> inputs, outputs, attributes;
  std::vector<Attribute> defaults;
  std::vector<Node> nodes;
  std::vector<OpsetImport> opsets;
};

struct Model {
  std::int64_t ir_version = 0;
  std::string producer, producer_version, domain;
  std::int64_t model_version = 0;
  std::vector<OpsetImport> opsets;
  Graph graph;
  std::vector<Function> functions;
  std::vector<std::pair<std::string, std::string>> metadata;

  // The version of a domain's operators ("" and "ai.onnx" are the same); 0 if the domain is not imported.
  std::int64_t opset(std::string_view domain) const;
};

}  // namespace reef::onnx
