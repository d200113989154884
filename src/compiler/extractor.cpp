// SPDX-License-Identifier: Apache-2.0
// The compiler works from files to files: this gives it a folder of its own, which is gone afterwards.
#include "compiler/extractor.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "compiler/compile.h"
#include "formats/tflite/reader.h"
#include "formats/tflite/writer.h"

namespace reef::compiler {
namespace {

namespace fs = std::filesystem;

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::error_code error;
    std::string pattern = (fs::temp_directory_path(error) / "reef_extractor_XXXXXX").string();
    if (::mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code error;
    if (!path_.empty()) fs::remove_all(path_, error);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

Result<ir::Model> compiled_extractor(const ir::Model& extractor, const std::string& name) {
  const TemporaryFolder folder;
  if (folder.path().empty()) {
    return make_error(StatusCode::kIoError, "cannot make a temporary folder: {}", std::strerror(errno));
  }
  CompileOptions options;
  options.out_dir = folder.path();
  options.models = {folder.path() + "/" + name + ".tflite"};
  REEF_RETURN_IF_ERROR(tflite::save_model(extractor, options.models[0]));
  const CompileResult compiled = compile(options);
  if (!compiled.ok()) {
    return invalid_input("the extractor of '{}' cannot be compiled: {}", name, compiled.refusals[0].explanation);
  }
  REEF_REQUIRE(
      compiled.runs.size() == 1 && compiled.runs[0].files.size() == 1 && !compiled.runs[0].files[0].ops.empty(),
      "nothing of the extractor of '{}' can run on the Edge TPU; `reef check` says why", name);
  return tflite::load_model(compiled.runs[0].files[0].output);
}

}  // namespace reef::compiler
