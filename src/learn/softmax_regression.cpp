// SPDX-License-Identifier: Apache-2.0
#include "learn/softmax_regression.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "learn/lbfgs.h"
#include "learn/random.h"
#include "learn/softmax_loss.h"
#include "learn/vector_math.h"

namespace reef::learn {
namespace {

// Tried in this order, until the loss on what is held back has risen twice in a row.
constexpr double kStrengths[] = {1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4};

// Once so many rows have been held back the rest would say the same, and only take time.
constexpr std::size_t kRowsToJudge = 300;

// While strengths are tried, their minima need not be known exactly.
constexpr double kRoughTolerance = 1e-3;

// SGD never arrives: a loss on the part held back that falls by less than this share is not worth waiting for. L-BFGS
// does, so it is stopped only where that loss has risen by a share above its least.
constexpr double kProgress = 1e-3, kRise = 1e-2;

// One training run.
struct Run {
  std::vector<float> x;  // the best parameters by the part held back, or the last
  int iterations = 0;    // that led there
  double loss = 0;
  double held_back_loss = std::numeric_limits<double>::infinity();
  bool has_stopped_early = false;
  bool is_cancelled = false;
};

class Trainer {
 public:
  Trainer(const SoftmaxOptions& options, int classes, std::vector<double> class_weights, ThreadPool& pool)
      : options_(options), classes_(classes), class_weights_(std::move(class_weights)), pool_(pool) {}

  // Without `held_back` it trains for `iterations`.
  Run train(const Embeddings& rows, const Embeddings* held_back, double l2, std::vector<float> start,
            int iterations) const {
    const SoftmaxLoss loss(rows, classes_, class_weights_, l2, &pool_);
    if (start.empty()) start.resize(loss.parameters());
    Run run;
    run.x = start;
    int waited = 0;
    const auto judge = [&](int iteration, double value, const std::vector<float>& x) {
      if (options_.progress && !options_.progress(iteration, value)) run.is_cancelled = true;
      if (held_back == nullptr) {
        run.iterations = iteration;
        run.loss = value;
        return !run.is_cancelled;
      }
      const double now = SoftmaxLoss(*held_back, classes_, class_weights_, 0).evaluate(x, nullptr);
      const bool waits = options_.solver == Solver::kSgd ? now >= run.held_back_loss * (1 - kProgress)
                                                         : now > run.held_back_loss * (1 + kRise);
      waited = waits ? waited + 1 : 0;
      if (now < run.held_back_loss) {
        run.x = x;
        run.iterations = iteration;
        run.loss = value;
        run.held_back_loss = now;
      }
      run.has_stopped_early = waited >= options_.patience;
      return !run.is_cancelled && !run.has_stopped_early;
    };
    if (options_.solver == Solver::kLbfgs) {
      LbfgsOptions how;
      how.max_iterations = iterations;
      minimize([&](const auto& x, auto& gradient) { return loss.evaluate(x, &gradient); }, start, how, judge);
    } else {
      descend(loss, rows.size(), iterations, start, judge);
    }
    if (held_back == nullptr) run.x = std::move(start);
    return run;
  }

 private:
  // Mini-batches in an order drawn anew for each pass; the step shrinks as 1 / sqrt(pass).
  void descend(const SoftmaxLoss& loss, std::size_t rows, int passes, std::vector<float>& x,
               const Progress& judge) const {
    Random random(options_.seed);
    std::vector<std::size_t> order(rows);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::vector<float> gradient(x.size()), speed(x.size());
    const auto batch = static_cast<std::size_t>(std::max(1, options_.batch_size));
    for (int pass = 1; pass <= passes; ++pass) {
      random.shuffle(order);
      const auto rate = static_cast<float>(options_.learning_rate / std::sqrt(static_cast<double>(pass)));
      double sum = 0;
      for (std::size_t at = 0; at < rows; at += batch) {
        const auto some = std::span(order).subspan(at, std::min(batch, rows - at));
        sum += loss.evaluate(x, &gradient, some) * static_cast<double>(some.size());
        for (std::size_t i = 0; i < x.size(); ++i) {
          speed[i] = static_cast<float>(options_.momentum) * speed[i] - rate * gradient[i];
          x[i] += speed[i];
        }
      }
      if (!judge(pass, sum / static_cast<double>(rows), x)) return;
    }
  }

  const SoftmaxOptions& options_;
  int classes_;
  std::vector<double> class_weights_;
  ThreadPool& pool_;
};

Result<std::vector<double>> class_weights_of(const SoftmaxOptions& options, const std::vector<std::int64_t>& counts,
                                             std::size_t rows) {
  const std::size_t classes = counts.size();
  if (!options.class_weights.empty()) {
    REEF_REQUIRE(options.class_weights.size() == classes, "{} class weights are given for {} classes",
                 options.class_weights.size(), classes);
    for (const double weight : options.class_weights) {
      REEF_REQUIRE(std::isfinite(weight) && weight > 0, "a class weight is {}; they must be positive", weight);
    }
    return options.class_weights;
  }
  std::vector<double> weights(classes, 1.0);
  if (!options.are_classes_balanced) return weights;
  for (std::size_t c = 0; c < classes; ++c) {
    weights[c] = static_cast<double>(rows) / static_cast<double>(classes) / static_cast<double>(counts[c]);
  }
  return weights;
}

double mean_length(const Embeddings& embeddings) {
  double sum = 0;
  for (std::size_t i = 0; i < embeddings.size(); ++i) {
    sum += std::sqrt(static_cast<double>(dot(embeddings.row(i), embeddings.row(i))));
  }
  return sum > 0 ? sum / static_cast<double>(embeddings.size()) : 1;
}

Status check(const Embeddings& embeddings, int classes, const SoftmaxOptions& options) {
  REEF_REQUIRE(classes >= 2, "softmax regression needs at least 2 classes, there is {}", classes);
  REEF_RETURN_IF_ERROR(check_embeddings(embeddings, classes));
  const std::vector<std::int64_t> counts = images_per_class(embeddings, classes);
  for (std::size_t c = 0; c < counts.size(); ++c) REEF_REQUIRE(counts[c] > 0, "class {} has no embedding", c);
  REEF_REQUIRE(options.max_iterations > 0 && options.batch_size > 0, "iterations and batch size must be positive");
  REEF_REQUIRE(options.learning_rate > 0 && options.momentum >= 0 && options.momentum < 1,
               "the learning rate must be positive, momentum in [0, 1)");
  REEF_REQUIRE(!options.l2 || (std::isfinite(*options.l2) && *options.l2 >= 0), "l2 must not be negative");
  REEF_REQUIRE(options.held_back >= 0 && options.held_back < 1, "the share to hold back must be in [0, 1)");
  return ok_status();
}

// How strongly to regularize and how long to train, as rows held back like it best.
struct Choice {
  double l2 = kDefaultL2;
  int iterations = 0;
  bool has_stopped_early = false;
};

// Rows to train with and rows to validate with: as they are, not in a mirror.
struct Fold {
  Embeddings rows, held_back;
};
std::vector<Fold> made_folds(const Embeddings& rows, int classes, const SoftmaxOptions& options) {
  const int count = std::clamp(static_cast<int>(std::lround(1 / options.held_back)), 2, 10);
  std::vector<Fold> result;
  std::size_t judged = 0;
  for (const Division& parts : folds(rows.labels, classes, count, options.seed)) {
    if (result.size() >= 2 && judged >= kRowsToJudge) break;
    judged += parts.held_back.size();
    result.push_back({chosen(rows, parts.train), chosen(rows, parts.held_back)});
    result.back().held_back.mirrored.clear();
  }
  return result;
}

// The strength under which rows held back are most likely, by the minima themselves. Each minimum is near that of the
// strength before, where the search starts.
Result<double> choose_strength(const SoftmaxOptions& options, int classes, const std::vector<double>& class_weights,
                               const std::vector<Fold>& parts, ThreadPool& pool) {
  std::vector<std::vector<float>> minima(parts.size());
  LbfgsOptions how;
  how.max_iterations = options.max_iterations;
  how.gradient_tolerance = kRoughTolerance;
  double best = kStrengths[0], least = std::numeric_limits<double>::infinity(), before = least;
  int rises = 0;
  for (const double l2 : kStrengths) {
    double held_back_loss = 0;
    for (std::size_t k = 0; k < parts.size(); ++k) {
      const SoftmaxLoss loss(parts[k].rows, classes, class_weights, l2, &pool);
      minima[k].resize(loss.parameters());
      bool is_cancelled = false;
      minimize([&](const auto& x, auto& gradient) { return loss.evaluate(x, &gradient); }, minima[k], how,
               [&](int iteration, double value, const auto&) {
                 is_cancelled = options.progress && !options.progress(iteration, value);
                 return !is_cancelled;
               });
      if (is_cancelled) return make_error(StatusCode::kResourceExhausted, "training was cancelled");
      held_back_loss += SoftmaxLoss(parts[k].held_back, classes, class_weights, 0).evaluate(minima[k], nullptr);
    }
    rises = held_back_loss > before ? rises + 1 : 0;
    before = held_back_loss;
    if (held_back_loss < least) {
      least = held_back_loss;
      best = l2;
    }
    if (rises == 2) break;
  }
  return best;
}

Result<Choice> choose(const SoftmaxOptions& options, int classes, const std::vector<double>& class_weights,
                      const std::vector<Fold>& parts, ThreadPool& pool) {
  Choice choice;
  choice.iterations = options.max_iterations;
  if (options.l2) {
    choice.l2 = *options.l2;
  } else {
    REEF_ASSIGN_OR_RETURN(choice.l2, choose_strength(options, classes, class_weights, parts, pool));
    // Its minimum is what did best: L-BFGS goes there.
    if (options.solver == Solver::kLbfgs) return choice;
  }
  // How long: as most folds say. Passes of SGD are slow, so one fold answers for all.
  const Trainer trainer(options, classes, class_weights, pool);
  const std::size_t asked = options.solver == Solver::kSgd ? 1 : parts.size();
  double iterations = 0;
  std::size_t stopped = 0;
  for (std::size_t k = 0; k < asked; ++k) {
    const Run run = trainer.train(parts[k].rows, &parts[k].held_back, choice.l2, {}, options.max_iterations);
    if (run.is_cancelled) return make_error(StatusCode::kResourceExhausted, "training was cancelled");
    if (!run.has_stopped_early) continue;
    iterations += run.iterations;
    ++stopped;
  }
  choice.has_stopped_early = 2 * stopped > asked;
  if (choice.has_stopped_early) {
    choice.iterations = std::max(1, static_cast<int>(std::lround(iterations / static_cast<double>(stopped))));
  }
  return choice;
}

}  // namespace

Result<SoftmaxResult> train_softmax(const Embeddings& embeddings, int classes, const SoftmaxOptions& options) {
  REEF_RETURN_IF_ERROR(check(embeddings, classes, options));
  const std::vector<std::int64_t> counts = images_per_class(embeddings, classes);
  REEF_ASSIGN_OR_RETURN(std::vector<double> class_weights, class_weights_of(options, counts, embeddings.size()));
  const double unit = mean_length(embeddings);
  Embeddings scaled = embeddings;
  for (float& value : scaled.values) value = static_cast<float>(value / unit);
  for (float& value : scaled.mirrored) value = static_cast<float>(value / unit);

  ThreadPool pool(options.threads);
  Choice choice{options.l2.value_or(kDefaultL2), options.max_iterations, false};
  SoftmaxResult result;
  const bool can_spare = *std::min_element(counts.begin(), counts.end()) >= kRowsToHoldBack;
  if (options.held_back > 0 && can_spare) {
    const std::vector<Fold> parts = made_folds(scaled, classes, options);
    result.rows_held_back = static_cast<std::int64_t>(parts.front().held_back.size());
    REEF_ASSIGN_OR_RETURN(choice, choose(options, classes, class_weights, parts, pool));
  }
  const Run run = Trainer(options, classes, std::move(class_weights), pool)
                      .train(scaled, nullptr, choice.l2, {}, choice.iterations);
  if (run.is_cancelled) return make_error(StatusCode::kResourceExhausted, "training was cancelled");
  result.l2 = choice.l2;
  result.has_stopped_early = choice.has_stopped_early;
  result.iterations = run.iterations;
  result.loss = run.loss;
  LinearClassifier& layer = result.classifier;
  layer.classes = classes;
  layer.dimension = embeddings.dimension;
  const auto weights = static_cast<std::ptrdiff_t>(classes) * embeddings.dimension;
  layer.weights.assign(run.x.begin(), run.x.begin() + weights);
  layer.biases.assign(run.x.begin() + weights, run.x.end());
  for (float& weight : layer.weights) weight = static_cast<float>(weight / unit);
  return result;
}

}  // namespace reef::learn
