// SPDX-License-Identifier: Apache-2.0
#include "npy.h"

#include <fmt/ranges.h>

#include "base/file.h"

namespace reef::app {
namespace {

std::string_view type_code(ir::DataType type) {
  switch (type) {
    case ir::DataType::kUInt8:
      return "|u1";
    case ir::DataType::kInt8:
      return "|i1";
    case ir::DataType::kUInt16:
      return "<u2";
    case ir::DataType::kInt16:
      return "<i2";
    case ir::DataType::kUInt32:
      return "<u4";
    case ir::DataType::kInt32:
      return "<i4";
    case ir::DataType::kFloat32:
      return "<f4";
    case ir::DataType::kInt64:
      return "<i8";
    default:
      return "";
  }
}

}  // namespace

Status write_npy(const std::string& path, ir::DataType type, const std::vector<std::int64_t>& shape,
                 std::span<const std::uint8_t> data) {
  const std::string_view code = type_code(type);
  if (code.empty()) return unsupported("tensors of type {} are not written as .npy", ir::type_name(type));
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}", code,
                                   fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  constexpr std::size_t kPrefixBytes = 10, kAlignment = 64;
  header.append(kAlignment - (kPrefixBytes + header.size() + 1) % kAlignment, ' ');
  header += '\n';
  std::vector<std::uint8_t> file = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0};
  file.push_back(static_cast<std::uint8_t>(header.size()));
  file.push_back(static_cast<std::uint8_t>(header.size() >> 8));
  file.insert(file.end(), header.begin(), header.end());
  file.insert(file.end(), data.begin(), data.end());
  return write_file(path, file);
}

}  // namespace reef::app
