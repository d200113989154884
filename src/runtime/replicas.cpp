// SPDX-License-Identifier: Apache-2.0
#include "runtime/replicas.h"

#include <algorithm>
#include <deque>
#include <mutex>
#include <optional>

#include <fmt/format.h>

#include "base/thread_group.h"
#include "execute/cpu/evaluate.h"
#include "runtime/edge_tpu_op.h"

namespace reef::runtime {
namespace {

// One copy of the model. Its threads push and pop in the same order, so that the first ticket belongs to the next
// result, whoever pops it.
class Replica {
 public:
  static Result<std::unique_ptr<Replica>> create(const ReplicaOptions& options, std::size_t number) {
    auto replica = std::make_unique<Replica>();
    std::vector<cpu::Interpreter*> segments;
    for (std::size_t s = 0; s < options.segments.size(); ++s) {
      cpu::InterpreterOptions how;
      how.budget = options.budget;
      how.foreign_ops.push_back(edge_tpu_op(options.devices[number * options.segments.size() + s]));
      REEF_ASSIGN_OR_RETURN(auto interpreter, cpu::prepared(options.segments[s], how));
      segments.push_back(interpreter.get());
      replica->interpreters_.push_back(std::move(interpreter));
    }
    REEF_ASSIGN_OR_RETURN(replica->pipeline_, Pipeline::create(std::move(segments)));
    replica->pipeline_->set_input_limit(0);  // the number of threads is the limit
    return replica;
  }

  Result<PipelineTensors> run(PipelineTensors inputs) {
    const auto ticket = std::make_shared<Ticket>();
    {
      const std::lock_guard lock(pushing_);
      REEF_RETURN_IF_ERROR(pipeline_->push(std::move(inputs)));
      const std::lock_guard tickets(tickets_mutex_);
      tickets_.push_back(ticket);
    }
    const std::lock_guard lock(popping_);
    while (!ticket->result) {
      auto result = pipeline_->pop();
      const std::lock_guard tickets(tickets_mutex_);
      const std::shared_ptr<Ticket> first = std::move(tickets_.front());
      tickets_.pop_front();
      if (!result.ok()) {
        first->result = result.status();
      } else if (!result->has_value()) {
        first->result = internal_error("the pipeline was closed");
      } else {
        first->result = std::move(**result);
      }
    }
    return std::move(*ticket->result);
  }

 private:
  struct Ticket {
    std::optional<Result<PipelineTensors>> result;  // with popping_ held
  };
  std::vector<std::unique_ptr<cpu::Interpreter>> interpreters_;
  std::unique_ptr<Pipeline> pipeline_;  // ends before its interpreters
  std::mutex pushing_, popping_, tickets_mutex_;
  std::deque<std::shared_ptr<Ticket>> tickets_;
};

bool keeps_state(const ir::Model& model) {
  const auto& tensors = model.subgraphs[0].tensors;
  return std::any_of(tensors.begin(), tensors.end(), [](const ir::Tensor& tensor) { return tensor.is_variable; });
}

// "usb:0", or "usb:0 and usb:1" for a replica of two segments.
std::string name_of(const ReplicaOptions& options, std::size_t replica) {
  std::string name;
  for (std::size_t s = 0; s < options.segments.size(); ++s) {
    name += name.empty() ? "" : " and ";
    name += options.devices[replica * options.segments.size() + s]->selector();
  }
  return name;
}

}  // namespace

Result<DealerReport> run_replicas(const ReplicaOptions& options,
                                  const std::function<Result<PipelineTensors>(std::int64_t sample)>& inputs,
                                  const std::function<Status(std::int64_t sample, const PipelineTensors&)>& use) {
  const std::size_t segments = options.segments.size();
  REEF_REQUIRE(segments > 0 && !options.devices.empty() && options.devices.size() % segments == 0,
               "{} devices cannot hold whole copies of a model of {} segments", options.devices.size(), segments);
  for (const auto& model : options.segments) {
    REEF_REQUIRE(!keeps_state(*model),
                 "the model keeps state from one inference to the next, so that its copies would give other results");
  }
  DealerOptions shares;
  shares.samples = options.samples;
  shares.window = options.window > 0 ? options.window : 4 * std::ssize(options.devices);
  std::vector<std::unique_ptr<Replica>> replicas;
  for (std::size_t r = 0; r < options.devices.size() / segments; ++r) {
    REEF_ASSIGN_OR_RETURN(auto replica, Replica::create(options, r));
    replicas.push_back(std::move(replica));
    shares.devices.push_back(name_of(options, r));
    // One sample for each segment, and one that the host prepares.
    shares.device_of.insert(shares.device_of.end(), segments + 1, static_cast<int>(r));
  }
  Dealer dealer(shares);
  const auto work = [&](int worker) {
    Replica& replica = *replicas[at(shares.device_of[at(worker)])];
    while (const auto sample = dealer.take(worker)) {
      auto given = or_out_of_memory([&] { return inputs(*sample); });
      if (!given.ok()) return dealer.give_up(*sample, given.status());
      auto result = or_out_of_memory([&] { return replica.run(std::move(*given)); });
      if (!result.ok()) {
        dealer.fail(worker, *sample, result.status());
        continue;
      }
      auto kept = std::make_shared<const PipelineTensors>(std::move(*result));
      dealer.hand_in(worker, *sample, [&use, kept, number = *sample] { return use(number, *kept); });
    }
  };
  ThreadGroup threads;
  const Status started =
      threads.start_all(shares.device_of.size(), [&](std::size_t worker) { work(static_cast<int>(worker)); });
  if (threads.size() == 0) return started;  // fewer than wanted do all samples, too
  threads.join();
  REEF_RETURN_IF_ERROR(dealer.result());
  return dealer.report();
}

}  // namespace reef::runtime
