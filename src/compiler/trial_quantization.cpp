// SPDX-License-Identifier: Apache-2.0
#include "compiler/trial_quantization.h"

#include "compiler/index_inputs.h"
#include "data/sample_source.h"
#include "ir/pseudo_random.h"
#include "passes/simplify.h"
#include "quantize/quantize.h"

namespace reef::compiler {
namespace {

// One sample of pseudo-random numbers; inputs that select rows of a table select existing ones.
class MadeUpSample : public data::SampleSource {
 public:
  explicit MadeUpSample(const ir::Model& model) {
    for (std::size_t i = 0; i < model.subgraphs[0].inputs.size(); ++i) {
      rows_.push_back(rows_selected_by(model, static_cast<int>(i)));
    }
  }
  std::int64_t size() const override { return 1; }
  Status read(std::int64_t sample, const data::InputSpec& input, std::span<std::byte> target) const override {
    constexpr std::uint32_t kSeed = 12345;
    const auto seed = kSeed + static_cast<std::uint32_t>(input.index) + static_cast<std::uint32_t>(sample);
    ir::fill_pseudo_random(input.type, seed, target);
    const std::int64_t rows = rows_[at(input.index)];
    if (rows > 0) wrap_indices(input.type, rows, target);
    return ok_status();
  }

 private:
  std::vector<std::int64_t> rows_;
};

}  // namespace

Result<ir::Model> quantize_on_trial(const ir::Model& model, const Budget& budget) {
  ir::Model simplified = model;
  REEF_RETURN_IF_ERROR(passes::simplify(simplified).status());
  quantize::QuantizeOptions options;
  options.held_back = 0;  // nothing is measured, nothing is chosen
  options.automatic_ranges = false;
  options.budget = budget;
  const MadeUpSample sample(simplified);
  REEF_ASSIGN_OR_RETURN(quantize::QuantizeResult result, quantize::quantize(simplified, &sample, options));
  REEF_REQUIRE(result.integer_ops > 0, "none of its operators can compute in 8 bits");
  return std::move(result.model);
}

}  // namespace reef::compiler
