// SPDX-License-Identifier: Apache-2.0
// Opcodes 10, 11 and 12: lines of wide memory sent and received over the two channels of the ring.
#pragma once

#include "isa/layout.h"

namespace reef::isa::ring {

using layout::field;
using layout::flag;
using layout::plus_one;
using layout::with_values;

// The only nest: lines read by a sender, lines written by a receiver.
inline constexpr NestFields kSendIn = layout::nest({"in", AddressUnit::kWideLine, 62, 4, 16, 17, 16, 2});
inline constexpr NestFields kReceiveOut = layout::nest({"out", AddressUnit::kWideLine, 62, 4, 16, 17, 16, 2});

// ---- 10: send ----

inline constexpr std::string_view kChannels[] = {"a", "b"};
inline constexpr Field kChannel =
    with_values(field("channel", 466, 1, Kind::kEnum, "", "ring channel", Evidence::kExecuted), kChannels);
inline constexpr Field kToTiles =
    field("to_tiles", 467, 16, Kind::kTileMask, "tiles", "who receives the lines", Evidence::kExecuted);
inline constexpr Field kToScalar = flag("to_scalar", 483, "the scalar core receives them too", Evidence::kExecuted);

inline constexpr ProducerFields kSignalRingWrite =
    layout::producer({"signal_ring_write", 335, 3, false, static_cast<std::uint8_t>(TileCounter::kRingWrite), 0});
// Counted in all 16 tiles and in the scalar core: the token that orders the senders of a channel.
inline constexpr ProducerFields kSignalRingProducer = layout::choose_counter(
    layout::producer(
        {"signal_ring_producer", 339, 3, false, static_cast<std::uint8_t>(TileCounter::kRingProducerA), 0}),
    kChannel,
    {static_cast<std::uint8_t>(TileCounter::kRingProducerA), static_cast<std::uint8_t>(TileCounter::kRingProducerB)});
inline constexpr std::array kSendProducers = {kSignalRingWrite, kSignalRingProducer};
inline constexpr auto kSendWatchers = layout::watchers<3>({343, 5, 2, true, false, {0, 0}});

// ---- 11, 12: receive ----

// Header lines: before each pass of header_level inner dimensions, header_lines lines go to the header's place.
inline constexpr Field kHeader = flag("header", 267, "header lines precede every pass", Evidence::kExecuted);
inline constexpr Field kHeaderLevel =
    plus_one(field("header_level", 268, 2, Kind::kUnsigned, "level",
                   "header lines arrive before each pass of this many inner dimensions", Evidence::kExecuted));
inline constexpr Field kHeaderFirst =
    field("header_first", 270, 16, Kind::kUnsigned, "line", "where the header goes", Evidence::kExecuted);
inline constexpr Field kHeaderLines =
    plus_one(field("header_lines", 286, 16, Kind::kUnsigned, "lines", "how long a header is", Evidence::kExecuted));
inline constexpr Field kHeaderLast =
    field("header_last", 302, 16, Kind::kUnsigned, "line", "first line of the last header buffer", Evidence::kExecuted);
inline constexpr Field kHeaderStep = field(
    "header_step", 318, 16, Kind::kUnsigned, "line",
    "distance of the header buffers: there are (header_last - header_first) / header_step + 1", Evidence::kExecuted);

// The channel is the opcode's: RING_READ_A for 11, RING_READ_B for 12. Header lines are not counted.
inline constexpr ProducerFields kSignalRingReadA =
    layout::producer({"signal_ring_read", 335, 3, false, static_cast<std::uint8_t>(TileCounter::kRingReadA), 0});
inline constexpr ProducerFields kSignalRingReadB =
    layout::producer({"signal_ring_read", 335, 3, false, static_cast<std::uint8_t>(TileCounter::kRingReadB), 0});
inline constexpr auto kReceiveWatchers = layout::watchers<3>({339, 5, 2, true, false, {0, 0}});

}  // namespace reef::isa::ring
