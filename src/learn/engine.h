// SPDX-License-Identifier: Apache-2.0
// Imprinting from model to model, one embedding at a time: the shape of Coral's ImprintingEngine, for callers who run
// the extractor themselves.
//
//   create(model) -> { run extractor() on a picture, train(its output, class) } ... -> model()
//
// Any classifier or extractor is accepted (head.h), compiled for the Edge TPU or not. Everything else is as in
// imprinting.h.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "ir/model.h"
#include "learn/embeddings.h"
#include "learn/head.h"
#include "learn/imprinting_head.h"

namespace reef::learn {

class ImprintingEngine {
 public:
  // `model` must be verified. `keeps_classes`: its classes stay; fails where that cannot be (see cannot_keep).
  static Result<ImprintingEngine> create(const ir::Model& model, bool keeps_classes, std::string_view embedding = {});

  int dimension() const { return imprinting_.dimension(); }
  int classes() const { return static_cast<int>(imprinting_.classes().size()); }
  const ir::Model& extractor() const { return extractor_; }
  const Head& head() const { return head_; }
  const std::vector<ImprintedClass>& state() const { return imprinting_.classes(); }

  // `class_id`: a class that imprinting made, or classes(): a new one.
  Status train(std::span<const float> embedding, int class_id);
  void set_name(int class_id, std::string name);

  // The head that was learned so far. Fails if there is no class.
  Result<MadeHead> made_head() const;
  Result<ir::Model> model() const;

 private:
  ImprintingEngine(ir::Model extractor, const Head& head, ReadImprinting kept);

  ir::Model extractor_;
  Head head_;
  ImprintingHeadState state_;
  Imprinting imprinting_;
  Embeddings rows_;  // that it was trained with
};

// Why the classes of a model with this head cannot be kept; ok: they can.
Status cannot_keep(const Head& head);

}  // namespace reef::learn
