// SPDX-License-Identifier: Apache-2.0
#include "cluster_start.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include <fmt/ranges.h>

#include "console.h"
#include "data/shard_files.h"
#include "data_options.h"
#include "python_package.h"
#include "usage.h"

namespace reef::app {
namespace {

const PythonStart kStart = {"reef.cluster", "--cluster needs NumPy", "numpy", "numpy ray", "reef ..."};

constexpr std::string_view kOption = "--cluster", kData = "--data";

std::vector<std::string> words_of_this_process() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin < all.size();) {
    const std::size_t end = std::min(all.find('\0', begin), all.size());
    words.push_back(all.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

// A pattern of shards as the files that it names, with commas between them: what is sent to workers is files. Anything
// else, what is wrong included, is left to the command itself.
std::string with_files_named(const std::string& data) {
  std::error_code error;
  if (std::filesystem::exists(data, error)) return data;
  const auto found = data::find_sample_files(data);
  return found.ok() ? fmt::format("{}", fmt::join(found->files, ",")) : data;
}

}  // namespace

void add_cluster_option(Command& command, std::string& address) {
  command
      .add_option("--cluster", address,
                  "Spread the work over processes: local (as many as there are cores) or local:N on this machine; ray "
                  "starts Ray here, ray://HOST:PORT and HOST:PORT use a cluster (docs/cluster.md)")
      .option_text("ADDRESS")
      .starts_programs();
}

Status become_cluster(const std::string& command, const std::string& address) {
  REEF_ASSIGN_OR_RETURN(const PythonPackage package, find_python_package());
  const char* const python = std::getenv("REEF_PYTHON");
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  std::vector<std::string> words = {python != nullptr && *python != 0 ? python : "python3",
                                    "-c",
                                    start_program(kStart),
                                    command,
                                    address,
                                    self.string()};
  const std::vector<std::string> given = with_joined_shards(words_of_this_process());
  for (std::size_t i = 2; i < given.size(); ++i) {  // behind the program and the command
    if (given[i] == kOption) {
      ++i;
    } else if (given[i].starts_with(kData) && given[i].substr(kData.size()).starts_with("=")) {
      words.push_back(fmt::format("{}={}", kData, with_files_named(given[i].substr(kData.size() + 1))));
    } else if (!given[i].starts_with(std::string(kOption) + "=")) {
      words.push_back(given[i - 1] == kData ? with_files_named(given[i]) : given[i]);
    }
  }
  put_in_front("PYTHONPATH", package.folder.string());
  ::setenv("REEF_LIBRARY", package.library.string().c_str(), 1);
  return become(words);
}

}  // namespace reef::app
