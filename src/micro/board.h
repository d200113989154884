// SPDX-License-Identifier: Apache-2.0
// What a program for Coral's Dev Board Micro has to do with, as its SDK divides the board's memory.
//
// The board has 64 MiB of SDRAM; the SDK's linker script for the Cortex-M7 uses 48 of them: a heap, into which model
// files are read, and a section for static data, in which the tensor arena stands. Facts are from the sources of
// github.com/google-coral/coralmicro (March 2023), named with each number.
#pragma once

#include <cstdint>

namespace reef::micro {

inline constexpr std::int64_t kMebibyte = std::int64_t{1} << 20;

// HEAP_SIZE in libs/nxp/rt1176-sdk/MIMXRT1176xxxxx_cm7_ram.ld; LfsReadFile() reads a model into a std::vector there.
inline constexpr std::int64_t kBoardHeapBytes = 16 * kMebibyte;
// m_sdram in the same file: 0x03000000 less the heap. STATIC_TENSOR_ARENA_IN_SDRAM puts the arena there.
inline constexpr std::int64_t kBoardStaticBytes = 32 * kMebibyte;
// m_ocram in the same file, for STATIC_TENSOR_ARENA_IN_OCRAM; code of several libraries shares it.
inline constexpr std::int64_t kBoardOcramBytes = kMebibyte / 2;
// libs/base/filesystem.cc: 512 blocks of 128 KiB of the NAND flash.
inline constexpr std::int64_t kBoardFileBytes = 64 * kMebibyte;
// libs/camera/camera.cc: four frames of 324 x 324 in the static section, if the camera is linked in.
inline constexpr std::int64_t kBoardCameraBytes = 4 * 324 * 324;
// libs/nxp/rt1176-sdk: the Cortex-M7 runs at 798 MHz (consumer grade 996; Coral's data sheet says 800).
inline constexpr double kBoardHertz = 800e6;

}  // namespace reef::micro
