// SPDX-License-Identifier: Apache-2.0
// One pass over the model, linear in its size.
//
// The checks are those that later stages need in order to index without looking, and those that a model must pass to
// mean anything. Files in the wild are sloppier than that, and these oddities are let through on purpose:
//  - a graph input that has a constant buffer, which then serves as its default value;
//  - zero points left out altogether, meaning 0; min/max lists of any length; zero points without scales;
//  - a per-axis vector (a bias) that names the dimension of the filter it belongs to: `dimension` may exceed the rank
//  of
//    a tensor of rank 1 when the count of scales is the vector's length;
//  - a custom op that reads a tensor nobody writes: compilers for accelerators pass scratch memory that way.
// Data in a file beside the model counts as constant, but is not looked at. Not checked: whether opaque tables and the
// contents of sparse tensors make sense, and everything that belongs to an op.
#include "ir/verify.h"

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/describe.h"

namespace reef::ir {
namespace {

bool in_range(std::int64_t index, std::size_t count) { return index >= 0 && static_cast<std::uint64_t>(index) < count; }

std::string only(std::size_t count, std::string_view what) {
  if (count == 0) return fmt::format("there are no {}s", what);
  return fmt::format("there {} only {} {}{}", count == 1 ? "is" : "are", count, what, count == 1 ? "" : "s");
}

std::string tensor_place(const Subgraph& graph, std::int64_t index) {
  return fmt::format("tensor {} '{}'", index, describe_name(graph.tensors[reef::at(index)].name));
}

Status check_opaque(const OpaqueTable& table, std::string_view what) {
  if (table.bytes.empty() && table.table_offset == 0) return ok_status();
  // A table begins with a 4-byte offset to its layout.
  REEF_REQUIRE(table.bytes.size() >= 4 && table.table_offset <= table.bytes.size() - 4,
               "{}: the table is said to start at byte {}, but only {} bytes are kept", what, table.table_offset,
               table.bytes.size());
  REEF_REQUIRE(table.alignment_phase < 16, "{}: alignment phase {} is not below 16", what, table.alignment_phase);
  return ok_status();
}

std::uint32_t little_endian_32(std::span<const std::uint8_t> data, std::size_t offset) {
  return std::uint32_t{data[offset]} | std::uint32_t{data[offset + 1]} << 8 | std::uint32_t{data[offset + 2]} << 16 |
         std::uint32_t{data[offset + 3]} << 24;
}

// Layout of a string tensor's buffer: count, count + 1 offsets from the buffer's start (int32 each), characters.
// The number of strings, or nullopt when the layout is broken.
std::optional<std::int64_t> string_count(std::span<const std::uint8_t> data) {
  if (data.size() < 8) return std::nullopt;
  const std::uint64_t count = little_endian_32(data, 0);
  const std::uint64_t header = 4 * (count + 2);
  if (header > data.size()) return std::nullopt;
  std::uint64_t previous = header;
  for (std::size_t i = 0; i <= count; ++i) {
    const std::uint64_t offset = little_endian_32(data, 4 + 4 * i);
    if (offset < previous || offset > data.size()) return std::nullopt;
    previous = offset;
  }
  return static_cast<std::int64_t>(count);
}

class Verifier {
 public:
  explicit Verifier(const Model& model) : model_(model) {}

  Status run() {
    REEF_RETURN_IF_ERROR(check_external_buffers());
    REEF_REQUIRE(!model_.subgraphs.empty(), "the model has no subgraph; it needs at least one");
    for (std::size_t i = 0; i < model_.subgraphs.size(); ++i) {
      const Status status = check_subgraph(model_.subgraphs[i]);
      if (!status.ok()) return status.in(fmt::format("subgraph {} '{}'", i, describe_name(model_.subgraphs[i].name)));
    }
    REEF_RETURN_IF_ERROR(check_metadata());
    for (std::size_t i = 0; i < model_.signatures.size(); ++i) {
      const Status status = check_signature(model_.signatures[i]);
      if (!status.ok()) return status.in(fmt::format("signature {} '{}'", i, describe_name(model_.signatures[i].key)));
    }
    return ok_status();
  }

 private:
  Status check_subgraph(const Subgraph& graph) {
    for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
      const Status status = check_tensor(graph, graph.tensors[i]);
      if (!status.ok()) return status.in(tensor_place(graph, static_cast<std::int64_t>(i)));
    }
    is_ready_.assign(graph.tensors.size(), false);
    writer_.assign(graph.tensors.size(), kNobody);
    for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
      const Tensor& tensor = graph.tensors[i];
      // A buffer that is present but empty says nothing here: a constant without elements needs no writer anyway, and
      // converters give such buffers to computed tensors too.
      const bool is_constant = !constant_data(model_, tensor).empty() || tensor.external_buffer != 0;
      if (is_constant) writer_[i] = kConstant;
      // Nothing has to be written for a tensor without elements; handles are made by the runtime.
      is_ready_[i] = is_constant || tensor.is_variable || tensor.type == DataType::kResource ||
                     tensor.type == DataType::kVariant || tensor.shape.checked_elements() == 0;
    }
    REEF_RETURN_IF_ERROR(check_inputs(graph));
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
      const Status status = check_operator(graph, i);
      if (!status.ok()) return status.in(fmt::format("op {} {}", i, describe_name(graph.operators[i].type)));
    }
    return check_outputs(graph);
  }

  Status check_inputs(const Subgraph& graph) {
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
      const std::int32_t index = graph.inputs[i];
      REEF_REQUIRE(in_range(index, graph.tensors.size()), "graph input {} is tensor {}, but {}", i, index,
                   only(graph.tensors.size(), "tensor"));
      const auto at = static_cast<std::size_t>(index);
      REEF_REQUIRE(writer_[at] != kInput, "{} is listed twice among the graph's inputs; remove one",
                   tensor_place(graph, index));
      writer_[at] = kInput;
      is_ready_[at] = true;
    }
    return ok_status();
  }

  Status check_outputs(const Subgraph& graph) const {
    for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
      const std::int32_t index = graph.outputs[i];
      REEF_REQUIRE(in_range(index, graph.tensors.size()), "graph output {} is tensor {}, but {}", i, index,
                   only(graph.tensors.size(), "tensor"));
      REEF_REQUIRE(is_ready_[reef::at(index)],
                   "graph output {} is {}, which no op writes and which is neither constant nor an input", i,
                   tensor_place(graph, index));
    }
    return ok_status();
  }

  Status check_operator(const Subgraph& graph, std::size_t op_index) {
    const Operator& op = graph.operators[op_index];
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      const std::int32_t index = op.inputs[i];
      if (index == -1) continue;
      REEF_REQUIRE(in_range(index, graph.tensors.size()), "input {} is tensor {}, but {}", i, index,
                   only(graph.tensors.size(), "tensor"));
      REEF_REQUIRE(is_ready_[reef::at(index)] || op.is_custom(),
                   "input {} is {}, which nothing has written by then: no earlier op has it as an output, and it is "
                   "neither constant, variable nor a graph input; ops must be listed in execution order",
                   i, tensor_place(graph, index));
    }
    for (std::size_t i = 0; i < op.outputs.size(); ++i) {
      const std::int32_t index = op.outputs[i];
      REEF_REQUIRE(in_range(index, graph.tensors.size()), "output {} is tensor {}, but {}", i, index,
                   only(graph.tensors.size(), "tensor"));
      const auto at = static_cast<std::size_t>(index);
      REEF_REQUIRE(writer_[at] == kNobody, "output {} is {}, which {}; a tensor may be written only once", i,
                   tensor_place(graph, index), describe_writer(graph, writer_[at]));
      writer_[at] = static_cast<std::int64_t>(op_index);
      is_ready_[at] = true;
    }
    for (std::size_t i = 0; i < op.intermediates.size(); ++i) {
      const std::int32_t index = op.intermediates[i];
      REEF_REQUIRE(index == -1 || in_range(index, graph.tensors.size()), "intermediate {} is tensor {}, but {}", i,
                   index, only(graph.tensors.size(), "tensor"));
    }
    if (op.opaque_options) REEF_RETURN_IF_ERROR(check_opaque(*op.opaque_options, "options"));
    if (op.opaque_options_2) REEF_RETURN_IF_ERROR(check_opaque(*op.opaque_options_2, "second options"));
    return ok_status();
  }

  static std::string describe_writer(const Subgraph& graph, std::int64_t writer) {
    if (writer == kConstant) return "is a constant";
    if (writer == kInput) return "is an input of the graph";
    return fmt::format("op {} {} already writes", writer, describe_name(graph.operators[reef::at(writer)].type));
  }

  Status check_tensor(const Subgraph& graph, const Tensor& tensor) {
    const std::optional<std::int64_t> elements = tensor.shape.checked_elements();
    for (const std::int32_t dim : tensor.shape) {
      REEF_REQUIRE(dim >= 0,
                   "shape {} has a negative size; a size that varies belongs into the shape signature, with 1 in the "
                   "shape itself",
                   tensor.shape.to_string());
    }
    REEF_REQUIRE(elements && tensor.shape.is_usable(), "shape {} has 2^31 elements or more (sizes of 0 counted as 1)",
                 tensor.shape.to_string());
    REEF_RETURN_IF_ERROR(check_signature_shape(tensor));
    REEF_REQUIRE(in_range(tensor.buffer, model_.buffers.size()), "its buffer is {}, but {}", tensor.buffer,
                 only(model_.buffers.size(), "buffer"));
    REEF_REQUIRE(tensor.external_buffer == 0 || external_ids_.contains(tensor.external_buffer),
                 "its data is external buffer {}, which the model does not list", tensor.external_buffer);
    REEF_RETURN_IF_ERROR(check_constant(tensor, *elements));
    REEF_RETURN_IF_ERROR(check_quantization(graph, tensor));
    if (tensor.sparsity) return check_sparsity(*tensor.sparsity, tensor.shape).in("sparsity");
    return ok_status();
  }

  static Status check_signature_shape(const Tensor& tensor) {
    const std::vector<std::int32_t>& signature = tensor.shape_signature;
    if (signature.empty()) return ok_status();
    REEF_REQUIRE(signature.size() == tensor.shape.dims().size(),
                 "the shape signature has {} dimensions, but the shape {} has {}", signature.size(),
                 tensor.shape.to_string(), tensor.shape.rank());
    for (const std::int32_t dim : signature) {
      REEF_REQUIRE(dim >= -1, "the shape signature has a size of {}; only -1 (varies) and sizes from 0 are valid", dim);
    }
    return ok_status();
  }

  Status check_constant(const Tensor& tensor, std::int64_t elements) {
    const Bytes& data = constant_data(model_, tensor);
    if (data.empty()) return ok_status();
    REEF_REQUIRE(!tensor.is_variable, "is both variable and constant (buffer {}); give it buffer 0", tensor.buffer);
    if (tensor.sparsity) return ok_status();
    if (tensor.type == DataType::kString) return check_strings(tensor, elements);
    if (bits_per_element(tensor.type) == 0) return ok_status();
    const std::optional<std::int64_t> bytes = byte_size(tensor.shape, tensor.type);
    REEF_REQUIRE(bytes && static_cast<std::uint64_t>(*bytes) == data.size(),
                 "{}{} takes {} bytes, but its buffer {} holds {}", type_name(tensor.type), tensor.shape.to_string(),
                 bytes.value_or(-1), tensor.buffer, data.size());
    return ok_status();
  }

  // Many tensors may share one buffer, which is then walked only once.
  Status check_strings(const Tensor& tensor, std::int64_t elements) {
    auto [place, is_new] = string_counts_.try_emplace(tensor.buffer);
    if (is_new) place->second = string_count(constant_data(model_, tensor).span());
    REEF_REQUIRE(place->second, "its buffer {} does not hold a list of strings: count, offsets, characters",
                 tensor.buffer);
    REEF_REQUIRE(*place->second == elements, "string{} has {} elements, but its buffer {} holds {} strings",
                 tensor.shape.to_string(), elements, tensor.buffer, *place->second);
    return ok_status();
  }

  static Status check_quantization(const Subgraph& graph, const Tensor& tensor) {
    const Quantization& quantization = tensor.quantization;
    const std::size_t scales = quantization.scale.size();
    const std::size_t zero_points = quantization.zero_point.size();
    REEF_REQUIRE(scales == 0 || zero_points == 0 || zero_points == scales,
                 "quantization has {} scales but {} zero points; give as many, or no zero points when all are 0",
                 scales, zero_points);
    if (quantization.is_per_axis()) {
      REEF_REQUIRE(quantization.dimension >= 0, "quantization is along dimension {}", quantization.dimension);
      const int rank = tensor.shape.rank();
      const int dimension = rank == 1 ? 0 : quantization.dimension;
      REEF_REQUIRE(dimension < rank, "quantization is along dimension {}, but the shape is {}", dimension,
                   tensor.shape.to_string());
      REEF_REQUIRE(static_cast<std::uint64_t>(tensor.shape[dimension]) == scales,
                   "quantization has {} scales along dimension {}, but the shape is {}", scales, dimension,
                   tensor.shape.to_string());
    }
    if (const auto* blocks = std::get_if<BlockwiseQuantization>(&quantization.details)) {
      REEF_RETURN_IF_ERROR(check_parameter_tensors(graph, blocks->scales, blocks->zero_points));
      const bool is_sized = blocks->block_size > 0 || (blocks->block_size == 0 && !blocks->block_shape.empty());
      REEF_REQUIRE(is_sized, "quantization is in blocks of {} elements", blocks->block_size);
    }
    if (const auto* axes = std::get_if<MultiAxisQuantization>(&quantization.details)) {
      REEF_RETURN_IF_ERROR(check_parameter_tensors(graph, axes->scales, axes->zero_points));
      REEF_REQUIRE(axes->block_size >= 0, "quantization is in blocks of {} elements", axes->block_size);
      for (const std::int32_t dimension : axes->dimensions) {
        REEF_REQUIRE(in_range(dimension, tensor.shape.dims().size()),
                     "quantization is along dimension {}, but the shape is {}", dimension, tensor.shape.to_string());
      }
    }
    if (const auto* opaque = std::get_if<OpaqueTable>(&quantization.details)) {
      return check_opaque(*opaque, "quantization details");
    }
    return ok_status();
  }

  static Status check_parameter_tensors(const Subgraph& graph, std::int32_t scales, std::int32_t zero_points) {
    REEF_REQUIRE(in_range(scales, graph.tensors.size()), "quantization's scales are tensor {}, but {}", scales,
                 only(graph.tensors.size(), "tensor"));
    REEF_REQUIRE(zero_points == -1 || in_range(zero_points, graph.tensors.size()),
                 "quantization's zero points are tensor {}, but {}; -1 means that all are 0", zero_points,
                 only(graph.tensors.size(), "tensor"));
    return ok_status();
  }

  // Dimensions are those of the shape followed by those of the blocks; the traversal order is a permutation of them.
  static Status check_sparsity(const Sparsity& sparsity, const Shape& shape) {
    const std::size_t count = sparsity.dimensions.size();
    const std::size_t rank = shape.dims().size();
    REEF_REQUIRE(count == rank + sparsity.block_map.size(),
                 "{} dimensions are described, but the shape has {} and there are {} block dimensions", count, rank,
                 sparsity.block_map.size());
    REEF_REQUIRE(sparsity.traversal_order.size() == count, "the traversal order lists {} of {} dimensions",
                 sparsity.traversal_order.size(), count);
    std::vector<bool> is_listed(count, false);
    for (const std::int32_t dimension : sparsity.traversal_order) {
      REEF_REQUIRE(in_range(dimension, count), "the traversal order names dimension {} of {}", dimension, count);
      REEF_REQUIRE(!is_listed[reef::at(dimension)], "the traversal order names dimension {} twice", dimension);
      is_listed[reef::at(dimension)] = true;
    }
    for (const std::int32_t dimension : sparsity.block_map) {
      REEF_REQUIRE(in_range(dimension, rank), "the block map names dimension {} of {}", dimension, rank);
    }
    for (std::size_t i = 0; i < count; ++i) {
      const SparsityDimension& dimension = sparsity.dimensions[i];
      REEF_REQUIRE(dimension.dense_size >= 0, "dimension {} has dense size {}", i, dimension.dense_size);
      REEF_RETURN_IF_ERROR(check_index_vector(dimension.segments).in(fmt::format("segments of dimension {}", i)));
      REEF_RETURN_IF_ERROR(check_index_vector(dimension.indices).in(fmt::format("indices of dimension {}", i)));
    }
    return ok_status();
  }

  static Status check_index_vector(const SparsityDimension::IndexVector& vector) {
    const bool is_known = vector.wire_type >= 1 && vector.wire_type <= 3;
    REEF_REQUIRE(is_known || vector.values.empty(), "has values of unknown type {}", vector.wire_type);
    const std::int32_t largest = vector.wire_type == 3   ? std::numeric_limits<std::uint8_t>::max()
                                 : vector.wire_type == 2 ? std::numeric_limits<std::uint16_t>::max()
                                                         : std::numeric_limits<std::int32_t>::max();
    for (const std::int32_t value : vector.values) {
      REEF_REQUIRE(value >= 0 && value <= largest, "value {} is outside 0..{}", value, largest);
    }
    return ok_status();
  }

  Status check_external_buffers() {
    for (std::size_t i = 0; i < model_.external_buffers.size(); ++i) {
      const ExternalBuffer& buffer = model_.external_buffers[i];
      REEF_REQUIRE(in_range(buffer.group, model_.external_buffer_groups.size()),
                   "external buffer {}: its group is {}, but {}", i, buffer.group,
                   only(model_.external_buffer_groups.size(), "group"));
      REEF_REQUIRE(external_ids_.insert(buffer.id).second, "external buffer {}: id {} is taken by an earlier one", i,
                   buffer.id);
    }
    return ok_status();
  }

  Status check_metadata() const {
    for (std::size_t i = 0; i < model_.metadata.size(); ++i) {
      const Metadata& row = model_.metadata[i];
      REEF_REQUIRE(in_range(row.buffer, model_.buffers.size()), "metadata {} '{}': its buffer is {}, but {}", i,
                   describe_name(row.name), row.buffer, only(model_.buffers.size(), "buffer"));
    }
    for (std::size_t i = 0; i < model_.metadata_buffers.size(); ++i) {
      const std::int32_t buffer = model_.metadata_buffers[i];
      REEF_REQUIRE(in_range(buffer, model_.buffers.size()), "entry {} of the metadata buffer list is {}, but {}", i,
                   buffer, only(model_.buffers.size(), "buffer"));
    }
    return ok_status();
  }

  Status check_signature(const Signature& signature) const {
    REEF_REQUIRE(in_range(signature.subgraph, model_.subgraphs.size()), "it describes subgraph {}, but {}",
                 signature.subgraph, only(model_.subgraphs.size(), "subgraph"));
    const std::size_t tensors = model_.subgraphs[reef::at(signature.subgraph)].tensors.size();
    for (const auto* rows : {&signature.inputs, &signature.outputs}) {
      for (const SignatureTensor& row : *rows) {
        REEF_REQUIRE(in_range(row.tensor, tensors), "{} '{}' is tensor {} of subgraph {}, but {}",
                     rows == &signature.inputs ? "input" : "output", describe_name(row.name), row.tensor,
                     signature.subgraph, only(tensors, "tensor"));
      }
    }
    return ok_status();
  }

  // Who writes a tensor: the index of an op, or one of these.
  static constexpr std::int64_t kNobody = -1;
  static constexpr std::int64_t kInput = -2;
  static constexpr std::int64_t kConstant = -3;

  const Model& model_;
  std::unordered_set<std::uint32_t> external_ids_;
  // State of the current subgraph, by tensor.
  std::vector<bool> is_ready_;  // has a value at this point of the execution order
  std::vector<std::int64_t> writer_;
  std::unordered_map<std::int32_t, std::optional<std::int64_t>> string_counts_;  // by buffer
};

}  // namespace

Status verify(const Model& model) { return Verifier(model).run(); }

}  // namespace reef::ir
