// SPDX-License-Identifier: Apache-2.0
// A bundle's slots act together: all read the registers as they were before it. Which of several slots wins when they
// write one register is not known (no program does it); here the last of load, math, store (its step), arithmetic.
#include "execute/device/scalar_core.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "isa/scalar.h"

namespace reef::device {
namespace {

namespace b = isa::bundle;

// The published range of addresses is 64 bits; buffers are given 2^32 bytes each.
constexpr std::uint64_t kFirstAddress = std::uint64_t{1} << 40, kAddressStep = std::uint64_t{1} << 32;

// Limits on what the host may be sent before it is asked to take it.
constexpr std::size_t kMaxUnclaimedBytes = 1 << 24;
constexpr std::size_t kMaxTransfers = 1 << 16;

float as_float(std::uint32_t bits) { return std::bit_cast<float>(bits); }
std::uint32_t as_bits(float value) { return std::bit_cast<std::uint32_t>(value); }

// Conversion to integer: half to even, saturating. Inferred: programs clamp before they convert.
std::uint32_t float_to_int(float value) {
  if (std::isnan(value)) return 0;
  const float rounded = std::nearbyint(value);
  if (rounded >= 2147483648.0f) return 0x7fffffffu;
  if (rounded < -2147483648.0f) return 0x80000000u;
  return static_cast<std::uint32_t>(static_cast<std::int32_t>(rounded));
}

bool compare(b::Alu alu, std::uint32_t x, std::uint32_t y) {
  const auto sx = static_cast<std::int32_t>(x), sy = static_cast<std::int32_t>(y);
  switch (alu) {
    case b::Alu::kEqual:
      return x == y;
    case b::Alu::kNotEqual:
      return x != y;
    case b::Alu::kGreater:
      return sx > sy;
    case b::Alu::kLess:
      return sx < sy;
    case b::Alu::kGreaterEqual:
      return sx >= sy;
    default:
      return x >= y;
  }
}

std::uint32_t calculate(b::Alu alu, std::uint32_t x, std::uint32_t y, Belief doubted) {
  switch (alu) {
    case b::Alu::kAdd:
      return x + y;
    case b::Alu::kSub:
      return x - y;
    case b::Alu::kAnd:
      return x & y;
    case b::Alu::kOr:
      return x | y;
    case b::Alu::kXor:
      return x ^ y;
    case b::Alu::kShiftLeft:
      return y < 32 ? x << y : 0;
    case b::Alu::kShiftRight:
      return y < 32 ? x >> y : 0;
    case b::Alu::kShiftRightSigned:
      return static_cast<std::uint32_t>(static_cast<std::int32_t>(x) >> std::min<std::uint32_t>(y, 31));
    case b::Alu::kMove:
      return y;
    case b::Alu::kIntToFloat:
      return as_bits(static_cast<float>(static_cast<std::int32_t>(y)));
    case b::Alu::kFloatToInt:
      return float_to_int(doubted == Belief::kConversionRounds ? std::trunc(as_float(y)) : as_float(y));
    case b::Alu::kFloatAdd:
      return as_bits(as_float(x) + as_float(y));
    case b::Alu::kFloatSub:
      return as_bits(as_float(x) - as_float(y));
    case b::Alu::kFloatMul:
      return as_bits(as_float(x) * as_float(y));
    case b::Alu::kFloatMax:
      return as_bits(std::fmax(as_float(x), as_float(y)));
    case b::Alu::kFloatMin:
      return as_bits(std::fmin(as_float(x), as_float(y)));
    default:
      return 0;
  }
}

}  // namespace

bool ScalarCore::acts(const isa::Instruction& instruction) const {
  if (!instruction.test(isa::common::kPredicated)) return true;
  return predicate(instruction.bits(isa::common::kPredicate)) == instruction.test(isa::common::kPredicateSense);
}

void ScalarCore::compute(const isa::Instruction& bundle, std::array<std::uint32_t, 32>& registers,
                         std::array<std::uint8_t, 32>& predicates) const {
  const auto alu = static_cast<b::Alu>(bundle.bits(b::kAlu));
  if (alu == b::Alu::kNone) return;
  const std::uint32_t x = registers_[bundle.bits(b::kAluSource)];
  const std::uint32_t operand = bundle.bits(b::kAluOperand);
  const std::uint32_t y = bundle.test(b::kAluImmediate) ? operand : registers_[operand & 31];
  const std::uint32_t destination = bundle.bits(b::kAluDest);
  if (b::writes_predicate(static_cast<std::uint32_t>(alu))) {
    predicates[destination] = compare(alu, x, y) ? 1 : 0;
  } else {
    registers[destination] = calculate(alu, x, y, doubted_);
  }
}

Status ScalarCore::store(const isa::Instruction& bundle, Host& host, std::optional<HostRequest>& request,
                         std::array<std::uint32_t, 32>& registers) {
  const std::uint32_t value = registers_[bundle.bits(b::kStoreSource)];
  const std::uint32_t address = bundle.bits(b::kStoreAddress);
  switch (static_cast<b::Store>(bundle.bits(b::kStore))) {
    case b::Store::kNone:
      return ok_status();
    case b::Store::kAddress:
      memory_[address % kMemoryWords] = value;
      return ok_status();
    case b::Store::kRegister:
    case b::Store::kRegisterStep: {
      const bool steps = static_cast<b::Store>(bundle.bits(b::kStore)) == b::Store::kRegisterStep;
      const std::uint32_t early_step = steps && doubted_ == Belief::kStoreStepsAfter ? address >> 5 : 0;
      const std::uint32_t word = registers_[address & 31] + early_step;
      REEF_REQUIRE(word < kMemoryWords, "scalar memory has {} words, the store is to word {}", kMemoryWords, word);
      memory_[word] = value;
      if (steps) registers[address & 31] += address >> 5;
      return ok_status();
    }
    case b::Store::kPush: {
      // The core's own memory is taken to be known: programs fill it before they read it.
      static constexpr std::array<std::uint8_t, 4> kKnown = {1, 1, 1, 1};
      std::array<std::uint8_t, 4> bytes{};
      for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(value >> (8 * i));
      REEF_REQUIRE(host.put(bytes.data(), kKnown.data(), bytes.size()),
                   "sends the host more than it was asked to take");
      return ok_status();
    }
    case b::Store::kDescriptor:
      REEF_REQUIRE(address < descriptor_.size(), "a DMA descriptor has no word {}", address);
      descriptor_[address] = value;
      return ok_status();
    case b::Store::kIssue:
      request = {static_cast<Purpose>(descriptor_[3]), descriptor_[2],
                 descriptor_[0] | std::uint64_t{descriptor_[1]} << 32};
      return host.issue(request->address, descriptor_[2], descriptor_[3]);
  }
  return invalid_input("unknown store {} in a scalar bundle", bundle.bits(b::kStore));
}

Status ScalarCore::execute(const isa::Instruction& bundle, Host& host, std::optional<HostRequest>& request) {
  if (!acts(bundle)) return ok_status();
  auto registers = registers_;
  auto predicates = predicates_;
  const auto load = static_cast<b::Load>(bundle.bits(b::kLoad));
  if (load != b::Load::kNone) {
    const std::uint32_t address = bundle.bits(b::kLoadAddress);
    const bool steps_first = load == b::Load::kRegisterStep && doubted_ == Belief::kLoadStepsAfter;
    const std::uint32_t early_step = steps_first ? address >> 5 : 0;
    const std::uint32_t word = load == b::Load::kAddress ? address : registers_[address & 31] + early_step;
    REEF_REQUIRE(word < kMemoryWords, "scalar memory has {} words, the load is from word {}", kMemoryWords, word);
    if (load == b::Load::kRegisterStep) registers[address & 31] += address >> 5;
    registers[bundle.bits(b::kLoadDest)] = memory_[word];
  }
  const bool reads_late = doubted_ == Belief::kBundleReadsFirst;
  if (reads_late) registers_ = registers;
  if (const std::uint32_t math = bundle.bits(b::kMath); math != 0) {
    const float x = as_float(registers_[bundle.bits(b::kMathSource)]);
    registers[bundle.bits(b::kMathDest)] = as_bits(math == 2 ? 1.0f / x : std::exp2(x));
  }
  if (reads_late) registers_ = registers;
  REEF_RETURN_IF_ERROR(store(bundle, host, request, registers));
  if (reads_late) registers_ = registers;
  compute(bundle, registers, predicates);
  registers_ = registers;
  predicates_ = predicates;
  return ok_status();
}

// ---- The host ----

std::uint64_t HostMemory::add(std::string name, std::vector<std::uint8_t> bytes, bool is_known) {
  const std::uint64_t address = kFirstAddress + buffers_.size() * kAddressStep;
  std::vector<std::uint8_t> known;
  if (!is_known) known.resize(bytes.size());
  buffers_.push_back({std::move(name), address, std::move(bytes), std::move(known)});
  return address;
}

HostMemory::Place HostMemory::place_of(std::uint64_t address) {
  return {static_cast<std::size_t>((address - kFirstAddress) / kAddressStep), (address - kFirstAddress) % kAddressStep};
}

Status HostMemory::check(std::uint64_t address, std::uint64_t bytes) const {
  const Place place = place_of(address);
  if (address < kFirstAddress || place.buffer >= buffers_.size()) {
    return invalid_input("a transfer of {} bytes at address {:#x}, where the host has no buffer", bytes, address);
  }
  const Buffer& buffer = buffers_[place.buffer];
  REEF_REQUIRE(place.offset + bytes <= buffer.bytes.size(), "a transfer of {} bytes at {} of '{}', which has {}", bytes,
               place.offset, buffer.name, buffer.bytes.size());
  return ok_status();
}

void HostMemory::load(std::uint64_t address, std::uint8_t* to, std::uint8_t* known, std::size_t bytes) const {
  const Place place = place_of(address);
  const Buffer& buffer = buffers_[place.buffer];
  std::copy_n(buffer.bytes.data() + place.offset, bytes, to);
  if (buffer.known.empty()) {
    std::fill_n(known, bytes, std::uint8_t{1});
  } else {
    std::copy_n(buffer.known.data() + place.offset, bytes, known);
  }
}

void HostMemory::store(std::uint64_t address, const std::uint8_t* data, const std::uint8_t* known, std::size_t bytes) {
  const Place place = place_of(address);
  Buffer& buffer = buffers_[place.buffer];
  std::copy_n(data, bytes, buffer.bytes.data() + place.offset);
  if (!buffer.known.empty()) std::copy_n(known, bytes, buffer.known.data() + place.offset);
}

Status AddressedHost::issue(std::uint64_t address, std::uint64_t bytes, std::uint32_t tag) {
  if (tag == static_cast<std::uint32_t>(Purpose::kInterrupt)) {
    REEF_REQUIRE(bytes == 0, "an interrupt that is {} bytes long", bytes);  // every program seen has 0 there
    ++interrupts_;
    interrupted();
    return ok_status();
  }
  REEF_RETURN_IF_ERROR(check(address, bytes));
  REEF_REQUIRE(inputs_.size() + parameters_.size() + outputs_.size() < kMaxTransfers, "too many transfers under way");
  const Transfer transfer{address, bytes, 0, outputs_issued_};
  switch (static_cast<Purpose>(tag)) {
    case Purpose::kInput:
      inputs_.push_back(transfer);
      return ok_status();
    case Purpose::kParameters:
      parameters_.push_back(transfer);
      return ok_status();
    case Purpose::kOutput:
      outputs_.push_back(transfer);
      ++outputs_issued_;
      claim();
      return ok_status();
    default:
      return invalid_input("a transfer with unknown tag {}", tag);
  }
}

std::size_t AddressedHost::available(Purpose purpose) {
  std::size_t bytes = 0;
  for (const Transfer& transfer : stream(purpose)) {
    if (transfer.after_outputs > outputs_complete_) break;
    bytes += transfer.bytes - transfer.done;
  }
  return bytes;
}

void AddressedHost::take(Purpose purpose, std::uint8_t* to, std::uint8_t* known, std::size_t bytes) {
  auto& queue = stream(purpose);
  while (bytes > 0) {
    Transfer& transfer = queue.front();
    const std::size_t part = std::min<std::size_t>(bytes, transfer.bytes - transfer.done);
    load(transfer.address + transfer.done, to, known, part);
    to += part;
    known += part;
    bytes -= part;
    transfer.done += part;
    if (transfer.done == transfer.bytes) queue.pop_front();
  }
}

bool AddressedHost::put(const std::uint8_t* data, const std::uint8_t* known, std::size_t bytes) {
  pushed_ += bytes;
  sent_.insert(sent_.end(), data, data + bytes);
  sent_known_.insert(sent_known_.end(), known, known + bytes);
  claim();
  return sent_.size() <= kMaxUnclaimedBytes;
}

void AddressedHost::claim() {
  std::size_t from = 0;
  while (!outputs_.empty() && from < sent_.size()) {
    Transfer& transfer = outputs_.front();
    const std::size_t part = std::min<std::size_t>(sent_.size() - from, transfer.bytes - transfer.done);
    store(transfer.address + transfer.done, sent_.data() + from, sent_known_.data() + from, part);
    from += part;
    transfer.done += part;
    if (transfer.done < transfer.bytes) break;
    outputs_.pop_front();
    ++outputs_complete_;
  }
  sent_.erase(sent_.begin(), sent_.begin() + static_cast<std::ptrdiff_t>(from));
  sent_known_.erase(sent_known_.begin(), sent_known_.begin() + static_cast<std::ptrdiff_t>(from));
}

std::string AddressedHost::left_over() const {
  if (!sent_.empty()) return fmt::format("{} bytes were sent to the host that it was not asked to take", sent_.size());
  const auto unused = [](const std::deque<Transfer>& queue) {
    std::uint64_t bytes = 0;
    for (const Transfer& transfer : queue) bytes += transfer.bytes - transfer.done;
    return bytes;
  };
  if (const auto bytes = unused(inputs_)) return fmt::format("{} bytes of input were asked for and not taken", bytes);
  if (const auto bytes = unused(parameters_)) {
    return fmt::format("{} bytes of parameters were asked for and not taken", bytes);
  }
  if (const auto bytes = unused(outputs_)) return fmt::format("{} bytes of output were promised and not sent", bytes);
  return "";
}

void AddressedHost::forget_transfers() {
  inputs_.clear();
  parameters_.clear();
  outputs_.clear();
  sent_.clear();
  sent_known_.clear();
  outputs_issued_ = outputs_complete_ = 0;
  interrupts_ = 0;
}

}  // namespace reef::device
