// SPDX-License-Identifier: Apache-2.0
// Chooses boxes by falling score, leaving out those that overlap a chosen one: by IoU (intersection over union) at or
// above a threshold; with sigma > 0 lesser overlaps lower the score instead (Bodla et al., Soft-NMS).
//
// As in tensorflow/lite/kernels/internal/reference/non_max_suppression.h, its traits included:
//   - a chosen box goes back into the queue, where its overlap with itself (1) drops it. A box without area, whose
//     overlap with anything is 0, is therefore chosen again and again;
//   - boxes of equal score come in the order of the standard library's heap. It is the same for libstdc++ everywhere.
// Places behind the last chosen box are 0. Only float32: TFLite's integer variant is younger than its release 2.9.
#include "ops/non_max_suppression.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <queue>
#include <vector>

#include "ops/checks.h"

namespace reef::ops {
namespace {

enum Input : int { kBoxes, kScores, kMaxOutputSize, kIouThreshold, kScoreThreshold, kSigma };

struct NonMaxSuppressionCandidate {
  std::int32_t index = 0;
  float score = 0;
  std::size_t first_unseen = 0;  // chosen boxes before this one were compared already
};

struct LowerScore {
  bool operator()(const NonMaxSuppressionCandidate& a, const NonMaxSuppressionCandidate& b) const {
    return a.score < b.score;
  }
};

struct NonMaxSuppressionBox {
  float y_min, x_min, y_max, x_max;
  float area() const { return (y_max - y_min) * (x_max - x_min); }
};

// Any two opposite corners of box `index`.
NonMaxSuppressionBox box_at(std::span<const float> boxes, std::int32_t index) {
  const float* corners = boxes.data() + 4 * static_cast<std::size_t>(index);
  return {std::min(corners[0], corners[2]), std::min(corners[1], corners[3]), std::max(corners[0], corners[2]),
          std::max(corners[1], corners[3])};
}

float intersection_over_union(const NonMaxSuppressionBox& a, const NonMaxSuppressionBox& b) {
  if (a.area() <= 0 || b.area() <= 0) return 0;
  const float height = std::min(a.y_max, b.y_max) - std::max(a.y_min, b.y_min);
  const float width = std::min(a.x_max, b.x_max) - std::max(a.x_min, b.x_min);
  const float intersection = std::max(height, 0.0f) * std::max(width, 0.0f);
  return intersection / (a.area() + b.area() - intersection);
}

struct Limits {
  std::size_t most = 0;
  float iou = 0, score = 0, sigma = 0;
};

struct Choice {
  std::vector<std::int32_t> indices;
  std::vector<float> scores;
};

// Lowers the candidate's score by its overlaps with boxes chosen since it was last seen; false: it is out.
bool survives(std::span<const float> boxes, const Limits& limits, const Choice& chosen,
              NonMaxSuppressionCandidate& candidate) {
  const float scale = limits.sigma > 0 ? static_cast<float>(-0.5 / limits.sigma) : 0;
  const NonMaxSuppressionBox box = box_at(boxes, candidate.index);
  for (std::size_t i = chosen.indices.size(); i-- > candidate.first_unseen;) {
    const float iou = intersection_over_union(box, box_at(boxes, chosen.indices[i]));
    if (iou >= limits.iou) return false;
    if (limits.sigma > 0) candidate.score = candidate.score * std::exp(scale * iou * iou);
    if (candidate.score <= limits.score) break;
  }
  return true;
}

Choice non_max_suppression_choose(std::span<const float> boxes, std::span<const float> scores, const Limits& limits) {
  std::priority_queue<NonMaxSuppressionCandidate, std::deque<NonMaxSuppressionCandidate>, LowerScore> queue;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (scores[i] > limits.score) queue.push({static_cast<std::int32_t>(i), scores[i], 0});
  }
  Choice chosen;
  const std::size_t most = std::min(limits.most, queue.size());
  while (chosen.indices.size() < most && !queue.empty()) {
    NonMaxSuppressionCandidate candidate = queue.top();
    const float score_before = candidate.score;
    queue.pop();
    if (!survives(boxes, limits, chosen, candidate)) continue;
    candidate.first_unseen = chosen.indices.size();
    if (candidate.score == score_before) {
      chosen.indices.push_back(candidate.index);
      chosen.scores.push_back(candidate.score);
    }
    if (candidate.score > limits.score) queue.push(candidate);
  }
  return chosen;
}

Status non_max_suppression_run(RunContext& ctx, bool is_soft) {
  Limits limits;
  const std::int32_t most = ctx.input(kMaxOutputSize).values<std::int32_t>()[0];
  REEF_REQUIRE(most >= 0 && most <= ctx.output(0).shape[0], "max_output_size is {}, but there is room for {}", most,
               ctx.output(0).shape[0]);
  limits.most = static_cast<std::size_t>(most);
  limits.iou = ctx.input(kIouThreshold).values<float>()[0];
  limits.score = ctx.input(kScoreThreshold).values<float>()[0];
  if (is_soft) limits.sigma = ctx.input(kSigma).values<float>()[0];
  REEF_REQUIRE(!(limits.sigma < 0), "sigma is {}; it must not be negative", limits.sigma);
  const Choice chosen =
      non_max_suppression_choose(ctx.input(kBoxes).values<float>(), ctx.input(kScores).values<float>(), limits);
  const auto indices = ctx.output(0).mutable_values<std::int32_t>();
  std::fill(std::copy(chosen.indices.begin(), chosen.indices.end(), indices.begin()), indices.end(), 0);
  if (is_soft) {
    const auto scores = ctx.output(1).mutable_values<float>();
    std::fill(std::copy(chosen.scores.begin(), chosen.scores.end(), scores.begin()), scores.end(), 0.0f);
  }
  ctx.output(is_soft ? 2 : 1).mutable_values<std::int32_t>()[0] = static_cast<std::int32_t>(chosen.indices.size());
  return ok_status();
}

}  // namespace

Status infer_non_max_suppression(InferContext& ctx) {
  REEF_RETURN_IF_ERROR(require_type(ctx.input(kMaxOutputSize), "max_output_size", {DataType::kInt32}));
  ctx.set_output_shape(ctx.output_count() - 1, {});
  REEF_ASSIGN_OR_RETURN(const std::vector<std::int64_t> most, ctx.ints(kMaxOutputSize));
  REEF_REQUIRE(most.size() == 1 && most[0] >= 0, "max_output_size ('{}') must be one number, not negative",
               ctx.input(kMaxOutputSize).name);
  for (int i = 0; i + 1 < ctx.output_count(); ++i) ctx.set_output_shape(i, {static_cast<std::int32_t>(most[0])});
  return ok_status();
}

Result<Kernel> prepare_non_max_suppression(PrepareContext& ctx, bool is_soft) {
  const Tensor& boxes = ctx.input(kBoxes);
  REEF_RETURN_IF_ERROR(require_type(boxes, "boxes", {DataType::kFloat32}));
  REEF_RETURN_IF_ERROR(require_rank(boxes, "boxes", 2, 2));
  REEF_REQUIRE(boxes.shape[1] == 4, "boxes ('{}') are {}; [n, 4] is needed", boxes.name, boxes.shape.to_string());
  const Tensor& scores = ctx.input(kScores);
  REEF_RETURN_IF_ERROR(require_type(scores, "scores", {DataType::kFloat32}));
  REEF_RETURN_IF_ERROR(require_rank(scores, "scores", 1, 1));
  REEF_REQUIRE(scores.shape[0] == boxes.shape[0], "there are {} scores for {} boxes", scores.shape[0], boxes.shape[0]);
  for (int i = kMaxOutputSize; i < ctx.input_count(); ++i) {
    REEF_RETURN_IF_ERROR(require_rank(ctx.input(i), "a limit", 0, 0));
    if (i == kMaxOutputSize) continue;
    REEF_RETURN_IF_ERROR(require_type(ctx.input(i), "a limit", {DataType::kFloat32}));
  }
  REEF_RETURN_IF_ERROR(require_type(ctx.output(0), "indices", {DataType::kInt32}));
  if (is_soft) REEF_RETURN_IF_ERROR(require_type(ctx.output(1), "scores left", {DataType::kFloat32}));
  REEF_RETURN_IF_ERROR(require_type(ctx.output(is_soft ? 2 : 1), "the count", {DataType::kInt32}));
  return Kernel([is_soft](RunContext& run_context) { return non_max_suppression_run(run_context, is_soft); });
}

}  // namespace reef::ops
