// SPDX-License-Identifier: Apache-2.0
#include "formats/numpy/npz.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "base/file.h"

namespace reef::numpy {
namespace {

constexpr std::uint64_t kMaxArchiveBytes = std::uint64_t{1} << 36;
constexpr std::string_view kEnding = ".npy";

}  // namespace

Result<Npz> Npz::open(const Bytes& file) {
  Npz npz;
  REEF_ASSIGN_OR_RETURN(npz.archive_, zip::Archive::open(file));
  for (const zip::Member& member : npz.archive_.members()) {
    if (member.name.ends_with(kEnding))
      npz.names_.push_back(member.name.substr(0, member.name.size() - kEnding.size()));
  }
  return npz;
}

Result<Npz> Npz::load(const std::string& path) {
  REEF_ASSIGN_OR_RETURN(const Bytes file, read_file(path, kMaxArchiveBytes));
  auto npz = open(file);
  if (!npz.ok()) return npz.status().in(path);
  return npz;
}

bool Npz::has(const std::string& name) const { return std::find(names_.begin(), names_.end(), name) != names_.end(); }

Result<const zip::Member*> Npz::member(const std::string& name) const {
  const zip::Member* found = archive_.find(name + std::string(kEnding));
  REEF_REQUIRE(found != nullptr, "there is no array '{}'; there are: {}", name, fmt::join(names_, ", "));
  return found;
}

Result<Header> Npz::header(const std::string& name) const {
  REEF_ASSIGN_OR_RETURN(const zip::Member* found, member(name));
  REEF_ASSIGN_OR_RETURN(const Bytes start, archive_.read_start(*found, kMaxHeaderBytes));
  auto header = read_npy_header(start.span());
  if (!header.ok()) return header.status().in(fmt::format("array '{}'", name));
  return header;
}

Result<Array> Npz::read(const std::string& name) const {
  BudgetedBytes nothing;
  return read_rows(name, -1, {}, nothing);
}

Result<Array> Npz::read_rows(const std::string& name, std::int64_t rows, const Budget& budget,
                             BudgetedBytes& memory) const {
  const std::string place = fmt::format("array '{}'", name);
  REEF_ASSIGN_OR_RETURN(const zip::Member* found, member(name));
  REEF_ASSIGN_OR_RETURN(const Header head, header(name));
  if (head.data_at > found->bytes || head.data_bytes > found->bytes - head.data_at) {
    return invalid_input("{}: the .npy array is cut off: {} [{}] takes {} bytes, {} are there", place,
                         ir::type_name(head.type), fmt::join(head.shape, ", "), head.data_bytes,
                         found->bytes - std::min(head.data_at, found->bytes));
  }
  // In Fortran order the first rows are everywhere.
  const bool is_cut = rows >= 0 && !head.shape.empty() && rows < head.shape[0] && !head.is_fortran_order;
  const std::uint64_t wanted =
      is_cut ? head.data_bytes / static_cast<std::uint64_t>(head.shape[0]) * static_cast<std::uint64_t>(rows)
             : head.data_bytes;
  const bool is_copied_again = head.is_big_endian || head.is_fortran_order;
  REEF_RETURN_IF_ERROR(memory.take(budget, static_cast<std::int64_t>(wanted) * (is_copied_again ? 2 : 1), place));
  if (!is_cut) {
    REEF_ASSIGN_OR_RETURN(const Bytes file, archive_.read(*found));
    auto array = read_npy(file);
    if (!array.ok()) return array.status().in(place);
    return array;
  }
  REEF_ASSIGN_OR_RETURN(const Bytes start, archive_.read_start(*found, head.data_at + wanted));
  Header cut = head;
  cut.shape[0] = rows;
  cut.data_bytes = wanted;
  auto array = read_npy_elements(start, cut);
  if (!array.ok()) return array.status().in(place);
  return array;
}

Result<std::vector<std::uint8_t>> write_npz(std::span<const NamedArray> arrays, bool deflate) {
  std::vector<std::vector<std::uint8_t>> files;
  std::vector<zip::NewMember> members;
  files.reserve(arrays.size());
  for (const NamedArray& named : arrays) {
    auto file = write_npy(named.array.type, named.array.shape, named.array.data.span());
    if (!file.ok()) return file.status().in(fmt::format("array '{}'", named.name));
    files.push_back(std::move(*file));
    members.push_back({named.name + std::string(kEnding), files.back()});
  }
  return zip::write_archive(members, deflate);
}

}  // namespace reef::numpy
