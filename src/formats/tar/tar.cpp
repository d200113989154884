// SPDX-License-Identifier: Apache-2.0
#include "formats/tar/tar.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <span>
#include <string_view>

namespace reef::tar {
namespace {

constexpr std::uint64_t kBlock = 512;
constexpr std::uint64_t kMostNameBytes = 1 << 16;    // of GNU's long names
constexpr std::uint64_t kMostRecordBytes = 1 << 20;  // of a pax header
using Header = std::array<std::uint8_t, kBlock>;

// Places in a header (POSIX.1-1988, ustar).
constexpr std::size_t kName = 0, kSize = 124, kChecksum = 148, kType = 156, kLink = 157, kMagic = 257, kPrefix = 345;

std::string_view text(const Header& header, std::size_t at, std::size_t most) {
  const std::string_view field(reinterpret_cast<const char*>(header.data()) + at, most);
  return field.substr(0, std::min(field.find('\0'), most));
}

// Octal digits, or, with the first bit set, a binary number (GNU).
std::optional<std::uint64_t> number(std::span<const std::uint8_t> field) {
  std::uint64_t value = 0;
  if ((field[0] & 0x80) != 0) {
    if ((field[0] & 0x7f) != 0) return std::nullopt;
    for (const std::uint8_t byte : field.subspan(1)) {
      if (value >> 56 != 0) return std::nullopt;
      value = value << 8 | byte;
    }
    return value;
  }
  bool has_ended = false;
  for (const std::uint8_t byte : field) {
    if (byte == ' ' || byte == 0) {
      has_ended = has_ended || value != 0 || byte == 0;
      continue;
    }
    if (has_ended || byte < '0' || byte > '7') return std::nullopt;
    value = value * 8 + (byte - '0');
  }
  return value;
}

// The sum of all bytes with the field itself as spaces; old programs added signed bytes.
bool has_right_checksum(const Header& header) {
  const auto wanted = number(std::span(header).subspan(kChecksum, 8));
  std::int64_t plain = 0, with_signs = 0;
  for (std::size_t i = 0; i < header.size(); ++i) {
    const std::uint8_t byte = i >= kChecksum && i < kChecksum + 8 ? ' ' : header[i];
    plain += byte;
    with_signs += static_cast<std::int8_t>(byte);
  }
  return wanted && (static_cast<std::int64_t>(*wanted) == plain || static_cast<std::int64_t>(*wanted) == with_signs);
}

bool is_empty(const Header& header) {
  return std::all_of(header.begin(), header.end(), [](std::uint8_t byte) { return byte == 0; });
}

// What pax and GNU headers say of the member behind them.
struct Said {
  std::optional<std::string> name, link;
  std::optional<std::uint64_t> size;
};

// Records "LENGTH KEY=VALUE\n".
Status read_pax(std::string_view records, Said& said) {
  while (!records.empty() && records[0] != '\0') {
    std::size_t length = 0;
    const auto [end, error] = std::from_chars(records.data(), records.data() + records.size(), length);
    const auto digits = static_cast<std::size_t>(end - records.data());
    REEF_REQUIRE(error == std::errc() && length > digits + 1 && length <= records.size() && *end == ' ' &&
                     records[length - 1] == '\n',
                 "a pax header is damaged");
    const std::string_view record = records.substr(digits + 1, length - digits - 2);
    const std::size_t equals = record.find('=');
    REEF_REQUIRE(equals != std::string_view::npos, "a pax header is damaged");
    const std::string_view key = record.substr(0, equals), value = record.substr(equals + 1);
    REEF_REQUIRE(!key.starts_with("GNU.sparse"),
                 "it has a sparse file, which Reef does not read; make it anew with "
                 "plain files");
    if (key == "path") said.name = std::string(value);
    if (key == "linkpath") said.link = std::string(value);
    if (key == "size") {
      std::uint64_t size = 0;
      const auto [stop, problem] = std::from_chars(value.data(), value.data() + value.size(), size);
      REEF_REQUIRE(problem == std::errc() && stop == value.data() + value.size(), "a pax header gives no size: '{}'",
                   value);
      said.size = size;
    }
    records.remove_prefix(length);
  }
  return ok_status();
}

std::string name_of(const Header& header, const Said& said) {
  if (said.name) return *said.name;
  std::string name(text(header, kName, 100));
  const std::string_view prefix = text(header, kPrefix, 155);
  // GNU's own headers ("ustar  ") have times where ustar has the prefix.
  const std::string_view magic(reinterpret_cast<const char*>(header.data()) + kMagic, 6);
  if (magic == std::string_view("ustar\0", 6) && !prefix.empty()) name = std::string(prefix) + "/" + name;
  return name;
}

// "./a/b" is "a/b". An error for names that lead out of the archive.
Result<std::string> inner_name(std::string name) {
  while (name.starts_with("./")) name.erase(0, 2);
  bool leads_out = name.starts_with('/');
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t slash = std::min(name.find('/', at), name.size());
    leads_out = leads_out || std::string_view(name).substr(at, slash - at) == "..";
    at = slash + 1;
  }
  REEF_REQUIRE(!leads_out, "member '{}' leads out of the archive; nothing is read from it", name);
  return name;
}

std::string_view kind_of(char type) {
  switch (type) {
    case '2':
      return "a symbolic link";
    case '3':
    case '4':
      return "a device";
    case '6':
      return "a FIFO";
    case 'S':
      return "a sparse file";
    default:
      return "of a kind that Reef does not know";
  }
}

class Reader {
 public:
  Reader(const RandomFile& file, const Budget& budget) : file_(file), budget_(budget) {}

  Result<Index> read() {
    Index index;
    for (std::int64_t turn = 0; at_ + kBlock <= file_.size(); ++turn) {
      if (turn % 4096 == 0) REEF_RETURN_IF_ERROR(budget_.check("reading the archive's headers"));
      Header header{};
      REEF_RETURN_IF_ERROR(file_.read_at(at_, header));
      if (is_empty(header)) return index;
      REEF_REQUIRE(has_right_checksum(header), "{}",
                   at_ == 0 ? std::string("it is no tar archive")
                            : fmt::format("the header at byte {} is damaged: its checksum is another", at_));
      REEF_RETURN_IF_ERROR(take(header, index));
    }
    REEF_REQUIRE(at_ > 0, "it is no tar archive: {} bytes are too few", file_.size());
    REEF_REQUIRE(at_ >= file_.size(), "it is cut off within the header at byte {}", at_);
    index.has_end = false;
    return index;
  }

 private:
  Status take(const Header& header, Index& index) {
    const char type = static_cast<char>(header[kType]);
    const auto own_size = number(std::span(header).subspan(kSize, 12));
    const bool is_extension = type == 'L' || type == 'K' || type == 'x' || type == 'g' || type == 'X';
    const std::string name = is_extension ? "" : name_of(header, said_);
    REEF_REQUIRE(own_size.has_value(), "the size of member '{}' at byte {} cannot be read", name, at_);
    std::uint64_t size = is_extension ? *own_size : said_.size.value_or(*own_size);
    if (type == '1' || type == '2' || type == '5') size = 0;  // links and folders have no content
    const std::uint64_t content = at_ + kBlock;
    REEF_REQUIRE(size <= file_.size() - content, "it is cut off: member '{}' has {} bytes from byte {} on, the file {}",
                 name, size, content, file_.size());
    at_ = content + (size + kBlock - 1) / kBlock * kBlock;
    if (is_extension) return take_extension(type, content, size);
    const Said said = std::exchange(said_, {});
    if (type == '5' || (type == '\0' && name.ends_with('/'))) return ok_status();
    REEF_ASSIGN_OR_RETURN(const std::string inner, inner_name(name));
    REEF_REQUIRE(!inner.empty() && inner.find('\0') == std::string::npos, "a member at byte {} has no name",
                 content - kBlock);
    if (type == '0' || type == '\0' || type == '7') {
      places_[inner] = index.members.size();
      index.members.push_back({inner, content, size});
      return ok_status();
    }
    REEF_REQUIRE(type == '1', "member '{}' is {}; an archive of samples has files only", inner, kind_of(type));
    const std::string target = said.link.value_or(std::string(text(header, kLink, 100)));
    REEF_ASSIGN_OR_RETURN(const std::string inner_target, inner_name(target));
    const auto found = places_.find(inner_target);
    REEF_REQUIRE(found != places_.end(), "member '{}' is a link to '{}', which is not in the archive before it", inner,
                 target);
    Member linked = index.members[found->second];
    linked.name = inner;
    index.members.push_back(std::move(linked));
    return ok_status();
  }

  Status take_extension(char type, std::uint64_t content, std::uint64_t size) {
    const bool is_name = type == 'L' || type == 'K';
    REEF_REQUIRE(size <= (is_name ? kMostNameBytes : kMostRecordBytes),
                 "the header at byte {} has {} bytes; no real name or pax header is so long", content - kBlock, size);
    if (type == 'g') return ok_status();  // of all members: dates, comments
    REEF_ASSIGN_OR_RETURN(const Bytes bytes, file_.read(content, size));
    const std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (!is_name) return read_pax(all, said_);
    (type == 'L' ? said_.name : said_.link) = std::string(all.substr(0, std::min(all.find('\0'), all.size())));
    return ok_status();
  }

  const RandomFile& file_;
  const Budget& budget_;
  std::uint64_t at_ = 0;  // of the next header
  Said said_;
  std::map<std::string, std::size_t, std::less<>> places_;  // for hard links
};

}  // namespace

Result<Index> read_index(const RandomFile& file, const Budget& budget) {
  auto index = Reader(file, budget).read();
  if (!index.ok()) return index.status().in(fmt::format("'{}'", file.path()));
  return index;
}

}  // namespace reef::tar
