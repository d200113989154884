// SPDX-License-Identifier: Apache-2.0
#include "execute/device/device.h"

#include <algorithm>
#include <limits>
#include <map>

#include "formats/darwinn/without_code.h"
#include "isa/scalar.h"

namespace reef::device {
namespace {

// Host buffers get addresses in the order in which they are added; this is that order.
constexpr std::size_t kParametersBuffer = 0, kScratchBuffer = 1, kFirstLayerBuffer = 2;

// For inputs, outputs and scratch memory of a package: far more than any model takes.
constexpr std::int64_t kMaxHostBytes = std::int64_t{1} << 29;

std::size_t element_bytes(darwinn::DataType type) {
  switch (type) {
    case darwinn::DataType::kUint8:
    case darwinn::DataType::kInt8:
      return 1;
    case darwinn::DataType::kInt32:
    case darwinn::DataType::kFloat32:
      return 4;
    default:
      return 2;
  }
}

bool is_signed(darwinn::DataType type) {
  return type == darwinn::DataType::kInt8 || type == darwinn::DataType::kInt16 || type == darwinn::DataType::kInt32;
}

// The chip knows only unsigned numbers: the runtime flips the top bit of every signed element on the way in and out.
void flip_signs(std::span<std::uint8_t> data, darwinn::DataType type) {
  if (!is_signed(type)) return;
  const std::size_t size = element_bytes(type);
  for (std::size_t i = size - 1; i < data.size(); i += size) data[i] ^= 0x80;
}

// Host buffers by the names of their layers: foreign packages may have many of both.
class BufferIndex {
 public:
  explicit BufferIndex(const darwinn::Executable& executable) {
    std::size_t buffer = kFirstLayerBuffer;
    for (const darwinn::Layer& layer : executable.input_layers) inputs_.emplace(layer.name, buffer++);
    for (const darwinn::Layer& layer : executable.output_layers) outputs_.emplace(layer.name, buffer++);
  }
  Result<std::size_t> find(const darwinn::AddressUse& use) const {
    if (use.base == darwinn::BaseAddress::kParameter) return kParametersBuffer;
    if (use.base == darwinn::BaseAddress::kScratch) return kScratchBuffer;
    const auto& layers = use.base == darwinn::BaseAddress::kInput ? inputs_ : outputs_;
    const auto found = layers.find(use.name);
    REEF_REQUIRE(found != layers.end(), "the program addresses a layer '{}' that the package does not have", use.name);
    return found->second;
  }

 private:
  std::map<std::string_view, std::size_t> inputs_, outputs_;
};

// Writes the addresses that HostMemory will give into the immediates that the package says.
Status patch_addresses(const darwinn::Executable& executable, Program& program) {
  const BufferIndex index_of_buffers(executable);
  HostMemory addresses;
  std::vector<std::uint64_t> address;
  const std::size_t buffers = kFirstLayerBuffer + executable.input_layers.size() + executable.output_layers.size();
  for (std::size_t i = 0; i < buffers; ++i) address.push_back(addresses.add("", {}));
  for (std::size_t c = 0; c < executable.instruction_chunks.size(); ++c) {
    for (const darwinn::FieldOffset& field : executable.instruction_chunks[c].field_offsets) {
      if (!field.use) continue;
      REEF_ASSIGN_OR_RETURN(const std::size_t buffer, index_of_buffers.find(*field.use));
      const auto index = program.at_row(c, field.bit_offset / isa::kRowBits);
      const bool fits = index && program.instructions[*index].opcode() == isa::Opcode::kScalar &&
                        field.bit_offset % isa::kRowBits == isa::bundle::kAluOperand.bit;
      REEF_REQUIRE(fits, "the package wants an address at bit {} of chunk {}, which is no scalar instruction's operand",
                   field.bit_offset, c);
      const bool upper = field.use->half == darwinn::AddressHalf::kUpper;
      const std::uint64_t value = upper ? address[buffer] >> 32 : address[buffer] & 0xffffffff;
      REEF_RETURN_IF_ERROR(
          program.instructions[*index].set(isa::bundle::kAluOperand, static_cast<std::int64_t>(value)));
    }
  }
  return ok_status();
}

// Host memory that one run takes is bounded, whatever a package says.
Status check_sizes(const darwinn::Executable& executable) {
  std::int64_t bytes = executable.scratch_size_bytes;
  REEF_REQUIRE(bytes >= 0, "the program wants {} bytes of scratch memory", bytes);
  for (const auto* layers : {&executable.input_layers, &executable.output_layers}) {
    for (const darwinn::Layer& layer : *layers) {
      const bool is_sound = layer.y_dim >= 0 && layer.x_dim >= 0 && layer.z_dim >= 0 && layer.size_bytes >= 0;
      REEF_REQUIRE(is_sound && tensor_bytes(layer) <= kMaxHostBytes, "layer '{}' of {} x {} x {} elements in {} bytes",
                   layer.name, layer.y_dim, layer.x_dim, layer.z_dim, layer.size_bytes);
      bytes += layer.size_bytes + tensor_bytes(layer);
    }
  }
  if (bytes <= kMaxHostBytes) return ok_status();
  return make_error(StatusCode::kResourceExhausted,
                    "the package's tensors and scratch memory take {} bytes, at most {}", bytes, kMaxHostBytes);
}

Result<Program> ready_program(const darwinn::Executable& executable, isa::UnknownList& unknown) {
  REEF_RETURN_IF_ERROR(check_sizes(executable));
  REEF_ASSIGN_OR_RETURN(Program program, decode_program(executable, unknown));
  REEF_RETURN_IF_ERROR(patch_addresses(executable, program));
  return program;
}

std::vector<std::uint8_t> copy_of(std::span<const std::uint8_t> data) { return {data.begin(), data.end()}; }

Result<std::vector<std::uint8_t>> gathered(const darwinn::Layer& layer, const std::vector<std::uint8_t>& buffer) {
  const auto size = static_cast<std::int64_t>(element_bytes(layer.data_type));
  std::vector<std::uint8_t> tensor(static_cast<std::size_t>(tensor_bytes(layer)));
  if (tensor.empty()) return tensor;
  const auto* info = std::get_if<darwinn::OutputInfo>(&layer.info);
  if (info == nullptr || !info->layout) {
    REEF_REQUIRE(tensor.size() <= buffer.size(), "output '{}' is larger than what is sent for it", layer.name);
    std::copy_n(buffer.begin(), tensor.size(), tensor.begin());
    return tensor;
  }
  auto to = tensor.begin();
  for (std::int32_t y = 0; y < layer.y_dim; ++y) {
    for (std::int32_t x = 0; x < layer.x_dim; ++x) {
      const auto first = info->layout->index_of(y, x);
      const std::int64_t bytes = layer.z_dim * size;
      const auto elements = static_cast<std::int64_t>(buffer.size()) / size;
      REEF_REQUIRE(first && *first >= 0 && *first <= elements - layer.z_dim,
                   "the layout of output '{}' puts element ({}, {}) outside of its buffer", layer.name, y, x);
      std::copy_n(buffer.begin() + *first * size, bytes, to);
      to += bytes;
    }
  }
  return tensor;
}

}  // namespace

std::int64_t tensor_bytes(const darwinn::Layer& layer) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const std::int64_t area = std::int64_t{layer.y_dim} * layer.x_dim;
  const std::int64_t depth = layer.z_dim * static_cast<std::int64_t>(element_bytes(layer.data_type));
  return depth != 0 && area > kMost / depth ? kMost : area * depth;
}

Result<std::shared_ptr<const LoadedPackage>> LoadedPackage::load(darwinn::Package package) {
  REEF_RETURN_IF_ERROR(darwinn::require_code(package));
  std::shared_ptr<LoadedPackage> loaded(new LoadedPackage);
  loaded->package_ = std::move(package);
  for (const darwinn::Executable& executable : loaded->package_.executables) {
    if (executable.type == darwinn::ExecutableType::kParameterCaching) {
      loaded->caching_ = &executable;
    } else if (loaded->execution_ == nullptr || executable.type == darwinn::ExecutableType::kExecutionOnly) {
      loaded->execution_ = &executable;
    }
  }
  REEF_REQUIRE(loaded->execution_ != nullptr, "the package has no program to run");
  isa::UnknownList unknown;
  REEF_ASSIGN_OR_RETURN(loaded->execution_program_, ready_program(*loaded->execution_, unknown));
  if (loaded->caching_ != nullptr) {
    REEF_ASSIGN_OR_RETURN(loaded->caching_program_, ready_program(*loaded->caching_, unknown));
  }
  REEF_RETURN_IF_ERROR(unknown.to_status());
  return std::shared_ptr<const LoadedPackage>(std::move(loaded));
}

Status Device::execute(const Program& program, HostMemory& host) {
  const Status status = chip_.run(program, host);
  if (!status.ok()) {
    cached_.clear();
    token_ = 0;
  }
  return status;
}

Status Device::make_parameters_present(const std::shared_ptr<const LoadedPackage>& package) {
  const std::uint64_t token = package->execution_->parameter_caching_token;
  if (token == 0 || token != token_) {
    cached_.clear();
    token_ = 0;
  }
  if (package->caching_ == nullptr || cached_.contains(package)) return ok_status();
  const darwinn::Executable& caching = *package->caching_;
  REEF_REQUIRE(caching.parameter_caching_token != 0, "the parameter-caching program has no token");
  HostMemory host;
  host.add("parameters", copy_of(caching.parameters.span()));
  host.add("scratch", std::vector<std::uint8_t>(static_cast<std::size_t>(caching.scratch_size_bytes)), false);
  REEF_RETURN_IF_ERROR(execute(package->caching_program_, host).in("parameter caching"));
  REEF_REQUIRE(!chip_.was_stopped(), "parameter caching was stopped");
  token_ = caching.parameter_caching_token;
  std::erase_if(cached_, [](const auto& other) { return other.expired(); });
  cached_.insert(package);
  ++parameter_loads_;
  return ok_status();
}

Result<std::vector<std::vector<std::uint8_t>>> Device::run(const std::shared_ptr<const LoadedPackage>& package,
                                                           const std::vector<std::span<const std::uint8_t>>& inputs) {
  const darwinn::Executable& execution = *package->execution_;
  REEF_REQUIRE(inputs.size() == execution.input_layers.size(), "the package has {} inputs, {} were given",
               execution.input_layers.size(), inputs.size());
  HostMemory host;
  host.add("parameters", copy_of(execution.parameters.span()));
  host.add("scratch", std::vector<std::uint8_t>(static_cast<std::size_t>(execution.scratch_size_bytes)), false);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const darwinn::Layer& layer = execution.input_layers[i];
    REEF_REQUIRE(
        static_cast<std::int64_t>(inputs[i].size()) == tensor_bytes(layer) && tensor_bytes(layer) <= layer.size_bytes,
        "input '{}' takes {} bytes, {} were given", layer.name, tensor_bytes(layer), inputs[i].size());
    std::vector<std::uint8_t> data = copy_of(inputs[i]);
    flip_signs(data, layer.data_type);
    data.resize(static_cast<std::size_t>(layer.size_bytes));
    host.add(layer.name, std::move(data));
  }
  for (const darwinn::Layer& layer : execution.output_layers) {
    host.add(layer.name, std::vector<std::uint8_t>(static_cast<std::size_t>(layer.size_bytes)), false);
  }
  REEF_RETURN_IF_ERROR(make_parameters_present(package));
  if (observer_ != nullptr) observer_->given(inputs);
  REEF_RETURN_IF_ERROR(execute(package->execution_program_, host));
  REEF_REQUIRE(!chip_.was_stopped(), "the run was stopped before its end");
  std::vector<std::vector<std::uint8_t>> outputs;
  for (std::size_t i = 0; i < execution.output_layers.size(); ++i) {
    const darwinn::Layer& layer = execution.output_layers[i];
    const HostMemory::Buffer& buffer = host.buffer(kFirstLayerBuffer + inputs.size() + i);
    REEF_ASSIGN_OR_RETURN(std::vector<std::uint8_t> tensor, gathered(layer, buffer.bytes));
    REEF_ASSIGN_OR_RETURN(const std::vector<std::uint8_t> known, gathered(layer, buffer.known));
    const auto unknown = std::find(known.begin(), known.end(), 0);
    REEF_REQUIRE(unknown == known.end(),
                 "byte {} of output '{}' depends on memory that nothing wrote; {} is the first to compute with such",
                 unknown - known.begin(), layer.name,
                 chip_.first_unknown().empty() ? "no instruction" : chip_.first_unknown());
    flip_signs(tensor, layer.data_type);
    outputs.push_back(std::move(tensor));
  }
  if (observer_ != nullptr) observer_->returned(outputs);
  return outputs;
}

}  // namespace reef::device
