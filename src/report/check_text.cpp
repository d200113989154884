// SPDX-License-Identifier: Apache-2.0
// check's report as text: first the verdict, then what stands in the way, most costly first, then the operators that
// stay on the CPU, at the end the figures and what to do next.
#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/printable.h"
#include "ir/describe.h"
#include "report/check_report.h"
#include "report/verdict.h"

namespace reef::report {
namespace {

// Printable text with the colours of the report.
struct Coloured {
  std::string bytes;
};

}  // namespace
}  // namespace reef::report

template <>
struct fmt::formatter<reef::report::Coloured> : fmt::formatter<std::string> {};  // put() formats its bytes

namespace reef::report {
namespace {

using partition::Place;

constexpr std::size_t kMaxTensorsShown = 30;

class TextReport {
 public:
  TextReport(const CheckSubject& subject, const CheckTextOptions& options)
      : subject_(subject),
        options_(options),
        graph_(subject.model->subgraphs[0]),
        partition_(*subject.partition),
        assessment_(*subject.assessment) {}

  std::string write() {
    const Summary summary = judge(subject_);
    text_ = verdict_line(summary, options_.colour);
    write_division();
    if (subject_.float_model != nullptr) write_judged_as_quantized();
    if (assessment_.is_float()) write_not_quantized();
    if (!assessment_.dynamic_tensors.empty()) write_dynamic();
    write_obstacles();
    write_rewrites(true, "Rewritten, so that more fits");
    write_rewrites(false, "Could be rewritten");
    write_cpu_ops();
    if (options_.all_ops) write_all_ops();
    if (options_.all_links && !partition_.parts.empty()) {
      heading("The same model over every link");
      text_ += links_table(subject_);
    }
    for (const std::string& note : partition_.notes) put("\nNote: {}\n", note);
    write_summary(summary);
    return std::move(text_);
  }

 private:
  // Text from outside is made printable; only what Coloured holds may control the terminal.
  static std::string shown(std::string_view text) { return printable(text); }
  static std::string shown(const Coloured& text) { return text.bytes; }
  template <typename T>
  static const T& shown(const T& number) requires std::is_arithmetic_v<T> {
    return number;
  }
  template <typename... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    text_ += fmt::format(fmt::runtime(fmt::string_view(format)), shown(args)...);
  }
  Coloured coloured(std::string_view text, std::string_view code) const {
    return {options_.colour ? fmt::format("\033[{}m{}\033[0m", code, printable(text)) : printable(text)};
  }
  Coloured bold(std::string_view text) const { return coloured(text, "1"); }
  Coloured good(std::string_view text) const { return coloured(text, "32"); }
  Coloured bad(std::string_view text) const { return coloured(text, "31"); }
  void heading(std::string_view text) { put("\n{}\n", bold(text)); }

  std::string output_name(std::int32_t op) const {
    const ir::Operator& source = graph_.operators[at(op)];
    return source.outputs.empty() || source.outputs[0] < 0 ? "" : graph_.tensors[at(source.outputs[0])].name;
  }
  // "op 12 CONV_2D": its number in the file.
  std::string op_number(std::int32_t op) const {
    const std::int32_t number = (*subject_.source_op)[at(op)];
    return fmt::format("{} {}", number < 0 ? "new op" : fmt::format("op {}", number), graph_.operators[at(op)].type);
  }
  std::string op_name(std::int32_t op) const { return ir::describe_op(graph_, op, (*subject_.source_op)[at(op)]); }
  // Activations in and out: "1x80x80x144 int8 -> 1x144x6400 int8".
  std::string op_shapes(std::int32_t op) const {
    const auto list = [&](const std::vector<std::int32_t>& tensors, bool computed_only) {
      std::vector<std::string> parts;
      for (const std::int32_t index : tensors) {
        if (index < 0) continue;
        const ir::Tensor& tensor = graph_.tensors[at(index)];
        if (computed_only && !ir::constant_data(*subject_.model, tensor).empty()) continue;
        parts.push_back(fmt::format("{} {}", shape_text(tensor.shape), ir::type_name(tensor.type)));
      }
      if (parts.size() > 3) parts = {parts[0], parts[1], fmt::format("{} more", parts.size() - 2)};
      return fmt::format("{}", fmt::join(parts, " + "));
    };
    return list(graph_.operators[at(op)].inputs, true) + " -> " + list(graph_.operators[at(op)].outputs, false);
  }

  void write_division() {
    const auto all = static_cast<std::int32_t>(graph_.operators.size());
    const std::int32_t on_chip = partition_.chip_op_count();
    put("{}: {} operator{}, Edge TPU runtime {}\n", bold(subject_.file), all, all == 1 ? "" : "s",
        assessment_.options.runtime);
    const std::string share = fmt::format("{} of {} operators run on the Edge TPU", on_chip, all);
    put("{}", on_chip == all && all > 0 ? good(share) : on_chip == 0 ? bad(share) : bold(share));
    if (partition_.parts.size() > 1) put(", in {} parts", partition_.parts.size());
    put(".\n");
    for (std::size_t i = 0; i < partition_.parts.size(); ++i) {
      put("  {}: ops {}\n", partition_.parts.size() == 1 ? "part" : fmt::format("part {}", i + 1),
          number_runs(partition_.parts[i].ops));
    }
    write_times();
    if (subject_.without_rewrites == nullptr) return;
    put("Without rewrites: {} of {} operators on the Edge TPU, {} predicted.\n",
        subject_.without_rewrites->chip_op_count(), subject_.given->subgraphs[0].operators.size(),
        time_text(subject_.without_rewrites->predicted_us));
  }

  void write_times() {
    double compute = 0, transfer = 0, chip = 0;
    std::int64_t cached = 0, streamed = 0;
    for (const partition::Part& part : partition_.parts) {
      compute += part.cost.compute;
      transfer += part.cost.transfer + part.cost.streaming;
      chip += part.cost.total();
      cached += part.cost.cached_bytes;
      streamed += part.cost.streamed_bytes;
    }
    put("Predicted time of one inference (estimated, {}): {} = {} on the chip + {} link + {} on the host's CPU; "
        "without an Edge TPU {}.\n",
        subject_.costs->options().link->meaning, bold(time_text(partition_.predicted_us)), time_text(compute),
        time_text(transfer), time_text(partition_.predicted_us - chip), time_text(partition_.all_cpu_us));
    if (!partition_.parts.empty()) {
      put("Parameters (estimated): {} cached on the chip, {} streamed with every inference.\n",
          ir::describe_bytes(cached), ir::describe_bytes(streamed));
    }
  }

  void write_tensors(const std::vector<std::int32_t>& tensors) {
    for (std::size_t i = 0; i < std::min(tensors.size(), kMaxTensorsShown); ++i) {
      const ir::Tensor& tensor = graph_.tensors[at(tensors[i])];
      put("  tensor {} '{}' {} {}\n", tensors[i], ir::describe_name(tensor.name), shape_text(tensor.shape),
          ir::type_name(tensor.type));
    }
    if (tensors.size() > kMaxTensorsShown) put("  and {} more (--json lists all)\n", tensors.size() - kMaxTensorsShown);
  }

  void write_judged_as_quantized() {
    heading("The model is float, and judged as it would be once quantized");
    put("Numbers of operators are those of the quantized model, which was made with a made-up input: it says what "
        "fits, and "
        "nothing about accuracy.\n");
  }

  void write_not_quantized() {
    heading("The model is not quantized");
    if (!subject_.not_judged.empty()) put("It cannot be judged as if it were: {}.\n", subject_.not_judged);
    put("The Edge TPU computes on 8-bit integers, and no operator of this model does. {} tensors are floating point:\n",
        assessment_.float_tensors.size());
    write_tensors(assessment_.float_tensors);
    put("{}\n", quantizing_advice());
  }

  void write_dynamic() {
    heading("Tensors whose size is not known before the model runs");
    write_tensors(assessment_.dynamic_tensors);
    put("The Edge TPU needs fixed sizes: export the model with a fixed input shape and batch 1.\n");
  }

  void write_obstacles() {
    std::vector<std::int32_t> broken;
    for (std::int32_t op = 0; op < static_cast<std::int32_t>(partition_.ops.size()); ++op) {
      if (partition_.ops[at(op)].place == Place::kRule) broken.push_back(op);
    }
    // A model of floats has a page of them that all say the same; the section above has said it.
    if (broken.empty() || assessment_.is_float()) return;
    std::stable_sort(broken.begin(), broken.end(), [&](std::int32_t a, std::int32_t b) {
      return partition_.ops[at(a)].gain_us > partition_.ops[at(b)].gain_us;
    });
    heading("What stands in the way, most costly first");
    for (const std::int32_t op : broken) write_obstacle(op);
  }

  void write_obstacle(std::int32_t op) {
    const partition::Placement& placement = partition_.ops[at(op)];
    put("{}  {}\n", bad(op_name(op)), op_shapes(op));
    std::string_view said;  // several rules may have one way out
    for (const partition::Finding& finding : assessment_.ops[at(op)].findings) {
      const ops::ChipRule& rule = *finding.rule;
      put("    rule   {} But {}. [{}]\n", rule.says, finding.particulars, rule.id);
      put("    known  {}{}{}\n", ops::to_string(rule.source), rule.evidence.empty() ? "" : ": ", rule.evidence);
      if (!finding.suggestion.empty() && finding.suggestion != said) put("    do     {}\n", finding.suggestion);
      said = finding.suggestion;
    }
    for (const passes::Application& application : *subject_.rewrites) {
      if (!application.made && application.place == output_name(op)) {
        put("    reef   can do it: {}\n", application.how);
      }
    }
    put("    cost   ");
    if (placement.gain_us > 0) {
      put("{} per inference (estimated)", time_text(placement.gain_us));
    } else {
      put("no time: on the Edge TPU it would not be faster (estimated)");
    }
    if (placement.strands > 0) put("; keeps {} more operators on the CPU", placement.strands);
    put("\n");
  }

  // Shows the first few places of each rewrite, unless everything is to be listed.
  void write_rewrites(bool made, std::string_view title) {
    constexpr int kShown = 3;
    std::map<std::string_view, int> counts;
    for (const passes::Application& application : *subject_.rewrites) {
      if (application.made != made) continue;
      if (counts.empty()) heading(title);
      if (++counts[application.rewrite] > kShown && !options_.all_ops) continue;
      put("  {}: {}", application.rewrite, application.what);
      if (application.largest_difference > 0) {
        put(" (differs by at most {} of the output's steps)", application.largest_difference);
      } else if (made) {
        put(" (the same bytes)");
      }
      if (!application.how.empty()) put("; {}: {}", made ? "off" : "on", application.how);
      put("\n");
    }
    for (const auto& [name, count] : counts) {
      if (count > kShown && !options_.all_ops) put("  {}: {} more (--ops lists them)\n", name, count - kShown);
    }
  }

  // Operators that stay for one reason, one behind the other, are one entry, unless each breaks a rule of its own.
  void write_cpu_ops() {
    bool any = false;
    const auto count = static_cast<std::int32_t>(partition_.ops.size());
    for (std::int32_t op = 0; op < count;) {
      const partition::Placement& placement = partition_.ops[at(op)];
      std::int32_t end = op + 1;
      while (placement.place != Place::kRule && end < count && partition_.ops[at(end)].place == placement.place &&
             partition_.ops[at(end)].blocker == placement.blocker) {
        ++end;
      }
      if (placement.place != Place::kChip) {
        if (!any) heading("On the CPU (times are estimated)");
        any = true;
        write_cpu_run(op, end);
      }
      op = end;
    }
  }

  void write_cpu_run(std::int32_t first, std::int32_t end) {
    const std::string why = reason(first, partition_.ops[at(first)]);
    if (end - first == 1) {
      put("  {:<30} {:>8}  {}\n", op_number(first), time_text(subject_.costs->op(first).cpu), why);
      put("      '{}'  {}\n", ir::describe_name(output_name(first)), op_shapes(first));
      return;
    }
    double us = 0;
    for (std::int32_t op = first; op < end; ++op) us += subject_.costs->op(op).cpu;
    put("  {:<30} {:>8}  each {}\n", fmt::format("{} operators", end - first), time_text(us), why);
    put("      from {} '{}' to {} '{}' (--ops lists them)\n", op_number(first), ir::describe_name(output_name(first)),
        op_number(end - 1), ir::describe_name(output_name(end - 1)));
  }

  void write_summary(const Summary& judged) {
    Summary summary = judged;
    summary.add("more", std::string(subject_.hint));
    summary.add("next", std::string(subject_.next));
    text_ += closing_lines(summary, options_.colour);
  }

  std::string reason(std::int32_t op, const partition::Placement& placement) const {
    switch (placement.place) {
      case Place::kChip:
        return "";
      case Place::kRule:
        return fmt::format("breaks [{}]", assessment_.ops[at(op)].findings.front().rule->id);
      case Place::kCascade:
        return fmt::format("fits, but depends on {}", op_number(placement.blocker));
      case Place::kNotChosen:
        return "fits, but stands before the part chosen; -a compiles several";
      case Place::kAfterCut:
        return "fits, but lies behind the cut";
      case Place::kNotWorthIt:
        return "fits, but a part of its own would be slower (estimated)";
    }
    return "";
  }

  void write_all_ops() {
    heading("All operators (times are estimated)");
    for (std::int32_t op = 0; op < static_cast<std::int32_t>(partition_.ops.size()); ++op) {
      const bool on_chip = partition_.ops[at(op)].place == Place::kChip;
      const partition::OpCost& cost = subject_.costs->op(op);
      put("  {:<30} {:>8}  {:<8}  {}\n", op_number(op), time_text(on_chip ? cost.chip : cost.cpu),
          on_chip ? "Edge TPU" : "CPU", op_shapes(op));
    }
  }

  const CheckSubject& subject_;
  const CheckTextOptions& options_;
  const ir::Subgraph& graph_;
  const partition::Partition& partition_;
  const partition::Assessment& assessment_;
  std::string text_;
};

}  // namespace

std::string check_text(const CheckSubject& subject, const CheckTextOptions& options) {
  return TextReport(subject, options).write();
}

}  // namespace reef::report
