// SPDX-License-Identifier: Apache-2.0
// What stands behind the handles of reef.h.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "execute/cpu/interpreter.h"
#include "formats/image/image.h"
#include "ir/model.h"
#include "reef/reef.h"
#include "runtime/edge_tpu.h"
#include "runtime/pipeline.h"

struct reef_model {
  std::string name;  // of the file, for messages
  std::shared_ptr<const reef::ir::Model> model;

  const reef::ir::Subgraph& main() const { return model->subgraphs.front(); }
};

struct reef_interpreter {
  std::string name;
  std::shared_ptr<const reef::ir::Model> model;
  std::shared_ptr<reef::runtime::EdgeTpu> device;  // null: the model needs none
  std::unique_ptr<reef::cpu::Interpreter> interpreter;
  std::vector<std::string> notes;
  std::vector<reef::cpu::OpTiming> profile;
  bool is_prepared = false;
  bool keeps_all_tensors = false;
  std::atomic<bool> is_busy{false};  // a thread is inside, or a pipeline has it
};

struct reef_results {
  reef::runtime::PipelineTensors tensors;
};

struct reef_pipeline {
  std::vector<reef_interpreter*> segments;
  std::unique_ptr<reef::runtime::Pipeline> pipeline;
};

struct reef_image {
  reef::image::Image image;
};

namespace reef::c_api {

// Everything but index and data.
void describe(const ir::Tensor& source, const std::int32_t* dims, std::size_t rank, reef_tensor& tensor);

void describe(const runtime::EdgeTpu& device, reef_device& result);

}  // namespace reef::c_api
