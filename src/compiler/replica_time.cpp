// SPDX-License-Identifier: Apache-2.0
#include "compiler/replica_time.h"

#include <algorithm>
#include <limits>
#include <random>

#include "compiler/compile.h"
#include "execute/cpu/evaluate.h"
#include "execute/device/timeline.h"
#include "formats/darwinn/reader.h"
#include "formats/tflite/reader.h"
#include "formats/tflite/writer.h"
#include "runtime/dealer.h"
#include "runtime/edge_tpu_op.h"

namespace reef::compiler {
namespace {

// 5 Gbit/s less 8b/10b coding are 500 MB/s; packets, credits and the host's driver leave about nine tenths. Assumed:
// what single devices were measured with (chip/facts.def) lies below.
constexpr double kUsb3Controller = 450e6;
// 480 Mbit/s are 60 MB/s, of which bulk transfers get 53 (USB 2.0, table 5-10: 13 packets of 512 bytes a microframe).
constexpr double kUsb2Controller = 53e6;
constexpr int kUsualCores = 4;
constexpr int kSamples = 2000, kWarmUp = 200;
// The host's part of a sample takes between so much less and so much more than on average. Assumed; without it, all
// devices would go in step for ever, and all wait for the controller at once.
constexpr double kHostJitter = 0.2;
constexpr double kNever = std::numeric_limits<double>::infinity();

bool has_edge_tpu_op(const ir::Model& model) {
  return std::any_of(model.subgraphs.begin(), model.subgraphs.end(), [](const ir::Subgraph& graph) {
    return std::any_of(graph.operators.begin(), graph.operators.end(), darwinn::is_edge_tpu_op);
  });
}

}  // namespace

double StageTime::alone_us(const chip::LinkProfile& link) const {
  return host_us + chip_us + 1e6 * in_bytes / link.in_bytes_per_second + 1e6 * out_bytes / link.out_bytes_per_second;
}

Result<StageTime> stage_time(const std::shared_ptr<const ir::Model>& compiled, const chip::LinkProfile& link,
                             double cpu_us, const Budget& budget) {
  device::TimelineOptions options;
  options.timing.link = &link;
  device::Timeline timeline(options);
  const auto chip = std::make_shared<device::Device>(device::Options{.budget = budget});
  chip->set_queue_depths(device::kShallowQueues);
  cpu::InterpreterOptions how;
  how.budget = budget;
  how.foreign_ops.push_back(runtime::edge_tpu_op(chip));
  REEF_ASSIGN_OR_RETURN(const auto interpreter, cpu::prepared(compiled, how));
  REEF_RETURN_IF_ERROR(interpreter->invoke());
  chip->set_observer(&timeline);
  REEF_RETURN_IF_ERROR(interpreter->invoke());
  const std::vector<device::ProgramRecord> records = timeline.take_records();
  chip->set_observer(nullptr);
  StageTime stage;
  stage.host_us = cpu_us;
  for (const device::ProgramRecord& record : records) {
    const device::TimeReport& time = record.time;
    const auto in = static_cast<double>(time.instruction_bytes + time.input_bytes + time.parameter_bytes);
    const auto out = static_cast<double>(time.output_bytes);
    const double transfers = 1e6 * in / link.in_bytes_per_second + 1e6 * out / link.out_bytes_per_second;
    stage.host_us += link.overhead_us;
    stage.in_bytes += in;
    stage.out_bytes += out;
    stage.chip_us += std::max(0.0, time.ms() * 1e3 - link.overhead_us - transfers);
  }
  return stage;
}

Result<Split> split_model(const std::shared_ptr<const ir::Model>& model, int segments, const chip::LinkProfile& link,
                          const Budget& budget) {
  Split split;
  if (has_edge_tpu_op(*model)) {
    REEF_REQUIRE(segments == 1, "the model is compiled: it cannot be cut into {} segments any more", segments);
    REEF_ASSIGN_OR_RETURN(const StageTime stage, stage_time(model, link, 0, budget));
    split.models = {model};
    split.stages = {stage};
    return split;
  }
  constexpr const char* kName = "model.tflite";
  CompileOptions options;
  options.models = {kName};
  REEF_ASSIGN_OR_RETURN(options.in_memory[kName].file, tflite::write_bytes(*model));
  options.write = false;
  options.verify = Verify::kNever;
  options.segments = segments;
  options.plan.costs.link = &link;
  options.plan.partition.explain = false;
  options.plan.budget = options.budget = budget;
  const CompileResult compiled = compile(options);
  REEF_REQUIRE(compiled.ok(), "{}", compiled.refusals.front().explanation);
  for (const CompileRun& run : compiled.runs) {
    for (const CompiledFile& file : run.files) {
      REEF_ASSIGN_OR_RETURN(ir::Model made, tflite::read_model(Bytes(*file.content)));
      double parts_us = 0;
      for (const CompiledOp& op : file.ops) parts_us += op.part.cost.total();
      const double cpu_us = std::max(0.0, file.plan.partition.predicted_us - parts_us);
      auto shared = std::make_shared<const ir::Model>(std::move(made));
      REEF_ASSIGN_OR_RETURN(const StageTime stage, stage_time(shared, link, cpu_us, budget));
      split.models.push_back(std::move(shared));
      split.stages.push_back(stage);
    }
  }
  return split;
}

SharedHost usual_host(const chip::LinkProfile& link) {
  SharedHost host{kUsualCores, 0, 0};
  if (link.name.starts_with("usb3")) host.controller_in = host.controller_out = kUsb3Controller;
  if (link.name.starts_with("usb2")) host.controller_in = host.controller_out = kUsb2Controller;
  return host;
}

// ---- The simulation ----

namespace {

// The step that a sample is at within a stage. A chip works for one sample from its input to its output.
enum class Phase : std::uint8_t { kHost, kIn, kChip, kOut };

struct Job {
  int replica = 0;
  std::size_t stage = 0;
  Phase phase = Phase::kHost;
  bool is_running = false;  // else it waits for a core, or for its chip
  double left = 0;          // microseconds, or bytes
  double started = 0;       // microseconds
};

class Simulation {
 public:
  Simulation(const std::vector<StageTime>& stages, int replicas, const chip::LinkProfile& link, const SharedHost& host)
      : stages_(stages), link_(link), host_(host), chip_is_busy_(stages.size() * static_cast<std::size_t>(replicas)) {
    const std::size_t at_once = stages.size() + 1;
    for (int r = 0; r < replicas; ++r) {
      for (std::size_t k = 0; k < at_once; ++k) jobs_.push_back({r, 0, Phase::kHost, false, host_time(stages[0]), 0});
    }
  }

  Throughput run() {
    while (std::ssize(latencies_) < kSamples + kWarmUp) {
      begin_what_can();
      advance(next_end());
    }
    Throughput result;
    result.segments = static_cast<int>(stages_.size());
    result.replicas = static_cast<int>(chip_is_busy_.size() / stages_.size());
    result.devices = result.segments * result.replicas;
    const double span = now_ - warm_since_;
    result.per_second = 1e6 * kSamples / span;
    std::vector<double> sorted(latencies_.begin() + kWarmUp, latencies_.end());
    std::sort(sorted.begin(), sorted.end());
    result.p50_ms = runtime::percentile(sorted, 0.5) / 1e3;
    result.p90_ms = runtime::percentile(sorted, 0.9) / 1e3;
    result.p99_ms = runtime::percentile(sorted, 0.99) / 1e3;
    result.host_share = host_busy_ / (span * host_.cores);
    result.controller_share = controller_busy_ / span;
    result.chip_share = chip_busy_ / (span * result.devices);
    return result;
  }

 private:
  double host_time(const StageTime& stage) {
    const double share = static_cast<double>(random_()) / static_cast<double>(std::mt19937::max());
    return stage.host_us * (1 + kHostJitter * (2 * share - 1));
  }

  std::size_t chip_of(const Job& job) const {
    return static_cast<std::size_t>(job.replica) * stages_.size() + job.stage;
  }

  // In the order in which jobs came: jobs_ is a queue, and a job that begins a stage goes to its end.
  void begin_what_can() {
    int cores = host_.cores;
    for (const Job& job : jobs_) cores -= job.is_running && job.phase == Phase::kHost ? 1 : 0;
    for (Job& job : jobs_) {
      if (job.is_running) continue;
      if (job.phase == Phase::kHost && cores > 0) {
        job.is_running = true;
        --cores;
      } else if (job.phase == Phase::kIn && !chip_is_busy_[chip_of(job)]) {
        chip_is_busy_[chip_of(job)] = true;
        job.is_running = true;
      }
    }
  }

  // Units of work a microsecond.
  double rate(const Job& job) const {
    if (job.phase == Phase::kHost || job.phase == Phase::kChip) return 1;
    const auto sharing = static_cast<double>(std::count_if(
        jobs_.begin(), jobs_.end(), [&](const Job& each) { return each.is_running && each.phase == job.phase; }));
    const bool is_in = job.phase == Phase::kIn;
    const double own = is_in ? link_.in_bytes_per_second : link_.out_bytes_per_second;
    const double all = is_in ? host_.controller_in : host_.controller_out;
    return 1e-6 * (all > 0 ? std::min(own, all / sharing) : own);
  }

  double next_end() const {
    double soonest = kNever;
    for (const Job& job : jobs_) {
      if (job.is_running) soonest = std::min(soonest, job.left / rate(job));
    }
    return soonest;
  }

  void advance(double microseconds) {
    constexpr double kDust = 1e-9;  // of rounding
    std::vector<double> rates;
    double in = 0, out = 0;  // bytes a microsecond over the controller
    const bool counts = std::ssize(latencies_) >= kWarmUp;
    for (const Job& job : jobs_) {
      rates.push_back(job.is_running ? rate(job) : 0);
      if (job.phase == Phase::kIn) in += rates.back();
      if (job.phase == Phase::kOut) out += rates.back();
      if (!counts || !job.is_running) continue;
      if (job.phase == Phase::kHost) host_busy_ += microseconds;
      if (job.phase == Phase::kChip) chip_busy_ += microseconds;
    }
    if (counts && host_.controller_in > 0)
      controller_busy_ += microseconds * 1e6 * std::max(in / host_.controller_in, out / host_.controller_out);
    now_ += microseconds;
    std::vector<Job> going_on, at_end;
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      Job job = jobs_[i];
      job.left -= rates[i] * microseconds;
      if (!job.is_running || job.left > kDust * std::max(1.0, rates[i])) {
        going_on.push_back(job);
      } else if (step(job)) {
        going_on.push_back(job);
      } else {
        at_end.push_back(job);
      }
    }
    going_on.insert(going_on.end(), at_end.begin(), at_end.end());
    jobs_ = std::move(going_on);
  }

  // To the next phase. False: it begins a stage, behind all others.
  bool step(Job& job) {
    const StageTime& stage = stages_[job.stage];
    switch (job.phase) {
      case Phase::kHost:
        job.phase = Phase::kIn;
        job.left = stage.in_bytes;
        job.is_running = false;
        return true;
      case Phase::kIn:
        job.phase = Phase::kChip;
        job.left = stage.chip_us;
        return true;
      case Phase::kChip:
        job.phase = Phase::kOut;
        job.left = stage.out_bytes;
        return true;
      case Phase::kOut:
        break;
    }
    chip_is_busy_[chip_of(job)] = false;
    if (job.stage + 1 < stages_.size()) {
      ++job.stage;
    } else {
      latencies_.push_back(now_ - job.started);
      if (std::ssize(latencies_) == kWarmUp) warm_since_ = now_;
      job.stage = 0;
      job.started = now_;
    }
    job.phase = Phase::kHost;
    job.left = host_time(stages_[job.stage]);
    job.is_running = false;
    return false;
  }

  const std::vector<StageTime>& stages_;
  const chip::LinkProfile& link_;
  const SharedHost host_;
  std::mt19937 random_{1};  // defined by the standard: the same figures on every machine
  std::vector<Job> jobs_;
  std::vector<char> chip_is_busy_;
  std::vector<double> latencies_;  // microseconds
  double now_ = 0, warm_since_ = 0, host_busy_ = 0, chip_busy_ = 0, controller_busy_ = 0;
};

}  // namespace

Throughput simulate_replicas(const std::vector<StageTime>& stages, int replicas, const chip::LinkProfile& link,
                             const SharedHost& host) {
  return Simulation(stages, replicas, link, host).run();
}

}  // namespace reef::compiler
