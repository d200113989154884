// SPDX-License-Identifier: Apache-2.0
#include "delegate.h"

#include <atomic>
#include <exception>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/fork.h"
#include "base/printable.h"
#include "formats/darwinn/reader.h"
#include "partition.h"

namespace reef::delegate {
namespace {

using tflite_abi::Context;
using tflite_abi::Node;

struct OwnDelegate {
  tflite_abi::Delegate c = {};  // first: TFLite's pointer is ours
  std::shared_ptr<runtime::EdgeTpu> device;
  std::atomic<int> partitions{0};  // that TFLite has not freed
  std::atomic<bool> is_destroyed{false};
};

// What TFLite keeps for one partition.
struct Kernel {
  OwnDelegate* owner = nullptr;
  std::unique_ptr<Partition> partition;
  Status read_status;
};

// Those that exist, and those that were destroyed while in use: TFLite may still call them.
struct Delegates {
  ForkSafeMutex mutex;
  std::set<OwnDelegate*> alive, destroyed_in_use;
};
Delegates& all() {
  static Delegates* const instance = new Delegates;  // never destroyed: interpreters may outlive static objects
  return *instance;
}

// Runs `action`, which returns a Status, and tells TFLite what failed.
template <typename Action>
int told(Context* context, const Action& action) noexcept {
  std::string message;
  try {
    const Status status = action();
    if (status.ok()) return tflite_abi::kOk;
    message = status.message();
  } catch (const std::exception& error) {
    message = error.what();
  } catch (...) {
    message = "something was thrown that is no error";
  }
  context->ReportError(context, "Reef's Edge TPU delegate: %s. ", printable_text(message).c_str());
  return tflite_abi::kError;
}

void* init(Context* context, const char* buffer, std::size_t /*length*/) {
  try {
    const auto& params = *reinterpret_cast<const tflite_abi::DelegateParams*>(buffer);
    auto kernel = std::make_unique<Kernel>();
    kernel->owner = static_cast<OwnDelegate*>(params.delegate->data);
    kernel->partition = std::make_unique<Partition>(kernel->owner->device);
    kernel->read_status = kernel->partition->read(context, params);  // reported by prepare: init cannot fail
    ++kernel->owner->partitions;
    return kernel.release();
  } catch (...) {
    return nullptr;
  }
}

void free_kernel(Context*, void* buffer) {
  auto* const kernel = static_cast<Kernel*>(buffer);
  if (kernel == nullptr) return;
  --kernel->owner->partitions;
  delete kernel;
}

int prepare_kernel(Context* context, Node* node) {
  return told(context, [&]() -> Status {
    auto* const kernel = static_cast<Kernel*>(node->user_data);
    REEF_REQUIRE(kernel != nullptr, "there is no memory for the Edge TPU op");
    REEF_RETURN_IF_ERROR(kernel->read_status);
    return kernel->partition->prepare(context);
  });
}

int invoke_kernel(Context* context, Node* node) {
  return told(context, [&]() -> Status {
    auto* const kernel = static_cast<Kernel*>(node->user_data);
    REEF_REQUIRE(kernel != nullptr, "there is no memory for the Edge TPU op");
    return kernel->partition->invoke(context);
  });
}

struct Freer {
  void operator()(tflite_abi::IntArray* array) const { std::free(array); }
};

// The model's Edge TPU ops, as TFLite counts nodes.
Result<std::vector<int>> edge_tpu_nodes(Context* context) {
  tflite_abi::IntArray* plan = nullptr;
  REEF_REQUIRE(context->GetExecutionPlan(context, &plan) == tflite_abi::kOk, "TFLite does not give its plan away");
  std::vector<int> nodes;
  for (int i = 0; i < plan->size; ++i) {
    Node* node = nullptr;
    tflite_abi::Registration* registration = nullptr;
    REEF_REQUIRE(context->GetNodeAndRegistration(context, plan->data[i], &node, &registration) == tflite_abi::kOk,
                 "TFLite does not give node {} away", plan->data[i]);
    if (registration->builtin_code != tflite_abi::kCustomBuiltinCode || registration->custom_name == nullptr) continue;
    if (std::string_view(registration->custom_name) == darwinn::kCustomOpName) nodes.push_back(plan->data[i]);
  }
  return nodes;
}

int prepare_delegate(Context* context, tflite_abi::Delegate* delegate) {
  return told(context, [&]() -> Status {
    auto* const owner = static_cast<OwnDelegate*>(delegate->data);
    REEF_REQUIRE(!owner->is_destroyed, "the delegate was destroyed while an interpreter still uses it");
    REEF_ASSIGN_OR_RETURN(const std::vector<int> nodes, edge_tpu_nodes(context));
    if (nodes.empty()) return ok_status();
    const std::size_t bytes = sizeof(tflite_abi::IntArray) + nodes.size() * sizeof(int);
    const std::unique_ptr<tflite_abi::IntArray, Freer> list(static_cast<tflite_abi::IntArray*>(std::malloc(bytes)));
    if (list == nullptr) throw std::bad_alloc();
    list->size = static_cast<int>(nodes.size());
    std::copy(nodes.begin(), nodes.end(), list->data);
    tflite_abi::Registration registration = {};
    registration.init = init;
    registration.free = free_kernel;
    registration.prepare = prepare_kernel;
    registration.invoke = invoke_kernel;
    registration.custom_name = "ReefEdgeTpuDelegate";
    registration.version = 1;
    const int replaced = context->ReplaceNodeSubsetsWithDelegateKernels(context, registration, list.get(), delegate);
    REEF_REQUIRE(replaced == tflite_abi::kOk, "TFLite could not put the Edge TPU ops in the place of {} nodes",
                 nodes.size());
    return ok_status();
  });
}

}  // namespace

tflite_abi::Delegate* create(std::shared_ptr<runtime::EdgeTpu> device) {
  auto owner = std::make_unique<OwnDelegate>();
  owner->device = std::move(device);
  owner->c.data = owner.get();
  owner->c.Prepare = prepare_delegate;
  owner->c.flags = tflite_abi::kAllowDynamicTensors;  // of other ops; those of Edge TPU ops have the package's sizes
  const std::lock_guard lock(all().mutex);
  all().alive.insert(owner.get());
  return &owner.release()->c;
}

void destroy(tflite_abi::Delegate* delegate) {
  auto* const owner = reinterpret_cast<OwnDelegate*>(delegate);
  const std::lock_guard lock(all().mutex);
  if (all().alive.erase(owner) == 0) return;  // null, destroyed before, or not ours
  owner->is_destroyed = true;
  if (owner->partitions == 0) {
    delete owner;
    return;
  }
  owner->device.reset();
  all().destroyed_in_use.insert(owner);
}

}  // namespace reef::delegate
