// SPDX-License-Identifier: Apache-2.0
// Runs a model so often that a leak shows: memory, file descriptors and CPU time of an inference may not grow, and the
// outputs are the same bytes every time. Also opens and closes the model again and again.
//
//   endurance MODEL [--runs N] [--opens N] [--device cpu|virtual|usb:0]
//
// Under `reef virtual-usb --ready --` the driver works on a virtual stick, usb:0, with --pcie also on a card, pci:0. It
// prints what was measured and ends with 1 where something grew. Memory is compared at a hundred points of the second
// half, when caches and pools are full: its slope is that of the least-squares line through them.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "reef/reef.hpp"

namespace {

constexpr int kPoints = 100;
// An allocator's own rounding; a leak of one byte a run is far more over the runs that are made.
constexpr double kMostGrowth = 256 * 1024;

[[noreturn]] void fail(const std::string& reason) {
  std::fprintf(stderr, "FAILED: %s\n", reason.c_str());
  std::exit(1);
}

double resident_bytes() {
  long pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

int open_descriptors() {
  int count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

double cpu_seconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// What was measured at the end of one of kPoints equal parts of all rounds.
struct Point {
  double rounds = 0, bytes = 0, seconds = 0;  // seconds of this part
  int descriptors = 0;
};

// Bytes per round by the least-squares line through the points of the second half.
double slope(const std::vector<Point>& points) {
  const std::size_t first = points.size() / 2;
  const auto count = static_cast<double>(points.size() - first);
  double x = 0, y = 0, xx = 0, xy = 0;
  for (std::size_t i = first; i < points.size(); ++i) {
    x += points[i].rounds;
    y += points[i].bytes;
  }
  x /= count;
  y /= count;
  for (std::size_t i = first; i < points.size(); ++i) {
    xx += (points[i].rounds - x) * (points[i].rounds - x);
    xy += (points[i].rounds - x) * (points[i].bytes - y);
  }
  return xx > 0 ? xy / xx : 0;
}

double median_seconds(const std::vector<Point>& points, std::size_t begin, std::size_t end) {
  std::vector<double> seconds;
  for (std::size_t i = begin; i < end; ++i) seconds.push_back(points[i].seconds);
  std::nth_element(seconds.begin(), seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2), seconds.end());
  return seconds[seconds.size() / 2];
}

template <typename Round>
void repeat(const char* what, long rounds, const Round& round) {
  std::vector<Point> points;
  const long part = std::max(1L, rounds / kPoints);
  double before = cpu_seconds();
  for (long i = 1; i <= part * kPoints; ++i) {
    round();
    if (i % part != 0) continue;
    const double now = cpu_seconds();
    points.push_back({static_cast<double>(i), resident_bytes(), now - before, open_descriptors()});
    before = cpu_seconds();
  }
  const double grown = slope(points) * static_cast<double>(part) * kPoints / 2;
  const double early = median_seconds(points, 0, kPoints / 2), late = median_seconds(points, kPoints / 2, kPoints);
  std::printf(
      "%ld %s: %.1f us of CPU each, second half %.2f of the first; memory %.0f KiB, in the second half %+.1f KiB "
      "by its slope; %d descriptors (measured)\n",
      part * kPoints, what, late / static_cast<double>(part) * 1e6, early > 0 ? late / early : 1,
      points.back().bytes / 1024, grown / 1024, points.back().descriptors);
  if (grown > kMostGrowth) fail(std::string("memory grows with ") + what);
  if (points.back().descriptors > points.front().descriptors) fail(std::string("descriptors are lost with ") + what);
}

std::vector<unsigned char> outputs_of(const reef::Interpreter& interpreter) {
  std::vector<unsigned char> bytes;
  for (std::size_t i = 0; i < interpreter.output_count(); ++i) {
    const auto data = interpreter.output(i).data<unsigned char>();
    bytes.insert(bytes.end(), data.begin(), data.end());
  }
  return bytes;
}

void fill_inputs(reef::Interpreter& interpreter) {
  for (std::size_t i = 0; i < interpreter.input_count(); ++i) {
    unsigned value = 1;
    for (unsigned char& byte : interpreter.input(i).data<unsigned char>()) {
      value = value * 1664525 + 1013904223;
      byte = static_cast<unsigned char>(value >> 28);  // small numbers, also as floats
    }
  }
}

std::vector<unsigned char> run(reef::Interpreter& interpreter) {
  if (const reef::Error error = interpreter.invoke()) fail(error.message);
  return outputs_of(interpreter);
}

}  // namespace

int main(int argc, char** argv) {
  const char* const usage = "usage: endurance MODEL [--runs N] [--opens N] [--device cpu|virtual|usb:0]";
  std::string model_path;
  long runs = 100000, opens = 1000;
  reef::Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const char* next = i + 1 < argc ? argv[i + 1] : "";
    if (word == "--runs") {
      runs = std::atol(next);
    } else if (word == "--opens") {
      opens = std::atol(next);
    } else if (word == "--device") {
      options.device = next;
    } else if (word.rfind("--", 0) == 0) {
      fail(usage);
    } else {
      model_path = word;
      continue;
    }
    ++i;
  }
  if (model_path.empty()) fail(usage);

  std::vector<unsigned char> expected;
  if (runs > 0) {
    auto model = reef::Model::load(model_path);
    if (!model) fail(model.error().message);
    auto interpreter = reef::Interpreter::create(*model, options);
    if (!interpreter) fail(interpreter.error().message);
    fill_inputs(*interpreter);
    expected = run(*interpreter);
    repeat("inferences", runs, [&] {
      if (run(*interpreter) != expected) fail("an inference gave other bytes than the first");
    });
  }
  if (opens > 0) {
    repeat("times opened, run once and closed", opens, [&] {
      auto model = reef::Model::load(model_path);
      if (!model) fail(model.error().message);
      auto interpreter = reef::Interpreter::create(*model, options);
      if (!interpreter) fail(interpreter.error().message);
      fill_inputs(*interpreter);
      const auto found = run(*interpreter);
      if (expected.empty()) expected = found;
      if (found != expected) fail("a model that was opened again gave other bytes");
    });
  }
  return 0;
}
