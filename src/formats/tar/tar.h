// SPDX-License-Identifier: Apache-2.0
// The members of a tar archive, by name and place: what WebDataset's shards are. Contents are not read.
//
// Read: ustar, GNU's long names and large sizes, pax names and sizes, hard links to members before. The bytes are
// foreign, and nothing is ever unpacked to a disk; still, names that lead out of the archive, symbolic links, devices
// and sparse files are refused, as whoever made them had something else in mind than samples. Every header's checksum
// is verified, every size is compared with the file's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/budget.h"
#include "base/random_file.h"
#include "base/status.h"

namespace reef::tar {

struct Member {
  std::string name;
  std::uint64_t at = 0, bytes = 0;  // of its content, in the file
};

struct Index {
  std::vector<Member> members;  // files, in the order of the archive
  bool has_end = true;          // the two empty blocks are there; else the archive was cut off or never closed
};

Result<Index> read_index(const RandomFile& file, const Budget& budget = {});

}  // namespace reef::tar
