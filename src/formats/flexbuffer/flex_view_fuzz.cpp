// SPDX-License-Identifier: Apache-2.0
// Any bytes as a FlexBuffer, walked to a limited depth: nothing that it says leads outside of the bytes.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "formats/flexbuffer/flex_view.h"

namespace {

using reef::flexbuffer::FlexView;

// References may form circles, and a vector may hold itself many times: depth and number of steps are limited.
void walk(const FlexView& view, std::size_t size, int depth, int& steps) {
  constexpr int kDeepest = 8, kMostSteps = 4096;
  constexpr std::size_t kMostElements = 64;
  if (depth > kDeepest || ++steps > kMostSteps) return;
  if (view.offset() > size) std::abort();
  (void)view.as_double();
  (void)view.as_int();
  if (const auto range = view.as_bytes(); range && (range->offset > size || range->size > size - range->offset))
    std::abort();
  if (const auto elements = view.elements(kMostElements); elements.ok()) {
    if (elements->size() > kMostElements) std::abort();
    for (const FlexView& element : *elements) walk(element, size, depth + 1, steps);
  }
  if (!view.is_map()) return;
  if (const auto entries = view.entries(kMostElements); entries.ok()) {
    for (const auto& entry : *entries) {
      if (entry.key.size() >= 256) std::abort();
      walk(entry.value, size, depth + 1, steps);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto root = FlexView::root({data, size});
  int steps = 0;
  if (root.ok()) walk(*root, size, 0, steps);
  return 0;
}
