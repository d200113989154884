// SPDX-License-Identifier: Apache-2.0
#include "formats/zip/gzip.h"

#include <algorithm>
#include <limits>

#include <zlib.h>

namespace reef::zip {
namespace {

constexpr int kGzipOrZlib = 15 + 32;  // window bits: zlib looks at the header
constexpr std::uint64_t kPiece = 1 << 20;

struct Inflater {
  z_stream stream{};
  ~Inflater() { inflateEnd(&stream); }
};

}  // namespace

bool is_gzip(std::span<const std::uint8_t> start) { return start.size() >= 2 && start[0] == 0x1f && start[1] == 0x8b; }

Result<Bytes> unpack_gzip(const Bytes& packed, std::uint64_t most, const Budget& budget, BudgetedBytes& memory) {
  Inflater inflater;
  z_stream& stream = inflater.stream;
  if (inflateInit2(&stream, kGzipOrZlib) != Z_OK) return make_error(StatusCode::kResourceExhausted, "zlib: no memory");
  std::vector<std::uint8_t> result;
  std::uint64_t in = 0, out = 0;
  for (;;) {
    if (out == result.size()) {
      REEF_RETURN_IF_ERROR(budget.check("unpacking"));
      REEF_REQUIRE(out < most,
                   "it unpacks to more than {} MiB; unpack it with gunzip, then it need not fit into memory",
                   most >> 20);
      const std::uint64_t grow = std::min(most - out, std::max(kPiece, out));
      REEF_RETURN_IF_ERROR(memory.take(budget, static_cast<std::int64_t>(grow), "the unpacked file"));
      result.resize(out + grow);
    }
    const auto most_at_once = std::uint64_t{std::numeric_limits<uInt>::max()};
    stream.next_in = const_cast<Bytef*>(packed.data() + in);
    stream.avail_in = static_cast<uInt>(std::min(most_at_once, packed.size() - in));
    stream.next_out = result.data() + out;
    stream.avail_out = static_cast<uInt>(std::min(most_at_once, result.size() - out));
    const uInt given = stream.avail_in, room = stream.avail_out;
    const int code = inflate(&stream, Z_NO_FLUSH);
    in += given - stream.avail_in;
    out += room - stream.avail_out;
    if (code == Z_STREAM_END) {
      if (!is_gzip(packed.span().subspan(in))) break;  // what else follows is padding
      REEF_REQUIRE(inflateReset(&stream) == Z_OK, "zlib cannot go on");
      continue;
    }
    REEF_REQUIRE(code == Z_OK || (code == Z_BUF_ERROR && stream.avail_out == 0),
                 "the packed file is damaged or cut off at byte {} ({})", in,
                 stream.msg != nullptr ? stream.msg : "it ends too early");
  }
  result.resize(out);
  return Bytes(std::move(result));
}

}  // namespace reef::zip
