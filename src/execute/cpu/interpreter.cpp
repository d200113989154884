// SPDX-License-Identifier: Apache-2.0
#include "execute/cpu/interpreter.h"

#include <algorithm>
#include <map>
#include <new>
#include <set>
#include <stdexcept>
#include <utility>

#include <fmt/ranges.h>

#include "execute/cpu/subgraph_runner.h"
#include "formats/darwinn/reader.h"
#include "ops/cpu_work.h"

namespace reef::cpu {
namespace {
constexpr std::size_t kMaxCallDepth = 64;    // of subgraphs; each level takes stack
constexpr std::size_t kMaxIndicesShown = 8;  // in an error message

// Runs `action`; memory that the system refuses becomes a Status.
template <typename Action>
Status without_exceptions(const Action& action) {
  try {
    return action();
  } catch (const std::bad_alloc&) {
    return make_error(StatusCode::kResourceExhausted, "the system has no more memory");
  } catch (const std::length_error&) {
    return make_error(StatusCode::kResourceExhausted, "more memory is needed than can be addressed");
  }
}

}  // namespace

class Interpreter::Impl : public ops::Environment {
 public:
  Impl(std::shared_ptr<const ir::Model> model, const InterpreterOptions& options)
      : model_(std::move(model)),
        options_(options),
        pool_(options.threads),
        budget_(options.max_memory_bytes, options.budget),
        work_(options.max_work) {}

  Status bind() {
    std::vector<std::string> problems;
    for (std::int32_t i = 0; i < subgraph_count(); ++i) {
      runners_.push_back(std::make_unique<SubgraphRunner>(*model_, i, *this, budget_, work_, options_));
      std::map<std::string, std::vector<std::size_t>> unknown;
      REEF_RETURN_IF_ERROR(runners_.back()->bind(options_.foreign_ops, unknown));
      for (auto& [type, indices] : unknown) {
        const std::size_t count = indices.size();
        if (count > kMaxIndicesShown) indices.resize(kMaxIndicesShown);
        problems.push_back(fmt::format("{} ({}op{} {}{})", type, i > 0 ? fmt::format("subgraph {}, ", i) : "",
                                       count > 1 ? "s" : "", fmt::join(indices, ", "),
                                       count > indices.size() ? ", ..." : ""));
      }
    }
    if (problems.empty()) return ok_status();
    const auto is_edge_tpu_op = [](const std::string& problem) {
      return problem.find(darwinn::kCustomOpName) != std::string::npos;
    };
    const bool is_compiled = std::any_of(problems.begin(), problems.end(), is_edge_tpu_op);
    return unsupported("this version has no CPU kernel for {}; {}", fmt::join(problems, ", "),
                       is_compiled
                           ? "the file is compiled for the Edge TPU: add --device virtual to run it on a virtual one"
                           : "docs/ops.md lists what it can run");
  }

  SubgraphRunner& main() const { return *runners_[0]; }

  Status prepare() {
    begin_call();
    return explained(main().prepare(), "preparing the model");
  }

  Status invoke() {
    REEF_REQUIRE(main().is_prepared(), "prepare() must be called before invoke()");
    begin_call();
    return explained(main().run(), "running the model");
  }

  // Small models run for microseconds: without limits no clock is read.
  void begin_call() {
    call_ = options_.time_limit_seconds > 0 ? options_.budget.within(options_.time_limit_seconds, "time_limit_seconds")
                                            : options_.budget;
    constexpr double kAlmostNothing = 1e-9;  // 0 would mean: no limit
    pool_.set_deadline(call_.has_time_limit() ? std::max(call_.seconds_left(), kAlmostNothing) : 0);
  }
  // Ops know that time is up, the budget knows whose limit it was and how to raise it.
  Status explained(Status status, std::string_view stage) const {
    if (status.code() != StatusCode::kResourceExhausted || !call_.is_over()) return status;
    const bool is_said =
        status.message().find("the time limit of") != std::string::npos;  // a device has the same budget
    if (is_said) return status.in(stage);
    return make_error(StatusCode::kResourceExhausted, "{} ({})", call_.check(stage).message(), status.message());
  }

  // ops::Environment
  ThreadPool& threads() override { return pool_; }
  ops::TfliteRelease tflite_release() const override { return options_.tflite_release; }
  ops::FloatSums float_sums() const override { return options_.float_sums; }
  std::int32_t variable_handle(std::string_view container, std::string_view shared_name) override {
    const auto key = std::pair(std::string(container), std::string(shared_name));
    return handles_.emplace(key, static_cast<std::int32_t>(handles_.size())).first->second;
  }
  std::map<std::int32_t, ops::OwnedTensor>& variables() override { return variables_; }
  std::int32_t subgraph_count() const override { return static_cast<std::int32_t>(model_->subgraphs.size()); }
  Status resize_output(ops::Tensor& output, const ir::Shape& shape) override {
    // Ops of the innermost running subgraph are the only ones that can ask.
    return running_.empty() ? main().resize_output(output, shape) : running_.back()->resize_output(output, shape);
  }

  bool first_use_of(std::int32_t subgraph) override { return initialized_.insert(subgraph).second; }

  Status run_subgraph(std::int32_t index, std::span<const ops::Tensor* const> inputs,
                      std::vector<ops::OwnedTensor>& outputs) override {
    REEF_ASSIGN_OR_RETURN(SubgraphRunner* const runner, callee(index, inputs));
    REEF_RETURN_IF_ERROR(prepare_callee(*runner, inputs));
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      ops::Tensor& target = runner->input(static_cast<int>(i));
      if (target.is_constant || inputs[i]->bytes == 0) continue;
      std::memcpy(target.data, inputs[i]->data, std::min(target.bytes, inputs[i]->bytes));
    }
    runner->is_running = true;
    running_.push_back(runner);
    const Status status = runner->run();
    running_.pop_back();
    runner->is_running = false;
    REEF_RETURN_IF_ERROR(status.in(fmt::format("subgraph {}", index)));
    outputs.clear();
    for (std::size_t i = 0; i < runner->graph().outputs.size(); ++i) {
      const ops::Tensor& tensor = runner->output(static_cast<int>(i));
      outputs.push_back({tensor.type, tensor.shape, {tensor.data, tensor.data + tensor.bytes}});
    }
    return ok_status();
  }

  Result<std::vector<ir::Shape>> infer_subgraph(std::int32_t index,
                                                std::span<const ops::Tensor* const> inputs) override {
    REEF_ASSIGN_OR_RETURN(SubgraphRunner* const runner, callee(index, inputs));
    REEF_RETURN_IF_ERROR(prepare_callee(*runner, inputs));
    std::vector<ir::Shape> shapes;
    for (std::size_t i = 0; i < runner->graph().outputs.size(); ++i) {
      if (runner->has_dynamic_output(static_cast<int>(i))) {
        return make_error(StatusCode::kDeferred, "output {} of subgraph {} is known only after it has run", i, index);
      }
      shapes.push_back(runner->output(static_cast<int>(i)).shape);
    }
    return shapes;
  }

  // A subgraph that can be called with these inputs now.
  Result<SubgraphRunner*> callee(std::int32_t index, std::span<const ops::Tensor* const> inputs) {
    REEF_REQUIRE(index >= 0 && index < subgraph_count(), "there is no subgraph {}; the model has {}", index,
                 subgraph_count());
    REEF_REQUIRE(running_.size() < kMaxCallDepth, "subgraphs call each other more than {} deep", kMaxCallDepth);
    SubgraphRunner* const runner = runners_[at(index)].get();
    REEF_REQUIRE(!runner->is_running && index != 0, "subgraph {} would call itself; recursion is not supported", index);
    REEF_REQUIRE(inputs.size() == runner->graph().inputs.size(), "subgraph {} takes {} inputs, but {} are given", index,
                 runner->graph().inputs.size(), inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const ops::Tensor& target = runner->input(static_cast<int>(i));
      REEF_REQUIRE(inputs[i] != nullptr && inputs[i]->type == target.type, "input {} of subgraph {} must be {}", i,
                   index, ir::type_name(target.type));
    }
    return runner;
  }

  // Preparing is guarded like running: shape inference of a subgraph that calls itself would never end.
  Status prepare_callee(SubgraphRunner& runner, std::span<const ops::Tensor* const> inputs) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (runner.input(static_cast<int>(i)).shape == inputs[i]->shape) continue;
      REEF_RETURN_IF_ERROR(runner.resize_input(static_cast<int>(i), inputs[i]->shape));
    }
    if (runner.is_prepared()) return ok_status();
    runner.is_running = true;
    running_.push_back(&runner);
    const Status status = runner.prepare();
    running_.pop_back();
    runner.is_running = false;
    return status;
  }

  std::shared_ptr<const ir::Model> model_;
  InterpreterOptions options_;
  Budget call_;  // of the prepare or invoke that is under way
  ThreadPool pool_;
  MemoryBudget budget_;
  WorkBudget work_;
  std::vector<std::unique_ptr<SubgraphRunner>> runners_;
  std::vector<SubgraphRunner*> running_;  // called subgraphs, innermost last
  std::map<std::pair<std::string, std::string>, std::int32_t> handles_;
  std::map<std::int32_t, ops::OwnedTensor> variables_;
  std::set<std::int32_t> initialized_;  // subgraphs that CALL_ONCE has run
};

Interpreter::Interpreter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Interpreter::~Interpreter() = default;

Result<std::unique_ptr<Interpreter>> Interpreter::create(std::shared_ptr<const ir::Model> model,
                                                         const InterpreterOptions& options) {
  REEF_REQUIRE(!model->subgraphs.empty(), "the model has no subgraph");
  auto impl = std::make_unique<Impl>(std::move(model), options);
  REEF_RETURN_IF_ERROR(without_exceptions([&] { return impl->bind(); }));
  return std::unique_ptr<Interpreter>(new Interpreter(std::move(impl)));
}

int Interpreter::input_count() const { return static_cast<int>(impl_->main().graph().inputs.size()); }
int Interpreter::output_count() const { return static_cast<int>(impl_->main().graph().outputs.size()); }
const ops::Tensor& Interpreter::input(int i) const { return impl_->main().input(i); }
const ops::Tensor& Interpreter::output(int i) const { return impl_->main().output(i); }
const ops::Tensor& Interpreter::tensor(std::int32_t index) const { return impl_->main().tensor(index); }
bool Interpreter::is_dynamic(std::int32_t index) const { return impl_->main().is_dynamic(index); }
bool Interpreter::has_dynamic_output(int i) const { return impl_->main().has_dynamic_output(i); }

std::span<std::byte> Interpreter::input_bytes(int i) {
  ops::Tensor& tensor = impl_->main().input(i);
  if (tensor.is_constant) return {};
  return {tensor.data, tensor.bytes};
}

Status Interpreter::resize_input(int i, const ir::Shape& shape) {
  REEF_REQUIRE(i >= 0 && i < input_count(), "there is no input {}; the model has {}", i, input_count());
  return impl_->main().resize_input(i, shape);
}
Status Interpreter::prepare() {
  return without_exceptions([&] { return impl_->prepare(); });
}
Status Interpreter::invoke() {
  return without_exceptions([&] { return impl_->invoke(); });
}

void Interpreter::reset_variables() {
  for (const auto& runner : impl_->runners_) runner->reset_variables();
  impl_->variables_.clear();
  impl_->initialized_.clear();
}

double Interpreter::work_done() const { return impl_->work_.done(); }

std::vector<std::string> Interpreter::notes() const {
  std::vector<std::string> all;
  for (const auto& runner : impl_->runners_) all.insert(all.end(), runner->notes().begin(), runner->notes().end());
  return all;
}

MemoryReport Interpreter::memory() const {
  MemoryReport report;
  report.arena_bytes = impl_->main().arena_bytes();
  report.largest_live_set_bytes = impl_->main().largest_live_set_bytes();
  report.other_bytes = impl_->budget_.used() - report.arena_bytes;
  report.peak_bytes = impl_->budget_.peak();
  return report;
}

std::vector<OpTiming> Interpreter::timings() const {
  std::vector<OpTiming> result;
  if (!impl_->options_.profile) return result;
  for (std::size_t s = 0; s < impl_->runners_.size(); ++s) {
    const SubgraphRunner& runner = *impl_->runners_[s];
    for (std::size_t i = 0; i < runner.ops().size(); ++i) {
      const SubgraphRunner::OpState& state = runner.ops()[i];
      const std::int64_t calls = state.is_done_elsewhere ? runner.runs() : state.calls;
      if (calls == 0) continue;
      const std::string name = state.op->outputs.empty() ? "" : runner.graph().tensors[at(state.op->outputs[0])].name;
      result.push_back({static_cast<std::int32_t>(s), static_cast<std::int32_t>(i), state.op->type, name, calls,
                        state.total_ms, state.least_ms, "", 0, 0});
      if (state.is_done_elsewhere) continue;
      result.back().kernel = state.foreign != nullptr ? "device" : kernels::text_of_notes(state.kernels);
      const ops::OpContext context(*state.computed, state.inputs, state.outputs, nullptr);
      result.back().products = ops::products_of(context);
      for (const auto* tensors : {&state.inputs, &state.outputs}) {
        for (const ops::Tensor* tensor : *tensors)
          result.back().bytes += tensor == nullptr ? 0 : static_cast<double>(tensor->bytes);
      }
    }
  }
  return result;
}

}  // namespace reef::cpu
