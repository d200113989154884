// SPDX-License-Identifier: Apache-2.0
// Opcodes 25, 26 and 27: between the host, the buffers of the scalar core, and the ring.
//
// The buffers are addressed, not queues: parameters 2048 units of 64 bytes, activations 32768 units of 8 bytes,
// loop-back units of 4 bytes; addresses wrap. What may be overwritten is decided by the watchers alone.
#pragma once

#include "isa/layout.h"

namespace reef::isa::host_queues {

using layout::field;
using layout::flag;
using layout::plus_one;
using layout::with_values;

// ---- 25: infeed ----

inline constexpr std::string_view kInfeedBuffers[] = {"parameters", "activations"};
inline constexpr Field kInfeedBuffer =
    with_values(field("buffer", 12, 1, Kind::kEnum, "", "which buffer is filled", Evidence::kExecuted), kInfeedBuffers);
inline constexpr NestFields kInfeedOut = layout::nest({"out", AddressUnit::kBufferUnit, 13, 3, 15, 16, 15, 2});
inline constexpr ProducerFields kSignalInfeed = layout::choose_counter(
    layout::producer({"signal_infeed", 174, 2, true, static_cast<std::uint8_t>(ScalarCounter::kParameterInfeed), 0}),
    kInfeedBuffer,
    {static_cast<std::uint8_t>(ScalarCounter::kParameterInfeed),
     static_cast<std::uint8_t>(ScalarCounter::kAvdataInfeed)});
inline constexpr auto kInfeedWatchers = layout::watchers<1>({177, 4, 2, false, true, {0, 0}});

// ---- 26: pop ----

inline constexpr std::string_view kPopSources[] = {"parameters", "activations", "loopback"};
inline constexpr Field kPopSource =
    with_values(field("source", 12, 2, Kind::kEnum, "", "which buffer is read", Evidence::kExecuted), kPopSources);
inline constexpr NestFields kPopIn = layout::nest({"in", AddressUnit::kBufferUnit, 14, 3, 20, 21, 20, 2});
// Counted in all tiles and in the scalar core, like that of ring_send.
inline constexpr ProducerFields kSignalPopRingProducer = layout::producer(
    {"signal_ring_producer", 308, 2, true, static_cast<std::uint8_t>(ScalarCounter::kRingProducerA), 0});
inline constexpr ProducerFields kSignalPop = layout::choose_counter(
    layout::producer({"signal_pop", 311, 2, true, static_cast<std::uint8_t>(ScalarCounter::kParameterPop), 0}),
    kPopSource,
    {static_cast<std::uint8_t>(ScalarCounter::kParameterPop), static_cast<std::uint8_t>(ScalarCounter::kAvdataPop),
     static_cast<std::uint8_t>(ScalarCounter::kLoopbackPop), static_cast<std::uint8_t>(ScalarCounter::kLoopbackPop)});
inline constexpr std::array kPopProducers = {kSignalPopRingProducer, kSignalPop};
inline constexpr auto kPopWatchers = layout::watchers<2>({314, 4, 2, false, true, {0, 0}});
inline constexpr Field kPopTiles =
    field("to_tiles", 409, 16, Kind::kTileMask, "tiles", "who receives the lines", Evidence::kExecuted);
inline constexpr Field kPopLineWords = plus_one(
    field("line_words", 434, 6, Kind::kUnsigned, "words", "words of 4 bytes per ring line", Evidence::kExecuted));

// ---- 27: outfeed ----

inline constexpr NestFields kOutfeedOut = layout::nest({"out", AddressUnit::kBufferUnit, 12, 3, 15, 16, 15, 2});
inline constexpr ProducerFields kSignalOutfeed =
    layout::producer({"signal_outfeed", 173, 2, true, static_cast<std::uint8_t>(ScalarCounter::kRingOutfeed), 0});
// Waiting for LOOPBACK_POP is what marks an outfeed into the loop-back buffer.
inline constexpr auto kOutfeedWatchers = layout::watchers<1>({176, 4, 2, false, true, {0, 0}});
inline constexpr Field kOutfeedLineWords = plus_one(
    field("line_words", 222, 6, Kind::kUnsigned, "words", "words of 4 bytes per ring line", Evidence::kObserved));
inline constexpr std::string_view kOutfeedTargets[] = {"buffer", "host"};
inline constexpr Field kOutfeedTarget = with_values(
    field("target", 228, 1, Kind::kEnum, "",
          "host: units of 8 bytes straight to the host; buffer: words of 4 bytes into the loop-back buffer or the "
          "scalar core's memory",
          Evidence::kExecuted),
    kOutfeedTargets);

}  // namespace reef::isa::host_queues
