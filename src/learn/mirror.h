// SPDX-License-Identifier: Apache-2.0
// May mirrored pictures be learned from as well? A second view of each picture makes a class's direction less random
// and costs nobody a photograph, but a mirrored letter, arrow or left shoe is something else. The pictures themselves
// are asked: with classes made from pictures as they are (each left out of its own, unless it is the only one),
// mirrored ones must be recognised as often as the others, but for what chance explains.
#pragma once

#include <cstdint>

#include "learn/embeddings.h"

namespace reef::learn {

struct MirrorTest {
  std::int64_t pictures = 0;
  std::int64_t right = 0;           // of the pictures as they are
  std::int64_t mirrored_right = 0;  // of the same pictures mirrored
  std::int64_t changed = 0;         // pictures of which one view is taken for the class and the other is not
  bool is_same_class() const;
};

// `embeddings` must have mirrored rows.
MirrorTest test_mirrored(const Embeddings& embeddings, int classes);

}  // namespace reef::learn
