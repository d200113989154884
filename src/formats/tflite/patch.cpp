// SPDX-License-Identifier: Apache-2.0
//
// Data of the freshly read model are slices of the file, which says where they are. Scales and zero points are copies;
// their places are found by walking the file's tables in the order in which the reader does.
#include "formats/tflite/patch.h"

#include <cstring>
#include <new>

#include "formats/tflite/reader.h"
#include "formats/tflite/schema_generated.h"

namespace reef::tflite {
namespace {

namespace fb = tflite_schema;

constexpr char kWayOut[] = "save the model anew instead";

class Patcher {
 public:
  // `file` must be aligned as the reader wants it, so that slices of `before` lie in it.
  Patcher(const Bytes& file, const ir::Model& before)
      : file_(file), before_(before), result_(file.span().begin(), file.span().end()) {}

  Status patch(const ir::Model& edited) {
    REEF_RETURN_IF_ERROR(require_same(before_.buffers.size(), edited.buffers.size(), "buffers"));
    for (std::size_t i = 0; i < before_.buffers.size(); ++i) {
      const Status status = replace(before_.buffers[i].data, edited.buffers[i].data);
      if (!status.ok()) return status.in(fmt::format("buffer {}", i));
    }
    REEF_RETURN_IF_ERROR(require_same(before_.subgraphs.size(), edited.subgraphs.size(), "subgraphs"));
    for (std::size_t i = 0; i < before_.subgraphs.size(); ++i) {
      const Status status = patch_subgraph(i, edited.subgraphs[i]);
      if (!status.ok()) return status.in(fmt::format("subgraph {}", i));
    }
    return ok_status();
  }

  std::vector<std::uint8_t> take() { return std::move(result_); }

 private:
  static Status require_same(std::size_t before, std::size_t after, const char* what) {
    if (before == after) return ok_status();
    return unsupported("the number of {} changed from {} to {}: {}", what, before, after, kWayOut);
  }

  Status overwrite(const void* place, const void* data, std::size_t size, std::size_t new_size) {
    if (size != new_size) return unsupported("its size changed from {} to {} bytes: {}", size, new_size, kWayOut);
    if (size == 0 || std::memcmp(place, data, size) == 0) return ok_status();
    const auto* first = static_cast<const std::uint8_t*>(place);
    if (first < file_.data() || first >= file_.data() + file_.size()) return internal_error("data outside of the file");
    const auto offset = static_cast<std::size_t>(first - file_.data());
    std::memcpy(result_.data() + offset, data, size);
    return ok_status();
  }
  Status replace(const Bytes& before, const Bytes& after) {
    return overwrite(before.data(), after.data(), before.size(), after.size());
  }
  template <typename T>
  Status replace(const flatbuffers::Vector<T>* before, const std::vector<T>& after, const char* what) {
    const std::size_t count = before == nullptr ? 0 : before->size();
    const void* place = before == nullptr ? nullptr : before->Data();
    return overwrite(place, after.data(), count * sizeof(T), after.size() * sizeof(T)).in(what);
  }

  Status patch_subgraph(std::size_t index, const ir::Subgraph& edited) {
    const ir::Subgraph& before = before_.subgraphs[index];
    const fb::SubGraph& wire = *fb::GetModel(file_.data())->subgraphs()->Get(static_cast<std::uint32_t>(index));
    REEF_RETURN_IF_ERROR(require_same(before.tensors.size(), edited.tensors.size(), "tensors"));
    for (std::size_t i = 0; i < before.tensors.size(); ++i) {
      const auto* quantization = wire.tensors()->Get(static_cast<std::uint32_t>(i))->quantization();
      const ir::Quantization& after = edited.tensors[i].quantization;
      const auto* scale = quantization == nullptr ? nullptr : quantization->scale();
      const auto* zero_point = quantization == nullptr ? nullptr : quantization->zero_point();
      Status status = replace(scale, after.scale, "scale");
      if (status.ok()) status = replace(zero_point, after.zero_point, "zero_point");
      if (!status.ok()) return status.in(fmt::format("tensor {} '{}'", i, before.tensors[i].name));
    }
    REEF_RETURN_IF_ERROR(require_same(before.operators.size(), edited.operators.size(), "operators"));
    for (std::size_t i = 0; i < before.operators.size(); ++i) {
      const Status status = replace(before.operators[i].custom_options, edited.operators[i].custom_options);
      if (!status.ok()) return status.in(fmt::format("custom options of op {} {}", i, before.operators[i].type));
    }
    return ok_status();
  }

  const Bytes& file_;
  const ir::Model& before_;
  std::vector<std::uint8_t> result_;
};

Result<std::vector<std::uint8_t>> patch_aligned(const Bytes& file, const ir::Model& edited) {
  REEF_ASSIGN_OR_RETURN(const ir::Model before, read_model(file));
  Patcher patcher(file, before);
  REEF_RETURN_IF_ERROR(patcher.patch(edited));
  const Bytes result(patcher.take());
  // Catches both a difference of another kind and pieces that share their bytes in the file but no longer agree.
  REEF_ASSIGN_OR_RETURN(const ir::Model after, read_model(result));
  if (after == edited) return std::vector<std::uint8_t>(result.span().begin(), result.span().end());
  return unsupported(
      "the model differs from the file in more than data, custom options, scales and zero points, or these share bytes "
      "in the file: {}",
      kWayOut);
}

}  // namespace

Result<std::vector<std::uint8_t>> patch_file(const Bytes& original_file, const ir::Model& edited) {
  try {
    // A copy is aligned; the original may be a slice of something larger.
    return patch_aligned(Bytes::copy_of(original_file.span()), edited);
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::kResourceExhausted, "not enough memory to patch the file");
  }
}

}  // namespace reef::tflite
