// SPDX-License-Identifier: Apache-2.0
// Which code ran: every fast kernel notes at its entrance for which target it was compiled, and whoever measures an
// operator reads the notes when it has run (`reef run --profile`, tests/slow_paths_test.cpp). An operator that notes
// nothing took plain loops of the build's baseline.
//
// Notes are the process's: operators that run at the same time in other interpreters are among them. While nobody
// watches, a note costs a load and a branch.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "kernels/simd/targets.h"

namespace reef::kernels {

// A set of notes: bit i is the SimdTarget of number i, and there is one for copies.
using KernelNotes = std::uint32_t;
inline constexpr KernelNotes kCopiedNote = KernelNotes{1} << 31;  // runs of bytes, as memcpy moves them

namespace trace {
inline std::atomic<bool> is_watched{false};
inline std::atomic<KernelNotes> notes{0};
}  // namespace trace

inline void note(KernelNotes what) {
  if (trace::is_watched.load(std::memory_order_relaxed)) [[unlikely]]
    trace::notes.fetch_or(what, std::memory_order_relaxed);
}
inline void note_kernel(SimdTarget target) { note(KernelNotes{1} << static_cast<int>(target)); }
inline void note_copy() { note(kCopiedNote); }

// Whether the active target has the code for `needed`, which then runs: notes it.
inline bool runs_in(SimdTarget needed) {
  if (!active_includes(needed)) return false;
  note_kernel(needed);
  return true;
}

// From now on kernels take notes.
inline void watch_kernels() { trace::is_watched.store(true, std::memory_order_relaxed); }
// Returns the notes since the last call.
inline KernelNotes take_kernel_notes() { return trace::notes.exchange(0, std::memory_order_relaxed); }

// "avx512", "avx2, copy", or "plain" if there are none.
std::string text_of_notes(KernelNotes notes);
// Whether some of the work was done by vector code or copies.
inline bool is_fast(KernelNotes notes) {
  return (notes & ~(KernelNotes{1} << static_cast<int>(SimdTarget::kBaseline))) != 0;
}

}  // namespace reef::kernels
