// SPDX-License-Identifier: Apache-2.0
// No memory, at any moment: the library reports it and works as before afterwards.
//
// This program replaces operator new. Each trial lets one allocation of a call into libreef fail (or that one and all
// behind it), then makes the same call again with memory: it must give what it gave before. Every allocation is tried
// where there are few; else some hundred, spread evenly, whose number a test asserts. An exception that leaves the
// library, or a destructor that needs memory, ends the program and so the test.
//
// Not covered: memory that is not taken by operator new (zlib, libwebp, stb_image, mapped files).
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <new>
#include <string>
#include <vector>

#include <unistd.h>

#include <gtest/gtest.h>

#include "reef/reef.h"

namespace {

constexpr std::int64_t kNever = -1;
std::atomic<std::int64_t> allocations{0};   // since the last arm()
std::atomic<std::int64_t> failing{kNever};  // the number of the first that fails
std::atomic<bool> fails_once{true};

bool fails_now() {
  const std::int64_t number = allocations.fetch_add(1, std::memory_order_relaxed);
  const std::int64_t first = failing.load(std::memory_order_relaxed);
  return first != kNever && (fails_once ? number == first : number >= first);
}

void arm(std::int64_t number, bool once) {
  fails_once = once;
  allocations = 0;
  failing = number;
}
void disarm() { failing = kNever; }

void* take(std::size_t size, std::size_t alignment) {
  if (fails_now()) return nullptr;
  const std::size_t wanted = std::max<std::size_t>(size, 1);
  if (alignment <= alignof(std::max_align_t)) return std::malloc(wanted);
  return std::aligned_alloc(alignment, (wanted + alignment - 1) / alignment * alignment);
}

void* take_or_throw(std::size_t size, std::size_t alignment) {
  if (void* const memory = take(size, alignment)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t size) { return take_or_throw(size, 0); }
void* operator new[](std::size_t size) { return take_or_throw(size, 0); }
void* operator new(std::size_t size, std::align_val_t align) { return take_or_throw(size, std::size_t(align)); }
void* operator new[](std::size_t size, std::align_val_t align) { return take_or_throw(size, std::size_t(align)); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return take(size, 0); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return take(size, 0); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace {

namespace fs = std::filesystem;

const std::string kModels = REEF_SOURCE_DIR "/models/";

// What a call gave: its status and bytes that tell results apart.
struct Result {
  reef_status status = REEF_OK;
  std::vector<std::uint8_t> bytes;
};
using Call = std::function<Result()>;

std::vector<std::uint8_t> content(const std::string& path) {
  std::vector<std::uint8_t> bytes(fs::exists(path) ? fs::file_size(path) : 0);
  if (std::FILE* const file = std::fopen(path.c_str(), "rb")) {
    if (std::fread(bytes.data(), 1, bytes.size(), file) != bytes.size()) bytes.clear();
    std::fclose(file);
  }
  return bytes;
}

// Runs `model` on `device` once, from reading to the output, on two threads.
Result run_model(const std::vector<std::uint8_t>& file, const char* device) {
  reef_model* model = nullptr;
  Result result;
  result.status = reef_model_read(file.data(), file.size(), &model);
  if (result.status != REEF_OK) return result;
  reef_options options;
  reef_options_init(&options);
  options.threads = 2;
  options.device = device;
  reef_interpreter* interpreter = nullptr;
  result.status = reef_interpreter_create(model, &options, &interpreter);
  if (result.status == REEF_OK) result.status = reef_interpreter_prepare(interpreter);
  reef_tensor tensor;
  if (result.status == REEF_OK) result.status = reef_interpreter_input(interpreter, 0, &tensor);
  if (result.status == REEF_OK) {
    for (std::size_t i = 0; i < tensor.bytes; ++i)
      static_cast<std::uint8_t*>(tensor.data)[i] = std::uint8_t(i * 37 % 251);
    result.status = reef_interpreter_invoke(interpreter);
  }
  if (result.status == REEF_OK) result.status = reef_interpreter_output(interpreter, 0, &tensor);
  if (result.status == REEF_OK) {
    const auto* const data = static_cast<const std::uint8_t*>(tensor.data);
    disarm();  // the copy is the test's
    result.bytes.assign(data, data + tensor.bytes);
  }
  reef_interpreter_free(interpreter);
  reef_model_free(model);
  return result;
}

class AllocationFailures : public ::testing::Test {
 protected:
  AllocationFailures() : folder_(fs::temp_directory_path() / ("reef_allocation_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~AllocationFailures() override { fs::remove_all(folder_); }

  // Lets up to `trials` of the call's allocations fail, one at a time and then all from one on.
  void try_call(const Call& call, std::int64_t trials) {
    call();  // what is kept from the first time on is there
    arm(kNever, true);
    const Result before = call();
    const std::int64_t count = allocations;
    ASSERT_EQ(before.status, REEF_OK) << reef_error_message();
    ASSERT_GT(count, 20) << "operator new of this program is not what the library calls";
    std::int64_t reported = 0, tried = 0;
    const std::int64_t step = std::max<std::int64_t>(count / trials, 1);
    for (const bool once : {true, false}) {
      for (std::int64_t number = 0; number < count; number += step) {
        arm(number, once);
        const Result failed = call();
        disarm();
        ++tried;
        reported += failed.status != REEF_OK;
        if (failed.status == REEF_OK) {
          EXPECT_EQ(failed.bytes, before.bytes) << number << " of " << count;
        }
        // Once in a while the whole call again: nothing was left half done.
        if (tried % 16 != 0 && number + step < count) continue;
        const Result after = call();
        ASSERT_EQ(after.status, REEF_OK) << number << " of " << count << ": " << reef_error_message();
        ASSERT_EQ(after.bytes, before.bytes) << number << " of " << count;
      }
    }
    EXPECT_GE(tried, std::min(count, trials));
    // Some failures are not noticed by the caller: what asked for memory can do without. They are few.
    EXPECT_GT(reported, tried / 2);
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  fs::path folder_;
};

constexpr std::int64_t kTrials = 400;

TEST_F(AllocationFailures, RunningAModelOnTheCpu) {
  const std::vector<std::uint8_t> file = content(kModels + "reef_creatures_int8.tflite");
  try_call([&] { return run_model(file, "cpu"); }, kTrials);
}

TEST_F(AllocationFailures, CompilingAModel) {
  const std::string model = kModels + "reef_creatures_int8.tflite", folder = folder_.string();
  const char* const names[] = {model.c_str()};
  const std::string compiled = path("reef_creatures_int8_edgetpu.tflite");
  try_call(
      [&] {
        reef_compile_options options;
        reef_compile_options_init(&options);
        options.out_dir = folder.c_str();
        Result result;
        result.status = reef_compile(names, 1, &options, nullptr);
        disarm();
        result.bytes = content(compiled);  // also after a failure: the old file, whole
        return result;
      },
      kTrials / 4);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 2) << "a file was left behind";
}

TEST_F(AllocationFailures, RunningACompiledModelOnTheVirtualDevice) {
  const std::string model = kModels + "reef_creatures_int8.tflite", folder = folder_.string();
  const char* const names[] = {model.c_str()};
  reef_compile_options options;
  reef_compile_options_init(&options);
  options.out_dir = folder.c_str();
  ASSERT_EQ(reef_compile(names, 1, &options, nullptr), REEF_OK) << reef_error_message();
  const std::vector<std::uint8_t> file = content(path("reef_creatures_int8_edgetpu.tflite"));
  try_call([&] { return run_model(file, "virtual"); }, kTrials);
}

TEST_F(AllocationFailures, ConvertingAModel) {
  const std::string onnx = kModels + "shapes_yolo.onnx", output = path("made.tflite");
  ASSERT_TRUE(fs::exists(onnx));
  try_call(
      [&] {
        Result result;
        result.status = reef_convert(onnx.c_str(), output.c_str(), nullptr, nullptr);
        disarm();
        result.bytes = content(output);
        return result;
      },
      kTrials / 4);
}

}  // namespace
