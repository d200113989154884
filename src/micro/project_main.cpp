// SPDX-License-Identifier: Apache-2.0
#include "micro/project_main.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ir/op.h"
#include "micro/project_text.h"
#include "micro/sdk_ops.h"

namespace reef::micro {
namespace {

constexpr std::int64_t kArenaStep = 1024;  // sizes in programs are round

std::string filled(std::string_view text, const std::vector<std::pair<std::string, std::string>>& values) {
  std::string result(text);
  for (const auto& [name, value] : values) {
    const std::string token = "@" + name + "@";
    for (std::size_t at = result.find(token); at != std::string::npos; at = result.find(token, at + value.size())) {
      result.replace(at, token.size(), value);
    }
  }
  return result;
}

const ir::Tensor& tensor_of(const ir::Model& model, std::int32_t index) {
  return model.subgraphs[0].tensors[reef::at(index)];
}

std::string_view c_type(ir::DataType type) {
  switch (type) {
    case ir::DataType::kInt8:
      return "int8_t";
    case ir::DataType::kUInt8:
      return "uint8_t";
    case ir::DataType::kInt16:
      return "int16_t";
    case ir::DataType::kInt32:
      return "int32_t";
    case ir::DataType::kInt64:
      return "int64_t";
    case ir::DataType::kBool:
      return "bool";
    default:
      return "float";
  }
}

// ---- Preprocessing ----

data::InputSpec spec_of(const ir::Tensor& input) {
  return {0, input.name, input.type, input.shape, input.quantization};
}

// The stored number for a pixel: a table of 256 for each channel, so that the board computes nothing.
std::string pixel_tables(const ir::Tensor& input, int channels, const ProjectOptions& options) {
  const data::InputSpec spec = spec_of(input);
  const bool is_signed = input.type == ir::DataType::kInt8;
  std::string text = fmt::format(
      "// Of each channel: what the model wants for a pixel of 0 to 255 ({}).\nconstexpr {} kPixelCodes[{}][256] = "
      "{{\n",
      data::to_string(options.preprocess), c_type(input.type), channels);
  for (int channel = 0; channel < channels; ++channel) {
    const data::PixelMap map = data::pixel_map(options.preprocess, spec, channel);
    std::vector<int> codes;
    for (int pixel = 0; pixel < 256; ++pixel) {
      const double scale = input.quantization.scale.empty() ? 1 : static_cast<double>(input.quantization.scale[0]);
      const double zero =
          input.quantization.zero_point.empty() ? 0 : static_cast<double>(input.quantization.zero_point[0]);
      const double code = std::round((pixel * map.factor + map.offset) / scale) + zero;
      codes.push_back(static_cast<int>(std::clamp(code, is_signed ? -128.0 : 0.0, is_signed ? 127.0 : 255.0)));
    }
    text += fmt::format("    {{{}}},\n", fmt::join(codes, ", "));
  }
  return text + "};\n";
}

// Values for the places of the program's text that describe its picture.
std::vector<std::pair<std::string, std::string>> picture_values(const std::optional<ProgramPicture>& picture,
                                                                const ProjectOptions& options) {
  if (!picture) return {};
  const bool is_grey = picture->channels == 1;
  const bool keeps_ratio = options.preprocess.fit == data::Fit::kLetterbox;
  return {{"HEIGHT", fmt::format("{}", picture->input.height)},
          {"WIDTH", fmt::format("{}", picture->input.width)},
          {"CHANNELS", fmt::format("{}", picture->input.channels)},
          {"PICTURE_CHANNELS", fmt::format("{}", picture->channels)},
          {"COLOURS", is_grey ? "one byte of brightness each" : "red, green and blue of each pixel"},
          {"PLACE", picture->input.channels_first ? "c * kHeight * kWidth + i" : "i * kChannels + c"},
          {"SOURCE", is_grey                                             ? "i"
                     : options.preprocess.colours == data::Colours::kBgr ? "3 * i + 2 - c"
                                                                         : "3 * i + c"},
          {"FORMAT", is_grey ? "kY8" : "kRgb"},
          {"PRESERVE", keeps_ratio ? "true" : "false"},
          {"SAMPLE", options.sample.empty() ? "a black one" : "the one that was exported"}};
}

// ---- Results ----

std::string c_string(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += static_cast<unsigned char>(c) < 32 ? ' ' : c;
  }
  return result + "\"";
}

std::string labels_code(const std::vector<std::string>& labels) {
  std::vector<std::string> quoted;
  for (const std::string& label : labels) quoted.push_back(c_string(label));
  const std::string list = quoted.empty() ? "\"\"" : fmt::format("\n    {}", fmt::join(quoted, ",\n    "));
  return filled(kLabels, {{"LABELS", list}, {"LABEL_COUNT", fmt::format("{}", labels.size())}});
}

std::string results_code(const ir::Model& model, Task task, const std::vector<std::string>& labels) {
  const ir::Subgraph& graph = model.subgraphs[0];
  if (task == Task::kDetection) {
    const auto made = std::find_if(graph.operators.begin(), graph.operators.end(),
                                   [](const ir::Operator& op) { return op.type == Op::TFLite_Detection_PostProcess; });
    const auto place = [&](std::size_t i) {
      const auto at = std::find(graph.outputs.begin(), graph.outputs.end(), made->outputs[i]);
      return fmt::format("{}", at - graph.outputs.begin());
    };
    return labels_code(labels) +
           filled(kPrintBoxes, {{"BOXES", place(0)}, {"CLASSES", place(1)}, {"SCORES", place(2)}, {"COUNT", place(3)}});
  }
  if (task != Task::kClassification) return std::string(kPrintOthers);
  const ir::Tensor& output = tensor_of(model, graph.outputs[0]);
  const std::string score = output.type == ir::DataType::kFloat32
                                ? "output->data.f[i]"
                                : fmt::format("output->params.scale * (output->data.{}[i] - output->params.zero_point)",
                                              output.type == ir::DataType::kUInt8 ? "uint8" : "int8");
  return labels_code(labels) + filled(kScore, {{"SCORE", score}}) +
         fmt::format("constexpr int kClasses = {};\n", output.shape.elements()) + std::string(kPrintClasses);
}

// ---- The program ----

std::string resolver_code(const Assessment& assessment) {
  std::string lines;
  for (const ResolverLine& line : assessment.resolver) {
    lines += fmt::format("  if (resolver.{} != kTfLiteOk) return false;\n", line.code);
  }
  return filled(kResolver,
                {{"OPS", fmt::format("{}", std::max<std::size_t>(assessment.resolver.size(), 1))}, {"LINES", lines}});
}

std::size_t variable_count(const ir::Model& model) {
  std::set<std::string> names;
  for (const ir::Subgraph& graph : model.subgraphs) {
    for (const ir::Operator& op : graph.operators) {
      if (op.type == Op::VAR_HANDLE) names.insert(std::string(op.attributes.get_string("shared_name")));
    }
  }
  return names.size();
}

std::string interpreter_code(const ir::Model& model, bool is_coral) {
  const std::string_view data = is_coral ? "model" : "kModelData";
  const std::string_view reporter = is_coral ? ", &reporter" : "";
  const std::size_t variables = variable_count(model);
  if (variables == 0) {
    return fmt::format(
        "  static tflite::MicroInterpreter interpreter(tflite::GetModel({}), resolver, tensor_arena, "
        "kTensorArenaSize{});",
        data, reporter);
  }
  return fmt::format(
      "  tflite::MicroAllocator* allocator = tflite::MicroAllocator::Create(tensor_arena, kTensorArenaSize{});\n"
      "  static tflite::MicroInterpreter interpreter(tflite::GetModel({}), resolver, allocator{},\n"
      "                                              tflite::MicroResourceVariables::Create(allocator, {}));",
      reporter, data, reporter, variables);
}

// The headers of Coral's SDK that the program includes, sorted by name.
std::string sdk_headers(const ir::Model& model, bool has_camera) {
  std::set<std::string> headers = {"libs/base/filesystem.h", "libs/tensorflow/utils.h", "libs/tpu/edgetpu_manager.h",
                                   "libs/tpu/edgetpu_op.h"};
  if (has_camera) headers.insert("libs/camera/camera.h");
  for (const ir::Operator& op : model.subgraphs[0].operators) {
    if (const SdkOp* brought = find_sdk_op(op)) headers.insert(std::string(brought->header));
  }
  std::string lines;
  for (const std::string& header : headers) lines += fmt::format("#include \"{}\"\n", header);
  return lines;
}

// Inputs whose value stands in the file; the program must not write them.
std::string stored_inputs_code(const ir::Model& model) {
  const ir::Subgraph& graph = model.subgraphs[0];
  std::string lines;
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    if (!ir::is_constant(model, tensor_of(model, graph.inputs[i]))) continue;
    lines += fmt::format("    if (i == {}) continue;  // its value stands in the model\n", i);
  }
  return lines;
}

std::string model_code(const ProjectOptions& options) {
  if (options.embeds_model) return "  const uint8_t* model = kModelData;";
  return fmt::format(
      "  static std::vector<uint8_t> file;\n"
      "  if (!coralmicro::LfsReadFile(\"/models/{}.tflite\", &file)) {{\n"
      "    printf(\"/models/{}.tflite cannot be read\\r\\n\");\n"
      "    return;\n"
      "  }}\n"
      "  const uint8_t* model = file.data();",
      options.name, options.name);
}

}  // namespace

std::optional<ProgramPicture> picture_of_program(const ir::Model& model, const data::Preprocess& preprocess) {
  const ir::Subgraph& graph = model.subgraphs[0];
  if (graph.inputs.size() != 1) return std::nullopt;
  const ir::Tensor& input = tensor_of(model, graph.inputs[0]);
  if (input.shape.rank() != 4 || !ir::is_integer_8(input.type)) return std::nullopt;
  const auto layout = data::picture_layout(spec_of(input), preprocess.layout);
  if (!layout.ok() || (layout->channels != 1 && layout->channels != 3)) return std::nullopt;
  const bool is_grey = layout->channels == 1 || preprocess.colours == data::Colours::kGrey;
  return ProgramPicture{*layout, is_grey ? 1 : 3};
}

Task task_of(const ir::Model& model) {
  const ir::Subgraph& graph = model.subgraphs[0];
  for (const ir::Operator& op : graph.operators) {
    if (op.type != Op::TFLite_Detection_PostProcess || op.outputs.size() != 4) continue;
    const bool all = std::all_of(op.outputs.begin(), op.outputs.end(), [&](std::int32_t tensor) {
      return std::find(graph.outputs.begin(), graph.outputs.end(), tensor) != graph.outputs.end();
    });
    if (all) return Task::kDetection;
  }
  if (graph.outputs.size() != 1) return Task::kOther;
  const ir::Tensor& output = tensor_of(model, graph.outputs[0]);
  const bool is_scored = ir::is_integer_8(output.type) || output.type == ir::DataType::kFloat32;
  const std::optional<std::int64_t> elements = output.shape.checked_elements();
  const bool is_row = elements && *elements > 1 && output.shape.rank() > 0 && output.shape.last() == *elements;
  return is_scored && is_row ? Task::kClassification : Task::kOther;
}

Result<std::string> project_main(const ir::Model& model, const Assessment& assessment, const ProjectOptions& options) {
  const std::optional<std::int64_t> arena = assessment.arena_bytes();
  REEF_REQUIRE(arena.has_value(), "the arena's size cannot be predicted, so that no program can be made");
  REEF_REQUIRE(!model.subgraphs[0].inputs.empty(), "the model has no input");
  const bool is_coral = assessment.target == Target::kMicro;
  const ir::Tensor& input = tensor_of(model, model.subgraphs[0].inputs[0]);
  const std::optional<ProgramPicture> picture = picture_of_program(model, options.preprocess);
  const bool has_camera = is_coral && picture.has_value();
  std::vector<std::pair<std::string, std::string>> values = {
      {"INCLUDES", std::string(is_coral ? kCoralIncludes : kTflmIncludes)},
      {"MODEL_HEADER", options.embeds_model ? "#include \"model_data.h\"\n" : ""},
      {"SDK_HEADERS", sdk_headers(model, has_camera)},
      {"SAMPLE_HEADER", picture ? "#include \"sample.h\"\n" : ""},
      {"INCLUDE", "#include"},
      {"FILE", fmt::format("{}.tflite", options.name)},
      {"ARENA", fmt::format("{}", *arena)},
      {"ARENA_ROUND", fmt::format("{}", (*arena + kArenaStep - 1) / kArenaStep * kArenaStep)},
      {"ARENA_DEFINITION", is_coral ? "STATIC_TENSOR_ARENA_IN_SDRAM(tensor_arena, kTensorArenaSize);"
                                    : "alignas(16) uint8_t tensor_arena[kTensorArenaSize];"},
      {"PIXELS", picture ? pixel_tables(input, picture->input.channels, options) + std::string(kFillPicture) : ""},
      {"RESULTS", results_code(model, task_of(model), options.labels)},
      {"MODEL", model_code(options)},
      {"INTERPRETER", interpreter_code(model, is_coral)},
      {"LOOP", std::string(has_camera ? kCameraLoop : kOtherLoop)},
      {"STORED", stored_inputs_code(model)},
      {"CTYPE", std::string(c_type(input.type))},
      {"MEMBER", input.type == ir::DataType::kInt8 ? "int8" : "uint8"},
  };
  const auto of_picture = picture_values(picture, options);
  values.insert(values.end(), of_picture.begin(), of_picture.end());
  std::string text(kHead);
  text += resolver_code(assessment);
  if (!has_camera) text += picture ? kFillSample : kFill;
  text += is_coral ? kCoralRun : kTflmRun;
  return filled(text, values);
}

}  // namespace reef::micro
