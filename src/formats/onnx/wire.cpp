// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx/wire.h"

#include <bit>
#include <cstring>

namespace reef::onnx {
namespace {

constexpr int kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5;

}  // namespace

void WireReader::fail(std::string_view what) {
  if (status_.ok()) {
    status_ = invalid_input("byte {}: {}; the file is damaged or not {}", file_offset_ + position_, what, kind_);
  }
  position_ = message_.size();
  is_taken_ = true;
}

bool WireReader::next() {
  if (!is_taken_) skip();
  if (!status_.ok() || position_ >= message_.size()) return false;
  const std::uint64_t tag = raw_varint();
  if (!status_.ok()) return false;
  if ((tag >> 3) == 0 || (tag >> 3) > 0x1fffffff) {
    fail("a field has no valid number");
    return false;
  }
  field_ = static_cast<int>(tag >> 3);
  wire_type_ = static_cast<int>(tag & 7);
  is_taken_ = false;
  return true;
}

std::uint64_t WireReader::raw_varint() {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (position_ >= message_.size()) {
      fail("a number runs over the end");
      return 0;
    }
    const std::uint8_t byte = message_.data()[position_++];
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return value;
  }
  fail("a number has more than ten bytes");
  return 0;
}

std::uint64_t WireReader::fixed(std::size_t width) {
  if (message_.size() - position_ < width) {
    fail("a number runs over the end");
    return 0;
  }
  std::uint64_t value = 0;
  std::memcpy(&value, message_.data() + position_, width);
  position_ += width;
  return value;
}

std::uint64_t WireReader::varint() {
  is_taken_ = true;
  if (wire_type_ == kVarint) return raw_varint();
  if (wire_type_ == kFixed64) return fixed(8);
  if (wire_type_ == kFixed32) return fixed(4);
  fail("a number is expected");
  return 0;
}

float WireReader::float32() {
  is_taken_ = true;
  if (wire_type_ == kFixed32) return std::bit_cast<float>(static_cast<std::uint32_t>(fixed(4)));
  fail("a floating-point number is expected");
  return 0;
}

double WireReader::float64() {
  is_taken_ = true;
  if (wire_type_ == kFixed64) return std::bit_cast<double>(fixed(8));
  fail("a floating-point number is expected");
  return 0;
}

Bytes WireReader::bytes() {
  is_taken_ = true;
  if (wire_type_ != kLength) {
    fail("bytes are expected");
    return {};
  }
  const std::uint64_t size = raw_varint();
  if (!status_.ok()) return {};
  if (size > message_.size() - position_) {
    fail("a field runs over the end of what it is part of");
    return {};
  }
  Bytes result = message_.slice(position_, static_cast<std::size_t>(size));
  position_ += static_cast<std::size_t>(size);
  return result;
}

std::string WireReader::string() {
  const Bytes data = bytes();
  return std::string(reinterpret_cast<const char*>(data.data()), data.size());
}

WireReader WireReader::message() {
  Bytes data = bytes();
  const std::size_t start = file_offset_ + position_ - data.size();
  return WireReader(std::move(data), start, kind_);
}

void WireReader::skip() {
  switch (wire_type_) {
    case kVarint:
    case kFixed64:
    case kFixed32:
      (void)varint();
      return;
    case kLength:
      (void)bytes();
      return;
    default:
      fail("a field has a wire type that is not used");
  }
}

void WireReader::append_varints(std::vector<std::int64_t>& values) {
  if (wire_type_ != kLength) {
    values.push_back(int64());
    return;
  }
  WireReader row = message();
  while (row.status_.ok() && row.position_ < row.message_.size()) {
    values.push_back(static_cast<std::int64_t>(row.raw_varint()));
  }
  if (!row.status_.ok()) fail("a number in a packed row runs over its end");
}

void WireReader::append_floats(std::vector<float>& values) {
  if (wire_type_ != kLength) {
    values.push_back(float32());
    return;
  }
  const Bytes row = bytes();
  if (row.size() % 4 != 0) return fail("a packed row is no whole number of elements");
  const std::size_t count = values.size();
  values.resize(count + row.size() / 4);
  if (!row.empty()) std::memcpy(values.data() + count, row.data(), row.size());
}

void WireReader::append_doubles(std::vector<double>& values) {
  if (wire_type_ != kLength) {
    values.push_back(float64());
    return;
  }
  const Bytes row = bytes();
  if (row.size() % 8 != 0) return fail("a packed row is no whole number of elements");
  const std::size_t count = values.size();
  values.resize(count + row.size() / 8);
  if (!row.empty()) std::memcpy(values.data() + count, row.data(), row.size());
}

}  // namespace reef::onnx
