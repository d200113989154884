// SPDX-License-Identifier: Apache-2.0
// Learning with networks and pictures from elsewhere, where the collection is present.
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "command_line.h"
#include "zoo.h"

namespace reef {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class ZooLearn : public testing::CommandLine {
 protected:
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  static Json json_of(const testing::Outcome& outcome) {
    const std::size_t start = outcome.text.find('{');
    EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
    return start == std::string::npos ? Json() : Json::parse(outcome.text.substr(start), nullptr, false);
  }
};

// Google's compiled extractor on the virtual device. The pictures are one per ImageNet class; here each group of
// related classes is one to learn: half of its pictures teach, the other half, other species, is asked for.
TEST_F(ZooLearn, CoralsExtractorLearnsGroupsFromAFewPicturesEach) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  struct Group {
    const char* name;
    int first, last;
  };
  for (const Group group : {Group{"bird", 7, 24}, Group{"bird", 80, 100}, Group{"bird", 127, 146},
                            Group{"dog", 151, 200}, Group{"insect", 300, 326}, Group{"monkey", 365, 382}}) {
    int count = 0;
    for (const auto& entry : fs::directory_iterator(zoo + "/images/imagenet200")) {
      const std::string name = entry.path().filename().string();
      const int number = std::atoi(name.substr(0, 3).c_str());
      if (entry.path().extension() != ".jpg" || number < group.first || number > group.last) continue;
      const std::string folder = path(std::string("pictures/") + group.name);
      fs::create_directories(folder);
      fs::copy_file(entry.path(), folder + "/" + name);
      ++count;
    }
    ASSERT_GT(count, 2) << group.name;
  }
  const Json json = json_of(testing::reef("learn imprint --json --device virtual --hold-back 0.5 --model " + zoo +
                                          "/pairs/mobilenet_v1_1.0_224_quant_embedding_extractor/v15_edgetpu.tflite"
                                          " --data " +
                                          path("pictures") + " -o " + path("m_edgetpu.tflite")));
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["dimension"], 1024);
  EXPECT_EQ(json["device"], "virtual");
  EXPECT_GE(json["test"]["accuracy"].get<double>(), 0.8) << json["test"].dump();
  EXPECT_GE(json["test"]["samples"].get<int>(), 15);
}

// Three classes that the network never saw, with the options as they are by default. The float references recorded with
// the network, on 3,000 pictures: imprinting 54.87 %, softmax regression 56.83 % (on the 900 that are here, from ONNX
// Runtime's embeddings and NumPy: 53.8 % and 56.8 %). Both must come within a point of float on the same pictures,
// and today do of the recorded ones (54.0 % and 56.9 %); the standard error of such a figure is 1.7 %.
TEST_F(ZooLearn, CifarEmbeddingInIntegersComesWithinAPointOfFloat) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  const std::string data = zoo + "/data/cifar10_newclasses.npz";
  const testing::Outcome quantized =
      testing::reef("quantize " + zoo + "/onnx/cifar_embedding.onnx --quiet --data " + zoo +
                    "/data/cifar10_eval.npz --preprocess mean=127.5,std=127.5 -o " + path("e.tflite"));
  ASSERT_EQ(quantized.exit_code, 0) << quantized.text;
  struct Reference {
    const char* method;
    double least;
  };
  for (const Reference reference : {Reference{"imprint", 0.538 - 0.01}, Reference{"softmax", 0.5683 - 0.01}}) {
    const Json json =
        json_of(testing::reef(std::string("learn ") + reference.method + " --json --compile --no-curve" + " --model " +
                              path("e.tflite") + " --data " + data + " -o " + path("m_edgetpu.tflite")));
    ASSERT_TRUE(json.is_object());
    EXPECT_EQ(json["test"]["samples"], 900);
    EXPECT_EQ(json["device"], "virtual");
    EXPECT_GE(json["test"]["accuracy"].get<double>(), reference.least) << reference.method;
  }
}

}  // namespace
}  // namespace reef
