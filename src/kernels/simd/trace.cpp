// SPDX-License-Identifier: Apache-2.0
#include "kernels/simd/trace.h"

namespace reef::kernels {

std::string text_of_notes(KernelNotes notes) {
  std::string text;
  const auto add = [&](std::string_view word) { text.append(text.empty() ? "" : ", ").append(word); };
  for (int i = static_cast<int>(SimdTarget::kDotprod); i >= 0; --i) {
    if (notes >> i & 1) add(i == static_cast<int>(SimdTarget::kBaseline) ? "plain" : target_name(SimdTarget(i)));
  }
  if ((notes & kCopiedNote) != 0) add("copy");
  return text.empty() ? "plain" : text;
}

}  // namespace reef::kernels
