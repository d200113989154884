// SPDX-License-Identifier: Apache-2.0
#include "report/verdict.h"

#include <algorithm>

#include <fmt/format.h>

#include "ir/describe.h"
#include "partition/cpu_cost.h"

namespace reef::report {
namespace {

LinkTime time_over(const CheckSubject& subject, const chip::LinkProfile& link) {
  partition::CostOptions options = subject.costs->options();
  if (options.link == &link) {
    return {&link, subject.partition->predicted_us, subject.partition->all_cpu_us};
  }
  options.link = &link;
  const auto costs = partition::CostModel(*subject.model, options).with_code(subject.costs->codes());
  LinkTime time{&link, 0, 0};
  for (std::int32_t op = 0; op < static_cast<std::int32_t>(subject.partition->ops.size()); ++op) {
    time.all_cpu_us += costs.op(op).cpu;
    const bool on_chip = subject.partition->ops[at(op)].place == partition::Place::kChip;
    if (!on_chip) time.predicted_us += costs.op(op).cpu;
  }
  for (const partition::Part& part : subject.partition->parts) {
    // The chip's memory for parameters was shared among the parts already.
    time.predicted_us += costs.part(part.ops, part.inputs, part.outputs, part.cost.cache_used).total();
  }
  return time;
}

// Predictions are not so good that a difference below this would mean anything.
constexpr double kNoticeable = 1.05;

// "2.1x as fast as", "3.8x slower than".
std::string comparison(double times_as_fast) {
  if (times_as_fast < kNoticeable && times_as_fast > 1 / kNoticeable) return "about as fast as";
  if (times_as_fast >= 1) return fmt::format("{:.1f}x as fast as", times_as_fast);
  return fmt::format("{:.1f}x slower than", 1 / times_as_fast);
}

// One inference here: simulated where the parts were, the rest estimated.
struct TimeHere {
  double us = 0;
  std::string_view kind = "estimated";
};
TimeHere time_here(const CheckSubject& subject) {
  if (subject.simulated_us <= 0) return {subject.partition->predicted_us};
  double chip = 0;
  for (const partition::Part& part : subject.partition->parts) chip += part.cost.total();
  const bool has_cpu = subject.partition->chip_op_count() < static_cast<std::int32_t>(subject.partition->ops.size());
  return {subject.partition->predicted_us - chip + subject.simulated_us,
          has_cpu ? "simulated, the CPU's share estimated" : "simulated"};
}

// A host with published measurements for which the chip pays, if the one asked about is not such a host.
const LinkTime* host_that_gains(const std::vector<LinkTime>& times) {
  const LinkTime* best = nullptr;
  for (const LinkTime& time : times) {
    if (time.link->is_guess || time.times_as_fast() < kNoticeable) continue;
    if (best == nullptr || time.times_as_fast() > best->times_as_fast()) best = &time;
  }
  return best;
}

void judge_speed(const CheckSubject& subject, const std::string& share, Summary& summary) {
  const chip::LinkProfile& link = *subject.costs->options().link;
  const TimeHere measure = time_here(subject);
  const LinkTime here{&link, measure.us, subject.partition->all_cpu_us};
  const double gain = here.times_as_fast();
  const std::string figures =
      subject.simulated_us > 0
          ? fmt::format("{} simulated against {} estimated", time_text(here.predicted_us), time_text(here.all_cpu_us))
          : fmt::format("{} against {}, estimated", time_text(here.predicted_us), time_text(here.all_cpu_us));
  if (gain >= kNoticeable) {
    summary.tone = Tone::kGood;
    summary.verdict = fmt::format("Worth it: {} run on the Edge TPU, {} the CPU alone ({}{})", share, comparison(gain),
                                  figures, link.is_guess ? ", with guesses about the host" : "");
    return;
  }
  const bool is_slower = gain <= 1 / kNoticeable;
  summary.tone = is_slower ? Tone::kBad : Tone::kGood;
  summary.verdict = fmt::format("{} over {}: {} the CPU alone ({}), with {} on the Edge TPU",
                                is_slower ? "Not worth it" : "No gain", link.meaning, comparison(gain), figures, share);
  if (const auto times = times_over_links(subject); const LinkTime* other = host_that_gains(times)) {
    summary.add("elsewhere", fmt::format("over {} {} its CPU alone ({} against {}, estimated)", other->link->meaning,
                                         comparison(other->times_as_fast()), time_text(other->predicted_us),
                                         time_text(other->all_cpu_us)));
  }
}

}  // namespace

std::string share_text(std::int64_t on_chip, std::int64_t all) {
  const double percent = all > 0 ? 100.0 * static_cast<double>(on_chip) / static_cast<double>(all) : 0;
  // "100 %" only for all of them.
  const double shown = on_chip < all ? std::min(percent, 99.0) : percent;
  return fmt::format("{} of {} operator{} ({:.0f} %)", on_chip, all, all == 1 ? "" : "s", shown);
}

std::vector<LinkTime> times_over_links(const CheckSubject& subject) {
  std::vector<LinkTime> times;
  for (const chip::LinkProfile& link : chip::link_profiles()) times.push_back(time_over(subject, link));
  return times;
}

Summary judge(const CheckSubject& subject) {
  Summary summary;
  const auto all = static_cast<std::int64_t>(subject.model->subgraphs[0].operators.size());
  const std::int64_t on_chip = subject.partition->chip_op_count();
  const std::string share = share_text(on_chip, all);
  if (subject.assessment->is_float()) {
    summary.tone = Tone::kBad;
    summary.verdict = "Not for the Edge TPU as it is: the model is not quantized";
    return summary;
  }
  if (on_chip == 0) {
    summary.tone = Tone::kBad;
    summary.verdict = fmt::format("Nothing of it runs on the Edge TPU: all {} operators stay on the CPU", all);
    return summary;
  }
  judge_speed(subject, share, summary);
  if (subject.float_model != nullptr) summary.verdict = "Once quantized: " + summary.verdict;
  std::int64_t cached = 0, streamed = 0;
  for (const partition::Part& part : subject.partition->parts) {
    cached += part.cost.cached_bytes;
    streamed += part.cost.streamed_bytes;
  }
  summary.add("on the chip", share);
  const TimeHere here = time_here(subject);
  summary.add("time",
              fmt::format("{} over {} ({}); CPU alone {} (estimated)", rate_text(here.us),
                          subject.costs->options().link->meaning, here.kind, time_text(subject.partition->all_cpu_us)));
  summary.add(
      "memory",
      fmt::format("{} of parameters on the chip{} (estimated)", ir::describe_bytes(cached),
                  streamed > 0 ? fmt::format(", {} sent with every inference", ir::describe_bytes(streamed)) : ""));
  return summary;
}

std::string links_table(const CheckSubject& subject) {
  std::string text = fmt::format("{:<16}{:<28}{:>10}{:>10}{:>12}  {}\n", "--link", "host", "time", "a second",
                                 "CPU alone", "with the Edge TPU");
  for (const LinkTime& time : times_over_links(subject)) {
    text += fmt::format("{:<16}{:<28}{:>10}{:>10.0f}{:>12}  {} the CPU alone{}\n", time.link->name, time.link->meaning,
                        time_text(time.predicted_us), time.predicted_us > 0 ? 1e6 / time.predicted_us : 0,
                        time_text(time.all_cpu_us), comparison(time.times_as_fast()),
                        time.link->is_guess ? " (a guess)" : "");
  }
  return text +
         "All figures are estimated, for the same compiled file; of hosts marked as guesses nobody has published "
         "measurements.\n";
}

}  // namespace reef::report
