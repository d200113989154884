// SPDX-License-Identifier: Apache-2.0
// Any bytes as what a model says about itself: properties of an ONNX model, the archive of a .tflite file. What was
// understood survives being stored in a model, but for bytes that are no UTF-8, which become U+FFFD once.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "data/model_card.h"

namespace {

reef::data::ModelCard stored(const reef::data::ModelCard& card) {
  reef::ir::Model model;
  reef::data::store_card(card, model);
  return reef::data::stored_card(model);
}

void store_and_read(const reef::data::ModelCard& card) {
  const reef::data::ModelCard once = stored(card), again = stored(once);
  if (again.names != once.names || again.task != once.task || once.names.size() != card.names.size()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  store_and_read(reef::data::card_of_properties({{"task", "detect"}, {"names", text}, {"kpt_shape", text}}));
  store_and_read(reef::data::card_of_properties({{"task", text}, {"kpt_shape", "[17, 3]"}}));
  store_and_read(reef::data::card_of_archive(reef::Bytes(std::vector<std::uint8_t>(data, data + size))));
  return 0;
}
