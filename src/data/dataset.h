// SPDX-License-Identifier: Apache-2.0
// A folder of pictures or NumPy arrays as samples for a model, with what is right for each where the data say so.
//
// Folder: pictures in the order of their names; sub-folders are classes. Arrays (.npz, .npy): one sample for each index
// of the first dimension; uint8 arrays are pixels and preprocessed, others are taken as they are. Layouts (channels
// last or first) are recognised by shape. Pictures are decoded when they are read, arrays unpacked once. All functions
// are safe to call from several threads.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/budget.h"
#include "base/status.h"
#include "data/picture.h"
#include "data/preprocess.h"
#include "data/sample_source.h"

namespace reef::data {

enum class Use { kCalibration, kEvaluation };  // decides which arrays are looked for first

struct DatasetOptions {
  std::string path = {};
  Use use = Use::kEvaluation;
  std::string arrays = {};  // names in an .npz for the model's inputs, with commas between them; empty: by usual names
  std::string truth = {};   // array of an .npz, or an .npy or .txt file (name, label); empty: by usual names
  std::string labels = {};  // file of class names, one a line: what sub-folders and file names of pictures refer to
  std::string preprocess = {};  // text form; empty: as stored in the model, or what suits its input
  std::int64_t limit = 0;       // first so many, after shuffling; 0: all
  std::optional<std::uint32_t> shuffle_seed = {};
  Budget budget = {};  // arrays are counted against it before they are unpacked
};

// The right answer for a sample: a class number, boxes, a picture, a mask.
struct Truth {
  ir::DataType type = ir::DataType::kInt64;
  std::vector<std::int64_t> shape;  // empty: one number
  std::vector<double> values;
};

// Where samples lie, before they are chosen and preprocessed.
class SampleStore {
 public:
  virtual ~SampleStore() = default;
  virtual std::int64_t size() const = 0;
  virtual Status read(std::int64_t sample, const InputSpec& input, const Preprocess& preprocess,
                      std::span<std::byte> target) const = 0;
  virtual bool has_truth() const = 0;
  virtual Result<Truth> truth(std::int64_t sample) const = 0;
  virtual bool holds_pictures() const = 0;  // input 0 comes from pixels
  // Width and height of a sample's picture.
  virtual Result<std::pair<int, int>> picture_size(std::int64_t sample) const = 0;
  virtual std::string describe() const = 0;
  virtual std::string name_of(std::int64_t sample) const = 0;  // file, or array and number
};
Result<std::unique_ptr<SampleStore>> open_arrays(const DatasetOptions& options, const ir::Model& model);
Result<std::unique_ptr<SampleStore>> open_folder(const DatasetOptions& options);

class Dataset : public SampleSource {
 public:
  // `model` must have passed ir::verify: the names and shapes of its inputs decide which arrays are taken.
  static Result<std::shared_ptr<const Dataset>> open(const DatasetOptions& options, const ir::Model& model);

  std::int64_t size() const override { return static_cast<std::int64_t>(order_.size()); }
  Status read(std::int64_t sample, const InputSpec& input, std::span<std::byte> target) const override;

  bool has_truth() const { return store_->has_truth(); }
  Result<Truth> truth(std::int64_t sample) const;
  // Where the picture lies in the model's input 0; nothing is moved where samples are no pictures.
  Result<Placement> placement(std::int64_t sample, const InputSpec& input) const;
  Result<std::pair<int, int>> picture_size(std::int64_t sample) const;

  // Where a sample lies among all that are stored, before --shuffle and --limit.
  std::int64_t stored_number(std::int64_t sample) const { return order_[static_cast<std::size_t>(sample)]; }
  std::int64_t stored_samples() const { return store_->size(); }

  const ChosenPreprocess& preprocess() const { return preprocess_; }
  bool holds_pictures() const { return store_->holds_pictures(); }
  // "2000 samples: array 'images' uint8 [2000, 32, 32, 3] of x.npz, labels from 'labels'"
  std::string describe() const;
  std::string name_of(std::int64_t sample) const { return store_->name_of(order_[static_cast<std::size_t>(sample)]); }

 private:
  std::unique_ptr<SampleStore> store_;
  std::vector<std::int64_t> order_;  // samples of the store
  ChosenPreprocess preprocess_;
};

}  // namespace reef::data
