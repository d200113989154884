// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx/external_data.h"

#include <filesystem>
#include <map>
#include <set>

#include "base/file.h"
#include "formats/onnx/reader.h"
#include "formats/onnx/tensor_reader.h"

namespace reef::onnx {
namespace {

namespace fs = std::filesystem;

class ExternalReader {
 public:
  enum class Task { kRead, kList };

  ExternalReader(const std::string& model_path, Task task) : task_(task) {
    fs::path parent = fs::path(model_path).parent_path();
    std::error_code error;
    folder_ = fs::weakly_canonical(parent.empty() ? fs::path(".") : parent, error);
  }

  Status fill(Tensor& tensor) {
    if (tensor.external_location.empty()) return ok_status();
    if (task_ == Task::kList) {
      listed_.insert((folder_ / tensor.external_location).string());
      return ok_status();
    }
    const Status status = read(tensor);
    return status.in(fmt::format("tensor '{}', external data in '{}'", tensor.name, tensor.external_location));
  }

  Status fill(Graph& graph) {
    for (Tensor& tensor : graph.initializers) REEF_RETURN_IF_ERROR(fill(tensor));
    return fill(graph.nodes);
  }

  Status fill(Model& model) {
    REEF_RETURN_IF_ERROR(fill(model.graph));
    for (Function& function : model.functions) REEF_RETURN_IF_ERROR(fill(function.nodes));
    return ok_status();
  }

  const std::set<std::string>& listed() const { return listed_; }

  Status fill(std::vector<Node>& nodes) {
    for (Node& node : nodes) {
      for (Attribute& attribute : node.attributes) REEF_RETURN_IF_ERROR(fill(attribute));
    }
    return ok_status();
  }

 private:
  Status fill(Attribute& attribute) {
    if (attribute.tensor != nullptr && !attribute.tensor->external_location.empty()) {
      Tensor tensor = *attribute.tensor;
      REEF_RETURN_IF_ERROR(fill(tensor));
      attribute.tensor = std::make_shared<const Tensor>(std::move(tensor));
    }
    if (attribute.graph == nullptr) return ok_status();
    Graph graph = *attribute.graph;
    REEF_RETURN_IF_ERROR(fill(graph));
    attribute.graph = std::make_shared<const Graph>(std::move(graph));
    return ok_status();
  }

  Status read(Tensor& tensor) {
    REEF_ASSIGN_OR_RETURN(const Bytes file, open(tensor.external_location));
    REEF_ASSIGN_OR_RETURN(const std::int64_t count, element_count(tensor));
    const std::int64_t bytes = (count * bits_of(tensor.type) + 7) / 8;
    const std::int64_t length = tensor.external_length < 0 ? bytes : tensor.external_length;
    const auto size = static_cast<std::int64_t>(file.size());
    REEF_REQUIRE(tensor.external_offset <= size && length <= size - tensor.external_offset,
                 "bytes {} to {} are asked for, but the file has {}", tensor.external_offset,
                 tensor.external_offset + length, size);
    tensor.data = file.slice(static_cast<std::size_t>(tensor.external_offset), static_cast<std::size_t>(length));
    tensor.external_location.clear();
    return check_size(tensor);
  }

  Result<Bytes> open(const std::string& location) {
    if (const auto known = files_.find(location); known != files_.end()) return known->second;
    const fs::path relative(location);
    std::error_code error;
    const fs::path whole = fs::weakly_canonical(folder_ / relative, error);
    const fs::path inside = whole.lexically_relative(folder_);
    REEF_REQUIRE(!relative.is_absolute() && !error && !inside.empty() && *inside.begin() != "..",
                 "the file is not below the model's folder; data from elsewhere is not read");
    REEF_ASSIGN_OR_RETURN(Bytes file, read_file(whole.string(), kMaxFileBytes - total_));
    total_ += file.size();
    files_.emplace(location, file);
    return file;
  }

  Task task_;
  std::set<std::string> listed_;
  fs::path folder_;
  std::map<std::string, Bytes> files_;
  std::uint64_t total_ = 0;
};

}  // namespace

Status read_external_data(Model& model, const std::string& model_path) {
  return ExternalReader(model_path, ExternalReader::Task::kRead).fill(model);
}

Result<std::vector<std::string>> external_files(const std::string& model_path) {
  REEF_ASSIGN_OR_RETURN(const Bytes file, read_file(model_path, kMaxFileBytes));
  REEF_ASSIGN_OR_RETURN(Model model, read_model(file));
  ExternalReader reader(model_path, ExternalReader::Task::kList);
  REEF_RETURN_IF_ERROR(reader.fill(model));
  return std::vector<std::string>(reader.listed().begin(), reader.listed().end());
}

}  // namespace reef::onnx
