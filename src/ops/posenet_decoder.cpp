// SPDX-License-Identifier: Apache-2.0
// PosenetDecoderOp, Coral's custom op at the end of its PoseNet and BodyPix models: people from heat maps and offsets.
// BodyPix gives it a fourth input, long-range offsets, and takes a fifth output from it: a mask for each person.
// Not guaranteed: the order of people or key points with exactly equal scores, which is the C++ library's.
#include "kernels/posenet/decode_poses.h"
#include "kernels/posenet/instance_masks.h"
#include "ops/checks.h"
#include "ops/flex_options.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

using kernels::kPoseEdges;
using kernels::kPoseKeypoints;

constexpr int kHeatmaps = 0, kShortOffsets = 1, kMidOffsets = 2, kLongOffsets = 3;
constexpr int kKeypoints = 0, kKeypointScores = 1, kPoseScores = 2, kPoseCount = 3, kMasks = 4;

constexpr AttributeDoc kPosenetDecoderAttributes[] = {
    {"max_detections", "people at most"},
    {"score_threshold", "people below this probability are left out"},
    {"stride", "pixels per cell of the heat maps"},
    {"nms_radius", "pixels within which two key points of a kind are taken for one"},
};
// Rows and columns of a mask: whatever the size of the long-range offsets, Coral's op says this.
constexpr std::int32_t kMaskSize = 33;
// Cells along an axis: positions are floats, which hold every whole number up to here.
constexpr std::int32_t kMaxCells = 1 << 24;

struct Settings {
  kernels::PoseSettings decoder;
  float stride = 1;
};

Result<Settings> posenet_decoder_settings_of(const OpContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const FlexOptions options, FlexOptions::parse(ctx.op().custom_options));
  REEF_ASSIGN_OR_RETURN(const std::int64_t stride, options.get_int("stride"));
  REEF_REQUIRE(stride > 0, "stride is {}; it must be positive", stride);
  Settings settings;
  settings.stride = static_cast<float>(stride);
  REEF_ASSIGN_OR_RETURN(settings.decoder.max_poses, options.get_int("max_detections"));
  REEF_REQUIRE(settings.decoder.max_poses >= 0, "max_detections is {}", settings.decoder.max_poses);
  REEF_ASSIGN_OR_RETURN(settings.decoder.score_threshold, options.get_float("score_threshold"));
  REEF_ASSIGN_OR_RETURN(const float radius, options.get_float("nms_radius"));
  settings.decoder.nms_radius = radius / settings.stride;
  return settings;
}

Status posenet_decoder_infer(InferContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const Settings settings, posenet_decoder_settings_of(ctx));
  const auto people = static_cast<std::int32_t>(settings.decoder.max_poses);
  ctx.set_output_shape(kKeypoints, {1, people, kPoseKeypoints, 2});
  ctx.set_output_shape(kKeypointScores, {1, people, kPoseKeypoints});
  ctx.set_output_shape(kPoseScores, {1, people});
  ctx.set_output_shape(kPoseCount, {1});
  const bool has_masks = ctx.output_count() > kMasks;
  REEF_REQUIRE((ctx.input_count() > kLongOffsets) == has_masks,
               "it has {} inputs and {} outputs; 3 and 4, or with masks 4 and 5 are needed", ctx.input_count(),
               ctx.output_count());
  if (has_masks) ctx.set_output_shape(kMasks, {1, people, kMaskSize, kMaskSize});
  return ok_status();
}

// The tensor's values times `factor`, as floats.
std::vector<float> real_values(const Tensor& tensor, QuantParams q, float factor) {
  std::vector<float> result;
  result.reserve(static_cast<std::size_t>(tensor.elements()));
  if (tensor.type == DataType::kFloat32) {
    for (const float value : tensor.values<float>()) result.push_back(value * factor);
    return result;
  }
  const float scale = q.scale * factor;
  const auto zero_point = static_cast<float>(q.zero_point);
  for (const std::uint8_t value : tensor.values<std::uint8_t>()) {
    result.push_back((static_cast<float>(value) - zero_point) * scale);
  }
  return result;
}

void write_poses(const std::vector<kernels::Pose>& poses, float stride, RunContext& run) {
  for (int i = 0; i < run.output_count(); ++i) std::fill_n(run.output(i).data, run.output(i).bytes, std::byte{0});
  float* points = run.output(kKeypoints).mutable_values<float>().data();
  float* point_scores = run.output(kKeypointScores).mutable_values<float>().data();
  float* scores = run.output(kPoseScores).mutable_values<float>().data();
  for (const kernels::Pose& pose : poses) {
    for (int k = 0; k < kPoseKeypoints; ++k) {
      *points++ = pose.points[k].y * stride;
      *points++ = pose.points[k].x * stride;
      *point_scores++ = pose.point_scores[k];
    }
    *scores++ = pose.score;
  }
  run.output(kPoseCount).mutable_values<float>()[0] = static_cast<float>(poses.size());
}

// Checks a field's shape and type. `cells`: of the fields that must have the same rows and columns.
Result<QuantParams> field_quantization(const Tensor& tensor, int number, const Shape& cells, std::int32_t channels) {
  REEF_RETURN_IF_ERROR(require_type(tensor, "input", {DataType::kUInt8, DataType::kFloat32}));
  REEF_RETURN_IF_ERROR(require_rank(tensor, "input", 4, 4));
  REEF_REQUIRE(tensor.shape == Shape({1, cells[1], cells[2], channels}),
               "input {} has shape {}; [1, {}, {}, {}] is needed", number, tensor.shape.to_string(), cells[1], cells[2],
               channels);
  REEF_REQUIRE(cells[1] <= kMaxCells && cells[2] <= kMaxCells,
               "input {} has shape {}; at most {} rows and columns are supported", number, tensor.shape.to_string(),
               kMaxCells);
  if (tensor.type != DataType::kUInt8) return QuantParams{};
  return per_tensor_quantization(tensor, "input");
}

void write_masks(const std::vector<kernels::Pose>& poses, QuantParams quantization, float stride, float inverse_stride,
                 RunContext& run) {
  const Tensor& input = run.input(kLongOffsets);
  const kernels::LongOffsets offsets{input.shape[1], input.shape[2], real_values(input, quantization, inverse_stride)};
  const ThreadPool& threads = run.environment()->threads();
  kernels::decode_instance_masks(offsets, poses, stride, run.output(kMasks).mutable_values<float>(),
                                 [&threads] { return threads.past_deadline(); });
}

Result<Kernel> posenet_decoder_prepare(PrepareContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const Settings settings, posenet_decoder_settings_of(ctx));
  const bool has_masks = ctx.input_count() > kLongOffsets;
  REEF_RETURN_IF_ERROR(require_rank(ctx.input(kHeatmaps), "input", 4, 4));
  QuantParams quantization[4];
  for (const auto& [i, channels] : {std::pair{kHeatmaps, kPoseKeypoints}, std::pair{kShortOffsets, 2 * kPoseKeypoints},
                                    std::pair{kMidOffsets, 4 * kPoseEdges}}) {
    REEF_ASSIGN_OR_RETURN(quantization[i], field_quantization(ctx.input(i), i, ctx.input(kHeatmaps).shape, channels));
  }
  if (has_masks) {
    REEF_RETURN_IF_ERROR(require_rank(ctx.input(kLongOffsets), "input", 4, 4));
    const Shape& cells = ctx.input(kLongOffsets).shape;
    REEF_ASSIGN_OR_RETURN(quantization[kLongOffsets],
                          field_quantization(ctx.input(kLongOffsets), kLongOffsets, cells, 2 * kPoseKeypoints));
    REEF_REQUIRE(cells[1] > 0 && cells[2] > 0, "input {} has shape {}", kLongOffsets, cells.to_string());
  }
  for (int i = 0; i < ctx.output_count(); ++i) {
    REEF_RETURN_IF_ERROR(require_type(ctx.output(i), "output", {DataType::kFloat32}));
  }
  return Kernel([=, heat = quantization[kHeatmaps], near = quantization[kShortOffsets], far = quantization[kMidOffsets],
                 longest = quantization[kLongOffsets]](RunContext& run) {
    const auto inverse_stride = static_cast<float>(1.0 / static_cast<double>(settings.stride));
    kernels::PoseFields fields;
    fields.height = run.input(kHeatmaps).shape[1];
    fields.width = run.input(kHeatmaps).shape[2];
    fields.scores = real_values(run.input(kHeatmaps), heat, 1.0f);
    fields.short_offsets = real_values(run.input(kShortOffsets), near, inverse_stride);
    fields.mid_offsets = real_values(run.input(kMidOffsets), far, inverse_stride);
    const ThreadPool& threads = run.environment()->threads();
    const auto poses = kernels::decode_poses(fields, settings.decoder, [&threads] { return threads.past_deadline(); });
    write_poses(poses, settings.stride, run);
    if (has_masks) write_masks(poses, longest, settings.stride, inverse_stride, run);
    return ok_status();
  });
}

}  // namespace

constinit const OpDef posenet_decoder_op =
    define({.name = name_of(Op::PosenetDecoderOp),
            .summary = "Coral's decoder of PoseNet's heat maps and offsets; with long-range offsets (BodyPix) also a "
                       "mask for each person.",
            .inputs = {3, 4},
            .outputs = {4, 5},
            .attributes = kPosenetDecoderAttributes,
            .types = "uint8; float32",
            .is_custom = true,
            .infer = posenet_decoder_infer,
            .prepare = posenet_decoder_prepare,
            .chip = {.instead = "It belongs on the CPU: as the last op it costs little."}});

}  // namespace reef::ops
