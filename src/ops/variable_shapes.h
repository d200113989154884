// SPDX-License-Identifier: Apache-2.0
// Sizes of what READ_VARIABLE gives, before the model runs.
//
// TFLite takes them from the variable while running. Streaming models (keyword spotters) keep rows of earlier calls in
// variables, and everything behind a READ_VARIABLE would count as "size not known" and stay on the CPU. But where every
// ASSIGN_VARIABLE of a variable stores one and the same shape, the variable never has another.
//
// That is believed of the shapes that the file declares, and stays true only if those who rely on it find that what is
// assigned really has them: they follow all operators, and call distrust() until it finds nothing any more.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ir/model.h"

namespace reef::ops {

class VariableShapes {
 public:
  // `model` must be verified and outlive this.
  explicit VariableShapes(const ir::Model& model);

  // The operator is a READ_VARIABLE, and gives the shape that is declared for its result.
  bool is_known(std::size_t subgraph, std::size_t op) const;
  // Gives up variables that get a value whose size is not known (`is_open`, by tensor of this subgraph), or is another
  // than is declared elsewhere. True: some were, and what was followed has to be followed again.
  bool distrust(std::size_t subgraph, const std::vector<bool>& is_open);

 private:
  struct Use {  // one READ_VARIABLE or ASSIGN_VARIABLE
    std::size_t subgraph = 0, op = 0;
    std::int32_t value = -1;  // tensor
    bool is_read = false;
  };
  struct Variable {
    std::pair<std::string, std::string> name;  // container, shared_name
    std::vector<Use> uses;
    bool is_known = false;
  };
  const ir::Tensor& value_of(const Use& use) const;
  bool agree(const std::vector<Use>& uses) const;

  const ir::Model* model_;
  std::vector<Variable> variables_;
};

}  // namespace reef::ops
