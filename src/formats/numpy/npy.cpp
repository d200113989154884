// SPDX-License-Identifier: Apache-2.0
#include "formats/numpy/npy.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>
#include <optional>

#include <fmt/ranges.h>

#include "base/file.h"

namespace reef::numpy {
namespace {

using ir::DataType;

constexpr std::uint64_t kMaxFileBytes = std::uint64_t{1} << 36;
constexpr std::size_t kMaxRank = 64;

struct TypeCode {
  std::string_view code;
  DataType type;
};
constexpr TypeCode kTypes[] = {
    {"b1", DataType::kBool},      {"i1", DataType::kInt8},        {"u1", DataType::kUInt8},
    {"i2", DataType::kInt16},     {"u2", DataType::kUInt16},      {"i4", DataType::kInt32},
    {"u4", DataType::kUInt32},    {"i8", DataType::kInt64},       {"u8", DataType::kUInt64},
    {"f2", DataType::kFloat16},   {"f4", DataType::kFloat32},     {"f8", DataType::kFloat64},
    {"c8", DataType::kComplex64}, {"c16", DataType::kComplex128},
};

// The Python literal {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }, keys in any order.
class HeaderText {
 public:
  explicit HeaderText(std::string_view text) : text_(text) {}

  Status parse(Header& header) {
    REEF_REQUIRE(take('{'), "the array's description is no dictionary: {}", shown());
    bool has_type = false, has_order = false, has_shape = false;
    while (!take('}')) {
      REEF_ASSIGN_OR_RETURN(const std::string key, quoted());
      REEF_REQUIRE(take(':'), "the array's description lacks a ':' after '{}': {}", key, shown());
      if (key == "descr") {
        REEF_RETURN_IF_ERROR(read_type(header));
        has_type = true;
      } else if (key == "fortran_order") {
        REEF_RETURN_IF_ERROR(read_order(header));
        has_order = true;
      } else if (key == "shape") {
        REEF_RETURN_IF_ERROR(read_shape(header));
        has_shape = true;
      } else {
        return invalid_input("the array's description has an unknown key: {}", shown());
      }
      if (!take(',')) {
        REEF_REQUIRE(take('}'), "the array's description does not end: {}", shown());
        break;
      }
    }
    REEF_REQUIRE(has_type && has_order && has_shape, "the array's description lacks descr, fortran_order or shape: {}",
                 shown());
    return ok_status();
  }

 private:
  std::string shown() const {
    std::string line(text_.substr(0, 200));
    for (char& c : line) c = std::isprint(static_cast<unsigned char>(c)) != 0 ? c : ' ';
    while (!line.empty() && line.back() == ' ') line.pop_back();
    return line;
  }
  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool take(char c) {
    skip_spaces();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool take_word(std::string_view word) {
    skip_spaces();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  Result<std::string> quoted() {
    skip_spaces();
    REEF_REQUIRE(at_ < text_.size() && (text_[at_] == '\'' || text_[at_] == '"'),
                 "the array's description is damaged: {}", shown());
    const std::size_t end = text_.find(text_[at_], at_ + 1);
    REEF_REQUIRE(end != std::string_view::npos, "the array's description is cut off: {}", shown());
    std::string value(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return value;
  }

  Status read_type(Header& header) {
    skip_spaces();
    if (at_ < text_.size() && text_[at_] == '[') return unsupported("arrays of records are not read: {}", shown());
    REEF_ASSIGN_OR_RETURN(const std::string code, quoted());
    const bool has_order = !code.empty() && std::string_view("<>|=").find(code[0]) != std::string_view::npos;
    const std::string_view kind = std::string_view(code).substr(has_order ? 1 : 0);
    header.is_big_endian = has_order && code[0] == '>';
    for (const TypeCode& known : kTypes) {
      if (known.code == kind) {
        header.type = known.type;
        return ok_status();
      }
    }
    return unsupported("arrays of type '{}' are not read; numbers and booleans are", code);
  }

  Status read_order(Header& header) {
    header.is_fortran_order = take_word("True");
    REEF_REQUIRE(header.is_fortran_order || take_word("False"), "fortran_order is neither True nor False: {}", shown());
    return ok_status();
  }

  Status read_shape(Header& header) {
    REEF_REQUIRE(take('('), "the array's shape is no tuple: {}", shown());
    while (!take(')')) {
      skip_spaces();
      std::int64_t size = 0;
      const char* begin = text_.data() + at_;
      const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), size);
      REEF_REQUIRE(error == std::errc() && size >= 0 && header.shape.size() < kMaxRank,
                   "the array's shape is not readable: {}", shown());
      at_ += static_cast<std::size_t>(end - begin);
      take('L');  // Python 2 wrote long numbers so
      header.shape.push_back(size);
      if (!take(',')) {
        REEF_REQUIRE(take(')'), "the array's shape does not end: {}", shown());
        break;
      }
    }
    return ok_status();
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

// nullopt: more than 2^62 bytes.
std::optional<std::uint64_t> data_bytes(DataType type, std::span<const std::int64_t> shape) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 62;
  auto bytes = static_cast<std::uint64_t>(ir::bits_per_element(type) / 8);
  bool is_empty = false;
  for (const std::int64_t size : shape) {
    if (size == 0) is_empty = true;
    if (size > 0 && bytes > kMost / static_cast<std::uint64_t>(size)) return std::nullopt;
    if (size > 0) bytes *= static_cast<std::uint64_t>(size);
  }
  return is_empty ? 0 : bytes;
}

// Complex numbers are two floats, each in the byte order given.
std::size_t swapped_bytes(DataType type) {
  const auto bytes = static_cast<std::size_t>(ir::bits_per_element(type) / 8);
  return type == DataType::kComplex64 || type == DataType::kComplex128 ? bytes / 2 : bytes;
}

std::vector<std::uint8_t> in_c_order(const std::vector<std::uint8_t>& data, std::span<const std::int64_t> shape,
                                     std::size_t element_bytes) {
  std::vector<std::uint8_t> result(data.size());
  std::vector<std::int64_t> index(shape.size(), 0), stride(shape.size(), 1);
  for (std::size_t d = 1; d < shape.size(); ++d) stride[d] = stride[d - 1] * shape[d - 1];
  std::int64_t from = 0;  // element of `data` that index names
  for (std::size_t to = 0; to < data.size(); to += element_bytes) {
    std::memcpy(result.data() + to, data.data() + static_cast<std::size_t>(from) * element_bytes, element_bytes);
    for (std::size_t d = shape.size(); d-- > 0;) {
      from += stride[d];
      if (++index[d] < shape[d]) break;
      from -= stride[d] * shape[d];
      index[d] = 0;
    }
  }
  return result;
}

std::string_view code_of(DataType type) {
  for (const TypeCode& known : kTypes) {
    if (known.type == type) return known.code;
  }
  return "";
}

}  // namespace

std::int64_t Array::elements() const {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return count;
}

std::string Array::describe() const { return fmt::format("{} [{}]", ir::type_name(type), fmt::join(shape, ", ")); }

Result<Header> read_npy_header(std::span<const std::uint8_t> file) {
  constexpr std::size_t kMagicBytes = 6, kShortPrefix = 10, kLongPrefix = 12;
  REEF_REQUIRE(file.size() >= kShortPrefix && std::memcmp(file.data(), "\x93NUMPY", kMagicBytes) == 0,
               "this is no .npy array: it does not begin with \\x93NUMPY");
  const int version = file[6];
  REEF_REQUIRE(version >= 1 && version <= 3, "an .npy array of version {} is not known; 1 to 3 are", version);
  const std::size_t prefix = version == 1 ? kShortPrefix : kLongPrefix;
  REEF_REQUIRE(file.size() >= prefix, "the .npy array is cut off in its header");
  std::uint64_t text_bytes = 0;
  for (std::size_t i = 8; i < prefix; ++i) text_bytes |= std::uint64_t{file[i]} << (8 * (i - 8));
  REEF_REQUIRE(text_bytes <= kMaxHeaderBytes - kLongPrefix, "the .npy array's header claims {} bytes", text_bytes);
  REEF_REQUIRE(text_bytes <= file.size() - prefix, "the .npy array is cut off in its header");
  Header header;
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + prefix, text_bytes);
  REEF_RETURN_IF_ERROR(HeaderText(text).parse(header));
  header.data_at = prefix + text_bytes;
  const auto bytes = data_bytes(header.type, header.shape);
  REEF_REQUIRE(bytes.has_value(), "an array of shape [{}] is too large", fmt::join(header.shape, ", "));
  header.data_bytes = *bytes;
  return header;
}

Result<Array> read_npy(const Bytes& file) {
  REEF_ASSIGN_OR_RETURN(const Header header, read_npy_header(file.span()));
  return read_npy_elements(file, header);
}

Result<Array> read_npy_elements(const Bytes& file, const Header& header) {
  REEF_REQUIRE(file.size() >= header.data_at && file.size() - header.data_at >= header.data_bytes,
               "the .npy array is cut off: {} [{}] takes {} bytes, {} are there", ir::type_name(header.type),
               fmt::join(header.shape, ", "), header.data_bytes, file.size() - header.data_at);
  Array array{header.type, header.shape, file.slice(header.data_at, header.data_bytes)};
  const std::size_t width = swapped_bytes(header.type);
  const bool is_swapped = header.is_big_endian && width > 1;
  const bool is_reordered = header.is_fortran_order && header.shape.size() > 1;
  if (!is_swapped && !is_reordered) return array;
  std::vector<std::uint8_t> data(array.data.span().begin(), array.data.span().end());
  if (is_swapped) {
    for (std::size_t at = 0; at + width <= data.size(); at += width)
      std::reverse(data.begin() + static_cast<std::ptrdiff_t>(at),
                   data.begin() + static_cast<std::ptrdiff_t>(at + width));
  }
  if (is_reordered) data = in_c_order(data, header.shape, static_cast<std::size_t>(array.element_bytes()));
  array.data = Bytes(std::move(data));
  return array;
}

Result<Array> load_npy(const std::string& path) {
  REEF_ASSIGN_OR_RETURN(const Bytes file, read_file(path, kMaxFileBytes));
  auto array = read_npy(file);
  if (!array.ok()) return array.status().in(path);
  return array;
}

Result<std::vector<std::uint8_t>> write_npy(DataType type, std::span<const std::int64_t> shape,
                                            std::span<const std::uint8_t> data) {
  const std::string_view code = code_of(type);
  if (code.empty()) return unsupported("tensors of type {} are not written as .npy", ir::type_name(type));
  const auto bytes = data_bytes(type, shape);
  REEF_REQUIRE(bytes.has_value() && *bytes == data.size(), "{} [{}] are not {} bytes", ir::type_name(type),
               fmt::join(shape, ", "), data.size());
  const char order = ir::bits_per_element(type) == 8 ? '|' : '<';
  std::string header = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}{}), }}", order, code,
                                   fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  constexpr std::size_t kPrefixBytes = 10, kAlignment = 64;
  header.append((kAlignment - (kPrefixBytes + header.size() + 1) % kAlignment) % kAlignment, ' ');
  header += '\n';
  REEF_REQUIRE(header.size() <= 0xFFFF, "an array of rank {} is not written", shape.size());
  std::vector<std::uint8_t> file = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0};
  file.push_back(static_cast<std::uint8_t>(header.size()));
  file.push_back(static_cast<std::uint8_t>(header.size() >> 8));
  file.insert(file.end(), header.begin(), header.end());
  file.insert(file.end(), data.begin(), data.end());
  return file;
}

Status save_npy(const std::string& path, DataType type, std::span<const std::int64_t> shape,
                std::span<const std::uint8_t> data) {
  REEF_ASSIGN_OR_RETURN(const std::vector<std::uint8_t> file, write_npy(type, shape, data));
  return write_file(path, file);
}

}  // namespace reef::numpy
