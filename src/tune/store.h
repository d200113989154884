// SPDX-License-Identifier: Apache-2.0
// The results of tasks, kept in a folder: what was measured once is not measured again, by this run, by a later one or
// by one that was killed and started again.
//
// A result is found by a hash over everything it depends on: the bytes of the program, of the model and of the samples,
// and the options. Hashes of files are remembered with the file's size, time and inode, so that a large set of samples
// is read for it once. A result whose files are gone or changed counts as missing.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "base/status.h"

namespace reef::tune {

using Json = nlohmann::ordered_json;

class Store {
 public:
  // `folder` is made when something is saved.
  explicit Store(std::string folder) : folder_(std::move(folder)) {}

  // SHA-256 of the contents of files and of their names, in any order: relative to `base` where they are below it.
  // Missing files count as such. The same files elsewhere have the same hash.
  Result<std::string> hash_of_files(const std::vector<std::string>& paths, const std::string& base);
  // What all results depend on; to be set before find and save.
  void set_context(const std::string& text);
  const std::string& context() const { return context_; }

  std::optional<Json> find(const std::string& task);
  struct File {
    std::string name;  // in the folder
    std::vector<std::uint8_t> content;
  };
  // All or nothing.
  Status save(const std::string& task, Json result, std::vector<File> files);
  Result<Bytes> read(const std::string& name) const;
  // The record of a task that was done and the files of its result, named as in the folder.
  std::vector<std::string> files_of(const std::string& task);

  // The file that says that a task is done.
  std::string record_name(const std::string& task) const { return "records/" + key_of(task) + ".json"; }
  const std::string& folder() const { return folder_; }
  std::string key_of(const std::string& task) const;
  // How many tasks were done by this object, and how many different ones were found done.
  int saved() const { return saved_; }
  int found() const { return static_cast<int>(found_.size()); }

 private:
  Result<std::string> hash_of(const std::string& path);
  std::optional<Json> record_of(const std::string& task);
  void load_memo();
  void save_memo();

  std::string folder_, context_;
  std::optional<std::map<std::string, std::string>> memo_;  // size, time and place of a file -> its hash
  bool memo_changed_ = false;
  int saved_ = 0;
  std::map<std::string, Json> found_, made_;
};

// The program or library that this code is part of.
Result<std::string> program_file();

}  // namespace reef::tune
