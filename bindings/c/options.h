// SPDX-License-Identifier: Apache-2.0
// The option structures of reef.h, as the library takes them.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/status.h"
#include "compiler/front_end.h"
#include "compiler/plan.h"
#include "compiler/quantize_driver.h"
#include "reef/reef.h"

namespace reef::c_api {

// Defaults, and over them as much as the caller's version of the structure has.
template <typename Options>
Options known_options(const Options* given, void (*init)(Options*)) {
  Options options;
  init(&options);
  if (given != nullptr) {
    std::memcpy(static_cast<void*>(&options), given, std::min(given->struct_size, sizeof(options)));
  }
  return options;
}

// Empty pieces are left out. `text` may be null.
std::vector<std::string> split(const char* text, char separator);

Result<compiler::PlanOptions> plan_options(const reef_compile_options& options);
Result<quantize::IoType> io_type(const char* name);
Result<compiler::FrontEndOptions> front_end_options(const reef_convert_options& options);
// Without files.
Result<compiler::QuantizeRequest> quantize_request(const reef_quantize_options& options);

std::string text_of(const nlohmann::ordered_json& json);

}  // namespace reef::c_api
