// SPDX-License-Identifier: Apache-2.0
// The one error type of Reef. A function that can fail returns Status, or Result<T> when it also has a value.
//
// A message is a sentence for a person: it names the op, tensor or byte offset concerned and, where there is a way
// forward, says what to do. Exceptions do not leave a Reef function (std::bad_alloc is turned into
// kResourceExhausted at the public entrances).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/at.h"  // nearly every file has indices of containers

namespace reef {

enum class StatusCode {
  kOk,
  kInvalidInput,       // the bytes, model or tensor given cannot be processed
  kUnsupported,        // well formed, but Reef does not do this
  kNotFound,           // a file or name does not exist
  kIoError,            // the operating system refused
  kResourceExhausted,  // would need more memory or time than allowed
  kDeferred,           // shape inference only: needs values that exist only while the model runs
  kInternal,           // a defect in Reef
};

class [[nodiscard]] Status {
 public:
  Status() = default;  // ok
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }

  // The same failure with a place put in front: "op 12 CONV_2D: stride is 0".
  Status in(std::string_view place) const {
    return ok() ? *this : Status(code_, fmt::format("{}: {}", place, message_));
  }

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

inline Status ok_status() { return {}; }

template <typename... Args>
Status make_error(StatusCode code, fmt::format_string<Args...> format, Args&&... args) {
  return Status(code, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
Status invalid_input(fmt::format_string<Args...> format, Args&&... args) {
  return Status(StatusCode::kInvalidInput, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
Status unsupported(fmt::format_string<Args...> format, Args&&... args) {
  return Status(StatusCode::kUnsupported, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
Status internal_error(fmt::format_string<Args...> format, Args&&... args) {
  return Status(StatusCode::kInternal, fmt::format(format, std::forward<Args>(args)...));
}

// A value or the reason there is none. value() may be called only after ok().
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Status status) : status_(std::move(status)) {
    if (status_.ok()) status_ = Status(StatusCode::kInternal, "a Result was made from an ok Status");
  }

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& value() & { return *value_; }
  const T& value() const& { return *value_; }
  T&& value() && { return std::move(*value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace reef

#define REEF_CONCAT_INNER(a, b) a##b
#define REEF_CONCAT(a, b) REEF_CONCAT_INNER(a, b)

// Returns from the enclosing function when `expression` (a Status) is an error.
#define REEF_RETURN_IF_ERROR(expression)         \
  do {                                           \
    ::reef::Status reef_status_ = (expression);  \
    if (!reef_status_.ok()) return reef_status_; \
  } while (false)

// REEF_ASSIGN_OR_RETURN(auto x, f()): x is f()'s value, or the enclosing function returns f()'s error.
#define REEF_ASSIGN_OR_RETURN(declaration, expression) \
  REEF_ASSIGN_OR_RETURN_IMPL(REEF_CONCAT(reef_result_, __LINE__), declaration, expression)
#define REEF_ASSIGN_OR_RETURN_IMPL(result, declaration, expression) \
  auto result = (expression);                                       \
  if (!result.ok()) return result.status();                         \
  declaration = std::move(result).value()

// Returns kInvalidInput with a formatted sentence unless `condition` holds: for checks on foreign data.
#define REEF_REQUIRE(condition, ...)                             \
  do {                                                           \
    if (!(condition)) return ::reef::invalid_input(__VA_ARGS__); \
  } while (false)
