// SPDX-License-Identifier: Apache-2.0
// The model's inputs and outputs: sizes that are open, values that are fixed, channels-last images.
#include <algorithm>
#include <cctype>
#include <unordered_set>

#include "import/onnx/import_run.h"
#include "ir/describe.h"
#include "ir/op.h"

namespace reef::import {

bool Importer::keeps_nchw(const std::string& name) const {
  return options_.keep_all_nchw ||
         std::find(options_.keep_nchw.begin(), options_.keep_nchw.end(), name) != options_.keep_nchw.end();
}

namespace {

// The option's value with what is known filled in, for the user to complete: "images:1,3,HEIGHT,WIDTH".
std::string shape_to_type(const onnx::ValueInfo& info) {
  std::string text = info.name + ":";
  for (std::size_t i = 0; i < info.dims.size(); ++i) {
    if (i > 0) text += ',';
    const std::string& symbol = info.dims[i].symbol;
    const bool is_word = !symbol.empty() && std::all_of(symbol.begin(), symbol.end(), [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
    });
    if (info.dims[i].size >= 0) {
      text += fmt::format("{}", info.dims[i].size);
    } else if (i == 0) {
      text += '1';
    } else if (is_word) {
      for (const char c : symbol) text += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    } else {
      text += "SIZE";
    }
  }
  return text;
}

// Explains the numbers of an output that gives names in ONNX: "output 'label' gives ... 0 'cat', 1 'dog'".
std::string numbers_for_names(const std::string& output, const Conversion& conversion) {
  constexpr std::int64_t kMost = 20;
  std::map<std::int64_t, std::string> sorted;
  for (const auto& [name, number] : conversion.names) sorted[number] = name;
  std::string list;
  for (const auto& [number, name] : sorted) {
    if (number >= kMost) {
      list += fmt::format(" and so on up to {}", sorted.size() - 1);
      break;
    }
    list += fmt::format("{}{} '{}'", number == 0 ? "" : ", ", number, ir::describe_name(name));
  }
  return fmt::format("output '{}' gives names in ONNX; here it gives their numbers: {}", output, list);
}

}  // namespace

Result<std::vector<std::int64_t>> Importer::input_shape(const onnx::ValueInfo& info) {
  std::vector<std::int64_t> dims;
  if (const auto given = options_.input_shapes.find(info.name); given != options_.input_shapes.end()) {
    REEF_REQUIRE(!info.has_shape || info.dims.size() == given->second.size(),
                 "input '{}' has {} dimensions, but --input-shape gives {}; all are wanted, as in 1,3,224,224",
                 info.name, info.dims.size(), given->second.size());
    dims = given->second;
  } else {
    if (!info.has_shape) {
      return unsupported("input '{}' does not say its shape; give it with --input-shape {}:SIZE,...", info.name,
                         info.name);
    }
    for (std::size_t i = 0; i < info.dims.size(); ++i) {
      std::int64_t size = info.dims[i].size;
      if (size < 0 && i == 0) {
        size = 1;
        conversion_.notes.push_back(
            fmt::format("input '{}': its first size is open{}; taken as 1 (--input-shape changes it)", info.name,
                        info.dims[i].symbol.empty() ? "" : fmt::format(" ('{}')", info.dims[i].symbol)));
      }
      if (size < 0) {
        return unsupported("input '{}': size {} is open{}; fix all sizes with --input-shape {}", info.name, i,
                           info.dims[i].symbol.empty() ? "" : fmt::format(" ('{}')", info.dims[i].symbol),
                           shape_to_type(info));
      }
      dims.push_back(size);
    }
  }
  for (const std::int64_t dim : dims) {
    REEF_REQUIRE(dim >= 0 && dim < (std::int64_t{1} << 31), "input '{}' has a dimension of size {}", info.name, dim);
  }
  REEF_REQUIRE(shape_from(dims).is_usable(), "input '{}' has 2^31 elements or more", info.name);
  return dims;
}

Status Importer::add_input(const onnx::ValueInfo& info, Scope& scope) {
  Value value;
  value.type = info.type;
  if (const auto fixed = options_.input_values.find(info.name); fixed != options_.input_values.end()) {
    value.type = fixed->second.type;
    REEF_ASSIGN_OR_RETURN(value.id, constant_of(b_, fixed->second, info.name));
    scope.values[info.name] = value;
    return ok_status();
  }
  if (info.kind != onnx::ValueKind::kTensor) {
    return unsupported("input '{}' is no tensor (a sequence, map or optional); export the model with tensor inputs",
                       info.name);
  }
  const auto type = stored_type(info.type);
  if (info.type == onnx::ElementType::kString) {
    return unsupported(
        "input '{}' takes strings, for which TFLite has no operators; give the model numbers instead: leave out the "
        "nodes that turn strings into numbers",
        info.name);
  }
  if (!type) {
    return unsupported("input '{}' is of type {}, which TFLite has no operators for", info.name,
                       onnx::element_type_name(info.type));
  }
  REEF_ASSIGN_OR_RETURN(const std::vector<std::int64_t> dims, input_shape(info));
  const auto rank = dims.size();
  b_.set_scope(info.name);
  if (rank >= 3 && rank <= 5 && borders_.inputs.count(info.name) > 0 && !keeps_nchw(info.name)) {
    Dims last = {dims[0]};
    last.insert(last.end(), dims.begin() + 2, dims.end());
    last.push_back(dims[1]);
    value.id = channels_first(b_, b_.input(info.name, *type, shape_from(last)));
  } else {
    value.id = b_.input(info.name, *type, shape_from(dims));
  }
  scope.values[info.name] = value;
  return b_.status();
}

Status Importer::add_inputs(Scope& scope) {
  for (const auto& [name, dims] : options_.input_shapes) {
    const auto is_it = [&, wanted = name](const onnx::ValueInfo& info) { return info.name == wanted; };
    REEF_REQUIRE(std::any_of(model_.graph.inputs.begin(), model_.graph.inputs.end(), is_it),
                 "--input-shape names '{}', but the model has no such input", name);
  }
  for (const onnx::ValueInfo& info : model_.graph.inputs) {
    value_names_.insert(info.name);
    if (scope.initializers.count(info.name) > 0) continue;  // an input with a default, as old files have them
    REEF_RETURN_IF_ERROR(add_input(info, scope));
  }
  return ok_status();
}

Status Importer::set_outputs(Scope& scope) {
  std::vector<Id> outputs;
  std::unordered_set<std::int32_t> taken(b_.model().subgraphs[0].inputs.begin(), b_.model().subgraphs[0].inputs.end());
  for (const onnx::ValueInfo& info : model_.graph.outputs) {
    REEF_ASSIGN_OR_RETURN(Value value, read(info.name, scope));
    if (value.sequence != nullptr) {
      return unsupported("output '{}' is a sequence; export the model with tensor outputs", info.name);
    }
    if (value.type == onnx::ElementType::kString)
      conversion_.notes.push_back(numbers_for_names(info.name, conversion_));
    b_.set_scope(info.name);
    Id id = value.id;
    const int rank = b_.rank(id);
    if (b_.is_shape_known(id) && rank >= 3 && rank <= 5 && borders_.outputs.count(info.name) > 0 &&
        !keeps_nchw(info.name)) {
      id = channels_last(b_, id);
    }
    // Each output is a tensor of its own that some operator computes.
    if (!taken.insert(id).second || b_.is_constant(id)) {
      id = b_.emit(Op::RESHAPE, {id, b_.ints(dims_of(b_.shape(id)))}, b_.type(id));
      taken.insert(id);
    }
    const auto& inputs = b_.model().subgraphs[0].inputs;
    const bool is_input = std::find(inputs.begin(), inputs.end(), value.id) != inputs.end();
    if (id != value.id && !is_input && b_.tensor(value.id).name == info.name) b_.rename(value.id, info.name + "/0");
    b_.rename(id, info.name);
    outputs.push_back(id);
  }
  for (const Conversion::Output& extra : conversion_.extra_outputs) {
    Id id = extra.id;
    if (b_.is_constant(id)) id = b_.emit(Op::RESHAPE, {id, b_.ints(dims_of(b_.shape(id)))}, b_.type(id));
    b_.rename(id, extra.name);
    outputs.push_back(id);
  }
  b_.set_outputs(outputs);
  return b_.status();
}

}  // namespace reef::import
