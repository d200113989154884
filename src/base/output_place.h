// SPDX-License-Identifier: Apache-2.0
// Where a file that is about to be written really lies, and whether it may be written.
//
// Reef replaces regular files and makes new ones, nothing else: devices, FIFOs, sockets and folders are refused. A
// symbolic link is followed, as a shell's ">" follows it: the file it leads to is replaced (or made) in that file's own
// folder, and the link stays. Links in a folder like /tmp that belong to somebody else are not followed, which is the
// rule of Linux' protected_symlinks. A file that nobody may write (mode 0444) is protected on purpose and is refused,
// for root too.
#pragma once

#include <compare>
#include <memory>
#include <span>
#include <string>

#include <sys/stat.h>
#include <sys/types.h>

#include "base/file_descriptor.h"
#include "base/status.h"

namespace reef {

// The same for all names of one file: hard links, symbolic links, other spellings of the path.
struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  auto operator<=>(const FileIdentity&) const = default;
};

struct OutputPlace {
  std::shared_ptr<const FileDescriptor> folder;  // for openat and its relatives
  FileIdentity folder_identity;
  std::string name;  // in that folder, not a link
  bool exists = false;
  struct stat info {};  // if it exists

  FileIdentity identity() const { return {info.st_dev, info.st_ino}; }
  // Two names for what will be one file.
  bool is_same(const OutputPlace& other) const {
    if (folder_identity == other.folder_identity && name == other.name) return true;
    return exists && other.exists && identity() == other.identity();
  }
};

// An error if nothing may be written there; it names the path and says what to do.
Result<OutputPlace> find_output_place(const std::string& path);

// Every command calls this before it begins to work. It checks that all `outputs` may be written, each to a file of its
// own, and that none of them is one of `inputs` under another name. Empty names count as not given. Inputs that do not
// exist are left to whoever reads them; inputs that are folders stand for no file.
Status check_outputs(std::span<const std::string> outputs, std::span<const std::string> inputs);

// A folder for results, which is made when there are some: it exists and may be written to, or it can be made.
Status check_output_folder(const std::string& path);

}  // namespace reef
