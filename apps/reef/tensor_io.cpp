// SPDX-License-Identifier: Apache-2.0
#include "tensor_io.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <vector>

#include "base/file.h"
#include "data/picture.h"
#include "formats/image/image.h"

namespace reef::app {
namespace {

constexpr std::uint64_t kMaxTensorFileBytes = std::uint64_t{1} << 33;

template <typename T>
void store(const std::vector<std::int32_t>& values, std::span<std::byte> target) {
  const std::vector<T> numbers(values.begin(), values.end());
  std::memcpy(target.data(), numbers.data(), numbers.size() * sizeof(T));
}

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
  std::error_code error;
  REEF_REQUIRE(
      !std::filesystem::is_directory(path, error),
      "'{}' is a folder, and --image takes one picture; `reef eval MODEL --data FOLDER --metric top1` measures a "
      "model on all of them",
      path);
  REEF_REQUIRE(path.find("://") == std::string::npos, "'{}' is an address: save the picture as a file first", path);
  REEF_ASSIGN_OR_RETURN(const image::Image picture, image::load(path, layout.channels));
  return data::store_picture(picture, preprocess, input, target).in(path);
}

Status fill_from_text(std::string_view text, const data::Vocabulary& vocabulary, const ops::Tensor& tensor,
                      std::span<std::byte> target) {
  const bool is_row = tensor.shape.rank() == 1 || (tensor.shape.rank() == 2 && tensor.shape[0] == 1);
  const bool is_number = tensor.type == ir::DataType::kInt32 || tensor.type == ir::DataType::kInt64 ||
                         tensor.type == ir::DataType::kFloat32;
  REEF_REQUIRE(is_row && is_number, "--text: input '{}' ({} {}) does not take a row of tokens", tensor.name,
               ir::type_name(tensor.type), tensor.shape.to_string());
  data::Vocabulary::Tokens tokens = vocabulary.encode(text, tensor.shape.last());
  const auto is_called = [&](std::string_view word) { return tensor.name.find(word) != std::string_view::npos; };
  if (is_called("mask")) {
    std::fill(tokens.ids.begin(), tokens.ids.end(), 0);
    std::fill_n(tokens.ids.begin(), tokens.used, 1);
  } else if (is_called("segment") || is_called("type")) {
    std::fill(tokens.ids.begin(), tokens.ids.end(), 0);
  }
  if (tensor.type == ir::DataType::kInt32) store<std::int32_t>(tokens.ids, target);
  if (tensor.type == ir::DataType::kInt64) store<std::int64_t>(tokens.ids, target);
  if (tensor.type == ir::DataType::kFloat32) store<float>(tokens.ids, target);
  return ok_status();
}

}  // namespace reef::app
