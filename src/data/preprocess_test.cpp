// SPDX-License-Identifier: Apache-2.0
#include "data/preprocess.h"

#include <cstring>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "data/picture.h"
#include "formats/tflite/reader.h"
#include "formats/tflite/writer.h"
#include "ir/verify.h"

namespace reef::data {
namespace {

std::string printed(std::string_view text) {
  const auto parsed = parse_preprocess(text);
  if (!parsed.ok()) return "error: " + parsed.status().message();
  const std::string canonical = to_string(*parsed);
  EXPECT_EQ(*parse_preprocess(canonical), *parsed) << canonical;
  EXPECT_EQ(*preprocess_from_json(to_json(*parsed)), *parsed) << to_json(*parsed);
  return canonical;
}

TEST(Preprocess, PrintsBackWhatItReads) {
  EXPECT_EQ(printed(""), "none");
  EXPECT_EQ(printed("none"), "none");
  EXPECT_EQ(printed("mean=127.5,std=127.5"), "mean=127.5,std=127.5");
  EXPECT_EQ(printed("tf"), "mean=127.5,std=127.5");
  EXPECT_EQ(printed("std=127.5,mean=127.5,scale=1"), "mean=127.5,std=127.5");
  EXPECT_EQ(printed("mean=0.485:0.456:0.406,std=0.229:0.224:0.225,scale=1/255,crop=0.875"),
            "scale=1/255,mean=0.485:0.456:0.406,std=0.229:0.224:0.225,crop=0.875");
  EXPECT_EQ(printed("imagenet"), printed("mean=0.485:0.456:0.406,std=0.229:0.224:0.225,scale=1/255,crop=0.875"));
  EXPECT_EQ(printed("imagenet,stretch"), "scale=1/255,mean=0.485:0.456:0.406,std=0.229:0.224:0.225,crop=0.875,stretch");
  EXPECT_EQ(printed("unit,letterbox,pad=0,order=bgr,layout=nchw"), "scale=1/255,letterbox,pad=0,order=bgr,layout=nchw");
  EXPECT_EQ(printed("codes,crop"), "codes,crop");
  EXPECT_EQ(printed("gray,scale=0.1"), "scale=0.1,grey");
}

TEST(Preprocess, SaysWhatIsWrong) {
  for (const std::string_view text :
       {"mean", "mean=", "mean=a", "mean=1:2", "std=0", "scale=0", "scale=1/0", "crop=0", "crop=1.5", "pad=256", "blur",
        "order=grb", "mean=1,tf", "mean=nan", "mean=1:2:3,std=1:2:3:4", "tf=1", ","}) {
    EXPECT_EQ(printed(text).rfind("error: preprocessing '" + std::string(text) + "'", 0), 0u) << text;
  }
  EXPECT_NE(printed("blur").find("Presets: none"), std::string::npos);
  for (const std::string_view json :
       {"", "[]", "{\"mean\":1}", "{\"std\":[0]}", "{\"resize\":\"zoom\"}", "{\"crop\":-1}", "{\"scale\":\"1\"}",
        "{\"mean\":[1,2]}", "{\"pixels_are_codes\":1}"})
    EXPECT_FALSE(preprocess_from_json(json).ok()) << json;
}

TEST(Preprocess, TravelsInTheModelFile) {
  auto model = tflite::load_model(REEF_SOURCE_DIR "/models/reef_creatures_float.tflite");
  ASSERT_TRUE(model.ok());
  EXPECT_FALSE(stored_preprocess(*model)->has_value());
  EXPECT_TRUE(choose_preprocess("", *model, 0)->is_guess);
  for (const std::string_view text : {"imagenet", "tf,letterbox"}) {  // the second replaces the first
    const Preprocess recipe = *parse_preprocess(text);
    store_preprocess(recipe, *model);
    ASSERT_TRUE(ir::verify(*model).ok());
    const auto again = tflite::read_model(Bytes(*tflite::write_model(*model)));
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(**stored_preprocess(*again), recipe);
    EXPECT_EQ(choose_preprocess("", *again, 0)->preprocess, recipe);
    EXPECT_EQ(to_string(choose_preprocess("unit", *again, 0)->preprocess), "scale=1/255");
  }
  EXPECT_EQ(model->metadata.back().name, kPreprocessMetadata);
  model->buffers[at(model->metadata.back().buffer)].data = Bytes::copy_of({});
  EXPECT_NE(choose_preprocess("", *model, 0).status().message().find("reef.preprocess"), std::string::npos);
}

TEST(Preprocess, GuessesByTheInput) {
  const auto int8 = tflite::load_model(REEF_SOURCE_DIR "/models/reef_creatures_int8.tflite");
  ASSERT_TRUE(int8.ok());
  const auto guess = choose_preprocess("", *int8, 0);
  EXPECT_TRUE(guess->preprocess.pixels_are_codes);
  const PixelMap map = pixel_map(guess->preprocess, input_spec(*int8, 0), 0);  // scale 1/255, zero point 0
  EXPECT_NEAR(map.factor, 1.0 / 255, 1e-8);
  EXPECT_NEAR(map.offset, 0, 1e-9);
}

// The picture of tools/oracle/make_metric_vectors.py.
image::Image formula_picture() {
  image::Image picture{37, 23, 3, {}};
  for (int y = 0; y < picture.height; ++y) {
    for (int x = 0; x < picture.width; ++x) {
      for (int c = 0; c < 3; ++c)
        picture.samples.push_back(static_cast<std::uint8_t>((x * 7 + y * 11 + c * 50 + (x * y) % 13 * 5) % 256));
    }
  }
  return picture;
}

TEST(Picture, FitsAsPillowDoes) {
  const auto json = nlohmann::json::parse(std::ifstream(REEF_SOURCE_DIR "/tests/data/metrics.json"));
  ASSERT_GE(json["pictures"].size(), 6u);
  for (const auto& row : json["pictures"]) {
    const std::int32_t side = row["side"], channels = row["channels"];
    const auto expected = row["pixels"].get<std::vector<int>>();
    const Preprocess recipe = *parse_preprocess(row["preprocess"].get<std::string>());
    for (const bool channels_first : {false, true}) {
      InputSpec input;
      input.shape = channels_first ? ir::Shape{1, channels, side, side} : ir::Shape{1, side, side, channels};
      std::vector<float> values(expected.size());
      ASSERT_TRUE(store_picture(formula_picture(), recipe, input, std::as_writable_bytes(std::span(values))).ok());
      for (std::size_t i = 0; i < values.size(); ++i) {
        const auto pixels = static_cast<std::size_t>(side) * static_cast<std::size_t>(side);
        const auto count = static_cast<std::size_t>(channels);
        const float value = channels_first ? values[i % count * pixels + i / count] : values[i];
        // Pillow rounds between rows and columns in fixed point, and grey before the other; one step each.
        EXPECT_NEAR(value, expected[i], 1.01) << row["preprocess"] << " value " << i;
      }
    }
  }
}

// The usual input of a quantized network: pixels from -1 to 1 in steps of 2 / 255. Every one lies halfway between
// codes.
TEST(Picture, PixelsHalfwayBetweenCodesStayApart) {
  InputSpec input;
  input.shape = ir::Shape{1, 1, 256, 1};
  input.type = ir::DataType::kInt8;
  input.quantization.scale = {2.0F / 255};
  for (const std::int64_t zero_point : {-1, 0}) {
    input.quantization.zero_point = {zero_point};
    image::Image picture{256, 1, 1, {}};
    for (int i = 0; i < 256; ++i) picture.samples.push_back(static_cast<std::uint8_t>(i));
    std::array<std::int8_t, 256> codes{};
    ASSERT_TRUE(store_picture(picture, *parse_preprocess("mean=127.5,std=127.5"), input,
                              std::as_writable_bytes(std::span(codes)))
                    .ok());
    for (int i = 0; i < 256; ++i) EXPECT_EQ(codes[at(i)], std::min(127, i - 127 + static_cast<int>(zero_point)));
  }
}

TEST(Picture, StoresInTheInputsType) {
  image::Image picture{1, 1, 3, {0, 128, 255}};
  InputSpec input;
  input.name = "in";
  input.shape = ir::Shape{1, 1, 1, 3};
  input.type = ir::DataType::kInt8;
  input.quantization.scale = {0.0078125F};
  input.quantization.zero_point = {-1};
  std::array<std::int8_t, 3> codes{};
  const auto target = std::as_writable_bytes(std::span(codes));
  ASSERT_TRUE(store_picture(picture, *parse_preprocess("tf"), input, target).ok());
  EXPECT_EQ(codes,
            (std::array<std::int8_t, 3>{-128, 0, 127}));  // -1 / scale - 1 = -129 saturates; 0.0039 / scale rounds up
  ASSERT_TRUE(store_picture(picture, *parse_preprocess("codes"), input, target).ok());
  EXPECT_EQ(codes, (std::array<std::int8_t, 3>{-128, 0, 127}));
  input.type = ir::DataType::kFloat32;
  std::array<float, 3> reals{};
  ASSERT_TRUE(store_picture(picture, *parse_preprocess("tf"), input, std::as_writable_bytes(std::span(reals))).ok());
  EXPECT_EQ(reals, (std::array<float, 3>{-1, 0.5F / 127.5F, 1}));
  EXPECT_NE(store_picture(picture, *parse_preprocess("codes"), input, std::as_writable_bytes(std::span(reals)))
                .message()
                .find("8-bit"),
            std::string::npos);
}

TEST(Picture, PlacementSaysWherePointsGo) {
  const Placement box = placement_of(*parse_preprocess("letterbox"), 200, 100, 64, 64);
  EXPECT_DOUBLE_EQ(0.5 * box.y_scale + box.y_offset, 0.5);
  EXPECT_DOUBLE_EQ(box.y_offset, 0.25);
  EXPECT_DOUBLE_EQ(box.y_scale, 0.5);
  EXPECT_DOUBLE_EQ(box.x_scale, 1);
  const Placement crop = placement_of(*parse_preprocess("crop"), 200, 100, 64, 64);
  EXPECT_DOUBLE_EQ(crop.x_scale, 2);
  EXPECT_DOUBLE_EQ(crop.x_offset, -0.5);
}

}  // namespace
}  // namespace reef::data
