// SPDX-License-Identifier: Apache-2.0
// The border between C and C++: what fails inside becomes a reef_status and a message of the calling thread; exceptions
// end here.
#pragma once

#include <cstdlib>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <new>
#include <string>
#include <string_view>

#include "base/status.h"
#include "reef/reef.h"

namespace reef::c_api {

// Remembers the message for reef_error_message().
reef_status report(const Status& status);
// The same for a process without memory: it allocates nothing.
reef_status report_no_memory() noexcept;

// An internal error with this text.
reef_status report_exception(const char* what) noexcept;

// Refuses a null pointer by the argument's name.
inline Status require(const void* pointer, std::string_view name) {
  REEF_REQUIRE(pointer != nullptr, "the argument '{}' is NULL", name);
  return ok_status();
}

// Runs `action`, which returns a Status.
template <typename Action>
reef_status guarded(const Action& action) noexcept {
  try {
    const Status status = action();
    return status.ok() ? REEF_OK : report(status);
  } catch (const std::bad_alloc&) {
    return report_no_memory();
  } catch (const std::exception& error) {
    return report_exception(error.what());
  } catch (...) {
    return report_exception("something was thrown that is no error");
  }
}

// The same if none of the arguments that it needs is null.
struct Needed {
  const void* pointer;
  std::string_view name;
};
template <typename Action>
reef_status guarded(std::initializer_list<Needed> needed, const Action& action) noexcept {
  return guarded([&]() -> Status {
    for (const Needed& each : needed) REEF_RETURN_IF_ERROR(require(each.pointer, each.name));
    return action();
  });
}

// Text that the caller frees with reef_string_free.
inline char* give_away(const std::string& text) {
  char* const copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

}  // namespace reef::c_api
