// SPDX-License-Identifier: Apache-2.0
// Segments of one model (`reef compile --num_segments`) at work like an assembly line: while one computes with a set of
// inputs, those before it are busy with later sets. Each segment has a thread; with a device of its own too, all
// compute at once. Results come in the order of the inputs, and are those of the segments run one after the other.
//
//   create -> { push ... } and { pop ... }, from any threads -> close -> pop until there is nothing more
//
// A segment takes its inputs, by name, from the model's inputs and from outputs of segments before it. Queues between
// segments hold a few sets: push waits while the first is full, and a pipeline that nobody pops from stands still.
// After a failure every push and pop returns it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "execute/cpu/interpreter.h"

namespace reef::runtime {

struct PipelineTensor {
  std::string name;
  ir::DataType type = ir::DataType::kFloat32;
  ir::Shape shape;
  std::vector<std::byte> data;
};
using PipelineTensors = std::vector<PipelineTensor>;

struct SegmentStats {
  std::int64_t runs = 0;
  double total_ms = 0;  // measured, inside the segment's interpreter
};

class Pipeline {
 public:
  // The interpreters must be prepared, outlive the pipeline, and be used by nobody else meanwhile.
  static Result<std::unique_ptr<Pipeline>> create(std::vector<cpu::Interpreter*> segments, std::size_t queue_size = 2);
  ~Pipeline();  // what is still in it is dropped

  // All inputs of the first segment, by name; others that later segments take from outside too.
  Status push(PipelineTensors inputs);
  // How many sets may wait to be computed, and to be popped, from now on; 0: any number. At first as created.
  void set_input_limit(std::size_t limit);
  void set_output_limit(std::size_t limit);
  // No more pushes. Repeating it does nothing.
  void close();
  // The outputs of the last segment for the next set; nothing: closed, and all were popped.
  Result<std::optional<PipelineTensors>> pop();

  std::vector<SegmentStats> stats() const;

 private:
  class Impl;
  explicit Pipeline(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace reef::runtime
