// SPDX-License-Identifier: Apache-2.0
// A data pipeline: samples are read, decoded, resized, varied and put into batches on threads, ahead of whoever uses
// them.
//
//   Flow flow(store);                                  // open_store(): a folder, .npy/.npz, TFRecord or tar shards
//   flow.shuffle(7).shard(rank, ranks).resize({.width = 96, .height = 96}).flip(0.5).batch(32);
//   REEF_ASSIGN_OR_RETURN(const auto run, flow.start(epoch));
//   for (;;) {
//     REEF_ASSIGN_OR_RETURN(const std::optional<Batch> batch, run->next());
//     if (!batch) break;
//   }
//
// Guarantees. The order is a function of seed and epoch. Every random choice is a function of seed, epoch, the sample's
// number in the store and the place of the step, so that batches have the same bytes for any number of threads, and a
// sample is varied alike in whichever shard it is. Threads belong to no stage: a free thread takes the work that is
// nearest to the end, so that none waits while there is work and room. At most `ahead` samples are on their way.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "data/dataset.h"
#include "data/variation.h"
#include "formats/image/image.h"
#include "formats/numpy/npy.h"

namespace reef::data {

// A sample between two steps.
struct FlowSample {
  std::int64_t number = 0;  // in the store
  Bytes file;               // an encoded picture, until it is decoded
  image::Image picture;     // empty width: none
  numpy::Array values;      // of samples that are no pictures: one row of an array
  std::optional<Truth> truth;
};

// A store that gives a sample and what is right for it at once, where both cost one piece of work.
class SampleGiver : public SampleStore {
 public:
  virtual Result<FlowSample> give(std::int64_t number) const = 0;
};

struct Batch {
  numpy::Array samples;  // uint8 [n, height, width, channels] for pictures, else [n, ...] of the array's type
  std::vector<std::int64_t> numbers;  // of the samples in the store
  std::vector<std::optional<Truth>> truths;
  // Of mixed pictures: row i is `share` of itself and the rest of row mixed_with[i]; empty: nothing was mixed.
  std::vector<std::int64_t> mixed_with;  // rows of this batch
  double share = 1;
};

// What a stage did since the run began. For a stage, seconds of `busy` add up over threads; the others are wall time
// during which nobody worked in the stage.
struct StageCounters {
  std::string name;              // "read", "decode", "resize", ..., "batch"
  std::int64_t items = 0;        // that it finished
  double busy = 0;               // seconds, measured
  double waited_for_input = 0;   // nothing had arrived from the stage before
  double waited_for_room = 0;    // nothing may arrive: as many samples as allowed wait for the user
  double waited_for_thread = 0;  // it had work, and all threads were busy elsewhere
};

class FlowRun {
 public:
  virtual ~FlowRun() = default;  // what is on its way is dropped
  // The next batch in order; nothing: the epoch is over. After an error, which names the sample, there are no more.
  virtual Result<std::optional<Batch>> next() = 0;
  virtual std::vector<StageCounters> counters() const = 0;
  // Seconds, measured, during which a thread slept although a stage had work and room: waking it takes so long.
  virtual double idle_with_work() const = 0;
};

struct FlowPlan;  // flow_plan.h

class Flow {
 public:
  explicit Flow(std::shared_ptr<const SampleStore> store);

  // ---- Order. Applied one after the other to [0, size of the store).
  Flow& shuffle(std::uint64_t seed);                    // anew in each epoch
  Flow& shard(std::int64_t index, std::int64_t count);  // every count-th, from `index` on
  Flow& take(std::int64_t count);
  Flow& skip(std::int64_t count);

  // ---- Steps of a sample, in the order of these calls.
  Flow& decode(int channels);  // comes by itself, with 3 channels, before the first step that needs pixels
  Flow& resize(const Resize& how);
  Flow& vary(const Variation& how);                                          // flip, shift, crop, colour
  Flow& map(std::string name, std::function<Status(FlowSample&)> function);  // called from several threads
  Flow& cache(std::int64_t most_bytes);  // keeps what the steps above gave; only before the first random step

  // ---- Batches.
  Flow& batch(std::int64_t size, bool drop_last = false);  // default: one sample
  Flow& mixup(double alpha);                               // in the batch; share drawn from Beta(alpha, alpha)

  Flow& threads(int count);                  // default: as many as there are cores
  Flow& ahead(std::int64_t samples);         // default: 4 batches, at least 2 samples for each thread
  Flow& variation_seed(std::uint64_t seed);  // default: 0

  std::int64_t size() const;  // samples of an epoch
  const SampleStore& store() const;
  std::vector<std::int64_t> order(std::int64_t epoch) const;  // numbers in the store
  // Fails where steps do not fit together. Runs may overlap; they share the cache.
  Result<std::unique_ptr<FlowRun>> start(std::int64_t epoch) const;

 private:
  std::shared_ptr<FlowPlan> plan_;
};

}  // namespace reef::data
