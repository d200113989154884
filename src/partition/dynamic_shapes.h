// SPDX-License-Identifier: Apache-2.0
// Which tensors have a size that is known only while the model runs, and why.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/uses.h"
#include "ops/static_ops.h"
#include "ops/variable_shapes.h"

namespace reef::partition {

class DynamicShapes {
 public:
  // `ops` are those of the model's first subgraph and must outlive this.
  DynamicShapes(const ir::Model& model, const ops::StaticOps& ops);

  bool is_dynamic(std::int32_t tensor) const { return root_[at(tensor)] >= 0; }
  // Why a dynamic tensor is so, a clause that follows its name: "gets its size from 'x', which op 3 PACK computes".
  std::string reason(std::int32_t tensor) const;
  // Whether the size comes from computed operands, as opposed to a model whose inputs have none.
  bool is_computed(std::int32_t tensor) const;
  std::vector<std::int32_t> tensors() const;  // all of them, ascending

 private:
  void find_inputs();
  void follow_all(const ops::VariableShapes& variables);
  void follow(std::int32_t op);
  std::vector<bool> open_tensors() const;

  const ops::StaticOps* ops_;
  ir::Uses uses_;
  std::vector<std::int32_t> root_;  // by tensor: the one it has its unknown size from; -1: the size is known
  std::map<std::int32_t, std::string> reasons_;  // of roots
};

}  // namespace reef::partition
