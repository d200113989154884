// SPDX-License-Identifier: Apache-2.0
// What `reef run --layers` shows: tensors of the source model as the virtual chip computed them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/budget.h"
#include "base/status.h"
#include "ir/model.h"
#include "result_files.h"
#include "runtime/layer_tensors.h"

namespace reef::app {

struct LayerOptions {
  std::string source;  // the model that was compiled
  std::string layers;  // names of tensors, or "all"; empty: none
  bool are_wanted() const { return !layers.empty(); }
};

class LayerReport {
 public:
  // Null if none are wanted.
  static Result<std::unique_ptr<LayerReport>> create(const LayerOptions& options, const ir::Model& compiled,
                                                     std::int64_t max_steps, const Budget& budget);

  device::Observer& observer() { return tensors_->observer(); }
  // After the run: takes the tensors that were asked for and writes them to `folder`, unless it is empty.
  Status take(const std::string& folder, ResultFiles& results);
  void print() const;
  nlohmann::ordered_json json() const;

 private:
  struct Entry {
    runtime::LayerTensor layer;
    std::string file;  // empty: none
  };
  const ir::Tensor& tensor_of(const Entry& entry) const { return source_.subgraphs[0].tensors[at(entry.layer.tensor)]; }
  const ir::Operator& op_of(const Entry& entry) const { return source_.subgraphs[0].operators[at(entry.layer.op)]; }

  ir::Model source_;
  std::vector<std::string> names_;  // empty: all
  std::unique_ptr<runtime::LayerTensors> tensors_;
  std::vector<Entry> entries_;
};

}  // namespace reef::app
