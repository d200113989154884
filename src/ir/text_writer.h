// SPDX-License-Identifier: Apache-2.0
// A string that grows by the pieces of which the text form is made; the counterpart of text_cursor.h.
#pragma once

#include <cstring>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "ir/model.h"
#include "ir/text_tokens.h"

namespace reef::ir::text {

class Writer {
 protected:
  template <typename... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }
  void put_quoted(std::string_view before, std::string_view bytes) {
    out_ += before;
    append_quoted(out_, bytes);
  }
  void put_word(std::string_view text) {
    if (is_word(text)) {
      out_ += text;
    } else {
      append_quoted(out_, text);
    }
  }
  void put_value(float value) { append_float(out_, value); }
  void put_value(double value) { append_double(out_, value); }
  template <typename Integer>
  void put_value(Integer value) {
    put("{}", value);
  }
  template <typename List>
  void put_list(const List& values) {
    out_ += '[';
    const char* separator = "";
    for (const auto& value : values) {
      out_ += separator;
      put_value(value);
      separator = ", ";
    }
    out_ += ']';
  }
  // A list of one stands without brackets.
  template <typename List>
  void put_list_or_one(const List& values) {
    if (values.size() == 1) {
      put_value(values[0]);
    } else {
      put_list(values);
    }
  }
  void put_tensor(std::int32_t index) {
    if (index == -1) {
      out_ += "%none";
    } else {
      put("%{}", index);
    }
  }
  void put_tensors(const std::vector<std::int32_t>& indices) {
    const char* separator = "";
    for (const std::int32_t index : indices) {
      out_ += separator;
      put_tensor(index);
      separator = ", ";
    }
  }
  void put_hex(std::span<const std::uint8_t> bytes) {
    out_ += "hex\"";
    append_hex(out_, bytes);
    out_ += '"';
  }
  void put_opaque(const OpaqueTable& table) {
    put("opaque(union_type={}, table_offset={}, alignment_phase={}, bytes=", table.union_type, table.table_offset,
        table.alignment_phase);
    put_hex(table.bytes.span());
    out_ += ')';
  }

  // [1, 2, 3] from a constant's bytes; `is_cut`: more would follow.
  void put_typed(DataType type, std::span<const std::uint8_t> data, bool is_cut) {
    with_value_type(type, [&](auto zero) {
      using Element = decltype(zero);
      out_ += '[';
      for (std::size_t i = 0; i < data.size(); i += sizeof(Element)) {
        Element value;
        std::memcpy(&value, data.data() + i, sizeof value);
        if (i != 0) out_ += ", ";
        put_value(value);
      }
      if (is_cut) out_ += data.empty() ? "..." : ", ...";
      out_ += ']';
    });
  }

  std::string out_;
};

}  // namespace reef::ir::text
