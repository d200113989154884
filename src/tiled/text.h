// SPDX-License-Identifier: Apache-2.0
// A tiled program as text for people: tensors and how they are cut, memory objects and when they exist, parameters and
// where they are kept, steps. Places that scheduling has not filled in yet are left out.
#pragma once

#include <string>

#include "ir/model.h"
#include "tiled/program.h"

namespace reef::tiled {

// "convolution", "ring copies": the kind of work in words.
std::string kind_name(const Work& work);

// "CONV_2D 3: convolution" or "infeed".
std::string step_title(const ir::Model& model, const Step& step);

// What is particular about the work, empty where there is nothing to add to what it reads and writes.
std::string work_details(const Work& work);

std::string to_text(const ir::Model& model, const TiledProgram& program);

}  // namespace reef::tiled
