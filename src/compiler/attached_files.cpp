// SPDX-License-Identifier: Apache-2.0
#include "compiler/attached_files.h"

#include <filesystem>
#include <map>
#include <utility>

#include "base/file.h"
#include "formats/zip/appended_archive.h"
#include "formats/zip/archive.h"

namespace reef::compiler {
namespace {

constexpr std::uint64_t kMaxAttachedBytes = std::uint64_t{1} << 26, kMaxModelBytes = std::uint64_t{1} << 31;

using Members = std::map<std::string, Bytes>;

Members members_of(const Bytes& model) {
  Members members;
  if (!zip::find_appended_archive(model.span()).is_there) return members;
  const auto archive = zip::Archive::open(model);
  if (!archive.ok()) return members;
  for (const zip::Member& member : archive->members()) {
    if (auto content = archive->read(member); content.ok()) members[member.name] = std::move(content).value();
  }
  return members;
}

Result<Bytes> with_members(std::span<const std::uint8_t> file, Members members, const std::vector<std::string>& paths) {
  std::map<std::string, std::string> origins;
  for (const std::string& path : paths) {
    const std::string name = std::filesystem::path(path).filename().string();
    const auto [other, is_new] = origins.emplace(name, path);
    REEF_REQUIRE(is_new, "--attach: {} and {} would have one name in the model", other->second, path);
    REEF_ASSIGN_OR_RETURN(members[name], read_file(path, kMaxAttachedBytes));
  }
  std::vector<std::uint8_t> result(file.begin(), file.end());
  if (members.empty()) return Bytes(std::move(result));
  std::vector<zip::NewMember> list;
  for (const auto& [name, content] : members) list.push_back({name, content.span()});
  // Stored as they are: TFLite's libraries read members in place.
  REEF_ASSIGN_OR_RETURN(const std::vector<std::uint8_t> archive, zip::write_archive(list, false));
  REEF_REQUIRE(zip::carry_archive(archive, result), "the model and its attached files are more than 4 GiB");
  return Bytes(std::move(result));
}

}  // namespace

Result<Bytes> with_attached_files(std::span<const std::uint8_t> file, const std::string& source,
                                  const std::vector<std::string>& paths) {
  Members members;
  if (source.ends_with(".tflite")) {
    if (const auto model = read_file(source, kMaxModelBytes); model.ok()) members = members_of(*model);
  }
  return with_members(file, std::move(members), paths);
}

Result<Bytes> model_file_with(const std::string& path, const std::vector<std::string>& paths) {
  REEF_ASSIGN_OR_RETURN(const Bytes source, read_file(path, kMaxModelBytes));
  const zip::AppendedArchive archive = zip::find_appended_archive(source.span());
  return with_members(source.span().first(archive.is_there ? archive.start : source.size()), members_of(source), paths);
}

}  // namespace reef::compiler
