// SPDX-License-Identifier: Apache-2.0
// An index of the operators that compute and read each tensor of a subgraph. The graph must not change while it is
// used: editors that keep an index up to date with every change (graph::Graph, the importer's GraphBuilder) have
// their own.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/model.h"

namespace reef::ir {

class Uses {
 public:
  Uses() = default;
  // Indexes all operators of a subgraph. `model` must be verified; it is not referred to afterwards.
  explicit Uses(const Model& model, std::size_t subgraph = 0);
  // Indexes `operators` only, ascending: what others compute has no producer.
  Uses(const Model& model, std::span<const std::int32_t> operators, std::size_t subgraph = 0);

  // The operator that computes a tensor; -1: none. The last one where several do.
  std::int32_t producer(std::int32_t tensor) const { return producers_[index(tensor)]; }
  // Operators that read it, ascending, each once.
  const std::vector<std::int32_t>& consumers(std::int32_t tensor) const { return consumers_[index(tensor)]; }
  bool is_input(std::int32_t tensor) const { return is_input_[index(tensor)]; }
  // The graph, or a signature of it, returns it.
  bool is_output(std::int32_t tensor) const { return is_output_[index(tensor)]; }
  // One operator reads it, and the graph does not return it.
  bool has_one_use(std::int32_t tensor) const { return consumers(tensor).size() == 1 && !is_output(tensor); }
  // The only operator that reads it; -1: there is none, or others see the tensor as well.
  std::int32_t only_consumer(std::int32_t tensor) const { return has_one_use(tensor) ? consumers(tensor)[0] : -1; }

  // The graph got one tensor more, which nothing reads or computes yet.
  void add_tensor();

 private:
  static std::size_t index(std::int32_t i) { return static_cast<std::size_t>(i); }
  void size_for(const Model& model, std::size_t subgraph);
  void add(const Operator& op, std::int32_t number);

  std::vector<std::int32_t> producers_;
  std::vector<std::vector<std::int32_t>> consumers_;
  std::vector<bool> is_input_, is_output_;
};

}  // namespace reef::ir
