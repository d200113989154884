// SPDX-License-Identifier: Apache-2.0
#include "json_output.h"

#include <nlohmann/json.hpp>

#include "console.h"

namespace reef::app {
namespace {

using Json = nlohmann::ordered_json;

bool is_printed = false;

const char* name_of(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return "ok";
    case StatusCode::kInvalidInput:
      return "invalid_input";
    case StatusCode::kUnsupported:
    case StatusCode::kDeferred:
      return "unsupported";
    case StatusCode::kNotFound:
      return "not_found";
    case StatusCode::kIoError:
      return "io_error";
    case StatusCode::kResourceExhausted:
      return "resource_exhausted";
    case StatusCode::kInternal:
      return "internal";
  }
  return "internal";
}

void print_error_object(const char* kind, const std::string& message, int exit_code) {
  if (is_printed) return;
  print_json(Json{{"error", {{"kind", kind}, {"message", message}, {"exit_code", exit_code}}}});
  flush_output();
}

}  // namespace

void print_json_text(std::string object) {
  is_printed = true;
  while (!object.empty() && object.back() == '\n') object.pop_back();
  const std::string version = fmt::format("{{\n  \"schema_version\": {}", kJsonSchema);
  if (object.starts_with("{\n")) {
    object.replace(0, 2, version + ",\n");
  } else if (object == "{}") {
    object = version + "\n}";
  }
  print_exact("{}\n", object);
}

void print_json(const Json& object) { print_json_text(object.dump(2, ' ', false, Json::error_handler_t::replace)); }

void print_json_error(const Status& status, int exit_code) {
  print_error_object(name_of(status.code()), status.message(), exit_code);
}

void print_json_usage_error(const std::string& message, int exit_code) {
  print_error_object("usage", message, exit_code);
}

}  // namespace reef::app
