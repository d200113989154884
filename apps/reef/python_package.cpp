// SPDX-License-Identifier: Apache-2.0
#include "python_package.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "console.h"
#include "parts.h"
#include "program_file.h"

namespace reef::app {

namespace fs = std::filesystem;

fs::path program_folder() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).parent_path();
}

Result<PythonPackage> find_python_package() {
  REEF_ASSIGN_OR_RETURN(const fs::path python, find_part(Part::kPython));
  REEF_ASSIGN_OR_RETURN(const fs::path library, find_part(Part::kLibrary));
  return PythonPackage{python, library / "libreef.so.0"};
}

std::string start_program(const PythonStart& start) {
  constexpr char kStart[] = R"python(
import importlib.util, json, runpy, sys
missing = [name for name in '@imports'.split() if importlib.util.find_spec(name) is None]
if missing:
    text = (f"@needs, but {sys.executable} has no {', '.join(missing)}. Install what is missing "
            "(python3 -m venv tools && tools/bin/pip install @install), then: REEF_PYTHON=tools/bin/python @command")
    if '--json' in sys.argv:
        print(json.dumps({'schema_version': 1, 'error': {'kind': 'unsupported', 'message': text, 'exit_code': 1}}, indent=2))
    sys.exit(f'reef: {text}')
sys.argv[0] = '@module'
runpy.run_module('@module', run_name='__main__', alter_sys=True)
)python";
  std::string text = kStart;
  const auto put = [&text](std::string_view mark, const std::string& value) {
    for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + value.size())) {
      text.replace(at, mark.size(), value);
    }
  };
  put("@module", start.module);
  put("@needs", start.needs);
  put("@imports", start.imports);
  put("@install", start.install);
  put("@command", start.command);
  return text;
}

void put_in_front(const char* name, const std::string& value) {
  const char* const before = std::getenv(name);
  const std::string all = before != nullptr && *before != 0 ? value + ":" + before : value;
  ::setenv(name, all.c_str(), 1);
}

Status become(std::vector<std::string> words) {
  REEF_ASSIGN_OR_RETURN(const std::string file, find_program(words.front()));
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  flush_output();
  ::signal(SIGPIPE, SIG_DFL);
  ::signal(SIGXFSZ, SIG_DFL);
  ::execv(file.c_str(), pointers.data());
  return make_error(StatusCode::kIoError, "starting {} failed: {}", file, std::strerror(errno));
}

}  // namespace reef::app
