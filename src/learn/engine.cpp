// SPDX-License-Identifier: Apache-2.0
#include "learn/engine.h"

#include <utility>

namespace reef::learn {

Status cannot_keep(const Head& head) {
  REEF_REQUIRE(head.kind != HeadKind::kNone, "it is an extractor: it has no classes to keep");
  REEF_REQUIRE(
      head.reads_normalized,
      "its classes cannot be kept: its last layer was not trained on normalized embeddings, so a class learned "
      "by imprinting would win over all of them. Give pictures of its classes too and learn them all anew, or "
      "start from a model for imprinting (docs/learn.md)");
  return ok_status();
}

ImprintingEngine::ImprintingEngine(ir::Model extractor, const Head& head, ReadImprinting kept)
    : extractor_(std::move(extractor)),
      head_(head),
      state_(kept.state),
      imprinting_(head.dimension, std::move(kept.classes)) {
  rows_.dimension = head.dimension;
}

Result<ImprintingEngine> ImprintingEngine::create(const ir::Model& model, bool keeps_classes,
                                                  std::string_view embedding) {
  REEF_ASSIGN_OR_RETURN(const Head head, find_head(model, embedding));
  ReadImprinting kept;
  if (keeps_classes) {
    REEF_RETURN_IF_ERROR(cannot_keep(head));
    REEF_ASSIGN_OR_RETURN(kept, read_classes(model, head));
  }
  REEF_ASSIGN_OR_RETURN(ir::Model extractor, extractor_of(model, head));
  return ImprintingEngine(std::move(extractor), head, std::move(kept));
}

Status ImprintingEngine::train(std::span<const float> embedding, int class_id) {
  REEF_RETURN_IF_ERROR(imprinting_.train(embedding, class_id));
  rows_.add(embedding, class_id);
  return ok_status();
}

void ImprintingEngine::set_name(int class_id, std::string name) {
  if (class_id >= 0 && class_id < classes()) {
    imprinting_.classes()[at(class_id)].name = std::move(name);
  }
}

Result<MadeHead> ImprintingEngine::made_head() const {
  const ir::Subgraph& graph = extractor_.subgraphs[0];
  const ir::Tensor& embedding = graph.tensors[at(graph.outputs[0])];
  return imprinting_head(embedding, head_.is_normalized, imprinting_.classes(), rows_, state_);
}

Result<ir::Model> ImprintingEngine::model() const {
  REEF_ASSIGN_OR_RETURN(const MadeHead made, made_head());
  return join(extractor_, made.model);
}

}  // namespace reef::learn
