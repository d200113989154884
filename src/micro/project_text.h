// SPDX-License-Identifier: Apache-2.0
// The text of exported programs, with @NAME@ where project_main.cpp fills something in. (@INCLUDE@ stands for a line
// that is not one of this file's own.)
#pragma once

#include <string_view>

namespace reef::micro {

inline constexpr std::string_view kLabels = R"(// Names of classes, as in labels.txt.
constexpr const char* kLabels[] = {@LABELS@};
constexpr int kLabelCount = @LABEL_COUNT@;

const char* LabelOf(int number) { return number >= 0 && number < kLabelCount ? kLabels[number] : ""; }
)";

inline constexpr std::string_view kPrintClasses = R"(
// The classes with the highest scores.
void PrintResults(tflite::MicroInterpreter& interpreter) {
  const TfLiteTensor* output = interpreter.output(0);
  constexpr int kShown = 3;
  int best[kShown];
  float scores[kShown];
  int found = 0;
  for (int i = 0; i < kClasses; ++i) {
    const float score = ScoreOf(output, i);
    int place = found < kShown ? found++ : kShown;
    while (place > 0 && scores[place - 1] < score) {
      if (place < kShown) {
        scores[place] = scores[place - 1];
        best[place] = best[place - 1];
      }
      --place;
    }
    if (place < kShown) {
      scores[place] = score;
      best[place] = i;
    }
  }
  for (int k = 0; k < found; ++k) printf("%d %s: %.3f\r\n", best[k], LabelOf(best[k]), static_cast<double>(scores[k]));
}
)";

inline constexpr std::string_view kPrintBoxes = R"(
// TFLite_Detection_PostProcess gives boxes (top, left, bottom, right as shares of the picture), classes, scores and
// their number.
void PrintResults(tflite::MicroInterpreter& interpreter) {
  constexpr float kLowestScore = 0.5f;
  const float* boxes = interpreter.output(@BOXES@)->data.f;
  const float* classes = interpreter.output(@CLASSES@)->data.f;
  const float* scores = interpreter.output(@SCORES@)->data.f;
  const int count = static_cast<int>(interpreter.output(@COUNT@)->data.f[0]);
  for (int i = 0; i < count; ++i) {
    if (scores[i] < kLowestScore) continue;
    const int number = static_cast<int>(classes[i]);
    printf("%d %s: %.3f at %.3f %.3f %.3f %.3f\r\n", number, LabelOf(number), static_cast<double>(scores[i]),
           static_cast<double>(boxes[4 * i]), static_cast<double>(boxes[4 * i + 1]), static_cast<double>(boxes[4 * i + 2]),
           static_cast<double>(boxes[4 * i + 3]));
  }
}
)";

inline constexpr std::string_view kPrintOthers = R"(
void PrintResults(tflite::MicroInterpreter& interpreter) {
  for (size_t i = 0; i < interpreter.outputs_size(); ++i) {
    printf("output %u: %u bytes\r\n", static_cast<unsigned>(i), static_cast<unsigned>(interpreter.output(i)->bytes));
  }
}
)";

inline constexpr std::string_view kScore = R"(
float ScoreOf(const TfLiteTensor* output, int i) { return @SCORE@; }
)";

inline constexpr std::string_view kHead =
    R"(// Made by `reef export micro` from @FILE@. This file is yours: change it as you like.
//
// Arena: @ARENA@ bytes are predicted for this model; the constant below is the next multiple of 1024.
@INCLUDES@
namespace {

constexpr int kTensorArenaSize = @ARENA_ROUND@;
@ARENA_DEFINITION@

@PIXELS@@RESULTS@)";

inline constexpr std::string_view kResolver = R"(
using Resolver = tflite::MicroMutableOpResolver<@OPS@>;

// Every operator that the model has; one that is missing here makes AllocateTensors() fail.
bool AddOperators(Resolver& resolver) {
@LINES@  return true;
}
)";

inline constexpr std::string_view kCoralRun = R"(
void Run() {
@MODEL@
  const auto tpu = coralmicro::EdgeTpuManager::GetSingleton()->OpenDevice();
  if (!tpu) {
    printf("The Edge TPU did not start\r\n");
    return;
  }
  static Resolver resolver;
  if (!AddOperators(resolver)) return;
  static tflite::MicroErrorReporter reporter;
@INTERPRETER@
  if (interpreter.AllocateTensors() != kTfLiteOk) {
    printf("AllocateTensors() failed: is the arena of %d bytes large enough?\r\n", kTensorArenaSize);
    return;
  }
@LOOP@}

}  // namespace

extern "C" void app_main(void* param) {
  (void)param;
  Run();
  vTaskSuspend(nullptr);
}
)";

inline constexpr std::string_view kFillPicture = R"(
constexpr int kHeight = @HEIGHT@, kWidth = @WIDTH@, kChannels = @CHANNELS@;
constexpr int kPictureBytes = kHeight * kWidth * @PICTURE_CHANNELS@;

// Brings a picture (rows from the top, @COLOURS@) into the input.
void FillPicture(tflite::MicroInterpreter& interpreter, const uint8_t* picture) {
  @CTYPE@* input = interpreter.input(0)->data.@MEMBER@;
  for (int i = 0; i < kHeight * kWidth; ++i) {
    for (int c = 0; c < kChannels; ++c) input[@PLACE@] = kPixelCodes[c][picture[@SOURCE@]];
  }
}
)";

inline constexpr std::string_view kCameraLoop = R"(
  static uint8_t picture[kPictureBytes];
  auto* camera = coralmicro::CameraTask::GetSingleton();
  camera->SetPower(true);
  camera->Enable(coralmicro::CameraMode::kStreaming);
  while (true) {
    const coralmicro::CameraFrameFormat format{coralmicro::CameraFormat::@FORMAT@,
                                               coralmicro::CameraFilterMethod::kBilinear,
                                               coralmicro::CameraRotation::k0,
                                               kWidth,
                                               kHeight,
                                               /*preserve_ratio=*/@PRESERVE@,
                                               picture};
    if (!camera->GetFrame({format})) continue;
    FillPicture(interpreter, picture);
    if (interpreter.Invoke() != kTfLiteOk) {
      printf("Invoke() failed\r\n");
      return;
    }
    PrintResults(interpreter);
  }
)";

inline constexpr std::string_view kOtherLoop = R"(
  while (true) {
    if (!FillInput(interpreter)) return;
    if (interpreter.Invoke() != kTfLiteOk) {
      printf("Invoke() failed\r\n");
      return;
    }
    PrintResults(interpreter);
  }
)";

inline constexpr std::string_view kFill = R"(
// To be written: brings the next sample into the inputs; false ends the program.
bool FillInput(tflite::MicroInterpreter& interpreter) {
  static bool is_done = false;
  if (is_done) return false;
  is_done = true;
  for (size_t i = 0; i < interpreter.inputs_size(); ++i) {
@STORED@    TfLiteTensor* input = interpreter.input(i);
    for (size_t k = 0; k < input->bytes; ++k) input->data.raw[k] = 0;
  }
  return true;
}
)";

inline constexpr std::string_view kFillSample = R"(
// To be replaced by what a camera gives: the next picture; nullptr ends the program. sample.cc has @SAMPLE@.
const uint8_t* NextPicture() {
  static bool is_done = false;
  if (is_done) return nullptr;
  is_done = true;
  return kSample;
}

bool FillInput(tflite::MicroInterpreter& interpreter) {
  const uint8_t* picture = NextPicture();
  if (picture == nullptr) return false;
  FillPicture(interpreter, picture);
  return true;
}
)";

inline constexpr std::string_view kTflmRun = R"(
int Run() {
  tflite::InitializeTarget();
  static Resolver resolver;
  if (!AddOperators(resolver)) return 1;
@INTERPRETER@
  if (interpreter.AllocateTensors() != kTfLiteOk) {
    MicroPrintf("AllocateTensors() failed: is the arena of %d bytes large enough?", kTensorArenaSize);
    return 1;
  }
  while (FillInput(interpreter)) {
    if (interpreter.Invoke() != kTfLiteOk) {
      MicroPrintf("Invoke() failed");
      return 1;
    }
    PrintResults(interpreter);
  }
  return 0;
}

}  // namespace

int main() { return Run(); }
)";

inline constexpr std::string_view kCoralIncludes = R"(@INCLUDE@ <cstdint>
@INCLUDE@ <cstdio>
@INCLUDE@ <vector>

@MODEL_HEADER@@SDK_HEADERS@@INCLUDE@ "third_party/freertos_kernel/include/FreeRTOS.h"
@INCLUDE@ "third_party/freertos_kernel/include/task.h"
@INCLUDE@ "third_party/tflite-micro/tensorflow/lite/micro/micro_error_reporter.h"
@INCLUDE@ "third_party/tflite-micro/tensorflow/lite/micro/micro_interpreter.h"
@INCLUDE@ "third_party/tflite-micro/tensorflow/lite/micro/micro_mutable_op_resolver.h"
@INCLUDE@ "third_party/tflite-micro/tensorflow/lite/micro/micro_resource_variable.h"
)";

inline constexpr std::string_view kTflmIncludes = R"(@INCLUDE@ <cstdint>
@INCLUDE@ <cstdio>

@INCLUDE@ "model_data.h"
@SAMPLE_HEADER@@INCLUDE@ "tensorflow/lite/micro/micro_interpreter.h"
@INCLUDE@ "tensorflow/lite/micro/micro_log.h"
@INCLUDE@ "tensorflow/lite/micro/micro_mutable_op_resolver.h"
@INCLUDE@ "tensorflow/lite/micro/micro_resource_variable.h"
@INCLUDE@ "tensorflow/lite/micro/system_setup.h"
@INCLUDE@ "tensorflow/lite/schema/schema_generated.h"
)";

}  // namespace reef::micro
