// SPDX-License-Identifier: Apache-2.0
#include "zoo.h"

#include <cstdlib>

namespace reef::testing {

std::string zoo_folder() {
  const char* given = std::getenv("REEF_ZOO");
  const std::string folder = given ? given : REEF_SOURCE_DIR "/../shared/zoo";
  return std::filesystem::is_directory(folder) ? folder : "";
}

std::string wild_folder() {
  const char* given = std::getenv("REEF_WILD");
  const std::string zoo = zoo_folder();
  const std::string folder = given ? given : zoo.empty() ? "" : zoo + "/../wild";
  return !folder.empty() && std::filesystem::is_directory(folder) ? folder : "";
}

}  // namespace reef::testing
