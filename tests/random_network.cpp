// SPDX-License-Identifier: Apache-2.0
#include "random_network.h"

#include <algorithm>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "random_choice.h"
#include "random_network_builder.h"

namespace reef::testing {
namespace {

// ---- Shrinking ----

// Without layer `index`: who read its result reads its operand.
RandomNetwork without_layer(RandomNetwork network, std::size_t index) {
  const int value = static_cast<int>(index) + 1, instead = network.layers[index].a % value;
  network.layers.erase(network.layers.begin() + static_cast<std::ptrdiff_t>(index));
  for (std::size_t i = index; i < network.layers.size(); ++i) {
    const int there_were = static_cast<int>(i) + 2;  // values before it
    for (int* read : {&network.layers[i].a, &network.layers[i].b}) {
      *read %= there_were;
      if (*read == value) *read = instead;
      if (*read > value) --*read;
    }
  }
  return network;
}

std::vector<RandomNetwork> smaller_ones(const RandomNetwork& network) {
  std::vector<RandomNetwork> result;
  for (std::size_t i = network.layers.size(); i-- > 0;) result.push_back(without_layer(network, i));
  const auto with = [&](const auto& change) {
    RandomNetwork other = network;
    change(other);
    if (!(other == network)) result.push_back(std::move(other));
  };
  for (int RandomNetwork::*size : {&RandomNetwork::height, &RandomNetwork::width, &RandomNetwork::channels}) {
    with([&](RandomNetwork& n) { n.*size = 1; });
    with([&](RandomNetwork& n) { n.*size = std::max(1, n.*size / 2); });
    with([&](RandomNetwork& n) { n.*size = std::max(1, n.*size - 1); });
  }
  with([&](RandomNetwork& n) { n.zero_point = 0; });
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    for (std::size_t k = 0; k < network.layers[i].numbers.size(); ++k) {
      with([&](RandomNetwork& n) { n.layers[i].numbers[k] = 0; });
      with([&](RandomNetwork& n) { n.layers[i].numbers[k] /= 2; });
      with([&](RandomNetwork& n) { n.layers[i].numbers[k] -= n.layers[i].numbers[k] > 0; });
    }
  }
  return result;
}

}  // namespace

const std::vector<std::string>& random_network_ops() { return NetworkBuilder::ops(); }

RandomNetwork RandomNetwork::generate(unsigned seed, const std::function<bool(std::string_view)>& is_usable) {
  RandomChoice choice(seed);
  std::vector<std::string> usable;
  for (const std::string& op : random_network_ops()) {
    if (is_usable(op)) usable.push_back(op);
  }
  RandomNetwork network;
  network.is_signed = choice.likely(70);
  network.height = choice.likely(30) ? choice.between(1, 5) : choice.between(4, 30);
  network.width = choice.likely(30) ? choice.between(1, 5) : choice.between(4, 36);
  network.channels = choice.among({1, 2, 3, 3, 4, 5, 8, 12, 16, 20, 64, 67});
  network.zero_point = choice.among({0, 3, 100, 128, 255});
  const int layers = choice.between(1, 7);
  for (int i = 0; i < layers; ++i) {
    RandomLayer layer;
    // Every second one computes with weights: everything else is small without them.
    const bool convolves = choice.likely(40);
    layer.op = convolves ? (choice.likely(65) ? "CONV_2D" : "DEPTHWISE_CONV_2D")
                         : usable[static_cast<std::size_t>(choice.between(0, static_cast<int>(usable.size()) - 1))];
    layer.a = choice.likely(75) ? i : choice.between(0, i);  // a chain, with branches
    layer.b = choice.between(0, i);
    for (int& n : layer.numbers) n = choice.between(0, 199);
    network.layers.push_back(layer);
  }
  return network;
}

std::string RandomNetwork::to_string() const {
  std::string text =
      fmt::format("{} {}x{}x{} zero {}", is_signed ? "int8" : "uint8", height, width, channels, zero_point);
  for (const RandomLayer& layer : layers) {
    text += fmt::format("; {} {} {} {}", layer.op, layer.a, layer.b, fmt::join(layer.numbers, " "));
  }
  return text;
}

std::optional<RandomNetwork> RandomNetwork::parse(const std::string& text) {
  RandomNetwork network;
  std::istringstream parts(text);
  std::string part;
  for (bool first = true; std::getline(parts, part, ';'); first = false) {
    std::istringstream words(part);
    std::string name, zero;
    char by = 0;
    words >> name;
    if (first) {
      network.is_signed = name == "int8";
      words >> network.height >> by >> network.width >> by >> network.channels >> zero >> network.zero_point;
    } else {
      RandomLayer layer;
      layer.op = name;
      words >> layer.a >> layer.b;
      for (int& n : layer.numbers) words >> n;
      network.layers.push_back(layer);
    }
    if (!words) return std::nullopt;
  }
  return network;
}

std::optional<ir::Model> RandomNetwork::build() const { return NetworkBuilder(*this).build(); }

RandomNetwork RandomNetwork::shrunk(const std::function<bool(const RandomNetwork&)>& fails) const {
  RandomNetwork best = *this;
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (RandomNetwork& candidate : smaller_ones(best)) {
      if (!fails(candidate)) continue;
      best = std::move(candidate);
      smaller = true;
      break;
    }
  }
  return best;
}

}  // namespace reef::testing
