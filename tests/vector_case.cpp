// SPDX-License-Identifier: Apache-2.0
#include "vector_case.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <sstream>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "execute/cpu/interpreter.h"
#include "formats/tflite/reader.h"
#include "ir/densify.h"
#include "ir/pseudo_random.h"
#include "ir/verify.h"
#include "ops/standard_forms.h"

namespace reef::testing {
namespace {

using Json = nlohmann::json;

std::vector<std::uint8_t> decode_base64(const std::string& text) {
  static constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<std::uint8_t> bytes;
  std::uint32_t pending = 0;
  int bits = 0;
  for (const char c : text) {
    const std::size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) break;  // '=' at the end
    pending = (pending << 6) | static_cast<std::uint32_t>(digit);
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      bytes.push_back(static_cast<std::uint8_t>(pending >> bits));
    }
  }
  return bytes;
}

std::vector<std::byte> to_bytes(const std::vector<std::uint8_t>& data) {
  std::vector<std::byte> result(data.size());
  if (!data.empty()) std::memcpy(result.data(), data.data(), data.size());
  return result;
}

Result<RecordedTensor> read_tensor(const Json& json) {
  RecordedTensor tensor;
  std::string type = json.at("type").get<std::string>();
  std::transform(type.begin(), type.end(), type.begin(), [](unsigned char c) { return std::tolower(c); });
  const std::optional<ir::DataType> known = ir::type_from_name(type);
  REEF_REQUIRE(known.has_value(), "unknown type {}", type);
  tensor.type = *known;
  tensor.shape = ir::Shape(json.at("shape").get<std::vector<std::int32_t>>());
  if (json.contains("lcg")) {
    tensor.data = lcg_fill(tensor.type, tensor.shape.elements(), json.at("lcg").get<std::uint32_t>());
  } else {
    tensor.data = to_bytes(decode_base64(json.at("base64").get<std::string>()));
  }
  return tensor;
}

Result<VectorCase> read_case(const Json& json) {
  VectorCase result;
  result.name = json.at("case").get<std::string>();
  result.model = Bytes(decode_base64(json.at("model").get<std::string>()));
  result.invocations = json.value("invocations", 1);
  result.runtime_refused = json.value("error", false);
  const bool is_2_9 = json.value("runtime", std::string()).find("2.9") != std::string::npos;
  result.release = is_2_9 ? ops::TfliteRelease::k2_9 : ops::TfliteRelease::kCurrent;
  for (const Json& input : json.at("inputs")) {
    REEF_ASSIGN_OR_RETURN(RecordedTensor tensor, read_tensor(input));
    result.inputs.push_back(std::move(tensor));
  }
  if (result.runtime_refused) return result;
  for (const Json& output : json.at("outputs")) {
    REEF_ASSIGN_OR_RETURN(RecordedTensor tensor, read_tensor(output));
    result.outputs.push_back(std::move(tensor));
  }
  const Json& tolerance = json.at("tolerance");
  result.float_tolerance = tolerance.is_number() ? tolerance.get<double>() : 0.0;
  return result;
}

template <typename T>
Status compare_floats(const RecordedTensor& expected, const std::byte* data, double tolerance) {
  const std::size_t count = expected.data.size() / sizeof(T);
  for (std::size_t i = 0; i < count; ++i) {
    T want, got;
    std::memcpy(&want, expected.data.data() + i * sizeof(T), sizeof(T));
    std::memcpy(&got, data + i * sizeof(T), sizeof(T));
    if (std::memcmp(&want, &got, sizeof(T)) == 0 || (std::isnan(want) && std::isnan(got))) continue;
    if (std::abs(static_cast<double>(want) - got) <= tolerance * std::max(1.0, std::abs(static_cast<double>(want))))
      continue;
    return invalid_input("element {} of {} is {:.9g}; the runtime has {:.9g}", i, count, got, want);
  }
  return ok_status();
}

Status compare_bytes(const RecordedTensor& expected, const std::byte* data) {
  const std::size_t size = std::max<std::size_t>(static_cast<std::size_t>(ir::bits_per_element(expected.type)) / 8, 1);
  std::size_t differing = 0, first = 0;
  for (std::size_t i = 0; i + size <= expected.data.size(); i += size) {
    if (std::memcmp(data + i, expected.data.data() + i, size) == 0) continue;
    if (differing++ == 0) first = i;
  }
  if (differing == 0) return ok_status();
  const auto value = [&](const std::byte* at) {
    std::int64_t v = 0;
    std::memcpy(&v, at, std::min<std::size_t>(size, 8));
    if (expected.type == ir::DataType::kInt8) v = static_cast<std::int8_t>(v);
    if (expected.type == ir::DataType::kInt16) v = static_cast<std::int16_t>(v);
    if (expected.type == ir::DataType::kInt32) v = static_cast<std::int32_t>(v);
    return v;
  };
  return invalid_input("{} of {} elements differ; element {} is {}, the runtime has {}", differing,
                       expected.data.size() / size, first / size, value(data + first),
                       value(expected.data.data() + first));
}

}  // namespace

std::vector<std::byte> lcg_fill(ir::DataType type, std::int64_t elements, std::uint32_t seed) {
  std::vector<std::byte> data(
      (static_cast<std::size_t>(elements) * static_cast<std::size_t>(ir::bits_per_element(type)) + 7) / 8);
  ir::fill_pseudo_random(type, seed, data);
  return data;
}

Result<std::vector<VectorCase>> read_vector_file(const std::string& path) {
  REEF_ASSIGN_OR_RETURN(const Bytes file, read_file(path, std::uint64_t{1} << 28));
  std::istringstream lines(std::string(reinterpret_cast<const char*>(file.data()), file.size()));
  std::vector<VectorCase> cases;
  for (std::string line; std::getline(lines, line);) {
    const Json json = Json::parse(line, nullptr, false);
    REEF_REQUIRE(!json.is_discarded(), "{}: line {} is not JSON", path, cases.size() + 2);
    if (!json.contains("case")) continue;  // the header
    auto read = read_case(json);
    if (!read.ok()) return read.status().in(path);
    cases.push_back(std::move(read).value());
  }
  return cases;
}

Status compare(const RecordedTensor& expected, ir::DataType type, const ir::Shape& shape, const std::byte* data,
               double float_tolerance) {
  REEF_REQUIRE(type == expected.type, "type is {}; the runtime has {}", ir::type_name(type),
               ir::type_name(expected.type));
  REEF_REQUIRE(shape == expected.shape, "shape is {}; the runtime has {}", shape.to_string(),
               expected.shape.to_string());
  if (type == ir::DataType::kFloat32) return compare_floats<float>(expected, data, float_tolerance);
  // Complex numbers are pairs of floats.
  if (type == ir::DataType::kComplex64) return compare_floats<float>(expected, data, float_tolerance);
  if (type == ir::DataType::kFloat64) return compare_floats<double>(expected, data, float_tolerance);
  return compare_bytes(expected, data);
}

Status replay(const VectorCase& vector, int threads) {
  REEF_ASSIGN_OR_RETURN(ir::Model model, tflite::read_model(vector.model));
  REEF_RETURN_IF_ERROR(ir::verify(model));
  REEF_RETURN_IF_ERROR(ir::densify(model));
  ops::use_standard_forms(model);
  cpu::InterpreterOptions options;
  options.threads = threads;
  options.tflite_release = vector.release;
  REEF_ASSIGN_OR_RETURN(auto interpreter,
                        cpu::Interpreter::create(std::make_shared<const ir::Model>(std::move(model)), options));
  const auto inputs = static_cast<std::size_t>(interpreter->input_count());
  REEF_REQUIRE(vector.inputs.size() >= inputs, "{} inputs recorded, the model has {}", vector.inputs.size(), inputs);
  for (std::size_t i = 0; i < inputs; ++i) {
    const int n = static_cast<int>(i);
    if (interpreter->input(n).shape == vector.inputs[i].shape) continue;
    REEF_RETURN_IF_ERROR(interpreter->resize_input(n, vector.inputs[i].shape));
  }
  REEF_RETURN_IF_ERROR(interpreter->prepare());
  const auto outputs = static_cast<std::size_t>(interpreter->output_count());
  for (std::size_t run = 0; run < static_cast<std::size_t>(vector.invocations); ++run) {
    const std::size_t first_input = vector.inputs.size() > inputs ? run * inputs : 0;
    for (std::size_t i = 0; i < inputs; ++i) {
      const std::span<std::byte> target = interpreter->input_bytes(static_cast<int>(i));
      const std::vector<std::byte>& source = vector.inputs[first_input + i].data;
      if (target.empty() && interpreter->input(static_cast<int>(i)).is_constant) continue;
      REEF_REQUIRE(target.size() == source.size(), "input {} takes {} bytes, {} recorded", i, target.size(),
                   source.size());
      std::copy(source.begin(), source.end(), target.begin());
    }
    REEF_RETURN_IF_ERROR(interpreter->invoke());
    if (vector.runtime_refused) continue;
    REEF_REQUIRE(vector.outputs.size() >= (run + 1) * outputs, "{} outputs recorded", vector.outputs.size());
    for (std::size_t i = 0; i < outputs; ++i) {
      const ops::Tensor& got = interpreter->output(static_cast<int>(i));
      REEF_RETURN_IF_ERROR(
          compare(vector.outputs[run * outputs + i], got.type, got.shape, got.data, vector.float_tolerance)
              .in(fmt::format("invocation {}, output {}", run, i)));
    }
  }
  return ok_status();
}

}  // namespace reef::testing
