#include <chrono>
#include <cstdio>
#include "base/file.h"
#include "base/sha256.h"
#include "execute/device/device.h"
#include "formats/darwinn/reader.h"
#include "formats/tflite/reader.h"
#include "ir/pseudo_random.h"
using namespace reef;
int main(int argc, char** argv) {
  for (int a = 1; a < argc; ++a) {
    std::string path = argv[a];
    auto file = read_file(path, 1u << 31);
    auto model = tflite::read_model(*file);
    for (auto& op : model->subgraphs[0].operators) {
      if (op.type != darwinn::kCustomOpName) continue;
      auto options = darwinn::read_custom_options(op.custom_options);
      auto loaded = device::LoadedPackage::load(options->package);
      if (!loaded.ok()) { printf("%s LOAD %s\n", path.c_str(), loaded.status().message().c_str()); continue; }
      device::Options o;
      device::Device dev(o);
      std::vector<std::vector<uint8_t>> in;
      std::vector<std::span<const uint8_t>> spans;
      for (auto& l : (*loaded)->inputs()) {
        in.emplace_back(device::tensor_bytes(l));
        uint32_t s = 7; for (auto& b : in.back()) { s = s * 1664525u + 1013904223u; b = s >> 24; }
      }
      for (auto& v : in) spans.emplace_back(v);
      auto t0 = std::chrono::steady_clock::now();
      auto out = dev.run(*loaded, spans);
      auto t1 = std::chrono::steady_clock::now();
      Result<std::vector<std::vector<uint8_t>>> out2 = out;
      if (out.ok()) out2 = dev.run(*loaded, spans);
      auto t2 = std::chrono::steady_clock::now();
      double ms = std::chrono::duration<double, std::milli>(t1 - t0).count(), ms2 = std::chrono::duration<double, std::milli>(t2 - t1).count();
      if (!out.ok()) { printf("%s FAIL %.0fms %s\n", path.c_str(), ms, out.status().message().substr(0, 700).c_str()); continue; }
      printf("%s ok %.0f+%.0f ms same %d steps %ld", path.c_str(), ms, ms2, out2.ok() && *out == *out2, (long)dev.chip().steps());
      for (auto& v : *out) printf(" %zu:%s", v.size(), sha256_hex(v).substr(0, 8).c_str());
      printf("\n");
      if (const char* dir = getenv("DUMP")) {
        for (size_t i = 0; i < in.size(); ++i) (void)write_file(std::string(dir) + "/in" + std::to_string(i) + ".bin", in[i]);
        for (size_t i = 0; i < out->size(); ++i) (void)write_file(std::string(dir) + "/out" + std::to_string(i) + ".bin", (*out)[i]);
      }
    }
  }
}
