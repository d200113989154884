// SPDX-License-Identifier: Apache-2.0
// Protocol Buffers' wire format, read in place: a message is a slice of the file, and so are its bytes fields. No copy
// is made of weights, which a generated parser would do.
//
// https://protobuf.dev/programming-guides/encoding: a message is a row of (field number, wire type, value). Foreign
// bytes: everything is checked against the end of the slice. The first error sticks; after it next() gives false.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"

namespace reef::onnx {

class WireReader {
 public:
  // For messages of errors: where the message starts in the file, and what the file should be, a literal.
  explicit WireReader(Bytes message, std::size_t file_offset = 0, std::string_view kind = "an ONNX model")
      : message_(std::move(message)), file_offset_(file_offset), kind_(kind) {}

  // Moves to the next field. False at the end or after an error: see status().
  bool next();
  int field() const { return field_; }
  const Status& status() const { return status_; }

  // The value of the current field, once.
  std::uint64_t varint();  // also takes fixed 32 and 64
  std::int64_t int64() { return static_cast<std::int64_t>(varint()); }
  float float32();
  double float64();
  Bytes bytes();
  std::string string();
  // The field's value as a message of its own.
  WireReader message();
  void skip();

  // One element, or a packed row of them, appended.
  void append_varints(std::vector<std::int64_t>& values);
  void append_floats(std::vector<float>& values);
  void append_doubles(std::vector<double>& values);

  void fail(std::string_view what);

 private:
  std::uint64_t raw_varint();
  std::uint64_t fixed(std::size_t width);

  Bytes message_;
  std::size_t file_offset_ = 0;
  std::string_view kind_;
  std::size_t position_ = 0;
  int field_ = 0;
  int wire_type_ = 0;
  bool is_taken_ = true;  // the current field's value has been read
  Status status_;
};

}  // namespace reef::onnx
