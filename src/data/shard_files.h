// SPDX-License-Identifier: Apache-2.0
// What --data names: a folder, an array, or a set in several files ("shards").
//
//   shards                           a folder that holds nothing but shards, sorted by name
//   a.tar,b.tar                      several files with commas between them
//   shards/*.tar, s/{000..009}.tar   patterns, as shells and WebDataset write them; * and ? in the last part of the
//   path x.tfrecord.gz                    packed with gzip: unpacked into memory when it is opened
//
// What a file is, is seen from its first bytes, not from its name.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/budget.h"
#include "base/random_file.h"
#include "base/status.h"

namespace reef::data {

struct SampleFiles {
  enum class Kind { kFolder, kArrays, kRecords, kTar };
  Kind kind = Kind::kArrays;
  std::vector<std::string> files;  // of kRecords and kTar, in order
};
// An error if something is not there, or the files are of several kinds.
Result<SampleFiles> find_sample_files(const std::string& path);

// Whether a name is one that shards have (.tar, .tgz, .tfrecord, .tfrecord-00000-of-00010, ...): for words that a shell
// made of a pattern.
bool is_shard_name(std::string_view name);
bool is_picture_name(std::string_view name);  // by its ending
// Whether bytes begin as an encoded picture does.
bool begins_as_picture(std::span<const std::uint8_t> start);

// Opens a shard, unpacked if it is packed; what that takes is counted into `memory`.
Result<std::shared_ptr<const RandomFile>> open_shard(const std::string& path, const Budget& budget,
                                                     BudgetedBytes& memory);

}  // namespace reef::data
