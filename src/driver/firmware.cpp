// SPDX-License-Identifier: Apache-2.0
#include "driver/firmware.h"

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/sha256.h"

namespace reef::driver {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 28;  // of a file that is looked into
constexpr std::string_view kName = "libedgetpu.so.1";

constexpr std::string_view kRemedy =
    "install Google's libedgetpu1-std, or name a file that holds it (apex_latest_single_ep.bin, or a libedgetpu.so.1) "
    "with --firmware or REEF_FIRMWARE";

}  // namespace

std::optional<std::size_t> find_image(std::span<const std::uint8_t> bytes, const FirmwareImage& image) {
  for (auto at = bytes.begin();; ++at) {
    at = std::search(at, bytes.end(), image.begins.begin(), image.begins.end());
    const auto offset = static_cast<std::size_t>(at - bytes.begin());
    if (at == bytes.end() || bytes.size() - offset < image.bytes) return std::nullopt;
    if (sha256_hex(bytes.subspan(offset, image.bytes)) == image.sha256) return offset;
  }
}

Result<Bytes> find_firmware(const std::string& file, std::span<const std::string> places, const FirmwareImage& image) {
  if (!file.empty()) {
    REEF_ASSIGN_OR_RETURN(const Bytes bytes, read_file(file, kMostBytes));
    if (const auto at = find_image(bytes.span(), image)) return bytes.slice(*at, image.bytes);
    return invalid_input("'{}' does not hold the firmware of a stick ({} bytes, sha256 {}): {}", file, image.bytes,
                         image.sha256, kRemedy);
  }
  for (const std::string& place : places) {
    const auto bytes = read_file(place, kMostBytes);
    if (!bytes.ok()) continue;
    if (const auto at = find_image(bytes->span(), image)) return bytes->slice(*at, image.bytes);
  }
  return make_error(StatusCode::kNotFound, "the stick waits for Google's firmware, which is not on this machine: {}",
                    kRemedy);
}

std::vector<std::string> usual_libraries() {
  namespace fs = std::filesystem;
  std::vector<std::string> found;
  const auto add = [&](const fs::path& path) {
    std::error_code error;
    if (fs::is_regular_file(path, error)) found.push_back(path.string());
  };
  for (const char* folder : {"/usr/lib", "/usr/local/lib", "/lib", "/usr/lib64", "/opt/homebrew/lib"}) {
    add(fs::path(folder) / kName);
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
      const std::string name = entry->path().filename().string();
      if (name.find("linux-gnu") != std::string::npos) add(entry->path() / kName);
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace reef::driver
