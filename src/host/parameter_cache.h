// SPDX-License-Identifier: Apache-2.0
// Which packages have their parameters on the chip, as libedgetpu keeps account of it.
//
// The chip's cached parameters belong to one token. A program with another token, or with token 0 (one that brings its
// own parameters), makes all of it invalid; a package's parameter-caching program runs when it has not run since.
// Packages that were compiled together share a token and stay side by side. After a failure or a reset the chip holds
// nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <set>

namespace reef::host {

class ParameterCache {
 public:
  // Package is any object that stands for a loaded package for as long as it lives. `token` is that of its execution
  // program, which is about to run. True: the package's parameter-caching program has run and is still valid.
  bool holds(std::uint64_t token, const std::shared_ptr<const void>& package) {
    if (token == 0 || token != token_) clear();
    return cached_.contains(package);
  }
  // The package's parameter-caching program, which has this token, has run to its end.
  void add(std::uint64_t token, const std::shared_ptr<const void>& package) {
    token_ = token;
    std::erase_if(cached_, [](const auto& other) { return other.expired(); });
    cached_.insert(package);
    ++loads_;
  }
  void clear() {
    cached_.clear();
    token_ = 0;
  }
  // How often a parameter-caching program has run to its end.
  std::int64_t loads() const { return loads_; }

 private:
  std::uint64_t token_ = 0;
  std::int64_t loads_ = 0;
  // All with token_. They are not kept alive: one that nobody can run any more is forgotten.
  std::set<std::weak_ptr<const void>, std::owner_less<>> cached_;
};

}  // namespace reef::host
