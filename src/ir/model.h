// SPDX-License-Identifier: Apache-2.0
// The intermediate representation: one structure for a model at every stage between file and machine code.
//
// It is a faithful image of a TFLite file's content: everything a file says is here, whether Reef understands it or
// not, so that load followed by save loses nothing. Indices point into the owning vectors; -1 means "none".
// A Model as built by hand or by a reader may be nonsense; ir/verify.h says whether it is, and every consumer that
// takes a verified model says so.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/at.h"
#include "base/bytes.h"
#include "ir/attributes.h"
#include "ir/shape.h"
#include "ir/type.h"

namespace reef::ir {

// Data of a union member or table that this version's schema does not describe, kept verbatim so that saving gives it
// back. `bytes` is a self-contained piece of a FlatBuffers file; its table starts at `table_offset`.
struct OpaqueTable {
  int union_type = 0;  // value of the union's discriminator
  Bytes bytes;
  std::uint32_t table_offset = 0;
  std::uint32_t alignment_phase = 0;  // address of bytes[0] modulo 16 in the file it came from
  friend bool operator==(const OpaqueTable&, const OpaqueTable&) = default;
};

// Quantization in blocks along one dimension; scales and zero points are tensors themselves.
struct BlockwiseQuantization {
  std::int32_t scales = 0;
  std::int32_t zero_points = 0;  // -1: all zero
  std::int32_t block_size = 0;
  std::vector<std::int32_t> block_shape;
  friend bool operator==(const BlockwiseQuantization&, const BlockwiseQuantization&) = default;
};
// The same over several dimensions. block_size 0: one scale per channel.
struct MultiAxisQuantization {
  std::int32_t scales = 0;
  std::int32_t zero_points = 0;
  std::int32_t block_size = 0;
  std::vector<std::int32_t> dimensions;
  friend bool operator==(const MultiAxisQuantization&, const MultiAxisQuantization&) = default;
};
struct CustomQuantization {
  Bytes custom;
  friend bool operator==(const CustomQuantization&, const CustomQuantization&) = default;
};

// real = scale * (q - zero_point). One scale: per tensor. Several: one per index of dimension `dimension`.
struct Quantization {
  std::vector<float> scale;
  std::vector<std::int64_t> zero_point;
  std::vector<float> min, max;  // what was observed while training or calibrating; informative
  std::int32_t dimension = 0;
  std::variant<std::monostate, CustomQuantization, BlockwiseQuantization, OpaqueTable, MultiAxisQuantization> details;

  bool is_quantized() const { return !scale.empty(); }
  bool is_per_axis() const { return scale.size() > 1; }
  friend bool operator==(const Quantization& a, const Quantization& b);
};

struct SparsityDimension {
  std::int32_t format = 0;  // 0 dense, 1 compressed
  std::int32_t dense_size = 0;
  // Segments and indices are int32, uint16 or uint8 vectors on the wire; the width is part of the content.
  struct IndexVector {
    int wire_type = 0;  // 0 none, 1 int32, 2 uint16, 3 uint8; others are newer than this version and cannot be saved
    std::vector<std::int32_t> values;
    friend bool operator==(const IndexVector&, const IndexVector&) = default;
  };
  IndexVector segments, indices;
  friend bool operator==(const SparsityDimension&, const SparsityDimension&) = default;
};
struct Sparsity {
  std::vector<std::int32_t> traversal_order, block_map;
  std::vector<SparsityDimension> dimensions;
  friend bool operator==(const Sparsity&, const Sparsity&) = default;
};

// The element type and shape of what a variant tensor holds.
struct VariantSubType {
  std::vector<std::int32_t> shape;
  DataType type = DataType::kFloat32;
  bool has_rank = false;
  friend bool operator==(const VariantSubType&, const VariantSubType&) = default;
};

struct Tensor {
  std::string name;
  DataType type = DataType::kFloat32;
  Shape shape;
  std::vector<std::int32_t> shape_signature;  // -1: may vary at run time. Empty: the shape is fixed
  bool has_rank = false;
  bool is_variable = false;           // keeps its value between invocations
  std::int32_t buffer = 0;            // index into Model::buffers; an empty buffer means that the value is computed
  std::uint32_t external_buffer = 0;  // ExternalBuffer::id; 0: none, the data is in `buffer`
  Quantization quantization;
  bool has_quantization = false;  // a file may carry an empty quantization table
  std::optional<Sparsity> sparsity;
  std::vector<VariantSubType> variant_sub_types;
  friend bool operator==(const Tensor&, const Tensor&) = default;
};

inline constexpr std::int32_t kCustomBuiltinCode = 32;

struct Operator {
  std::string type;  // "CONV_2D"; a custom op's own name; "BUILTIN_<code>" for a code newer than this version
  std::int32_t builtin_code = 0;
  std::int32_t version = 1;
  std::vector<std::int32_t> inputs;   // tensor indices; -1: an optional input left out
  std::vector<std::int32_t> outputs;  // tensor indices
  std::vector<std::int32_t> intermediates;
  std::vector<bool> mutating_variable_inputs;

  std::string options_type;                     // name of the option table ("Conv2DOptions"); empty: the file has none
  Attributes attributes;                        // what it says
  std::optional<OpaqueTable> opaque_options;    // instead, when this version cannot describe it
  std::optional<OpaqueTable> opaque_options_2;  // the same for the second options union
  Bytes custom_options;
  bool custom_options_are_large = false;   // stored behind the FlatBuffers part of the file
  std::int32_t custom_options_format = 0;  // 0, FlexBuffers, is the only one there is
  std::int32_t debug_metadata_index = -1;

  bool is_custom() const { return builtin_code == kCustomBuiltinCode; }
  friend bool operator==(const Operator&, const Operator&) = default;
};

struct Subgraph {
  std::string name;
  std::vector<Tensor> tensors;
  std::vector<std::int32_t> inputs, outputs;
  std::vector<Operator> operators;  // in execution order
  std::int32_t debug_metadata_index = -1;
  friend bool operator==(const Subgraph&, const Subgraph&) = default;
};

struct Buffer {
  Bytes data;
  bool is_external = false;  // stored behind the FlatBuffers part of the file
  // No bytes, but present: the constant has no elements, as opposed to a value that is computed. Never so for buffer 0.
  bool is_empty_constant = false;
  friend bool operator==(const Buffer&, const Buffer&) = default;
};

// Data in a file beside the model: bytes [offset, offset + length) of the file that `group` names.
struct ExternalBuffer {
  std::uint32_t id = 0;
  std::uint32_t group = 0;  // index into Model::external_buffer_groups
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::string packing;
  friend bool operator==(const ExternalBuffer&, const ExternalBuffer&) = default;
};

struct Metadata {
  std::string name;
  std::int32_t buffer = 0;
  friend bool operator==(const Metadata&, const Metadata&) = default;
};

struct SignatureTensor {
  std::string name;
  std::int32_t tensor = 0;
  friend bool operator==(const SignatureTensor&, const SignatureTensor&) = default;
};
struct Signature {
  std::string key;
  std::int32_t subgraph = 0;
  std::vector<SignatureTensor> inputs, outputs;
  friend bool operator==(const Signature&, const Signature&) = default;
};

struct Model {
  std::uint32_t version = 3;
  std::string description;
  std::vector<Buffer> buffers;  // index 0 is empty by convention
  std::vector<Subgraph> subgraphs;
  std::vector<Metadata> metadata;
  std::vector<std::int32_t> metadata_buffers;  // legacy list of metadata buffers
  std::vector<Signature> signatures;
  std::vector<std::string> external_buffer_groups;  // file names
  std::vector<ExternalBuffer> external_buffers;
  friend bool operator==(const Model&, const Model&) = default;
};

// Data of a constant tensor; empty for computed ones. `tensor.buffer` must be valid.
inline const Bytes& constant_data(const Model& model, const Tensor& tensor) {
  return model.buffers[at(tensor.buffer)].data;
}

// The file holds the tensor's value, even if that has no elements or stands in another file.
inline bool is_constant(const Model& model, const Tensor& tensor) {
  const Buffer& buffer = model.buffers[at(tensor.buffer)];
  return !buffer.data.empty() || buffer.is_empty_constant || tensor.external_buffer != 0;
}

}  // namespace reef::ir
