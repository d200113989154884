// SPDX-License-Identifier: Apache-2.0
// Three layouts: beside the program (build folder); bin, lib and share under one prefix, where lib may be lib64 or
// Debian's folder of an architecture; and a wheel, whose program pip puts into the environment's bin and whose
// libraries and models are in the package, reef/_lib.
#include "parts.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

namespace reef::app {
namespace {

namespace fs = std::filesystem;

struct PartInfo {
  std::string_view file;       // proves that the part is there
  std::string_view in_build;   // its folder from the program's
  std::string_view in_lib;     // from the prefix's lib; "": it is not there
  std::string_view in_prefix;  // from the prefix; "": it is not there
  std::string_view in_wheel;   // from the package's folder
  std::string_view package;    // Debian's, or "": it comes with the program
};

PartInfo info_of(Part part) {
  switch (part) {
    case Part::kLibrary:
      return {"libreef.so.0", ".", ".", "", "_lib", "libreef0"};
    case Part::kCoral:
      return {"libedgetpu.so.1", "coral", "coral", "", "_lib/coral", ""};
    case Part::kPython:
      return {"reef/__init__.py", "python", "reef/python", "", "..", "python3-reef"};
    case Part::kModels:
      return {"models.json", "models", "", "share/reef/models", "_lib/models", ""};
    case Part::kVirtualUsb:
      return {"libusb-1.0.so.0", "virtual_usb", "reef/virtual_usb", "", "_lib/virtual_usb", ""};
  }
  return {};
}

// Folders of the package `reef` below `lib`: python3.11/site-packages/reef, python3/dist-packages/reef and so on.
std::vector<fs::path> python_packages(const fs::path& lib) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(lib, error)) {
    if (!entry.path().filename().string().starts_with("python3")) continue;
    for (const char* packages : {"site-packages", "dist-packages"}) {
      const fs::path folder = entry.path() / packages / "reef";
      if (fs::exists(folder, error)) found.push_back(folder);
    }
  }
  std::sort(found.begin(), found.end());  // the file system's order is any
  return found;
}

std::vector<fs::path> places(const PartInfo& part, const fs::path& here) {
  const fs::path prefix = here.parent_path();
  const std::array libs = {prefix / "lib" / REEF_LIBRARY_ARCHITECTURE, prefix / "lib", prefix / "lib64"};
  std::vector<fs::path> list = {here / part.in_build};
  if (!part.in_prefix.empty()) list.push_back(prefix / part.in_prefix);
  for (const fs::path& lib : libs) {
    if (!part.in_lib.empty()) list.push_back(lib / part.in_lib);
  }
  for (const fs::path& lib : libs) {
    for (const fs::path& package : python_packages(lib)) list.push_back(package / part.in_wheel);
  }
  list.push_back(prefix / "reef" / part.in_wheel);  // pip install --target
  return list;
}

}  // namespace

Result<fs::path> find_part(Part part, const fs::path& here) {
  const PartInfo info = info_of(part);
  const std::vector<fs::path> list = places(info, here);
  std::error_code error;
  for (const fs::path& folder : list) {
    if (fs::exists(folder / info.file, error)) return fs::weakly_canonical(folder, error);
  }
  const std::string_view install = info.package.empty() ? "Reef whole" : info.package;
  return make_error(StatusCode::kNotFound, "{} is neither in {} nor in {}: install {}, or build it", info.file,
                    list.front().string(), list[1].string(), install);
}

Result<fs::path> find_part(Part part) {
  std::error_code error;
  return find_part(part, fs::read_symlink("/proc/self/exe", error).parent_path());
}

}  // namespace reef::app
