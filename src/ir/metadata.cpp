// SPDX-License-Identifier: Apache-2.0
#include "ir/metadata.h"

#include "base/at.h"

namespace reef::ir {
namespace {

bool has_buffer(const Model& model, const Metadata& entry) {
  return entry.buffer >= 0 && static_cast<std::size_t>(entry.buffer) < model.buffers.size();
}

}  // namespace

const Bytes* find_metadata(const Model& model, std::string_view name) {
  for (const Metadata& entry : model.metadata) {
    if (entry.name == name && has_buffer(model, entry)) return &model.buffers[at(entry.buffer)].data;
  }
  return nullptr;
}

void set_metadata(Model& model, std::string_view name, std::string_view text) {
  Buffer buffer;
  buffer.data = Bytes(std::vector<std::uint8_t>(text.begin(), text.end()));
  for (const Metadata& entry : model.metadata) {
    if (entry.name != name || !has_buffer(model, entry)) continue;
    model.buffers[at(entry.buffer)] = std::move(buffer);
    return;
  }
  if (model.buffers.empty()) model.buffers.emplace_back();  // number 0 means none
  model.metadata.push_back({std::string(name), static_cast<std::int32_t>(model.buffers.size())});
  model.buffers.push_back(std::move(buffer));
}

}  // namespace reef::ir
