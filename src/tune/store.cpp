// SPDX-License-Identifier: Apache-2.0
#include "tune/store.h"

#include <dlfcn.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "base/file.h"
#include "base/sha256.h"

namespace reef::tune {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 34;
constexpr std::uint64_t kMostRecordBytes = std::uint64_t{1} << 28;
constexpr std::size_t kKeyLength = 20;  // hexadecimal digits of a SHA-256: 80 bits

std::string hash_of_text(const std::string& text) { return sha256_hex(bytes_of(text)); }

// What changes when a file's content does: its place, size and time of change.
std::string state_of(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return "";
  return fmt::format("{}:{}:{}:{}.{:09}:{}.{:09}", info.st_dev, info.st_ino, info.st_size, info.st_mtim.tv_sec,
                     info.st_mtim.tv_nsec, info.st_ctim.tv_sec, info.st_ctim.tv_nsec);
}

}  // namespace

void Store::load_memo() {
  if (memo_) return;
  memo_.emplace();
  const auto file = read_file(folder_ + "/records/hashes.json", kMostRecordBytes);
  if (!file.ok()) return;
  const Json json = Json::parse(file->span().begin(), file->span().end(), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return;
  for (const auto& [state, hash] : json.items()) {
    if (hash.is_string()) (*memo_)[state] = hash.get<std::string>();
  }
}

void Store::save_memo() {
  std::error_code error;
  // Only a shortcut: where it cannot be written, files are read again. Nothing is made before there is a result.
  if (!memo_changed_ || !fs::is_directory(folder_ + "/records", error)) return;
  if (write_file(folder_ + "/records/hashes.json", Json(*memo_).dump(1)).ok()) memo_changed_ = false;
}

Result<std::string> Store::hash_of(const std::string& path) {
  load_memo();
  const std::string state = state_of(path);
  if (state.empty()) return std::string("missing");
  if (const auto found = memo_->find(state); found != memo_->end()) return found->second;
  REEF_ASSIGN_OR_RETURN(const Bytes file, read_file(path, kMostBytes));
  std::string hash = sha256_hex(file.span());
  (*memo_)[state] = hash;
  memo_changed_ = true;
  return hash;
}

Result<std::string> Store::hash_of_files(const std::vector<std::string>& paths, const std::string& base) {
  std::string all;
  std::error_code error;
  for (const std::string& path : paths) {
    if (path.empty() || fs::is_directory(path, error)) continue;
    REEF_ASSIGN_OR_RETURN(const std::string hash, hash_of(path));
    const fs::path name = base.empty() ? fs::path(path).filename() : fs::path(path).lexically_relative(base);
    all += fmt::format("{} {}\n", hash, name.generic_string());
  }
  save_memo();
  return hash_of_text(all);
}

void Store::set_context(const std::string& text) { context_ = hash_of_text(text); }

std::string Store::key_of(const std::string& task) const {
  return hash_of_text(context_ + "\n" + task).substr(0, kKeyLength);
}

std::optional<Json> Store::record_of(const std::string& task) {
  const auto file = read_file(folder_ + "/" + record_name(task), kMostRecordBytes);
  if (!file.ok()) return std::nullopt;
  Json json = Json::parse(file->span().begin(), file->span().end(), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || json.value("task", "") != task || !json.contains("result")) return std::nullopt;
  if (!json.contains("files") || !json["files"].is_object()) return std::nullopt;
  for (const auto& [name, hash] : json["files"].items()) {
    const auto present = hash_of(folder_ + "/" + name);
    if (!present.ok() || hash != *present) return std::nullopt;
  }
  save_memo();
  return json;
}

std::optional<Json> Store::find(const std::string& task) {
  const std::string key = key_of(task);
  if (const auto made = made_.find(key); made != made_.end()) return made->second;
  if (const auto found = found_.find(key); found != found_.end()) return found->second;
  const auto record = record_of(task);
  if (!record) return std::nullopt;
  found_[key] = (*record)["result"];
  return (*record)["result"];
}

std::vector<std::string> Store::files_of(const std::string& task) {
  std::vector<std::string> names;
  const auto record = record_of(task);
  if (!record) return names;
  names.push_back(record_name(task));
  for (const auto& [name, hash] : (*record)["files"].items()) names.push_back(name);
  return names;
}

Status Store::save(const std::string& task, Json result, std::vector<File> files) {
  std::error_code error;
  fs::create_directories(folder_ + "/records", error);
  if (error) return make_error(StatusCode::kIoError, "the folder '{}' cannot be made: {}", folder_, error.message());
  Json record = {{"task", task}, {"result", result}, {"files", Json::object()}};
  std::vector<FileContent> contents;
  for (const File& file : files) {
    record["files"][file.name] = sha256_hex(file.content);
    contents.push_back({folder_ + "/" + file.name, file.content});
  }
  const std::string text = record.dump(1) + "\n";
  contents.push_back({folder_ + "/" + record_name(task), bytes_of(text)});
  REEF_RETURN_IF_ERROR(write_files(contents));
  load_memo();
  for (const auto& [name, hash] : record["files"].items()) {
    (*memo_)[state_of(folder_ + "/" + name)] = hash.get<std::string>();
    memo_changed_ = true;
  }
  save_memo();
  made_[key_of(task)] = std::move(result);
  ++saved_;
  return ok_status();
}

Result<Bytes> Store::read(const std::string& name) const { return read_file(folder_ + "/" + name, kMostBytes); }

Result<std::string> program_file() {
  Dl_info info{};
  REEF_REQUIRE(::dladdr(reinterpret_cast<void*>(&program_file), &info) != 0 && info.dli_fname != nullptr,
               "the file of the running program is not known");
  // Of a program that was started by its bare name, the name is all that is known.
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  const bool is_library = fs::path(info.dli_fname).filename().string().find(".so") != std::string::npos;
  return is_library || error ? std::string(info.dli_fname) : self.string();
}

}  // namespace reef::tune
