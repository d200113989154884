// SPDX-License-Identifier: Apache-2.0
// Soundness of a compiled program, from its instructions alone: what its waits, signals, fences and messages guarantee,
// whatever the speed of the units.
//
// The program is walked once, without data: units are queues that work in order, and every step, wait, signal and
// message is followed with vector clocks. What an access is ordered behind is only what its unit has waited for, been
// handed or been sent. One walk stands for all orders, because the machine is confluent as long as
//   - counters only grow between two settings, and every setting is ordered against every use (checked),
//   - signals of several units to one counter, and lines of several senders to one tile, come in an enforced order
//     (checked),
//   - no signed comparison of 16 bits can be taken on the wrong side of a wrap in any order (checked),
//   - the scalar core's way through the program does not depend on data (else the walk ends and says so):
// then whoever may take a step may still take it later, and every order leads to the same waits being fulfilled by the
// same signals. Ring and mesh hold a single line or word while walking, the least a machine can have; that senders then
// wait for room is used to see that nothing stands still, never as a guarantee of order.
//
// The audit does not prove that the values are right; that a machine whose queues of instructions are shorter than
// Statistics::deepest_queue does not stand still; anything about rows that the walk did not reach (`not_covered`).
// Two halves of one mover instruction (its reads and its writes) count as one unit that works in order; the sending
// and the receiving half of a mesh instruction do not. Memory that nothing wrote may be read and thrown away by sound
// programs, and is noted, not reported as a finding. How instructions act: docs/hardware/isa.md.
//
// Nothing here shares code with the virtual device (src/execute): the two check each other (tests/zoo_audit_test.cpp).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/budget.h"
#include "base/status.h"
#include "formats/darwinn/package.h"

namespace reef::audit {

enum class FindingKind : std::uint8_t {
  // Ordered only by timing: another speed of a unit changes what is read.
  kReadAfterWrite,   // nothing makes the read follow the write
  kWriteAfterRead,   // nothing makes the overwriting follow the read
  kWriteAfterWrite,  // nothing decides whose write stays
  kMessageOrder,     // lines of two senders reach a tile in no enforced order
  kRingTurn,         // a sender on the ring that does not wait for its turn
  kSignalOrder,      // two units signal one counter in no enforced order
  kCounterSet,       // a counter is set while somebody may still signal or await it
  kCounterUse,       // a counter may be signalled or awaited before it is set
  kCounterWrap,      // a comparison of 16 bits may be taken on the wrong side of a wrap
  // Wrong in every order.
  kStandstill,  // somebody waits for what never comes
  kLeftOver,    // messages, transfers, FIFO contents or notifications that nobody takes
  kFifo,        // a FIFO unit is filled before it was taken, or taken before it was filled
  kAddress,     // outside of a memory
  kNests,       // loop nests of one instruction that do not fit together
  kRepetition,  // the second inference would begin with something else than the first
  // Only among the notes: sound programs do it where results are thrown away or multiplied by nothing.
  kNeverWritten,  // computes with memory that nothing wrote
};
std::string_view name_of(FindingKind kind);
// Findings that bite or not depending on the speed of units.
constexpr bool is_timing(FindingKind kind) { return kind <= FindingKind::kCounterWrap; }

// An instruction of one of the programs.
struct Site {
  bool in_caching = false;  // of the parameter-caching program
  int chunk = 0;
  std::int64_t row = -1;  // -1: none
  std::string mnemonic;
  std::string to_string() const;  // "row 12 (ring_send)"
};

struct Finding {
  FindingKind kind = FindingKind::kStandstill;
  Site first, second;                                  // as they came while walking; `first` may be none
  int tile = -1;                                       // the first one found; -1: the scalar core
  std::uint16_t tiles = 0;                             // all of them, mask
  std::string memory;                                  // "narrow memory, word", "ring channel A" ...
  std::int64_t first_address = -1, last_address = -1;  // that were found, in the memory's unit
  std::uint64_t times = 1;
  std::string sentence;
};

// The one thing that programs of Google's compilers 15 and 16 leave to timing wherever they gather a vector: a line
// that comes over the ring overwrites one that wide_to_narrow may still be reading. Harmless as long as that mover is
// as fast as the ring, which they rely on (docs/device.md). Code that makes Google's choices has it too.
bool is_googles_gather(const Finding& finding);

struct Statistics {
  int programs = 0;
  std::int64_t instructions = 0;  // carried out, each once for all tiles
  std::int64_t steps = 0;         // of all units
  std::int64_t waits = 0, signals = 0, messages = 0;
  std::int64_t reads = 0, writes = 0;  // of memories and FIFOs, looked at one by one
  std::int64_t reads_of_nothing = 0;   // by tensor units, of memory that nothing wrote
  std::int64_t deepest_queue = 0;      // instructions that a tile must hold so that nothing stands still
};

struct AuditReport {
  std::vector<Finding> findings;
  std::vector<Finding> notes;  // of kind kNeverWritten
  Statistics statistics;
  bool complete = true;                  // both programs were walked to their end
  std::vector<std::string> not_covered;  // why not, and what else was left out
  bool is_sound() const { return complete && findings.empty(); }
  // The same but for what Google's own programs do.
  bool is_sound_as_googles() const;
};

struct AuditOptions {
  std::int64_t max_steps = std::int64_t{1} << 30;  // of all units; the walk ends there and is not complete
  Budget budget = {};                              // the walk fails when it is over
};

// `caching` may be null: the program is complete in itself. Fails where the bytes are no instructions.
Result<AuditReport> audit(const darwinn::Executable& program, const darwinn::Executable* caching,
                          const AuditOptions& options = {});
// The package's stand-alone or execution program behind its caching program.
Result<AuditReport> audit(const darwinn::Package& package, const AuditOptions& options = {});

// For people: the verdict, findings, figures, what is not covered. Ends with a newline.
std::string to_text(const AuditReport& report);

}  // namespace reef::audit
