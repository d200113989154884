// SPDX-License-Identifier: Apache-2.0
#include "data/input_names.h"

#include <algorithm>
#include <cctype>

namespace reef::data {
namespace {

// "serving_default_picture:0" is called "picture" by people.
std::string short_name(std::string name) {
  constexpr std::string_view kServing = "serving_default_";
  if (name.starts_with(kServing)) name.erase(0, kServing.size());
  if (const std::size_t colon = name.rfind(':'); colon != std::string::npos) name.erase(colon);
  return name;
}

}  // namespace

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

std::size_t input_count(const ir::Model* model) { return model == nullptr ? 1 : model->subgraphs[0].inputs.size(); }

std::vector<std::string> input_names(const ir::Model* model, std::size_t input) {
  if (model == nullptr) return {};
  const std::string name = input_spec(*model, static_cast<int>(input)).name;
  std::vector<std::string> names = {lower(name), lower(short_name(name))};
  for (const ir::Signature& signature : model->signatures) {
    for (const ir::SignatureTensor& tensor : signature.inputs) {
      if (signature.subgraph == 0 && tensor.tensor == model->subgraphs[0].inputs[input])
        names.push_back(lower(tensor.name));
    }
  }
  return names;
}

Result<std::vector<std::string>> named_inputs(const DatasetOptions& options, const ir::Model* model) {
  std::vector<std::string> names;
  if (options.arrays.empty()) return names;
  for (std::size_t at = 0; at <= options.arrays.size();) {
    const std::size_t comma = std::min(options.arrays.find(',', at), options.arrays.size());
    names.push_back(options.arrays.substr(at, comma - at));
    at = comma + 1;
  }
  REEF_REQUIRE(names.size() == input_count(model), "--array names {} arrays, the model has {} inputs", names.size(),
               input_count(model));
  return names;
}

}  // namespace reef::data
