// SPDX-License-Identifier: Apache-2.0
// Finds things in a picture and draws boxes around them. For detectors that end in TFLite_Detection_PostProcess:
// outputs are boxes (top, left, bottom, right, of 1), classes, scores and how many there are. Usage: detect MODEL
// LABELS PICTURE OUT.png
#include "common.h"

int main(int count, char** arguments) {
  if (count != 5) fail("usage: detect MODEL LABELS PICTURE OUT.png");
  const reef::Model model = must(reef::Model::load(arguments[1]));
  reef::Interpreter interpreter = must(reef::Interpreter::create(model));
  if (interpreter.output_count() != 4) fail("the model is no detector");
  const std::vector<std::string> labels = read_labels(arguments[2]);
  fill_input(interpreter, arguments[3]);
  must(interpreter.invoke());

  const auto boxes = interpreter.output(0).data<float>(), classes = interpreter.output(1).data<float>();
  const auto scores = interpreter.output(2).data<float>(), found = interpreter.output(3).data<float>();
  const reef::Image picture = must(reef::Image::load(arguments[3]));
  for (std::size_t i = 0; i < static_cast<std::size_t>(found[0]) && i < scores.size(); ++i) {
    if (scores[i] < 0.4f) continue;
    const auto pixel = [&](std::size_t edge, int side) {
      return static_cast<int>(boxes[4 * i + edge] * static_cast<float>(side));
    };
    const int top = pixel(0, picture.height()), left = pixel(1, picture.width());
    const int bottom = pixel(2, picture.height()), right = pixel(3, picture.width());
    const auto id = static_cast<std::size_t>(classes[i]);
    std::printf("%-10s %.2f  left %d, top %d, right %d, bottom %d\n", label(labels, id).c_str(),
                static_cast<double>(scores[i]), left, top, right, bottom);
    draw_frame(picture, left, top, right, bottom, colour_of(id + 1));
  }
  must(picture.save(arguments[4]));
  return 0;
}
