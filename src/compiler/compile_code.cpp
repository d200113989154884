// SPDX-License-Identifier: Apache-2.0
// Machine code for the parts that were planned, or for fewer operators until there is some, and who keeps how much of
// their parameters on the chip.
#include <algorithm>
#include <limits>

#include "compiler/code_facts.h"
#include "compiler/compile_run.h"
#include "formats/darwinn/without_code.h"
#include "formats/darwinn/writer.h"

namespace reef::compiler {

Status Compilation::refuse_failed(CompiledFile& file) {
  if (!options_.search && file.attempts.back().is_late) return refuse_late(file.input, "generating code");
  return refuse({Refusal::Kind::kFailed, file.input,
                 fmt::format("{}: {}", file.input, file.attempts.back().status.message()),
                 options_.search ? std::move(file.attempts) : std::vector<Attempt>()});
}

std::vector<std::int64_t> Compilation::share_memory(const std::vector<CompiledFile>& files,
                                                    partition::CachePolicy policy) {
  unshared_bytes_ = 0;
  if (files.size() == 1) return {-1};
  std::vector<partition::CacheModel> models;
  std::vector<std::size_t> owner;
  for (std::size_t i = 0; i < files.size(); ++i) {
    for (const partition::Part& part : files[i].plan.partition.parts) {
      models.push_back(files[i].plan.costs->cache_model(part.ops));
      owner.push_back(i);
    }
  }
  std::vector<std::int64_t> rooms(files.size());
  if (models.empty()) return rooms;
  const std::vector<partition::CacheShare> shares = partition::share_cache(models, policy);
  for (std::size_t i = 0; i < shares.size(); ++i) rooms[owner[i]] += shares[i].lines * chip::kWideLineBytes;
  unshared_bytes_ = shares.back().lines_left * chip::kWideLineBytes;
  return rooms;
}

std::optional<std::int64_t> Compilation::remaining_bytes(const std::vector<CompiledFile>& files) const {
  std::int64_t used = 0;
  for (const CompiledFile& file : files) {
    for (const CompiledOp& op : file.ops) {
      if (!op.memory) return std::nullopt;
      used += op.memory->cached_bytes;
    }
  }
  return std::int64_t{chip::kTiles} * chip_.lowest_scratch_line * chip::kWideLineBytes - used;
}

Result<Generated> Compilation::choose(std::int64_t& room, CompiledFile& file) {
  Generated generated;
  const auto length_of = [](const partition::Partition& division) {
    return static_cast<std::int32_t>(division.parts.empty() ? 0 : division.parts.front().ops.size());
  };
  const Plan planned = file.plan;
  const auto without_code = file.without_code;  // of an earlier round, with more room for parameters
  const PartSearchReport search = file.search;
  const auto attempt = [&](Result<partition::Partition> division, bool is_whole) -> Result<bool> {
    if (!division.ok()) return division.status();
    if (!file.attempts.empty()) begin_attempt();
    std::int64_t left = room;
    ChipMemory chip = chip_;
    Attempt& tried = file.attempts.emplace_back();
    tried.ops = is_whole ? static_cast<std::int32_t>(division->ops.size()) : length_of(*division);
    if (!is_whole) tried.tensors = names_of(*planned.model, division->parts);
    file.plan = planned;
    file.without_code = without_code;
    file.search = search;
    file.plan.partition = std::move(division).value();
    auto made = generate_or_cut(is_whole ? -1 : tried.ops, left, file, chip);
    tried.is_late = is_late();
    tried.status = tried.is_late ? timeout() : made.status();
    if (!tried.status.ok()) return false;
    generated = std::move(made).value();
    accepted_ = file.plan;
    room_after_ = left;
    chip_after_ = chip;
    return true;
  };
  const partition::Partition whole = planned.partition;
  auto found = options_.search && whole.parts.size() == 1
                   ? partition::longest_that_compiles(length_of(whole), options_.search_step,
                                                      [&](std::int32_t count) {
                                                        const bool is_whole = count == length_of(whole);
                                                        return is_whole ? attempt(whole, true)
                                                                        : attempt(shorter(count, planned), false);
                                                      })
                   : once([&] { return attempt(whole, true); });
  if (found.ok() && found->ops == 0 && options_.search && whole.parts.size() > 1) {
    // Several parts are given up for one, and that one shrinks.
    const auto single = shorter(std::numeric_limits<std::int32_t>::max(), planned);
    found =
        partition::longest_that_compiles(single.ok() ? length_of(*single) : 0, options_.search_step,
                                         [&](std::int32_t count) { return attempt(shorter(count, planned), false); });
  }
  if (!found.ok()) return refuse_request(file.input, found.status().in(file.input).message());
  if (found->ops == 0) return refuse_failed(file);
  if (options_.search) begin_attempt();
  file.plan = std::move(accepted_);
  room = room_after_;
  chip_ = chip_after_;
  return generated;
}

Result<partition::Partition> Compilation::shorter(std::int32_t max_ops, const Plan& plan) const {
  partition::PartitionOptions how = options_.plan.partition;
  how.max_ops = max_ops;
  how.explain = false;
  return partition::partition(*plan.model, plan.assessment, *plan.costs, how);
}

Result<Generated> Compilation::generate_or_cut(std::int32_t max_ops, std::int64_t& room, CompiledFile& file,
                                               ChipMemory& chip) {
  while (true) {
    if (options_.no_code == NoCode::kCpu) {
      PartSearchOptions how;
      how.plan = options_.plan;
      how.plan.partition.max_ops = max_ops;
      how.plan.partition.explain = false;
      if (max_ops < 0 && options_.segments == 1) how.given = file.given;
      how.is_late = [this] { return is_late(); };
      trial_codes_.clear();
      const auto try_part = [&](const ir::Model& model, const partition::Part& part) {
        // Each by itself: what other parts take of the memory decides where parameters are, not whether there is code.
        return trial_of(model, part, room, file.plan, chip);
      };
      REEF_ASSIGN_OR_RETURN(PartSearchReport report, find_parts(file.plan, try_part, how));
      file.without_code.insert(file.without_code.end(), report.left.begin(), report.left.end());
      report.is_cut |= file.search.is_cut;
      file.search = std::move(report);
    }
    std::int64_t left = room;
    ChipMemory filled = chip;
    std::vector<lower::RefusedOp> refused;
    auto made = generate(file.plan.partition, left, file.plan, refused, filled);
    if (refused.empty() || options_.no_code != NoCode::kCpu) {
      room = left;
      chip = filled;
      return made;
    }
    // Only beside others: what they left of the memory for parameters was too little for scratch.
    for (const lower::RefusedOp& op : refused) {
      partition::leave_without_code(file.plan.assessment, op.op, op.reason);
      file.without_code.push_back(op);
    }
    if (is_late()) return timeout();
    REEF_ASSIGN_OR_RETURN(file.plan.partition, shorter(max_ops, file.plan));
  }
}

// Without a search for memory: the part has what is left, as if it were the only one.
PartTrial Compilation::trial_of(const ir::Model& model, const partition::Part& part, std::int64_t room,
                                const Plan& plan, const ChipMemory& chip) {
  PartTrial trial;
  partition::Part costed = part;
  const partition::CostModel costs(model, plan.costs->options());
  costed.cost = costs.part(part.ops, part.inputs, part.outputs, room);
  auto code = code_of(model, costed, chip, trial);
  trial.status = code.status();
  if (code.ok()) {
    if (!code->program.steps.empty()) trial.code = facts_of(*code, part.ops);
    trial_codes_[{&model, part.ops}] = std::make_shared<const PartCode>(std::move(code).value());
  }
  return trial;
}

Result<PartCode> Compilation::code_of(const ir::Model& model, const partition::Part& part, const ChipMemory& chip,
                                      PartTrial& trial) const {
  // What nobody is predicted to need is for whoever turns out to need it.
  return options_.generate({model, part.ops, part.inputs, part.outputs, options_.plan.runtime, caching_token_,
                            chip.is_shared, part.cost.cache_capacity + unshared_bytes_, chip.room, options_.level,
                            &trial.refused, attempt_, &trial.crowded, &movements_});
}

Result<Generated> Compilation::generate(const partition::Partition& division, std::int64_t& room, const Plan& plan,
                                        std::vector<lower::RefusedOp>& refused, ChipMemory& chip) const {
  const bool is_alone = division.parts.size() == 1;
  chip.is_shared |= !is_alone;
  const ir::Model& model = *plan.model;
  const partition::CostModel& costs = *plan.costs;
  Generated result;
  if (division.parts.empty() && room < 0) room = costs.part({}, {}, {}).cache_capacity;
  for (const partition::Part& part : division.parts) {
    CompiledOp& op = result.ops.emplace_back();
    op.part = part;
    const partition::PartCost planned = costs.part(part.ops, part.inputs, part.outputs, room);
    op.part.cost = planned;
    darwinn::CustomOptions custom;
    const auto tried = trial_codes_.find({&model, part.ops});
    PartTrial trial;
    if (is_alone && tried != trial_codes_.end()) {
      op.code = tried->second;
    } else {
      auto code = code_of(model, op.part, chip, trial);
      trial.status = code.status();
      if (code.ok()) op.code = std::make_shared<const PartCode>(std::move(code).value());
    }
    op.has_code = op.code != nullptr;
    if (op.has_code) {
      custom.package = op.code->package;
      op.memory = op.code->memory;
      if (op.memory) chip.add(*op.memory);
      // A generator that tells no steps leaves it at the estimate.
      if (!op.code->program.steps.empty()) {
        op.part.cost = costs.with_code({facts_of(*op.code, part.ops)}).part(part.ops, part.inputs, part.outputs);
      }
    } else {
      if (trial.status.code() != StatusCode::kUnsupported || options_.no_code == NoCode::kFail) return trial.status;
      op.why_no_code = trial.status.message();
      if (trial.refused.empty()) {
        for (const std::int32_t each : part.ops) trial.refused.push_back({each, op.why_no_code});
      }
      refused.insert(refused.end(), trial.refused.begin(), trial.refused.end());
      custom.package = darwinn::package_without_code(options_.plan.runtime, maker(), op.why_no_code);
    }
    REEF_ASSIGN_OR_RETURN(auto bytes, darwinn::write_custom_options(custom));
    result.parts.push_back({part.ops, part.inputs, part.outputs, Bytes(std::move(bytes))});
    room = std::max<std::int64_t>(0, planned.cache_capacity - planned.cache_used);
  }
  return result;
}

std::vector<std::string> Compilation::names_of(const ir::Model& model, const std::vector<partition::Part>& parts) {
  std::vector<std::string> names;
  for (const partition::Part& part : parts) {
    for (const std::int32_t tensor : part.outputs) {
      names.push_back(model.subgraphs[0].tensors[at(tensor)].name);
    }
  }
  return names;
}

}  // namespace reef::compiler
