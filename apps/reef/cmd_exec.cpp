// SPDX-License-Identifier: Apache-2.0
// reef exec: runs a program that was written for a Coral as it is. It finds Reef's delegate where it looks for Google's
// libedgetpu, Reef's modules where it imports pycoral, tflite_runtime or tflite_support, and edgetpu_compiler on its
// path. The process becomes the program.
#include <cstdlib>
#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "commands.h"
#include "console.h"
#include "parts.h"
#include "python_package.h"

namespace reef::app {
namespace {

namespace fs = std::filesystem;

struct ExecArguments {
  std::vector<std::string> command;
  bool only_libraries = false;
  bool shows = false;
};

struct Place {
  const char* variable;
  std::string value;
};

Result<std::vector<Place>> places(const ExecArguments& arguments) {
  const fs::path here = program_folder();
  REEF_ASSIGN_OR_RETURN(const fs::path coral, find_part(Part::kCoral));
  std::vector<Place> list = {{"LD_LIBRARY_PATH", coral.string()}, {"PATH", here.string()}};
  if (arguments.only_libraries) return list;
  REEF_ASSIGN_OR_RETURN(const PythonPackage package, find_python_package());
  const fs::path coral_modules = package.folder / "reef" / "as_coral";
  list.push_back({"PYTHONPATH", fmt::format("{}:{}", coral_modules.string(), package.folder.string())});
  list.push_back({"REEF_LIBRARY", package.library.string()});
  return list;
}

Status exec(const ExecArguments& arguments) {
  REEF_ASSIGN_OR_RETURN(const std::vector<Place> list, places(arguments));
  if (arguments.shows) {
    for (const Place& place : list) print_text("{}={}\n", place.variable, place.value);
    return ok_status();
  }
  for (const Place& place : list) {
    if (std::string_view(place.variable) == "REEF_LIBRARY") {
      ::setenv(place.variable, place.value.c_str(), 1);
    } else {
      put_in_front(place.variable, place.value);
    }
  }
  std::vector<std::string> words = arguments.command;
  if (words.empty()) {
    const char* const shell = std::getenv("SHELL");
    words.emplace_back(shell != nullptr && *shell != 0 ? shell : "/bin/sh");
  }
  return become(std::move(words));
}

}  // namespace

void add_exec(Command& app, Action& action) {
  auto arguments = std::make_shared<ExecArguments>();
  Command command = app.add_subcommand(
      "exec", "Run a program written for Coral as it is, with Reef in the place of Google's libraries");
  command.starts_programs();
  command.add_option("command", arguments->command, "The program and its arguments, after --; none: a shell");
  command.add_flag("--only-libraries", arguments->only_libraries,
                   "Leave Python's modules alone: the program has its own TFLite runtime");
  command.add_flag("--show", arguments->shows, "Only print the variables that would be set");
  command.footer(
      "The program finds Reef's delegate as libedgetpu.so.1 (and .so.1.0), the modules pycoral, tflite_runtime and\n"
      "tflite_support, and edgetpu_compiler. Compiled models run on a real Edge TPU if there is one, else on virtual "
      "ones\n"
      "(docs/api.md).\n"
      "Examples:\n  reef exec -- python3 classify_image.py --model model_edgetpu.tflite --input parrot.jpg\n"
      "  reef exec --only-libraries -- python3 -m frigate\n  reef exec -- bash");
  command.callback([arguments, &action] { action = [arguments] { return exec(*arguments); }; });
}

}  // namespace reef::app
