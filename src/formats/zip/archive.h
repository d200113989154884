// SPDX-License-Identifier: Apache-2.0
// ZIP archives: reading members by name, stored or deflated, 64-bit sizes included; writing whole archives.
//
// The bytes are foreign: every place and size is checked against the file, a member is never unpacked to more than its
// directory entry says, and no entry may claim more than deflate can make of its packed bytes, so that memory is
// bounded by about a thousand times the file. Checksums are verified. Encrypted members and archives in several volumes
// are refused.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"

namespace reef::zip {

struct Member {
  std::string name;
  int method = 0;  // 0 stored, 8 deflated
  std::uint32_t checksum = 0;
  std::uint64_t packed_bytes = 0;
  std::uint64_t bytes = 0;
  std::uint64_t header_at = 0;  // place of its local header in the file
};

class Archive {
 public:
  // Reads the directory. `file` stays alive with the archive and with stored members.
  static Result<Archive> open(Bytes file);

  const std::vector<Member>& members() const { return members_; }  // as the directory lists them
  const Member* find(const std::string& name) const;               // null: there is none

  // A stored member is a slice of the file, a deflated one is unpacked.
  Result<Bytes> read(const Member& member) const;
  // Its first bytes, at most `most`; the checksum is not verified.
  Result<Bytes> read_start(const Member& member, std::uint64_t most) const;

 private:
  Result<Bytes> packed(const Member& member) const;

  Bytes file_;
  std::vector<Member> members_;
};

struct NewMember {
  std::string name;
  std::span<const std::uint8_t> data;
};

// An archive of these members, deflated or stored. Same members, same bytes: no dates. Refuses what needs 64-bit sizes.
Result<std::vector<std::uint8_t>> write_archive(std::span<const NewMember> members, bool deflate);

}  // namespace reef::zip
