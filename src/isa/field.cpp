// SPDX-License-Identifier: Apache-2.0
#include "isa/field.h"

namespace reef::isa {

std::string Field::full_name() const {
  if (group.empty()) return std::string(name);
  std::string text(group);
  text += '.';
  text += name;
  return text;
}

std::string_view kind_name(Kind kind) {
  switch (kind) {
    case Kind::kUnsigned:
      return "unsigned";
    case Kind::kSigned:
      return "signed";
    case Kind::kFloat32:
      return "float32";
    case Kind::kFlag:
      return "flag";
    case Kind::kMask:
      return "mask";
    case Kind::kTileMask:
      return "tile mask";
    case Kind::kEnum:
      return "enum";
    case Kind::kRaw:
      return "raw";
  }
  return "?";
}

}  // namespace reef::isa
