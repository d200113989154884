// SPDX-License-Identifier: Apache-2.0
// Pictures or arrays on a disk as samples for a model, with what is right for each where the data say so.
//
// Folder: pictures in the order of their names; sub-folders are classes. Arrays (.npz, .npy): one sample for each index
// of the first dimension; uint8 arrays are pixels and preprocessed, others are taken as they are. Shards
// (shard_files.h): TFRecord files of tf.train.Example, tar archives as WebDataset has them. Layouts (channels last or
// first) are recognised by shape. Pictures are decoded when they are read, arrays unpacked once; of shards only the
// places of samples are in memory. All functions are safe to call from several threads.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/budget.h"
#include "base/status.h"
#include "data/picture.h"
#include "data/preprocess.h"
#include "data/sample_source.h"
#include "formats/numpy/npy.h"

namespace reef::data {

enum class Use { kCalibration, kEvaluation };  // decides which arrays are looked for first

struct DatasetOptions {
  std::string path = {};  // folder, file, or several shards (shard_files.h)
  Use use = Use::kEvaluation;
  std::string arrays = {};  // names in an .npz for the model's inputs, with commas between them; empty: by usual names
  std::string truth = {};   // array of an .npz, or an .npy or .txt file (name, label); empty: by usual names
  std::string labels = {};  // file of class names, one a line: what sub-folders and file names of pictures refer to
  std::string preprocess = {};         // text form; empty: as stored in the model, or what suits its input
  std::int64_t limit = 0;              // first so many, after shuffling; 0: all
  std::int64_t shard = 0, shards = 1;  // of these, every `shards`-th from `shard` on
  std::optional<std::uint32_t> shuffle_seed = {};
  Budget budget = {};  // arrays are counted against it before they are unpacked
};

// The right answer for a sample: a class number, boxes, a picture, a mask.
struct Truth {
  ir::DataType type = ir::DataType::kInt64;
  std::vector<std::int64_t> shape;  // empty: one number
  std::vector<double> values;
};

// A sample as it is stored, for one input: an encoded picture, or one row of an array ([1, ...]).
struct StoredSample {
  Bytes picture;  // empty: it is the row
  numpy::Array row;
};

// Bytes of a file, as they are when it is unpacked, that belong to a sample.
struct FilePiece {
  std::string file;
  std::string name;  // of the member of an archive
  std::uint64_t at = 0, bytes = 0;
};

// Where samples lie, before they are chosen and preprocessed.
class SampleStore {
 public:
  virtual ~SampleStore() = default;
  virtual std::int64_t size() const = 0;
  // `input` says which of several it is, and the shape that bytes without a shape have; its shape may be empty.
  virtual Result<StoredSample> stored(std::int64_t sample, const InputSpec& input) const = 0;
  virtual bool has_truth() const = 0;
  virtual Result<Truth> truth(std::int64_t sample) const = 0;
  virtual bool holds_pictures() const = 0;  // input 0 comes from pixels
  virtual std::string describe() const = 0;
  virtual std::string name_of(std::int64_t sample) const = 0;  // file, or array and number
  // The same for messages: where a person finds it.
  virtual std::string place_of(std::int64_t sample, const InputSpec& /*input*/) const { return name_of(sample); }
  // Of shards: all that belongs to the sample, for whoever cuts shards into others. A record with its checksums.
  virtual std::vector<FilePiece> pieces_of(std::int64_t /*sample*/) const { return {}; }
  // Names of classes by number, where the data themselves tell them.
  virtual std::map<std::int64_t, std::string> class_names() const { return {}; }
};
Result<std::unique_ptr<SampleStore>> open_folder(const DatasetOptions& options);
// `model`: the names and shapes of its inputs decide which arrays, features or members are taken; null: usual names.
Result<std::unique_ptr<SampleStore>> open_arrays(const DatasetOptions& options, const ir::Model* model);
Result<std::unique_ptr<SampleStore>> open_records(const DatasetOptions& options, const std::vector<std::string>& files,
                                                  const ir::Model* model);
Result<std::unique_ptr<SampleStore>> open_tars(const DatasetOptions& options, const std::vector<std::string>& files,
                                               const ir::Model* model);
// Whichever it is.
Result<std::unique_ptr<SampleStore>> open_store(const DatasetOptions& options, const ir::Model* model);

// Work on samples between the disk and a model's input, over all threads since the data were opened.
struct ReadCounters {
  std::int64_t samples = 0;
  double reading = 0, decoding = 0, fitting = 0;  // seconds, measured
};

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
  std::int64_t stored_number(std::int64_t sample) const { return order_[reef::at(sample)]; }
  std::int64_t stored_samples() const { return store_->size(); }

  const ChosenPreprocess& preprocess() const { return preprocess_; }
  bool holds_pictures() const { return store_->holds_pictures(); }
  // "2000 samples: array 'images' uint8 [2000, 32, 32, 3] of x.npz, labels from 'labels'"
  std::string describe() const;
  std::string name_of(std::int64_t sample) const { return store_->name_of(order_[reef::at(sample)]); }
  std::map<std::int64_t, std::string> class_names() const { return store_->class_names(); }
  std::vector<FilePiece> pieces_of(std::int64_t sample) const { return store_->pieces_of(order_[reef::at(sample)]); }
  ReadCounters counters() const;

 private:
  enum Part { kReading, kDecoding, kFitting, kParts };
  std::unique_ptr<SampleStore> store_;
  std::vector<std::int64_t> order_;  // samples of the store
  ChosenPreprocess preprocess_;
  mutable std::atomic<std::int64_t> samples_read_{0};
  mutable std::array<std::atomic<std::int64_t>, kParts> nanoseconds_{};
};

}  // namespace reef::data
