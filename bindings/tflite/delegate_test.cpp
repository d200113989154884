// SPDX-License-Identifier: Apache-2.0
// The delegate's library, called as TFLite calls it, by a small stand-in for TFLite's interpreter: for the sanitizers
// and for machines without TFLite. That real runtimes load it is shown by tests/clients.
#include <dlfcn.h>

#include <cstdarg>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "coral_cpp.h"
#include "formats/darwinn/reader.h"
#include "formats/darwinn/without_code.h"
#include "formats/darwinn/writer.h"
#include "runtime/sample_runnable.h"
#include "tflite_abi.h"

namespace reef::delegate {
namespace {

using tflite_abi::Context;
using tflite_abi::IntArray;

struct Library {
  Library() {
    void* const library = dlopen(REEF_DELEGATE, RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(library, nullptr) << dlerror();
    if (library == nullptr) return;
    create = reinterpret_cast<decltype(create)>(dlsym(library, "tflite_plugin_create_delegate"));
    destroy = reinterpret_cast<decltype(destroy)>(dlsym(library, "tflite_plugin_destroy_delegate"));
    create_coral = reinterpret_cast<decltype(create_coral)>(dlsym(library, "edgetpu_create_delegate"));
    list = reinterpret_cast<decltype(list)>(dlsym(library, "edgetpu_list_devices"));
    free_list = reinterpret_cast<decltype(free_list)>(dlsym(library, "edgetpu_free_devices"));
    version = reinterpret_cast<decltype(version)>(dlsym(library, "edgetpu_version"));
    singleton = reinterpret_cast<decltype(singleton)>(dlsym(library, "_ZN7edgetpu14EdgeTpuManager12GetSingletonEv"));
    custom_op = reinterpret_cast<decltype(custom_op)>(dlsym(library, "_ZN7edgetpu16RegisterCustomOpEv"));
  }
  struct Device {
    int type;
    const char* path;
  };
  tflite_abi::Delegate* (*create)(char**, char**, std::size_t, void (*)(const char*)) = nullptr;
  void (*destroy)(tflite_abi::Delegate*) = nullptr;
  tflite_abi::Delegate* (*create_coral)(int, const char*, const void*, std::size_t) = nullptr;
  Device* (*list)(std::size_t*) = nullptr;
  void (*free_list)(Device*) = nullptr;
  const char* (*version)() = nullptr;
  edgetpu::EdgeTpuManager* (*singleton)() = nullptr;
  tflite_abi::Registration* (*custom_op)() = nullptr;
};
const Library& library() {
  static const Library loaded;
  return loaded;
}

struct Freer {
  void operator()(IntArray* array) const { std::free(array); }
};
using Numbers = std::unique_ptr<IntArray, Freer>;
Numbers numbers(const std::vector<int>& values) {
  auto* const array = static_cast<IntArray*>(std::malloc(sizeof(IntArray) + values.size() * sizeof(int)));
  array->size = static_cast<int>(values.size());
  std::copy(values.begin(), values.end(), array->data);
  return Numbers(array);
}

// What a delegate sees of an interpreter with one Edge TPU op: tensor 0 in, tensor 1 out.
class Host {
 public:
  explicit Host(const ir::Model& model) {
    const ir::Subgraph& graph = model.subgraphs[0];
    options_ = graph.operators[0].custom_options;
    names_ = {graph.tensors[at(graph.inputs[0])].name, graph.tensors[at(graph.outputs[0])].name};
    for (std::size_t i = 0; i < 2; ++i) {
      memory_[i].resize(4);
      tensors_[i].name = names_[i].c_str();
      tensors_[i].data = memory_[i].data();
      tensors_[i].bytes = memory_[i].size();
    }
    node_.inputs = inputs_.get();
    node_.outputs = outputs_.get();
    node_.custom_initial_data = options_.data();
    node_.custom_initial_data_size = static_cast<int>(options_.size());
    registration_.builtin_code = tflite_abi::kCustomBuiltinCode;
    registration_.custom_name = darwinn::kCustomOpName;
    context_.tensors_size = 2;
    context_.tensors = tensors_;
    context_.impl = this;
    context_.GetExecutionPlan = [](Context* c, IntArray** plan) {
      *plan = self(c).plan_.get();
      return int{tflite_abi::kOk};
    };
    context_.GetNodeAndRegistration = [](Context* c, int, tflite_abi::Node** node, tflite_abi::Registration** r) {
      *node = &self(c).node_;
      *r = &self(c).registration_;
      return int{tflite_abi::kOk};
    };
    context_.ReportError = report_error;
    context_.GetExternalContext = [](Context* c, int) { return self(c).external_; };
    context_.ReplaceNodeSubsetsWithDelegateKernels = [](Context* c, tflite_abi::Registration kernel, const IntArray*,
                                                        tflite_abi::Delegate* delegate) {
      return self(c).replace(kernel, delegate);
    };
  }
  ~Host() {
    if (kernel_.free != nullptr) kernel_.free(&context_, delegated_.user_data);
  }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  void set_external_context(tflite_abi::ExternalContext* given) { external_ = given; }
  // As an interpreter whose resolver knows the op.
  int resolve(const tflite_abi::Registration& op) {
    kernel_ = op;
    delegated_ = node_;
    delegated_.user_data = kernel_.init(&context_, reinterpret_cast<const char*>(options_.data()), options_.size());
    return kernel_.prepare(&context_, &delegated_);
  }
  int apply(tflite_abi::Delegate* delegate) { return delegate->Prepare(&context_, delegate); }
  int invoke() { return kernel_.invoke(&context_, &delegated_); }
  int prepare() { return kernel_.prepare(&context_, &delegated_); }
  tflite_abi::Tensor& tensor(std::size_t i) { return tensors_[i]; }
  std::vector<std::byte>& memory(std::size_t i) { return memory_[i]; }
  const std::string& error() const { return error_; }

 private:
  static Host& self(Context* context) { return *static_cast<Host*>(context->impl); }
  static void report_error(Context* context, const char* format, ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    self(context).error_ += text;
  }
  int replace(const tflite_abi::Registration& kernel, tflite_abi::Delegate* delegate) {
    kernel_ = kernel;
    tflite_abi::DelegateParams params = {delegate, plan_.get(), inputs_.get(), outputs_.get()};
    delegated_ = {};
    delegated_.user_data = kernel_.init(&context_, reinterpret_cast<const char*>(&params), sizeof(params));
    return kernel_.prepare(&context_, &delegated_);
  }

  Bytes options_;
  std::vector<std::string> names_;
  std::vector<std::byte> memory_[2];
  Numbers inputs_ = numbers({0}), outputs_ = numbers({1}), plan_ = numbers({0});
  tflite_abi::Tensor tensors_[2] = {};
  tflite_abi::Node node_ = {}, delegated_ = {};
  tflite_abi::Registration registration_ = {}, kernel_ = {};
  Context context_ = {};
  tflite_abi::ExternalContext* external_ = nullptr;
  std::string error_;
};

std::string reported;

tflite_abi::Delegate* delegate_on(const char* device) {
  std::string key = "device", value = device;
  char* keys[] = {key.data()};
  char* values[] = {value.data()};
  reported.clear();
  return library().create(keys, values, 1, [](const char* message) { reported = message; });
}

ir::Model sample() { return runtime::testing::compiled_from(runtime::testing::sample_weights()); }

TEST(Delegate, RunsAnEdgeTpuOp) {
  Host host(sample());
  tflite_abi::Delegate* const delegate = delegate_on("usb:1");
  ASSERT_NE(delegate, nullptr) << reported;
  ASSERT_EQ(host.apply(delegate), tflite_abi::kOk) << host.error();
  host.memory(0).assign(4, std::byte{200});
  ASSERT_EQ(host.invoke(), tflite_abi::kOk) << host.error();
  const std::vector<std::byte> large = host.memory(1);
  host.memory(0).assign(4, std::byte{0});
  ASSERT_EQ(host.invoke(), tflite_abi::kOk);
  EXPECT_NE(host.memory(1), large);
  library().destroy(delegate);
}

TEST(Delegate, DestroyedWhileInUse) {
  Host host(sample());
  tflite_abi::Delegate* const delegate = delegate_on("");
  ASSERT_EQ(host.apply(delegate), tflite_abi::kOk) << host.error();
  library().destroy(delegate);
  library().destroy(delegate);
  EXPECT_EQ(host.invoke(), tflite_abi::kOk) << "what is prepared goes on working";
  Host other(sample());
  EXPECT_NE(other.apply(delegate), tflite_abi::kOk);
  EXPECT_NE(other.error().find("was destroyed while an interpreter still uses it"), std::string::npos) << other.error();
}

TEST(Delegate, WrongDevicesAreRefusedWithAReason) {
  EXPECT_EQ(delegate_on("usb:7"), nullptr);
  EXPECT_NE(reported.find("there is no Edge TPU 'usb:7'"), std::string::npos) << reported;
  EXPECT_EQ(delegate_on("gpu"), nullptr);
  EXPECT_NE(reported.find("is no device"), std::string::npos) << reported;
  tflite_abi::Delegate* const any = library().create(nullptr, nullptr, 1, nullptr);
  EXPECT_NE(any, nullptr) << "options without keys: any device";
  library().destroy(any);
}

TEST(Delegate, WrongModelsAreRefusedWithAReason) {
  ir::Model model = sample();
  Bytes& options = model.subgraphs[0].operators[0].custom_options;
  const Bytes good = options;
  tflite_abi::Delegate* const delegate = delegate_on("");
  for (std::size_t size = 1; size < good.size(); size += good.size() / 23) {
    options = good.slice(0, size);
    Host host(model);
    EXPECT_NE(host.apply(delegate), tflite_abi::kOk) << size;
    EXPECT_NE(host.error(), "");
  }
  darwinn::CustomOptions without = darwinn::read_custom_options(good).value();
  without.package = darwinn::package_without_code(14, "reef test", "no code for X");
  options = Bytes(darwinn::write_custom_options(without).value());
  Host host(model);
  EXPECT_NE(host.apply(delegate), tflite_abi::kOk);
  EXPECT_NE(host.error().find("no code for X"), std::string::npos) << host.error();
  library().destroy(delegate);
}

TEST(Delegate, TensorsOfOtherSizesAreRefused) {
  Host host(sample());
  tflite_abi::Delegate* const delegate = delegate_on("");
  ASSERT_EQ(host.apply(delegate), tflite_abi::kOk) << host.error();
  host.tensor(0).bytes = 5;
  EXPECT_NE(host.invoke(), tflite_abi::kOk);
  EXPECT_NE(host.prepare(), tflite_abi::kOk);
  EXPECT_NE(host.error().find("has 5 bytes, the package was compiled for 4"), std::string::npos) << host.error();
  EXPECT_NE(host.invoke(), tflite_abi::kOk);
  host.tensor(0).bytes = 4;
  EXPECT_EQ(host.prepare(), tflite_abi::kOk);
  host.tensor(1).data = nullptr;
  EXPECT_NE(host.invoke(), tflite_abi::kOk);
  library().destroy(delegate);
}

TEST(Delegate, EightThreadsOnSharedDevices) {
  const ir::Model model = sample();
  std::vector<std::future<bool>> threads;
  for (int t = 0; t < 8; ++t) {
    threads.push_back(std::async(std::launch::async, [&model, t] {
      bool is_right = true;
      for (int round = 0; round < 5; ++round) {
        tflite_abi::Delegate* const delegate = library().create_coral(t % 2, nullptr, nullptr, 0);
        if (delegate == nullptr) return false;
        {
          Host host(model);
          is_right = is_right && host.apply(delegate) == tflite_abi::kOk;
          for (int i = 0; i < 5 && is_right; ++i) is_right = host.invoke() == tflite_abi::kOk;
        }
        library().destroy(delegate);
      }
      return is_right;
    }));
  }
  for (auto& thread : threads) EXPECT_TRUE(thread.get());
}

TEST(CoralsCppInterface, ListsAndOpensDevices) {
  auto* const manager = library().singleton();
  ASSERT_NE(manager, nullptr);
  const auto records = manager->EnumerateEdgeTpu();
  ASSERT_EQ(records.size(), 4u);
  EXPECT_EQ(records[2].type, edgetpu::DeviceType::kApexPci);
  const auto context = manager->OpenDevice(records[2].type, records[2].path);
  ASSERT_NE(context, nullptr);
  EXPECT_TRUE(context->IsReady());
  EXPECT_EQ(context->GetDeviceEnumRecord().path, "virtual/pci/0");
  EXPECT_EQ(manager->OpenDevice(edgetpu::DeviceType::kApexPci), context) << "a device is opened once";
  EXPECT_EQ(manager->GetOpenedDevices().size(), 1u);
  EXPECT_EQ(manager->OpenDevice(edgetpu::DeviceType::kApexUsb, "virtual/usb/7"), nullptr);
  EXPECT_NE(manager->NewEdgeTpuContext(), nullptr);
  EXPECT_NE(manager->Version().find("RuntimeVersion(14)"), std::string::npos);
}

TEST(CoralsCppInterface, TheOpRunsOnTheContextsDevice) {
  const auto context = library().singleton()->OpenDevice();
  for (edgetpu::EdgeTpuContext* const given : {context.get(), static_cast<edgetpu::EdgeTpuContext*>(nullptr)}) {
    Host host(sample());
    host.set_external_context(given);
    ASSERT_EQ(host.resolve(*library().custom_op()), tflite_abi::kOk) << host.error();
    host.memory(0).assign(4, std::byte{200});
    EXPECT_EQ(host.invoke(), tflite_abi::kOk) << host.error();
    EXPECT_NE(host.memory(1), std::vector<std::byte>(4));
  }
}

TEST(Delegate, CoralsInterfaceListsDevices) {
  std::size_t count = 0;
  Library::Device* const devices = library().list(&count);
  ASSERT_EQ(count, 4u);
  EXPECT_EQ(devices[0].type, 1);
  EXPECT_STREQ(devices[0].path, "virtual/usb/0");
  EXPECT_EQ(devices[3].type, 0);
  tflite_abi::Delegate* const delegate = library().create_coral(devices[3].type, devices[3].path, nullptr, 0);
  EXPECT_NE(delegate, nullptr);
  library().destroy(delegate);
  library().destroy(nullptr);
  library().free_list(devices);
  EXPECT_EQ(library().create_coral(1, "virtual/usb/9", nullptr, 0), nullptr);
  EXPECT_NE(std::string(library().version()).find("RuntimeVersion(14)"), std::string::npos);
}

}  // namespace
}  // namespace reef::delegate
