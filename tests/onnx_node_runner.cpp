// SPDX-License-Identifier: Apache-2.0
#include "onnx_node_runner.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>

#include <fmt/ranges.h>

#include "base/file.h"
#include "execute/cpu/interpreter.h"
#include "formats/onnx/reader.h"
#include "import/onnx/converter.h"
#include "import/onnx/importer.h"
#include "numeric/half.h"

namespace reef::test {
namespace {

namespace fs = std::filesystem;
constexpr double kRelative = 1e-3, kAbsolute = 1e-7;  // as ONNX's runner
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 30;

template <typename T, typename Function>
void append_as(const Bytes& data, std::vector<double>& values, Function function) {
  for (std::size_t i = 0; i + sizeof(T) <= data.size(); i += sizeof(T)) {
    T element;
    std::memcpy(&element, data.data() + i, sizeof(T));
    values.push_back(static_cast<double>(function(element)));
  }
}

std::vector<double> numbers(const onnx::Tensor& tensor) {
  std::vector<double> values;
  const auto same = [](auto x) { return x; };
  switch (tensor.type) {
    case onnx::ElementType::kFloat:
      append_as<float>(tensor.data, values, same);
      break;
    case onnx::ElementType::kDouble:
      append_as<double>(tensor.data, values, same);
      break;
    case onnx::ElementType::kFloat16:
      append_as<std::uint16_t>(tensor.data, values, numeric::half_to_float);
      break;
    case onnx::ElementType::kBFloat16:
      append_as<std::uint16_t>(tensor.data, values, numeric::bfloat16_to_float);
      break;
    case onnx::ElementType::kInt8:
      append_as<std::int8_t>(tensor.data, values, same);
      break;
    case onnx::ElementType::kUInt8:
    case onnx::ElementType::kBool:
      append_as<std::uint8_t>(tensor.data, values, same);
      break;
    case onnx::ElementType::kInt16:
      append_as<std::int16_t>(tensor.data, values, same);
      break;
    case onnx::ElementType::kUInt16:
      append_as<std::uint16_t>(tensor.data, values, same);
      break;
    case onnx::ElementType::kInt32:
      append_as<std::int32_t>(tensor.data, values, same);
      break;
    case onnx::ElementType::kUInt32:
      append_as<std::uint32_t>(tensor.data, values, same);
      break;
    case onnx::ElementType::kInt64:
      append_as<std::int64_t>(tensor.data, values, same);
      break;
    case onnx::ElementType::kUInt64:
      append_as<std::uint64_t>(tensor.data, values, same);
      break;
    default:
      break;
  }
  return values;
}

std::vector<double> numbers(const ops::Tensor& tensor) {
  onnx::Tensor as_onnx;
  static const std::map<ir::DataType, onnx::ElementType> types = {
      {ir::DataType::kFloat32, onnx::ElementType::kFloat}, {ir::DataType::kInt8, onnx::ElementType::kInt8},
      {ir::DataType::kUInt8, onnx::ElementType::kUInt8},   {ir::DataType::kInt16, onnx::ElementType::kInt16},
      {ir::DataType::kUInt16, onnx::ElementType::kUInt16}, {ir::DataType::kInt32, onnx::ElementType::kInt32},
      {ir::DataType::kUInt32, onnx::ElementType::kUInt32}, {ir::DataType::kInt64, onnx::ElementType::kInt64},
      {ir::DataType::kBool, onnx::ElementType::kBool}};
  const auto found = types.find(tensor.type);
  if (found != types.end()) as_onnx.type = found->second;
  as_onnx.data = Bytes::copy_of({reinterpret_cast<const std::uint8_t*>(tensor.data), tensor.bytes});
  return numbers(as_onnx);
}

// The tensor's values in the memory of an input of type `type`.
Status fill(const onnx::Tensor& tensor, ir::DataType type, std::span<std::byte> target) {
  if (type == ir::DataType::kFloat32 && tensor.type != onnx::ElementType::kFloat) {
    const std::vector<double> values = numbers(tensor);
    REEF_REQUIRE(values.size() * 4 == target.size(), "an input has {} elements; {} are needed", values.size(),
                 target.size() / 4);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto element = static_cast<float>(values[i]);
      std::memcpy(target.data() + 4 * i, &element, 4);
    }
    return ok_status();
  }
  REEF_REQUIRE(tensor.data.size() == target.size(), "an input has {} bytes; {} are needed", tensor.data.size(),
               target.size());
  if (!tensor.data.empty()) std::memcpy(target.data(), tensor.data.data(), target.size());
  return ok_status();
}

// `tolerance`: of differences, as a share of the largest element, instead of ONNX's rule; 0: that.
Status compare(const onnx::Tensor& wanted, const ops::Tensor& got, const std::string& name, double tolerance) {
  const std::vector<std::int64_t> shape(got.shape.begin(), got.shape.end());
  REEF_REQUIRE(shape == wanted.dims, "output '{}' has the shape {}; [{}] is wanted", name, got.shape.to_string(),
               fmt::join(wanted.dims, ", "));
  const std::vector<double> a = numbers(got), b = numbers(wanted);
  REEF_REQUIRE(a.size() == b.size(), "output '{}' has {} elements; {} are wanted", name, a.size(), b.size());
  double largest = 0;
  for (const double each : b) largest = std::max(largest, std::fabs(each));
  for (std::size_t i = 0; i < a.size(); ++i) {
    const bool both_nan = std::isnan(a[i]) && std::isnan(b[i]);
    const double limit = tolerance > 0 ? tolerance * largest : kAbsolute + kRelative * std::fabs(b[i]);
    if (both_nan || a[i] == b[i] || std::fabs(a[i] - b[i]) <= limit) continue;
    return invalid_input("output '{}', element {}: {} instead of {}", name, i, a[i], b[i]);
  }
  return ok_status();
}

Result<std::vector<onnx::Tensor>> load_tensors(const fs::path& folder, const std::string& role) {
  std::vector<onnx::Tensor> tensors;
  for (int i = 0; fs::exists(folder / fmt::format("{}_{}.pb", role, i)); ++i) {
    REEF_ASSIGN_OR_RETURN(const Bytes file, read_file((folder / fmt::format("{}_{}.pb", role, i)).string(), kMaxBytes));
    REEF_ASSIGN_OR_RETURN(onnx::Tensor tensor, onnx::read_tensor(file));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

// The files hold bfloat16 as its bits, in uint16 tensors.
void adopt_types(const std::vector<onnx::ValueInfo>& infos, std::vector<onnx::Tensor>& tensors) {
  for (std::size_t i = 0; i < infos.size() && i < tensors.size(); ++i) {
    const bool is_bits = tensors[i].type == onnx::ElementType::kUInt16;
    if (infos[i].type == onnx::ElementType::kBFloat16 && is_bits) tensors[i].type = infos[i].type;
  }
}

// Why a test does not count; empty: it does.
std::string aside(const onnx::Model& model, const std::vector<std::string>& operators) {
  for (const onnx::OpsetImport& row : model.opsets) {
    if (row.domain.find("training") != std::string::npos) return "training";
  }
  for (const auto* list : {&model.graph.inputs, &model.graph.outputs}) {
    for (const onnx::ValueInfo& info : *list) {
      if (info.kind != onnx::ValueKind::kTensor) return "sequence or optional";
      if (info.type == onnx::ElementType::kString) return "strings";
    }
  }
  for (const std::string& op : operators) {
    if (op == "SequenceMap") return "sequence or optional";
    if (op.starts_with("Optional")) return "sequence or optional";
    if (op.starts_with("String")) return "strings";
  }
  return {};
}

void collect_operators(const onnx::Graph& graph, std::set<std::string>& operators) {
  for (const onnx::Node& node : graph.nodes) {
    operators.insert(node.op_type);
    for (const onnx::Attribute& attribute : node.attributes) {
      if (attribute.graph != nullptr) collect_operators(*attribute.graph, operators);
    }
  }
}

Result<import::ImportResult> import_with(onnx::Model model, const std::vector<onnx::Tensor>& inputs,
                                         std::vector<std::string>& fixed) {
  import::ImportOptions options;
  options.keep_all_nchw = true;
  std::map<std::string, const onnx::Tensor*> by_name;
  std::size_t next = 0;
  for (onnx::ValueInfo& info : model.graph.inputs) {
    if (next >= inputs.size()) break;
    by_name[info.name] = &inputs[next];
    info.has_shape = false;  // the data's counts: some models state another
    options.input_shapes[info.name] = inputs[next].dims;
    ++next;
  }
  while (true) {
    import::ImportFailure failure;
    auto result = import::import_onnx(model, options, &failure);
    if (result.ok()) return result;
    bool is_new = false;
    for (const std::string& name : failure.needed_inputs) {
      const auto found = by_name.find(name);
      if (found == by_name.end() || options.input_values.count(name) > 0) continue;
      options.input_values[name] = *found->second;
      fixed.push_back(name);
      is_new = true;
    }
    if (!is_new) return result.status();
  }
}

Status run_data_set(const onnx::Model& model, const fs::path& folder, std::vector<std::string>& fixed) {
  REEF_ASSIGN_OR_RETURN(std::vector<onnx::Tensor> inputs, load_tensors(folder, "input"));
  adopt_types(model.graph.inputs, inputs);
  fixed.clear();
  REEF_ASSIGN_OR_RETURN(import::ImportResult imported, import_with(model, inputs, fixed));
  return compare_with_data(model, imported.model, folder.string());
}

std::string one_line(std::string text) {
  for (char& c : text) {
    if (c == '\n' || c == '|') c = ' ';
  }
  return text;
}

}  // namespace

Status compare_with_data(const onnx::Model& source, const ir::Model& model, const std::string& data_set,
                         double tolerance) {
  const fs::path folder(data_set);
  REEF_ASSIGN_OR_RETURN(std::vector<onnx::Tensor> inputs, load_tensors(folder, "input"));
  REEF_ASSIGN_OR_RETURN(std::vector<onnx::Tensor> outputs, load_tensors(folder, "output"));
  adopt_types(source.graph.inputs, inputs);
  adopt_types(source.graph.outputs, outputs);
  const auto ir = std::make_shared<const ir::Model>(model);
  cpu::InterpreterOptions options;
  options.tflite_release = ops::TfliteRelease::kCurrent;
  REEF_ASSIGN_OR_RETURN(const auto interpreter, cpu::Interpreter::create(ir, options));
  REEF_RETURN_IF_ERROR(interpreter->prepare());
  const ir::Subgraph& graph = ir->subgraphs[0];
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    const std::string& name = graph.tensors[static_cast<std::size_t>(graph.inputs[i])].name;
    for (std::size_t k = 0; k < source.graph.inputs.size() && k < inputs.size(); ++k) {
      if (source.graph.inputs[k].name != name) continue;
      const int index = static_cast<int>(i);
      REEF_RETURN_IF_ERROR(fill(inputs[k], interpreter->input(index).type, interpreter->input_bytes(index)));
    }
  }
  REEF_RETURN_IF_ERROR(interpreter->invoke());
  REEF_REQUIRE(graph.outputs.size() == outputs.size(), "{} outputs instead of {}", graph.outputs.size(),
               outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    REEF_RETURN_IF_ERROR(
        compare(outputs[i], interpreter->output(static_cast<int>(i)), source.graph.outputs[i].name, tolerance));
  }
  return ok_status();
}

Result<std::map<std::string, std::vector<std::int64_t>>> input_sizes(const onnx::Model& source,
                                                                     const std::string& data_set) {
  REEF_ASSIGN_OR_RETURN(const std::vector<onnx::Tensor> inputs, load_tensors(data_set, "input"));
  std::map<std::string, std::vector<std::int64_t>> sizes;
  for (std::size_t i = 0; i < inputs.size() && i < source.graph.inputs.size(); ++i) {
    sizes[source.graph.inputs[i].name] = inputs[i].dims;
  }
  return sizes;
}

std::vector<std::string> node_test_folders() {
  const char* place = std::getenv("REEF_ONNX_TESTDATA");
  const fs::path root = place != nullptr ? place : "/usr/share/libonnx-testdata/data";
  std::vector<std::string> folders;
  std::error_code error;
  for (const char* kind : {"node", "pytorch-converted", "pytorch-operator", "simple"}) {
    for (const fs::directory_entry& entry : fs::directory_iterator(root / kind, error)) {
      if (fs::exists(entry.path() / "model.onnx")) folders.push_back(entry.path().string());
    }
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

NodeTestResult run_node_test(const std::string& folder) {
  NodeTestResult result;
  const fs::path path(folder);
  result.name = path.parent_path().filename().string() + "/" + path.filename().string();
  const auto model = onnx::load_model((path / "model.onnx").string());
  if (!model.ok()) {
    result.reason = one_line(model.status().message());
    return result;
  }
  std::set<std::string> operators;
  collect_operators(model->graph, operators);
  result.operators.assign(operators.begin(), operators.end());
  result.reason = aside(*model, result.operators);
  if (!result.reason.empty()) {
    result.outcome = NodeTestOutcome::kAside;
    return result;
  }
  for (int i = 0; fs::exists(path / fmt::format("test_data_set_{}", i)); ++i) {
    const Status status = run_data_set(*model, path / fmt::format("test_data_set_{}", i), result.fixed_inputs);
    if (status.ok()) continue;
    result.reason = one_line(status.message());
    return result;
  }
  result.outcome = NodeTestOutcome::kPassed;
  return result;
}

std::string converter_list() {
  const std::vector<std::string> names = import::all_converters();
  std::string text = fmt::format("{} kinds:", names.size());
  std::size_t width = text.size();
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string word = names[i] + (i + 1 < names.size() ? "," : ".");
    if (width + 1 + word.size() > 118) {
      text += "\n" + word;
      width = word.size();
    } else {
      text += " " + word;
      width += 1 + word.size();
    }
  }
  return text + "\n";
}

std::string node_test_report(const std::vector<NodeTestResult>& results) {
  int passed = 0, failed = 0, with_fixed = 0;
  std::map<std::string, int> asides;
  std::string rows;
  for (const NodeTestResult& result : results) {
    if (result.outcome == NodeTestOutcome::kAside) {
      ++asides[result.reason];
    } else if (result.outcome == NodeTestOutcome::kPassed) {
      ++passed;
      with_fixed += result.fixed_inputs.empty() ? 0 : 1;
    } else {
      ++failed;
      rows += fmt::format("| `{}` | {} |\n", result.name, result.reason);
    }
  }
  const int counted = std::max(1, passed + failed);
  std::string text = fmt::format(
      "{} of {} tests pass ({:.1f} %), {} fail. In {} of those that pass, inputs that give sizes and the like are "
      "fixed to "
      "the\n"
      "test's value (`--input-value`); without that {:.1f} % pass. Not counted: ",
      passed, counted, 100.0 * passed / counted, failed, with_fixed, 100.0 * (passed - with_fixed) / counted);
  std::vector<std::string> words;
  for (const auto& [reason, count] : asides) words.push_back(fmt::format("{} of {}", count, reason));
  text += fmt::format("{}.\n", fmt::join(words, ", "));
  if (failed > 0) text += "\n| test | why it fails |\n| --- | --- |\n" + rows;
  return text;
}

}  // namespace reef::test
