// SPDX-License-Identifier: Apache-2.0
// What the lowerings of operators build a TiledProgram with.
//
// Lowering is done in two rounds. In the first, each operator (in order) adds its steps and says what they read and
// write, and through which windows. Then it is known who reads each tensor, so tensors are cut over the tiles with the
// halos that their readers need. In the second round each step is finished: what depends on the tiles' shares (loop
// orders, scratch memory) is filled in.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "ir/model.h"
#include "lower/row_slices.h"
#include "tiled/program.h"

namespace reef::lower {

using tiled::TiledTensor;

inline constexpr std::int32_t kWord = chip::kNarrowWordBytes;

// Padding in front of an operator that is not the operator's own, in pixels.
struct Padding {
  std::int32_t top = 0, bottom = 0, left = 0, right = 0;
  friend bool operator==(const Padding&, const Padding&) = default;
};

// What a tensor of the model is on the chip: a tiled tensor, perhaps with pixels of padding around it that only readers
// through windows can see (others have them made real).
struct Value {
  std::int32_t tensor = -1;  // TiledProgram::tensors
  Padding padding;
};

class RearrangementCache;  // rearrangement_cache.h

// Sizes of scratch memory that take long to find, by everything that they follow from; for sketches.
struct SketchSizes {
  struct Sizes {
    std::int64_t buffer = 0, scratch = 0;
  };
  std::map<std::vector<std::int32_t>, Sizes> rearrangements;
};

struct Windows {
  tiled::Window y, x;
};
// A tensor seen as an image.
struct Image {
  std::int32_t height = 1, width = 1, channels = 1;
  friend bool operator==(const Image&, const Image&) = default;
};
// Tensors of four dimensions (a batch of one) are images, vectors single pixels. The rows of other matrices become
// pixels, in an image as square as their number allows, so that all tiles have a share. Fails for other shapes, and for
// those that no chip could hold.
Result<Image> image_of(const ir::Tensor& tensor);
// A tensor that a step reads. Without windows it reads what its tiles own.
struct Read {
  std::int32_t tensor = -1;  // TiledProgram::tensors
  std::optional<Windows> windows = std::nullopt;
};

class Builder {
 public:
  Builder(const ir::Model& model, const std::vector<std::int32_t>& ops);

  // Steps that are added from now on for a change of layout are the operator's.
  void begin_op(std::int32_t op) { op_ = op; }

  // ---- The model ----
  const ir::Model& model() const { return model_; }
  const ir::Subgraph& graph() const { return model_.subgraphs[0]; }
  const ir::Tensor& source(std::int32_t tensor) const { return graph().tensors[reef::at(tensor)]; }
  const std::vector<std::int32_t>& ops() const { return ops_; }  // of the part
  const ir::Operator& op(std::int32_t index) const { return graph().operators[reef::at(index)]; }
  // Operand `k` of an operator; fails where there is none.
  Result<std::int32_t> operand(std::int32_t op, std::size_t k) const;

  // ---- Values ----
  // As it is, padding and all, in whatever layout and shape (RESHAPE changes nothing). Fails for constants and for what
  // is not computed on the chip.
  Result<Value> value(std::int32_t source) const;
  // In the layout that a reader needs, without padding: as it is where it is so already, else steps are added that make
  // it so. The elements are always in the order of the model's tensor.
  //   grid      an image over the tiles: image_of the model's tensor
  //   vector    a single pixel of all elements, cut by channels
  //   copies    everything on each tile of a set (perhaps on more): an image of any shape, whose pixels may have
  //   padding
  //             behind them
  Result<std::int32_t> grid(std::int32_t source);
  Result<std::int32_t> grid(std::int32_t source, const Image& image);  // of another shape
  Result<std::int32_t> vector(std::int32_t source);
  Result<std::int32_t> copies(std::int32_t source, tiled::TileMask tiles);
  // The same as one pixel of all elements.
  Result<std::int32_t> packed_copies(std::int32_t source, tiled::TileMask tiles);
  // The same with a pixel for each row of the model's tensor, seen as a matrix of its last dimension.
  Result<std::int32_t> row_copies(std::int32_t source, tiled::TileMask tiles);
  // The same of a tiled tensor.
  std::int32_t copies_of(std::int32_t from, tiled::TileMask tiles);
  // On the grid; perhaps with padding, which readers through windows find in the halo.
  Result<Value> image(std::int32_t source);
  // The same for readers through windows. In a slice, halos of an image that is there as a whole, of fewer rows than
  // tiles, do not reach all tiles: such a one is copied to where its rows are needed.
  Result<Value> image_for_windows(std::int32_t source);
  // In whatever layout and shape it has, without padding.
  Result<std::int32_t> any_layout(std::int32_t source);
  // In a slice, the rows of a result are made where they belong: nothing else may be in the value's memory yet.
  void set_value(std::int32_t source, const Value& value);
  // A variable of the model has this value from now on, which the host gets when all is done.
  void set_state(std::int32_t source, std::int32_t tensor);
  const std::vector<std::int32_t>& states() const { return states_; }  // in the order of their first change
  // A tensor on the grid, with memory of its own; not the value of anything yet. Its elements in their order, as an
  // image of the given shape, or of image_of.
  Result<std::int32_t> new_grid(std::int32_t source);
  // A tensor of any layout, with memory of its own.
  std::int32_t add_tensor(tiled::TiledTensor tensor);
  // With these rows instead of the slice's, if there are any.
  std::int32_t add_tensor(tiled::TiledTensor tensor, const std::optional<tiled::TileRanges>& rows);
  // A single pixel cut by channels, `run` to a tile, with memory of its own.
  Result<std::int32_t> new_vector(std::int32_t source, std::int32_t run = tiled::kVectorRun);
  Result<std::int32_t> new_grid(std::int32_t source, const Image& image);
  // With these rows instead of the slice's.
  Result<std::int32_t> new_grid(std::int32_t source, const Image& image, const tiled::TileRanges& rows);
  // `count` pixels for each pixel of another tensor on the grid, on the tiles that own those: of attention's scores,
  // where each token has a row for each head. The elements' order is not the model's: only who knows that may read it.
  // Tensors that are made like it are cut as it is. With `rows`, of these rows of the other tensor alone.
  Result<std::int32_t> new_grid_of_pixels(std::int32_t source, std::int32_t of, std::int32_t count,
                                          std::int32_t channels,
                                          const std::optional<tiled::TileRanges>& rows = std::nullopt);

  // Whether nothing but one operator reads the tensor (TiledProgram's), under whatever names the model knows it.
  bool has_one_reader(std::int32_t tensor) const;
  // Makes the tensor a part of `whole`, from its channel `first` on: whatever writes it writes there. False, and
  // nothing is changed, where it cannot be: both must be images of the same size, of whole words of channels; nothing
  // may have read it yet.
  bool put_into(std::int32_t tensor, std::int32_t whole, std::int32_t first);

  // A tensor spread over the tiles as `like` is, with memory of its own; not the value of anything yet. Fails unless
  // the model's tensor has as many elements. What is made like some of attention's scores has as many of them.
  Result<std::int32_t> new_like(std::int32_t source, std::int32_t like);

  // ---- Work in slices (row_slices.h) ----
  // What a slice has of each tensor. Until end_slice(), tensors of the model that are listed here are made with these
  // rows instead of all, and steps that read others need rows of those as they are listed.
  struct Slice {
    std::map<std::int32_t, tiled::TileRanges> rows;   // by tensor of the model: what is made, also copies of others
    std::map<std::int32_t, std::int32_t> wholes;      // by tensor of the model: the tiled tensor that gets the rows
    std::map<std::int32_t, tiled::TileRanges> reads;  // by tiled tensor: rows of it that are needed
    std::set<std::int32_t> made;                      // tensors of the model: paddings that are not left to windows
  };
  void begin_slice(Slice slice);
  // What was made of tensors that are there as a whole is forgotten.
  void end_slice();
  // The rows of a tensor of the model that a slice makes; nothing: all, or it is not in the slice.
  std::optional<tiled::TileRanges> slice_rows(std::int32_t source) const;
  bool must_make(std::int32_t source) const { return slice_ && slice_->made.contains(source); }
  // From now on the slice makes these rows of a tensor of the model, as a part of `whole`.
  void make_in(std::int32_t source, std::int32_t whole, const tiled::TileRanges& rows);
  // All of that `whole` is there, or will be: the slice has these rows, and readers find them in it. Returns it.
  std::int32_t use_whole(std::int32_t source, const tiled::TileRanges& rows);
  // Some rows of a tensor, in its place: they can be read or written by themselves.
  std::int32_t rows_of(std::int32_t tensor, const tiled::TileRanges& rows);
  // There is no such tensor any more; it may be made again.
  void forget_value(std::int32_t source) { values_.erase(source); }
  bool in_slice() const { return slice_.has_value(); }
  // Steps of an operator, which are several in slices: the first makes what all use, by the needs of all.
  const std::vector<std::int32_t>& steps_of(std::int32_t op) const { return steps_of_op_.at(op); }

  // ---- Memory and parameters ----
  std::int32_t new_narrow(std::int64_t bytes);
  std::int32_t new_wide(std::int64_t lines);
  std::int32_t new_parameters(tiled::ParameterChunk chunk);

  // ---- Steps ----
  // `finish` is called when all tensors are cut. It may change the step's work, add memory and list it as used.
  using Finish = std::function<Status(Builder&, tiled::Step&)>;
  std::int32_t add_step(std::int32_t op, tiled::Work work, const std::vector<Read>& reads,
                        const std::vector<std::int32_t>& writes, Finish finish = nullptr);

  // For `finish` functions: a step that is to come directly before the one that is being finished. Its tensors are cut,
  // it is finished itself.
  void insert_before(tiled::Step step) { inserted_.push_back(std::move(step)); }
  // For `finish` functions: the step that is executed before the one that is being finished; null if there is none. Not
  // to be kept.
  tiled::Step* previous_step() {
    if (!inserted_.empty()) return &inserted_.back();
    return finished_.empty() ? nullptr : &finished_.back();
  }
  // For `finish` functions: memory of the tensor is free for the result of the step that is being finished; no later
  // step reads it or anything in the same place, and it is not among the part's results.
  bool is_last_read(std::int32_t tensor) const;
  // For `finish` functions: the result takes over the place of an operand if all of the operand's bytes are free, both
  // lie in memory in the same way, and the result has no place that it shares.
  bool take_place(std::int32_t result, std::int32_t operand);
  // For `finish` functions: the identity line, as a step uses it that is finished (or inserted) now. Steps must ask in
  // the order in which they are executed: the first makes the line.
  tiled::Identity identity(tiled::Step& step);
  // A tensor like another one, which is cut, with memory of its own and without halo: with as many of its pixels as
  // `owner` has. For `finish` functions.
  std::int32_t new_without_halo(std::int32_t tensor, std::int32_t owner);

  // For `finish` functions: only how large tensors are and when they exist is asked for.
  bool is_sketch() const { return is_sketch_; }
  SketchSizes* sketch_sizes() { return sketch_sizes_; }  // null: there are none from before
  void set_sketch(bool is_sketch, SketchSizes* sizes) {
    is_sketch_ = is_sketch;
    sketch_sizes_ = is_sketch ? sizes : nullptr;
  }

  // For `finish` functions: movements of elements that were planned before; null: none are remembered.
  RearrangementCache* movements() { return movements_; }
  void set_movements(RearrangementCache* movements) { movements_ = movements; }

  // Convolutions of which several pixels may be computed at a time (pixel_patches.h), if the options allow any.
  void add_patchable(std::int32_t step) {
    if (may_patch_) patchable_.push_back(step);
  }
  const std::vector<std::int32_t>& patchable_steps() const { return patchable_; }
  void set_patches(bool may_patch) { may_patch_ = may_patch; }

  tiled::Level level() const { return program_.level; }
  numeric::LstmArguments lstm_arguments() const { return lstm_arguments_; }
  void set_lstm_arguments(numeric::LstmArguments kind) { lstm_arguments_ = kind; }
  tiled::TiledProgram& program() { return program_; }
  const tiled::TiledProgram& program() const { return program_; }
  const tiled::TiledTensor& tensor(std::int32_t index) const { return program_.tensor(index); }

  // Cuts the tensors, finishes the steps and sets lifetimes. `at`: the operator whose step could not be finished; -1:
  // none.
  Result<tiled::TiledProgram> finish(std::int32_t& at) &&;

 private:
  using CopiesOf = std::vector<tiled::RingCopy> (*)(const tiled::TiledTensor& from, const tiled::TiledTensor& to);
  std::int32_t add_layout(std::int32_t from, tiled::TiledTensor tensor, CopiesOf copies_of);
  template <typename Fits>
  std::optional<std::int32_t> known_layout(std::int32_t from, const Fits& fits) const;
  Result<std::int32_t> rearranged(std::int32_t from, tiled::TiledTensor tensor);
  bool is_read_by_windows(std::int32_t tensor) const {
    const Use& use = tensor_uses_[reef::at(tensor)];
    return !use.columns.empty() || !use.rows.empty();
  }
  void drop_unread_functions();
  void cut_tensors();
  void cut_tensor(std::int32_t index, std::vector<bool>& is_cut);
  Status finish_steps(std::int32_t& at);
  void set_lifetimes();

  const ir::Model& model_;
  const std::vector<std::int32_t>& ops_;
  tiled::TiledProgram program_;
  numeric::LstmArguments lstm_arguments_ = numeric::LstmArguments::kWide;
  std::map<std::int32_t, Value> values_;  // by the model's tensors
  std::vector<std::int32_t> states_;      // variables that are changed
  // By tiled tensor: how it is read, and the rows that it has in a slice.
  struct Use {
    std::vector<tiled::Window> rows, columns;
    tiled::TileRanges rows_needed{};         // besides those of the windows
    std::optional<tiled::TileRanges> slice;  // instead of its share
    std::int32_t whole = -1;                 // the tensor it is a part of
    std::int32_t pixels_of = -1;             // columns are those of another tensor, each `pixel_count` times
    std::int32_t pixel_count = 1;
  };
  std::vector<Use> tensor_uses_;
  std::map<std::int32_t, std::vector<std::int32_t>> steps_of_op_;
  struct ChunkOfStep {
    std::int32_t chunk = 0;
    std::size_t step = 0;  // that asked for it
  };
  std::map<std::int32_t, std::vector<ChunkOfStep>> chunks_of_op_;
  std::optional<Slice> slice_;
  bool is_sketch_ = false;
  bool may_patch_ = false;
  std::vector<std::int32_t> patchable_;  // steps
  SketchSizes* sketch_sizes_ = nullptr;
  RearrangementCache* movements_ = nullptr;
  std::map<std::int32_t, Value> values_before_slice_;
  std::size_t layouts_before_slice_ = 0;
  std::vector<std::pair<std::int32_t, std::int32_t>> layouts_;  // a tiled tensor, and another of the same elements
  std::int32_t op_ = -1;                                        // that is being lowered
  std::vector<Finish> finishes_;                                // by step
  std::size_t finishing_ = 0;                                   // step
  std::vector<tiled::Step> inserted_;                           // before it
  std::vector<tiled::Step> finished_;                           // before these
  std::int32_t identity_ = tiled::kNowhere;                     // TiledProgram::wide
  std::vector<std::int32_t> uses_;  // by the model's tensors: as an operand, as a result of the model
  struct Part {
    std::int32_t whole = -1, first = 0;  // its channel
  };
  std::map<std::int32_t, Part> parts_;  // tiled tensors that lie in another one
};

// The zero point of an 8-bit tensor as the chip has it, 0..255. Fails where the tensor is not quantized with one scale.
Result<std::int32_t> chip_zero_point(const ir::Tensor& tensor);
// Both tensors have the same scale and meaning: the chip's bytes are the same, whether int8 or uint8.
Result<bool> same_quantization(const ir::Tensor& a, const ir::Tensor& b);

// Lowers one operator: adds its steps, sets the values of its results. Fails with kUnsupported and the reason where
// there is no code.
using OpLowering = Status (*)(Builder&, std::int32_t op);
// Null: there is none for this type of operator (lowerings.def has them all).
OpLowering find_lowering(const std::string& op_type);

}  // namespace reef::lower
