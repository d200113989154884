// SPDX-License-Identifier: Apache-2.0
// Models that only their own framework reads, by that framework's own converter, if Python has it:
//
//   SavedModel folders, .keras, .h5, frozen graphs (.pb)      TensorFlow      to .tflite
//   TorchScript (.pt), programs of torch.export (.pt2)        PyTorch         to .onnx
//   YOLO checkpoints (.pt)                                    Ultralytics     to .onnx
//
// The converter's result is read like any other model. A checkpoint of Ultralytics is a pickle: reading it runs code
// that it names, as it does in Ultralytics' own tools.
#pragma once

#include <optional>
#include <string>

#include "base/status.h"
#include "base/temporary_name.h"
#include "compiler/front_end.h"

namespace reef::app {

enum class Framework : std::uint8_t { kTensorflow, kTorch, kUltralytics };

// The framework that must read the file; nullopt if Reef reads it itself, or nobody can.
std::optional<Framework> framework_of(const std::string& path);

// The file that a framework's converter made. Its temporary folder is removed together with this object.
class FrameworkConversion {
 public:
  FrameworkConversion(TemporaryFolder folder, std::string file) : folder_(std::move(folder)), file_(std::move(file)) {}

  std::string path() const { return folder_.path() + "/" + file_; }
  const std::string& maker() const { return maker_; }  // "TensorFlow 2.19.0"
  void set_maker(std::string maker) { maker_ = std::move(maker); }

 private:
  TemporaryFolder folder_;
  std::string file_, maker_;
};

// Runs $REEF_PYTHON (default python3). `shapes`: of inputs, for files that do not say how large they are. What the
// framework prints is shown, its end at least, if it fails.
Result<FrameworkConversion> convert_by_framework(Framework framework, const std::string& path,
                                                 const compiler::InputShapes& shapes);

}  // namespace reef::app
