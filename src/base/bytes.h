// SPDX-License-Identifier: Apache-2.0
// Bytes: an immutable slice of memory together with whatever keeps that memory alive.
//
// A model's weights are slices of the file they were read from: copying a Bytes never copies the data, and the file
// stays in memory as long as any slice of it is in use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

namespace reef {

class Bytes {
 public:
  Bytes() = default;
  Bytes(std::vector<std::uint8_t> data) {
    auto owned = std::make_shared<const std::vector<std::uint8_t>>(std::move(data));
    view_ = *owned;
    owner_ = std::move(owned);
  }
  // `view` must stay valid for as long as `owner` lives.
  Bytes(std::shared_ptr<const void> owner, std::span<const std::uint8_t> view)
      : owner_(std::move(owner)), view_(view) {}

  static Bytes copy_of(std::span<const std::uint8_t> data) {
    return Bytes(std::vector<std::uint8_t>(data.begin(), data.end()));
  }

  // Precondition: offset + size <= this->size().
  Bytes slice(std::size_t offset, std::size_t size) const { return Bytes(owner_, view_.subspan(offset, size)); }

  std::span<const std::uint8_t> span() const { return view_; }
  const std::uint8_t* data() const { return view_.data(); }
  std::size_t size() const { return view_.size(); }
  bool empty() const { return view_.empty(); }

  friend bool operator==(const Bytes& a, const Bytes& b) {
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
  }

 private:
  std::shared_ptr<const void> owner_;
  std::span<const std::uint8_t> view_;
};

// The elements of `values` as they lie in memory.
template <typename T>
std::vector<std::uint8_t> bytes_of(const std::vector<T>& values) {
  std::vector<std::uint8_t> result(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(result.data(), values.data(), result.size());
  return result;
}

}  // namespace reef
