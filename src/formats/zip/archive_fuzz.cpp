// SPDX-License-Identifier: Apache-2.0
// Any bytes as a ZIP archive, as a gzip stream, and as a file with an archive at its end. What is unpacked stays within
// what the bytes may claim, and members that could be read survive writing and reading.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <vector>

#include "base/budget.h"
#include "formats/zip/appended_archive.h"
#include "formats/zip/archive.h"
#include "formats/zip/gzip.h"

namespace {

using namespace reef;

void read_and_write_again(const zip::Archive& archive, std::size_t size) {
  constexpr std::size_t kMostBytes = std::size_t{1} << 22;  // unpacked, of all members: enough to find faults
  constexpr std::uint64_t kMostOfDeflate = 1032;            // what deflate makes of a byte, at most
  std::vector<Bytes> contents;
  std::vector<zip::NewMember> members;
  std::set<std::string> names;
  std::size_t total = 0;
  for (const zip::Member& member : archive.members()) {
    const auto start = archive.read_start(member, 16);
    if (start.ok() && start->size() > 16) std::abort();
    if (member.bytes > kMostBytes - total) continue;
    const auto content = archive.read(member);
    if (!content.ok()) continue;
    if (content->size() != member.bytes || member.bytes > kMostOfDeflate * (size + 1)) std::abort();
    total += content->size();
    if (names.insert(member.name).second) contents.push_back(*content), members.push_back({member.name, {}});
  }
  for (std::size_t i = 0; i < members.size(); ++i) members[i].data = contents[i].span();
  for (const bool deflate : {false, true}) {
    const auto written = zip::write_archive(members, deflate);
    if (!written.ok()) continue;  // names that are too long
    const auto again = zip::Archive::open(Bytes(*written));
    if (!again.ok()) std::abort();
    for (const zip::NewMember& member : members) {
      const zip::Member* const found = again->find(member.name);
      if (found == nullptr) std::abort();
      const auto content = again->read(*found);
      if (!content.ok() ||
          !std::equal(member.data.begin(), member.data.end(), content->span().begin(), content->span().end()))
        std::abort();
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Bytes file(std::vector<std::uint8_t>(data, data + size));
  if (const auto archive = zip::Archive::open(file); archive.ok()) read_and_write_again(*archive, size);
  if (const auto appended = zip::find_appended_archive(file.span()); appended.is_there && appended.start > size)
    std::abort();
  std::vector<std::uint8_t> target(7);
  (void)zip::carry_archive(file.span(), target);
  constexpr std::uint64_t kMost = std::uint64_t{1} << 20;
  const Budget budget{BudgetLimits{}};
  BudgetedBytes memory;
  if (const auto unpacked = zip::unpack_gzip(file, kMost, budget, memory); unpacked.ok() && unpacked->size() > kMost)
    std::abort();
  return 0;
}
