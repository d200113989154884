// SPDX-License-Identifier: Apache-2.0
#include "tensor_io.h"

#include <cstring>

#include "base/file.h"
#include "data/picture.h"
#include "formats/image/image.h"

namespace reef::app {
namespace {

constexpr std::uint64_t kMaxTensorFileBytes = std::uint64_t{1} << 33;

}  // namespace

Status fill_from_file(const std::string& path, const ops::Tensor& tensor, std::span<std::byte> target) {
  REEF_ASSIGN_OR_RETURN(const Bytes file, read_file(path, kMaxTensorFileBytes));
  REEF_REQUIRE(file.size() == target.size(), "'{}' has {} bytes, but input '{}' ({} {}) takes {}", path, file.size(),
               tensor.name, ir::type_name(tensor.type), tensor.shape.to_string(), target.size());
  std::memcpy(target.data(), file.data(), file.size());
  return ok_status();
}

Status fill_from_image(const std::string& path, const data::Preprocess& preprocess, const ops::Tensor& tensor,
                       int index, std::span<std::byte> target) {
  const data::InputSpec input{.index = index,
                              .name = std::string(tensor.name),
                              .type = tensor.type,
                              .shape = tensor.shape,
                              .quantization = *tensor.quantization};
  REEF_ASSIGN_OR_RETURN(const data::PictureLayout layout, data::picture_layout(input, preprocess.layout));
  REEF_ASSIGN_OR_RETURN(const image::Image picture, image::load(path, layout.channels));
  return data::store_picture(picture, preprocess, input, target).in(path);
}

}  // namespace reef::app
