// SPDX-License-Identifier: Apache-2.0
#include "micro/project.h"

#include <cctype>
#include <iterator>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ir/describe.h"
#include "micro/project_main.h"

namespace reef::micro {
namespace {

Bytes text_bytes(std::string_view text) { return Bytes(std::vector<std::uint8_t>(text.begin(), text.end())); }

constexpr std::string_view kDataHeader = R"(// Made by `reef export micro`: the model's bytes.
#pragma once

#include <cstddef>
#include <cstdint>

extern const uint8_t kModelData[];
extern const size_t kModelDataSize;
)";

// The SDK's linker script puts ordinary constants into 256 KiB of fast memory; a model goes to SDRAM.
void append_numbers(std::span<const std::uint8_t> bytes, std::string& text) {
  constexpr std::size_t kPerLine = 20;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    text += i % kPerLine == 0 ? "\n    " : " ";
    fmt::format_to(std::back_inserter(text), "{},", bytes[i]);
  }
}

std::string data_source(const Bytes& file, Target target) {
  std::string text = "// Made by `reef export micro`: the model's bytes.\n#include \"model_data.h\"\n\n";
  text += target == Target::kMicro ? "__attribute__((section(\".sdram_data\"))) " : "";
  text += "alignas(16) const uint8_t kModelData[] = {";
  append_numbers({file.data(), file.size()}, text);
  return text + fmt::format("\n}};\nconst size_t kModelDataSize = {};\n", file.size());
}

constexpr std::string_view kSampleHeader = R"(// Made by `reef export micro`: a picture for the program to look at.
#pragma once

#include <cstdint>

extern const uint8_t kSample[];
)";

std::string sample_source(const ProgramPicture& picture, const std::vector<std::uint8_t>& sample) {
  std::string text = fmt::format(
      "// Made by `reef export micro`: {} rows of {} pixels, {}.\n#include \"sample.h\"\n\nconst uint8_t kSample[{}] = "
      "{{",
      picture.input.height, picture.input.width, picture.channels == 1 ? "brightness" : "RGB",
      picture.input.height * picture.input.width * picture.channels);
  append_numbers(sample, text);
  return text + (sample.empty() ? "};\n" : "\n};\n");
}

std::string cmake_lines(const ProjectOptions& options, Target target, bool has_sample) {
  if (target == Target::kTflm) {
    return fmt::format(
        "# Made by `reef export micro`. TFLM_LIBRARY: a target with TFLite Micro's library and include folders.\n"
        "add_executable({0} main.cc model_data.cc{1})\n"
        "target_link_libraries({0} ${{TFLM_LIBRARY}})\n",
        options.name, has_sample ? " sample.cc" : "");
  }
  const std::string_view sources = options.embeds_model ? "main.cc\n    model_data.cc" : "main.cc";
  const std::string data =
      options.embeds_model ? "" : fmt::format("    DATA\n    ${{PROJECT_SOURCE_DIR}}/models/{}.tflite\n", options.name);
  return fmt::format(
      "# Made by `reef export micro`, for Coral's Micro SDK: put this folder below the SDK's `apps`, name it in\n"
      "# apps/CMakeLists.txt with add_subdirectory({0}), and {1}.\n"
      "add_executable_m7({0}\n    {2}\n{3})\n\n"
      "target_link_libraries({0}\n    libs_base-m7_freertos\n    libs_camera_freertos\n    libs_tensorflow-m7\n"
      "    libs_tpu_freertos\n)\n",
      options.name, options.embeds_model ? "build" : fmt::format("copy {}.tflite to the SDK's `models`", options.name),
      sources, data);
}

std::string read_me(const Assessment& assessment, const ProjectOptions& options, bool has_sample) {
  std::string text =
      fmt::format("# {}\n\nMade by `reef export micro` for {}.\n\n", options.name, target_name(assessment.target));
  text += fmt::format(
      "| file | what |\n| --- | --- |\n| `main.cc` | the program: change it as you like |\n"
      "| `{0}.tflite` | the model, for the board's file system |\n"
      "| `model_data.cc`, `model_data.h` | the same as a C array |\n"
      "| `CMakeLists.txt` | lines for the build |\n",
      options.name);
  if (has_sample) text += "| `sample.cc`, `sample.h` | a picture for the program to look at |\n";
  if (!options.labels.empty()) text += "| `labels.txt` | names of classes |\n";
  text +=
      fmt::format("\nTensor arena: {} bytes (predicted). Operators: {}.\n", assessment.arena_bytes().value_or(0), [&] {
        std::vector<std::string> names;
        for (const ResolverLine& line : assessment.resolver) names.push_back(line.op);
        return fmt::format("{}", fmt::join(names, ", "));
      }());
  for (const MemoryUse& use : assessment.memory) {
    text += fmt::format("- {}: {} of {} in the board's {}\n", use.what, ir::describe_bytes(use.bytes),
                        ir::describe_bytes(use.limit), use.where);
  }
  return text + "\nNothing of this has run on a board yet.\n";
}

}  // namespace

std::string project_name(std::string_view text) {
  std::string name;
  for (const char c : text) {
    const bool is_plain = std::isalnum(static_cast<unsigned char>(c)) != 0;
    name += is_plain ? c : '_';
  }
  return name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0 ? "model_" + name : name;
}

Result<std::vector<ProjectFile>> project_files(const ir::Model& model, const Bytes& file, const Assessment& assessment,
                                               const ProjectOptions& options) {
  REEF_REQUIRE(assessment.is_accepted(), "the model does not run there: {}", assessment.refusals.front().reason);
  REEF_ASSIGN_OR_RETURN(const std::string main, project_main(model, assessment, options));
  const std::optional<ProgramPicture> picture = picture_of_program(model, options.preprocess);
  const bool has_sample = assessment.target == Target::kTflm && picture.has_value();
  std::vector<ProjectFile> files;
  files.push_back({"main.cc", text_bytes(main)});
  files.push_back({options.name + ".tflite", file});
  files.push_back({"model_data.h", text_bytes(kDataHeader)});
  files.push_back({"model_data.cc", text_bytes(data_source(file, assessment.target))});
  files.push_back({"CMakeLists.txt", text_bytes(cmake_lines(options, assessment.target, has_sample))});
  if (has_sample) {
    files.push_back({"sample.h", text_bytes(kSampleHeader)});
    files.push_back({"sample.cc", text_bytes(sample_source(*picture, options.sample))});
  }
  if (!options.labels.empty())
    files.push_back({"labels.txt", text_bytes(fmt::format("{}\n", fmt::join(options.labels, "\n")))});
  files.push_back({"README.md", text_bytes(read_me(assessment, options, has_sample))});
  return files;
}

}  // namespace reef::micro
