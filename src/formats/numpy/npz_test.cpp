// SPDX-License-Identifier: Apache-2.0
// The files are NumPy's own (2.x, np.save, np.savez, np.savez_compressed), written out here as bytes.
#include "formats/numpy/npz.h"

#include <cstring>
#include <random>

#include <gtest/gtest.h>

#include "formats/numpy/numpy_files.h"

namespace reef::numpy {
namespace {

template <typename T>
std::vector<T> values_of(const Array& array) {
  std::vector<T> values(array.data.size() / sizeof(T));
  std::memcpy(values.data(), array.data.data(), array.data.size());
  return values;
}

Bytes bytes_of(std::string_view text) { return Bytes(std::vector<std::uint8_t>(text.begin(), text.end())); }

TEST(Npy, ReadsWhatNumpyWrote) {
  for (const NumpyFile& file : kNumpyFiles) {
    const auto array = read_npy(bytes_of(file.bytes));
    ASSERT_TRUE(array.ok()) << file.name << ": " << array.status().message();
    EXPECT_EQ(ir::type_name(array->type), file.type) << file.name;
    EXPECT_EQ(array->shape, file.shape) << file.name;
    EXPECT_EQ(array->data, bytes_of(file.little_endian_c_order)) << file.name;
  }
}

TEST(Npy, WritesNumpysBytes) {
  for (const NumpyFile& file : kNumpyFiles) {
    if (!file.is_plain) continue;
    const auto array = read_npy(bytes_of(file.bytes));
    ASSERT_TRUE(array.ok());
    const auto written = write_npy(array->type, array->shape, array->data.span());
    ASSERT_TRUE(written.ok());
    EXPECT_EQ(Bytes(*written), bytes_of(file.bytes)) << file.name;
  }
}

TEST(Npy, RefusesWithAReason) {
  const auto message = [](std::string_view text) { return read_npy(bytes_of(text)).status().message(); };
  const auto with_header = [](std::string header) {
    std::string file = "\x93NUMPY\x01";
    file += '\0';
    file += static_cast<char>(header.size());
    file += '\0';
    return file + header;
  };
  EXPECT_NE(message("PK").find("no .npy array"), std::string::npos);
  EXPECT_NE(message(with_header("{'descr': '<U5', 'fortran_order': False, 'shape': (3,), }")).find("'<U5'"),
            std::string::npos);
  EXPECT_NE(message(with_header("{'descr': '|O', 'fortran_order': False, 'shape': (3,), }")).find("'|O'"),
            std::string::npos);
  EXPECT_NE(message(with_header("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,), }")).find("records"),
            std::string::npos);
  EXPECT_NE(message(with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }")).find("cut off"),
            std::string::npos);
  EXPECT_NE(message(with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (-3,), }")).find("shape"),
            std::string::npos);
  EXPECT_NE(message(with_header("{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, 4), }"))
                .find("too large"),
            std::string::npos);
}

TEST(Npz, ReadsStoredAndDeflatedMembers) {
  for (const std::string_view text : {kStoredNpz, kDeflatedNpz}) {
    const auto npz = Npz::open(bytes_of(text));
    ASSERT_TRUE(npz.ok()) << npz.status().message();
    EXPECT_EQ(npz->names(), (std::vector<std::string>{"a", "ids", "words"}));
    const auto a = npz->read("a");
    ASSERT_TRUE(a.ok()) << a.status().message();
    EXPECT_EQ(a->shape, (std::vector<std::int64_t>{2, 3}));
    EXPECT_EQ(values_of<float>(*a), (std::vector<float>{0, 1.5F, 3, 4.5F, 6, 7.5F}));
    const auto ids = npz->read("ids");
    ASSERT_TRUE(ids.ok());
    EXPECT_EQ(values_of<std::int64_t>(*ids), (std::vector<std::int64_t>(100, -7)));
    EXPECT_NE(npz->read("words").status().message().find("array 'words'"), std::string::npos);
    EXPECT_NE(npz->read("b").status().message().find("there are: a, ids, words"), std::string::npos);
    EXPECT_EQ(npz->header("ids")->shape, (std::vector<std::int64_t>{100}));
  }
}

TEST(Npz, WhatIsWrittenReadsBackAndIsTheSameTwice) {
  std::mt19937 random(3);
  std::vector<std::uint8_t> data(1200);
  for (auto& byte : data) byte = static_cast<std::uint8_t>(random() % 5);
  const NamedArray arrays[] = {{"x", {ir::DataType::kInt16, {20, 30}, Bytes(data)}},
                               {"nothing", {ir::DataType::kFloat32, {0, 4}, Bytes()}}};
  for (const bool deflate : {false, true}) {
    const auto file = write_npz(arrays, deflate);
    ASSERT_TRUE(file.ok());
    EXPECT_EQ(file->size() < data.size(), deflate);
    EXPECT_EQ(*file, *write_npz(arrays, deflate));
    const auto npz = Npz::open(Bytes(*file));
    ASSERT_TRUE(npz.ok());
    EXPECT_EQ(npz->read("x")->data, Bytes(data));
    EXPECT_EQ(npz->read("nothing")->shape, (std::vector<std::int64_t>{0, 4}));
  }
}

// Every byte set to another value, and every length: an error or the arrays, never a crash; data never change unseen.
TEST(Npz, DamageIsFoundOrHarmless) {
  const Bytes whole = bytes_of(kDeflatedNpz);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::vector<std::uint8_t> damaged(whole.span().begin(), whole.span().end());
    damaged[i] ^= 0x55;
    const auto npz = Npz::open(Bytes(damaged));
    if (!npz.ok() || !npz->has("ids")) continue;
    const auto ids = npz->read("ids");
    if (ids.ok()) {
      EXPECT_EQ(values_of<std::int64_t>(*ids), (std::vector<std::int64_t>(100, -7))) << "byte " << i;
    }
  }
  for (std::size_t size = 0; size < whole.size(); ++size) EXPECT_FALSE(Npz::open(whole.slice(0, size)).ok()) << size;
}

}  // namespace
}  // namespace reef::numpy
