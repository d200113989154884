// SPDX-License-Identifier: Apache-2.0
// reef.h: pipelines.
#include "guard.h"
#include "handles.h"

using namespace reef;
using namespace reef::c_api;

namespace {

void let_go(const std::vector<reef_interpreter*>& segments) {
  for (reef_interpreter* const segment : segments) segment->is_busy.store(false, std::memory_order_release);
}

// Takes all interpreters, or none.
Status take(reef_interpreter* const* segments, std::size_t count, std::vector<reef_interpreter*>& taken) {
  for (std::size_t i = 0; i < count; ++i) {
    Status status = require(segments[i], "segments");
    if (status.ok() && segments[i]->is_busy.exchange(true, std::memory_order_acquire)) {
      status = invalid_input("segment {} is in use by another thread or pipeline, or given twice", i);
    } else if (status.ok()) {
      taken.push_back(segments[i]);
      if (!segments[i]->is_prepared) status = invalid_input("segment {} is not prepared", i);
    }
    if (!status.ok()) {
      let_go(taken);
      return status;
    }
  }
  return ok_status();
}

}  // namespace

reef_status reef_pipeline_create(reef_interpreter* const* segments, size_t count, size_t queue_size,
                                 reef_pipeline** pipeline) {
  return guarded({{segments, "segments"}, {pipeline, "pipeline"}}, [&]() -> Status {
    auto handle = std::make_unique<reef_pipeline>();
    REEF_RETURN_IF_ERROR(take(segments, count, handle->segments));
    std::vector<cpu::Interpreter*> interpreters;
    for (reef_interpreter* const segment : handle->segments) interpreters.push_back(segment->interpreter.get());
    auto created = runtime::Pipeline::create(std::move(interpreters), queue_size > 0 ? queue_size : 2);
    if (!created.ok()) {
      let_go(handle->segments);
      return created.status();
    }
    handle->pipeline = std::move(created).value();
    *pipeline = handle.release();
    return ok_status();
  });
}

reef_status reef_pipeline_set_queue_sizes(reef_pipeline* pipeline, size_t inputs, size_t outputs) {
  return guarded({{pipeline, "pipeline"}}, [&]() -> Status {
    pipeline->pipeline->set_input_limit(inputs);
    pipeline->pipeline->set_output_limit(outputs);
    return ok_status();
  });
}

void reef_pipeline_free(reef_pipeline* pipeline) {
  if (pipeline == nullptr) return;
  pipeline->pipeline.reset();
  let_go(pipeline->segments);
  delete pipeline;
}

reef_status reef_pipeline_push(reef_pipeline* pipeline, const reef_tensor* tensors, size_t count) {
  return guarded({{pipeline, "pipeline"}}, [&]() -> Status {
    runtime::PipelineTensors inputs;
    for (std::size_t i = 0; i < count; ++i) {
      REEF_RETURN_IF_ERROR(require(tensors, "tensors"));
      const reef_tensor& given = tensors[i];
      REEF_RETURN_IF_ERROR(require(given.name, "name"));
      REEF_REQUIRE((given.data != nullptr || given.bytes == 0) && (given.dims != nullptr || given.rank == 0) &&
                       given.rank >= 0 && given.rank <= 64,
                   "tensor '{}' has no data or no sizes", given.name);
      const auto* const data = static_cast<const std::byte*>(given.data);
      inputs.push_back({given.name,
                        static_cast<ir::DataType>(given.type),
                        ir::Shape(std::vector<std::int32_t>(given.dims, given.dims + given.rank)),
                        {data, data + given.bytes}});
    }
    return pipeline->pipeline->push(std::move(inputs));
  });
}

reef_status reef_pipeline_close(reef_pipeline* pipeline) {
  return guarded({{pipeline, "pipeline"}}, [&]() -> Status {
    pipeline->pipeline->close();
    return ok_status();
  });
}

reef_status reef_pipeline_pop(reef_pipeline* pipeline, reef_results** results) {
  return guarded({{pipeline, "pipeline"}, {results, "results"}}, [&]() -> Status {
    *results = nullptr;
    REEF_ASSIGN_OR_RETURN(auto popped, pipeline->pipeline->pop());
    if (popped) *results = new reef_results{std::move(*popped)};
    return ok_status();
  });
}

reef_status reef_pipeline_stats(const reef_pipeline* pipeline, size_t segment, int64_t* runs, double* total_ms) {
  return guarded({{pipeline, "pipeline"}}, [&]() -> Status {
    const std::vector<runtime::SegmentStats> stats = pipeline->pipeline->stats();
    REEF_REQUIRE(segment < stats.size(), "there is no segment {}; the pipeline has {}", segment, stats.size());
    if (runs != nullptr) *runs = stats[segment].runs;
    if (total_ms != nullptr) *total_ms = stats[segment].total_ms;
    return ok_status();
  });
}

size_t reef_results_count(const reef_results* results) { return results == nullptr ? 0 : results->tensors.size(); }

reef_status reef_results_tensor(const reef_results* results, size_t i, reef_tensor* tensor) {
  return guarded({{results, "results"}, {tensor, "tensor"}}, [&]() -> Status {
    REEF_REQUIRE(i < results->tensors.size(), "there is no tensor {}; there are {}", i, results->tensors.size());
    const runtime::PipelineTensor& source = results->tensors[i];
    *tensor = {};
    tensor->name = source.name.c_str();
    tensor->type = static_cast<std::int32_t>(source.type);
    tensor->index = -1;
    tensor->rank = source.shape.rank();
    tensor->dims = source.shape.dims().data();
    tensor->data = const_cast<std::byte*>(source.data.data());
    tensor->bytes = source.data.size();
    return ok_status();
  });
}

void reef_results_free(reef_results* results) { delete results; }
