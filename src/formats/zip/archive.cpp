// SPDX-License-Identifier: Apache-2.0
#include "formats/zip/archive.h"

#include <algorithm>
#include <limits>

#include <zlib.h>

namespace reef::zip {
namespace {

constexpr int kStored = 0, kDeflated = 8;
constexpr std::uint64_t kLocalHeaderBytes = 30, kEntryBytes = 46, kEndBytes = 22, kEnd64Bytes = 56,
                        kLocator64Bytes = 20;
constexpr std::uint64_t kLocalHeader = 0x04034b50, kEntry = 0x02014b50, kEnd = 0x06054b50, kEnd64 = 0x06064b50,
                        kLocator64 = 0x07064b50;
constexpr std::uint64_t kIn64 = 0xFFFFFFFF;  // the number is in the 64-bit field
constexpr std::uint64_t kMaxCommentBytes = 65535;
constexpr std::uint64_t kMaxInflation = 1040;  // deflate's limit is 1032
constexpr std::uint64_t kEncrypted = 1;        // bit of an entry's flags

// Little-endian number of `size` bytes. The caller has checked the range.
std::uint64_t number(const Bytes& file, std::uint64_t at, int size) {
  std::uint64_t value = 0;
  for (int i = 0; i < size; ++i) value |= std::uint64_t{file.data()[at + static_cast<std::uint64_t>(i)]} << (8 * i);
  return value;
}

bool holds(const Bytes& file, std::uint64_t at, std::uint64_t bytes) {
  return at <= file.size() && bytes <= file.size() - at;
}

struct Directory {
  std::uint64_t at = 0, bytes = 0, entries = 0;
};

Result<Directory> directory_in_64(const Bytes& file, std::uint64_t end) {
  REEF_REQUIRE(end >= kLocator64Bytes && number(file, end - kLocator64Bytes, 4) == kLocator64,
               "the zip archive's directory is out of place");
  const std::uint64_t at = number(file, end - kLocator64Bytes + 8, 8);
  REEF_REQUIRE(holds(file, at, kEnd64Bytes) && number(file, at, 4) == kEnd64,
               "the zip archive's 64-bit end record at byte {} is missing", at);
  return Directory{number(file, at + 48, 8), number(file, at + 40, 8), number(file, at + 32, 8)};
}

Result<Directory> find_directory(const Bytes& file) {
  REEF_REQUIRE(file.size() >= kEndBytes, "this is no zip archive: {} bytes are too few", file.size());
  const std::uint64_t last = file.size() - kEndBytes;
  const std::uint64_t first = last > kMaxCommentBytes ? last - kMaxCommentBytes : 0;
  for (std::uint64_t at = last + 1; at-- > first;) {
    if (number(file, at, 4) != kEnd) continue;
    const Directory directory{number(file, at + 16, 4), number(file, at + 12, 4), number(file, at + 10, 2)};
    if (directory.at == kIn64 || directory.bytes == kIn64 || directory.entries == 0xFFFF)
      return directory_in_64(file, at);
    return directory;
  }
  return invalid_input("this is no zip archive, or it is cut off: it has no end record");
}

// Sizes and places that do not fit into 32 bits stand in an extra field, in this order, only those that are needed.
Status read_64_bit_fields(const Bytes& file, std::uint64_t at, std::uint64_t bytes, Member& member) {
  constexpr std::uint64_t kTag = 1;
  const std::uint64_t end = at + bytes;
  while (at + 4 <= end) {
    const std::uint64_t tag = number(file, at, 2), size = number(file, at + 2, 2);
    at += 4;
    if (size > end - at) break;
    if (tag == kTag) {
      const std::uint64_t field_end = at + size;
      for (std::uint64_t* value : {&member.bytes, &member.packed_bytes, &member.header_at}) {
        if (*value != kIn64) continue;
        REEF_REQUIRE(at + 8 <= field_end, "the zip entry of '{}' lacks its 64-bit sizes", member.name);
        *value = number(file, at, 8);
        at += 8;
      }
      return ok_status();
    }
    at += size;
  }
  return ok_status();
}

// Unpacks at most `most` bytes; fewer only where the data end.
Result<std::vector<std::uint8_t>> inflated(std::span<const std::uint8_t> packed, std::uint64_t most) {
  std::vector<std::uint8_t> result(most);
  z_stream stream{};
  constexpr int kRawDeflate = -15;
  if (inflateInit2(&stream, kRawDeflate) != Z_OK) return make_error(StatusCode::kResourceExhausted, "zlib: no memory");
  std::uint64_t in = 0, out = 0;
  int state = Z_OK;
  while (state == Z_OK && out < most) {
    constexpr std::uint64_t kPiece = std::uint64_t{1} << 30;
    const std::uint64_t give = std::min(kPiece, packed.size() - in), take = std::min(kPiece, most - out);
    stream.next_in = const_cast<Bytef*>(packed.data() + in);
    stream.avail_in = static_cast<uInt>(give);
    stream.next_out = result.data() + out;
    stream.avail_out = static_cast<uInt>(take);
    state = inflate(&stream, Z_NO_FLUSH);
    in += give - stream.avail_in;
    out += take - stream.avail_out;
  }
  inflateEnd(&stream);
  REEF_REQUIRE(state == Z_OK || state == Z_STREAM_END, "the packed data are damaged near their byte {}", in);
  result.resize(out);
  return result;
}

void append(std::vector<std::uint8_t>& file, std::uint64_t value, int size) {
  for (int i = 0; i < size; ++i) file.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
}

// Appends the part that local header and directory entry share: flags to the lengths of name and extra field.
void append_description(std::vector<std::uint8_t>& file, const Member& member) {
  constexpr std::uint64_t kDateOf1980 = (1 << 5) | 1;
  append(file, 0, 2);
  append(file, static_cast<std::uint64_t>(member.method), 2);
  append(file, 0, 2);
  append(file, kDateOf1980, 2);
  append(file, member.checksum, 4);
  append(file, member.packed_bytes, 4);
  append(file, member.bytes, 4);
  append(file, member.name.size(), 2);
  append(file, 0, 2);
}

Result<std::vector<std::uint8_t>> deflated(std::span<const std::uint8_t> data) {
  z_stream stream{};
  constexpr int kRawDeflate = -15, kMemoryLevel = 8;
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kRawDeflate, kMemoryLevel, Z_DEFAULT_STRATEGY) != Z_OK)
    return make_error(StatusCode::kResourceExhausted, "zlib: no memory");
  std::vector<std::uint8_t> result(deflateBound(&stream, data.size()));
  stream.next_in = const_cast<Bytef*>(data.data());
  stream.avail_in = static_cast<uInt>(data.size());
  stream.next_out = result.data();
  stream.avail_out = static_cast<uInt>(result.size());
  const int state = deflate(&stream, Z_FINISH);
  result.resize(result.size() - stream.avail_out);
  deflateEnd(&stream);
  if (state != Z_STREAM_END) return internal_error("zlib could not deflate {} bytes", data.size());
  return result;
}

std::uint32_t checksum_of(std::span<const std::uint8_t> data) {
  return static_cast<std::uint32_t>(crc32_z(0, data.data(), data.size()));
}

}  // namespace

Result<Archive> Archive::open(Bytes file) {
  Archive archive;
  archive.file_ = std::move(file);
  const Bytes& bytes = archive.file_;
  REEF_ASSIGN_OR_RETURN(const Directory directory, find_directory(bytes));
  REEF_REQUIRE(holds(bytes, directory.at, directory.bytes), "the zip archive is cut off: its directory is at byte {}",
               directory.at);
  std::uint64_t at = directory.at;
  for (std::uint64_t i = 0; i < directory.entries; ++i) {
    REEF_REQUIRE(holds(bytes, at, kEntryBytes) && number(bytes, at, 4) == kEntry,
                 "entry {} of the zip archive's directory, at byte {}, is damaged", i, at);
    const std::uint64_t name_bytes = number(bytes, at + 28, 2), extra_bytes = number(bytes, at + 30, 2),
                        comment_bytes = number(bytes, at + 32, 2);
    REEF_REQUIRE(holds(bytes, at + kEntryBytes, name_bytes + extra_bytes + comment_bytes),
                 "entry {} of the zip archive's directory is cut off", i);
    Member member;
    member.name.assign(reinterpret_cast<const char*>(bytes.data()) + at + kEntryBytes, name_bytes);
    REEF_REQUIRE((number(bytes, at + 8, 2) & kEncrypted) == 0, "'{}' in the zip archive is encrypted", member.name);
    member.method = static_cast<int>(number(bytes, at + 10, 2));
    member.checksum = static_cast<std::uint32_t>(number(bytes, at + 16, 4));
    member.packed_bytes = number(bytes, at + 20, 4);
    member.bytes = number(bytes, at + 24, 4);
    member.header_at = number(bytes, at + 42, 4);
    REEF_RETURN_IF_ERROR(read_64_bit_fields(bytes, at + kEntryBytes + name_bytes, extra_bytes, member));
    archive.members_.push_back(std::move(member));
    at += kEntryBytes + name_bytes + extra_bytes + comment_bytes;
  }
  return archive;
}

const Member* Archive::find(const std::string& name) const {
  const auto found = std::find_if(members_.begin(), members_.end(), [&](const Member& m) { return m.name == name; });
  return found == members_.end() ? nullptr : &*found;
}

Result<Bytes> Archive::packed(const Member& member) const {
  REEF_REQUIRE(member.method == kStored || member.method == kDeflated,
               "'{}' is packed by method {}; only stored and deflated members are read", member.name, member.method);
  REEF_REQUIRE(holds(file_, member.header_at, kLocalHeaderBytes) && number(file_, member.header_at, 4) == kLocalHeader,
               "the zip archive has no header for '{}' at byte {}", member.name, member.header_at);
  const std::uint64_t begin = member.header_at + kLocalHeaderBytes + number(file_, member.header_at + 26, 2) +
                              number(file_, member.header_at + 28, 2);
  REEF_REQUIRE(holds(file_, begin, member.packed_bytes), "the zip archive is cut off within '{}'", member.name);
  if (member.method == kStored) {
    REEF_REQUIRE(member.bytes == member.packed_bytes, "'{}' is stored, but of two sizes: {} and {}", member.name,
                 member.bytes, member.packed_bytes);
  } else {
    REEF_REQUIRE(member.bytes / kMaxInflation <= member.packed_bytes, "'{}' claims {} bytes out of {}: not possible",
                 member.name, member.bytes, member.packed_bytes);
  }
  return file_.slice(begin, member.packed_bytes);
}

Result<Bytes> Archive::read(const Member& member) const {
  REEF_ASSIGN_OR_RETURN(Bytes data, packed(member));
  if (member.method == kDeflated) {
    auto unpacked = inflated(data.span(), member.bytes);
    if (!unpacked.ok()) return unpacked.status().in(fmt::format("'{}'", member.name));
    data = Bytes(std::move(*unpacked));
  }
  REEF_REQUIRE(data.size() == member.bytes, "'{}' unpacks to {} bytes instead of {}", member.name, data.size(),
               member.bytes);
  REEF_REQUIRE(checksum_of(data.span()) == member.checksum, "'{}' in the zip archive is damaged: wrong checksum",
               member.name);
  return data;
}

Result<Bytes> Archive::read_start(const Member& member, std::uint64_t most) const {
  REEF_ASSIGN_OR_RETURN(const Bytes data, packed(member));
  const std::uint64_t wanted = std::min(most, member.bytes);
  if (member.method == kStored) return data.slice(0, wanted);
  auto unpacked = inflated(data.span(), wanted);
  if (!unpacked.ok()) return unpacked.status().in(fmt::format("'{}'", member.name));
  return Bytes(std::move(*unpacked));
}

Result<std::vector<std::uint8_t>> write_archive(std::span<const NewMember> members, bool deflate) {
  constexpr std::uint64_t kLimit = std::numeric_limits<std::uint32_t>::max();
  REEF_REQUIRE(members.size() < 0xFFFF, "a zip archive of {} members needs 64-bit sizes, which are not written",
               members.size());
  std::vector<std::uint8_t> file;
  std::vector<Member> written;
  for (const NewMember& source : members) {
    REEF_REQUIRE(source.name.size() <= 0xFFFF && source.data.size() < kLimit / 2 && file.size() < kLimit / 2,
                 "'{}' makes the zip archive too large: 64-bit sizes are not written", source.name);
    std::vector<std::uint8_t> unpacked_less;
    std::span<const std::uint8_t> data = source.data;
    if (deflate) {
      REEF_ASSIGN_OR_RETURN(unpacked_less, deflated(source.data));
      data = unpacked_less;
    }
    Member& member = written.emplace_back();
    member = {source.name, deflate ? kDeflated : kStored, checksum_of(source.data), data.size(), source.data.size(),
              file.size()};
    constexpr int kVersionNeeded = 20;
    append(file, kLocalHeader, 4);
    append(file, kVersionNeeded, 2);
    append_description(file, member);
    file.insert(file.end(), member.name.begin(), member.name.end());
    file.insert(file.end(), data.begin(), data.end());
  }
  const std::uint64_t directory = file.size();
  for (const Member& member : written) {
    append(file, kEntry, 4);
    append(file, 20, 2);
    append(file, 20, 2);
    append_description(file, member);
    append(file, 0, 2);  // comment
    append(file, 0, 2);  // volume
    append(file, 0, 2);  // attributes
    append(file, 0, 4);
    append(file, member.header_at, 4);
    file.insert(file.end(), member.name.begin(), member.name.end());
  }
  const std::uint64_t directory_bytes = file.size() - directory;
  append(file, kEnd, 4);
  append(file, 0, 4);
  append(file, written.size(), 2);
  append(file, written.size(), 2);
  append(file, directory_bytes, 4);
  append(file, directory, 4);
  append(file, 0, 2);
  return file;
}

}  // namespace reef::zip
