// SPDX-License-Identifier: Apache-2.0
// Colours every pixel by the class that scores highest there. Usage: segment MODEL PICTURE OUT.png
#include "common.h"

int main(int count, char** arguments) {
  if (count != 4) fail("usage: segment MODEL PICTURE OUT.png");
  const reef::Model model = must(reef::Model::load(arguments[1]));
  reef::Interpreter interpreter = must(reef::Interpreter::create(model));
  fill_input(interpreter, arguments[2]);
  must(interpreter.invoke());

  const reef::Tensor output = interpreter.output(0);
  if (output.dims().size() != 4) fail("the model is no segmenter");
  const int height = output.dims()[1], width = output.dims()[2], classes = output.dims()[3];
  const reef::Image picture = must(reef::Image::load(arguments[2]));
  std::vector<int> pixels_of(static_cast<std::size_t>(classes));
  for (int y = 0; y < picture.height(); ++y) {
    for (int x = 0; x < picture.width(); ++x) {
      const int cell = y * height / picture.height() * width + x * width / picture.width();
      int best = 0;
      for (int c = 1; c < classes; ++c) {
        const auto at = [&](int k) { return output.real(static_cast<std::size_t>(cell * classes + k)); };
        if (at(c) > at(best)) best = c;
      }
      ++pixels_of[static_cast<std::size_t>(best)];
      if (best == 0) continue;  // water stays as it is
      const Colour colour = colour_of(static_cast<std::size_t>(best));
      for (int c = 0; c < 3; ++c) {
        std::uint8_t& sample = picture.samples()[static_cast<std::size_t>((y * picture.width() + x) * 3 + c)];
        sample = static_cast<std::uint8_t>((sample + 2 * colour[static_cast<std::size_t>(c)]) / 3);
      }
    }
  }
  for (std::size_t c = 0; c < pixels_of.size(); ++c) {
    if (pixels_of[c] > 0) std::printf("class %zu: %d pixels\n", c, pixels_of[c]);
  }
  must(picture.save(arguments[3]));
  return 0;
}
