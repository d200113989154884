// SPDX-License-Identifier: Apache-2.0
#include "lower/lower.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include "ir/describe.h"
#include "lower/layer.h"

namespace reef::lower {
namespace {

using tiled::TiledLayer;
using tiled::TiledProgram;
using tiled::TiledTensor;

// What a tensor of the model is on the chip: a tiled tensor, perhaps with pixels of padding around it.
struct View {
  std::int32_t tensor = -1;  // TiledProgram::tensors
  Padding padding;
};

// The zero point of an 8-bit tensor as the chip has it.
Result<std::int32_t> chip_zero_point(const ir::Tensor& tensor) {
  const ir::Quantization& q = tensor.quantization;
  if (!ir::is_integer_8(tensor.type) || q.scale.size() != 1 || q.zero_point.size() > 1) {
    return unsupported("tensor '{}' is {} with {} scales; activations are int8 or uint8 with one scale",
                       ir::describe_name(tensor.name), ir::type_name(tensor.type), q.scale.size());
  }
  const std::int64_t shift = tensor.type == ir::DataType::kInt8 ? 128 : 0;
  const std::int64_t point = (q.zero_point.empty() ? 0 : q.zero_point[0]) + shift;
  REEF_REQUIRE(point >= 0 && point <= 255, "tensor '{}' has a zero point that its type cannot hold",
               ir::describe_name(tensor.name));
  return static_cast<std::int32_t>(point);
}

class Lowering {
 public:
  Lowering(const ir::Model& model, const std::vector<std::int32_t>& ops) : model_(model), ops_(ops) {}

  Result<TiledProgram> run(const std::vector<std::int32_t>& inputs, const std::vector<std::int32_t>& outputs) {
    if (inputs.size() != 1) {
      return unsupported("the part has {} inputs; code for several inputs is not generated yet", inputs.size());
    }
    REEF_ASSIGN_OR_RETURN(const std::int32_t input, add_tensor(inputs[0], -1));
    views_[inputs[0]] = View{input, {}};
    for (const std::int32_t op : ops_) {
      REEF_RETURN_IF_ERROR(add_op(op).in(place_of(op)));
    }
    if (program_.layers.empty()) return unsupported("there is no operator that computes");
    partition();
    for (const std::int32_t op : layer_ops_) REEF_RETURN_IF_ERROR(finish_layer(op).in(place_of(op)));
    tiled::TiledInput in;
    in.tensor = input;
    program_.inputs.push_back(in);
    program_.input_names = inputs;
    for (const std::int32_t tensor : outputs) REEF_RETURN_IF_ERROR(add_output(tensor));
    REEF_RETURN_IF_ERROR(check_infeed(program_.tensors[static_cast<std::size_t>(input)]));
    return std::move(program_);
  }

 private:
  const ir::Subgraph& graph() const { return model_.subgraphs[0]; }
  const ir::Tensor& tensor(std::int32_t index) const { return graph().tensors[static_cast<std::size_t>(index)]; }
  const ir::Operator& op_at(std::int32_t index) const { return graph().operators[static_cast<std::size_t>(index)]; }
  std::string place_of(std::int32_t op) const { return fmt::format("op {} {}", op, op_at(op).type); }

  // ---- The model's operators, in order ----

  Status add_op(std::int32_t index) {
    const ir::Operator& op = op_at(index);
    if (op.type == "QUANTIZE") return add_quantize(op);
    if (op.type == "PAD") return add_pad(op);
    if (op.type == "CONV_2D" || op.type == "DEPTHWISE_CONV_2D") return add_layer(index);
    return unsupported("code for this operator is not generated yet");
  }

  Result<View> view_of(const ir::Operator& op) const {
    REEF_REQUIRE(!op.inputs.empty() && !op.outputs.empty() && op.inputs[0] >= 0, "the operator lacks an operand");
    const auto found = views_.find(op.inputs[0]);
    if (found == views_.end()) {
      return unsupported("input '{}' is not computed on the chip", ir::describe_name(tensor(op.inputs[0]).name));
    }
    return found->second;
  }

  // Between int8 and uint8 of the same scale and meaning, the chip's bytes stay as they are.
  Status add_quantize(const ir::Operator& op) {
    REEF_ASSIGN_OR_RETURN(const View view, view_of(op));
    const ir::Tensor& from = tensor(op.inputs[0]);
    const ir::Tensor& to = tensor(op.outputs[0]);
    REEF_ASSIGN_OR_RETURN(const std::int32_t from_zero, chip_zero_point(from));
    REEF_ASSIGN_OR_RETURN(const std::int32_t to_zero, chip_zero_point(to));
    if (from_zero != to_zero || from.quantization.scale != to.quantization.scale) {
      return unsupported("changing a scale or zero point is not generated yet, only int8 to uint8 and back");
    }
    views_[op.outputs[0]] = view;
    return ok_status();
  }

  // Rows and columns of the zero point around an image: the layers that read it read that much further out.
  Status add_pad(const ir::Operator& op) {
    REEF_ASSIGN_OR_RETURN(View view, view_of(op));
    REEF_REQUIRE(op.inputs.size() >= 2 && op.inputs[1] >= 0, "the operator lacks its paddings");
    const ir::Tensor& from = tensor(op.inputs[0]);
    const ir::Tensor& to = tensor(op.outputs[0]);
    const ir::Tensor& amounts = tensor(op.inputs[1]);
    const Bytes& data = ir::constant_data(model_, amounts);
    if (from.shape.rank() != 4 || to.shape.rank() != 4 || amounts.type != ir::DataType::kInt32 ||
        data.size() != 8 * sizeof(std::int32_t)) {
      return unsupported("only constant paddings of four dimensions are generated");
    }
    std::int32_t pads[8];
    std::memcpy(pads, data.data(), sizeof(pads));
    constexpr std::int32_t kMost = 1 << 14;
    if (std::any_of(pads, pads + 8, [](std::int32_t p) { return p < 0 || p > kMost; })) {
      return unsupported("paddings must be between 0 and {}", kMost);
    }
    if (pads[0] != 0 || pads[1] != 0 || pads[6] != 0 || pads[7] != 0) {
      return unsupported("padding of channels or of the batch is not generated yet");
    }
    if (view.padding != Padding{}) return unsupported("padding of a padded tensor is not generated yet");
    REEF_ASSIGN_OR_RETURN(const std::int32_t from_zero, chip_zero_point(from));
    REEF_ASSIGN_OR_RETURN(const std::int32_t to_zero, chip_zero_point(to));
    if (from_zero != to_zero || from.quantization.scale != to.quantization.scale) {
      return unsupported("input and output are quantized differently");
    }
    view.padding = {pads[2], pads[3], pads[4], pads[5]};
    views_[op.outputs[0]] = view;
    return ok_status();
  }

  Status add_layer(std::int32_t index) {
    const ir::Operator& op = op_at(index);
    REEF_ASSIGN_OR_RETURN(const View view, view_of(op));
    REEF_REQUIRE(op.inputs.size() >= 2 && op.inputs[1] >= 0, "the operator lacks its weights");
    TiledLayer layer;
    REEF_ASSIGN_OR_RETURN(const LayerWindows windows, windows_of(graph(), op, view.padding));
    layer.y = windows.y;
    layer.x = windows.x;
    layer.input = view.tensor;
    const auto step = static_cast<std::int32_t>(program_.layers.size());
    REEF_ASSIGN_OR_RETURN(layer.output, add_tensor(op.outputs[0], step));
    views_[op.outputs[0]] = View{layer.output, {}};
    TiledTensor& input = program_.tensors[static_cast<std::size_t>(view.tensor)];
    input.last_step = std::max(input.last_step, step);
    program_.layers.push_back(std::move(layer));
    layer_ops_.push_back(index);
    return ok_status();
  }

  Result<std::int32_t> add_tensor(std::int32_t source, std::int32_t step) {
    const ir::Tensor& from = tensor(source);
    if (from.shape.rank() != 4 || from.shape[0] != 1 || !from.shape.is_usable() || from.shape.elements() == 0) {
      return unsupported("tensor '{}' is {}; only images, with a batch of one, are generated",
                         ir::describe_name(from.name), from.shape.to_string());
    }
    constexpr std::int64_t kMostElements = std::int64_t{chip::kTiles} * chip::kNarrowBytes;
    if (from.shape.elements() > kMostElements) {
      return unsupported(
          "tensor '{}' has {} elements, more than the chip's {} bytes of memory for activations; work "
          "in several passes is not generated yet",
          ir::describe_name(from.name), from.shape.elements(), kMostElements);
    }
    TiledTensor result;
    result.source = source;
    result.height = from.shape[1];
    result.width = from.shape[2];
    result.channels = from.shape[3];
    result.pitch = (result.channels + chip::kNarrowWordBytes - 1) / chip::kNarrowWordBytes * chip::kNarrowWordBytes;
    REEF_ASSIGN_OR_RETURN(result.zero_point, chip_zero_point(from));
    result.first_step = step;
    result.last_step = step;
    program_.tensors.push_back(std::move(result));
    return static_cast<std::int32_t>(program_.tensors.size() - 1);
  }

  Status add_output(std::int32_t index) {
    const auto view = views_.find(index);
    REEF_REQUIRE(view != views_.end(), "output '{}' is not computed by the part",
                 ir::describe_name(tensor(index).name));
    if (view->second.padding != Padding{}) {
      return unsupported("output '{}' is padded outside of a convolution, which is not generated yet",
                         ir::describe_name(tensor(index).name));
    }
    tiled::TiledOutput output;
    output.tensor = view->second.tensor;
    program_.tensors[static_cast<std::size_t>(output.tensor)].last_step =
        static_cast<std::int32_t>(program_.layers.size());
    program_.outputs.push_back(output);
    program_.output_names.push_back(index);
    return ok_status();
  }

  // ---- Tiles ----

  void partition() {
    for (std::size_t t = 0; t < program_.tensors.size(); ++t) {
      std::vector<tiled::Window> rows, columns;
      for (const TiledLayer& layer : program_.layers) {
        if (layer.input != static_cast<std::int32_t>(t)) continue;
        rows.push_back(layer.y);
        columns.push_back(layer.x);
      }
      TiledTensor& tensor = program_.tensors[t];
      tensor.rows = tiled::AxisPartition::of(tensor.height, rows);
      tensor.columns = tiled::AxisPartition::of(tensor.width, columns);
    }
  }

  // Tiles behind the last one with data are not reached by the exchange of halos.
  static bool reads_beyond_owners(const tiled::AxisPartition& axis) {
    for (int t = axis.last_owner() + 1; t < tiled::kTilesPerAxis; ++t) {
      if (axis.tile(t).is_read) return true;
    }
    return false;
  }

  Status finish_layer(std::int32_t op) {
    const auto step =
        static_cast<std::size_t>(std::find(layer_ops_.begin(), layer_ops_.end(), op) - layer_ops_.begin());
    TiledLayer& layer = program_.layers[step];
    const TiledTensor& input = program_.tensors[static_cast<std::size_t>(layer.input)];
    const TiledTensor& output = program_.tensors[static_cast<std::size_t>(layer.output)];
    if (reads_beyond_owners(input.rows) || reads_beyond_owners(input.columns)) {
      return unsupported("an image of {}x{} is spread over fewer tiles than what is made of it, {}x{}", input.height,
                         input.width, output.height, output.width);
    }
    const std::int64_t pixels = std::int64_t{output.rows.max_own()} * output.columns.max_own();
    REEF_ASSIGN_OR_RETURN(TiledLayer made, layer_of(model_, op, pixels));
    made.input = layer.input;
    made.output = layer.output;
    made.y = layer.y;
    made.x = layer.x;
    layer = std::move(made);
    return ok_status();
  }

  // Rows come from the host as one stream for each row of tiles, in which every tile skips to its columns. That takes
  // equal shares, and columns that begin at whole words.
  static Status check_infeed(const TiledTensor& input) {
    const bool even = input.height % tiled::kTilesPerAxis == 0 && input.width % tiled::kTilesPerAxis == 0;
    const std::int64_t share = std::int64_t{input.width} / tiled::kTilesPerAxis * input.channels;
    if (!even || share % chip::kNarrowWordBytes != 0) {
      return unsupported(
          "an input of {}x{}x{} does not divide into 4x4 equal tiles of whole words; such inputs are "
          "not generated yet",
          input.height, input.width, input.channels);
    }
    const std::int64_t strip = std::int64_t{input.height} / tiled::kTilesPerAxis * input.width * input.channels;
    if (strip % chip::kActivationFifoUnitBytes != 0) {
      return unsupported(
          "a quarter of the input's rows has {} bytes, which is not a multiple of {}; such inputs are "
          "not generated yet",
          strip, chip::kActivationFifoUnitBytes);
    }
    return ok_status();
  }

  const ir::Model& model_;
  const std::vector<std::int32_t>& ops_;
  TiledProgram program_;
  std::map<std::int32_t, View> views_;   // by the model's tensors
  std::vector<std::int32_t> layer_ops_;  // of program_.layers
};

}  // namespace

Result<TiledProgram> lower(const ir::Model& model, const std::vector<std::int32_t>& ops,
                           const std::vector<std::int32_t>& inputs, const std::vector<std::int32_t>& outputs) {
  return Lowering(model, ops).run(inputs, outputs);
}

}  // namespace reef::lower
