// SPDX-License-Identifier: Apache-2.0
// The packages of compiled files.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "formats/darwinn/reader.h"
#include "formats/tflite/reader.h"

namespace reef::testing {

// Of every Edge TPU op of a file that can be read, in order; none for a file without.
inline std::vector<darwinn::Package> packages_in(const std::string& path) {
  std::vector<darwinn::Package> packages;
  const auto model = tflite::load_model(path);
  if (!model.ok()) return packages;
  for (const ir::Subgraph& subgraph : model->subgraphs) {
    for (const ir::Operator& op : subgraph.operators) {
      if (!darwinn::is_edge_tpu_op(op)) continue;
      auto options = darwinn::read_custom_options(op.custom_options);
      if (options.ok()) packages.push_back(std::move(options->package));
    }
  }
  return packages;
}

}  // namespace reef::testing
