#include "runtime/data/source/shard_bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"

namespace tutti::data {
namespace fs = std::filesystem;
namespace {

struct FreeZstd {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};
using ZstdContext = std::unique_ptr<ZSTD_DCtx, FreeZstd>;

absl::Status TooLarge(size_t max_unpacked) {
  return absl::ResourceExhaustedError(
      absl::StrCat("unpacks to more than ", max_unpacked,
                   " bytes, the most of a compressed shard: unpack it (gunzip, unzstd)"));
}

// zlib's state, freed however unpacking ends.
struct Inflater {
  z_stream stream{};
  bool ready = inflateInit2(&stream, 32 + MAX_WBITS) == Z_OK;  // 32: gzip's or zlib's header
  ~Inflater() {
    if (ready) inflateEnd(&stream);
  }
};

absl::Status Damaged(size_t offset, absl::string_view why) {
  return absl::DataLossError(absl::StrCat("at compressed byte ", offset, ": ", why));
}

}  // namespace

bool IsDeflated(absl::string_view bytes) {
  if (bytes.size() < 2) return false;
  const auto first = static_cast<uint8_t>(bytes[0]), second = static_cast<uint8_t>(bytes[1]);
  return (first == 0x1F && second == 0x8B) || (first == 0x78 && (first << 8 | second) % 31 == 0);
}

void ShardBytes::Release::operator()(const char* bytes) const {
  if (mapped == 0) {
    std::free(const_cast<char*>(bytes));
  } else {
    ::munmap(const_cast<char*>(bytes), mapped);
  }
}

absl::StatusOr<ShardBytes> ShardBytes::Open(const fs::path& path, size_t max_unpacked) {
  TUTTI_ASSIGN_OR_RETURN(ShardBytes file, Map(path));
  if (path.extension() == ".gz" || path.extension() == ".tgz") {
    return Inflate(file.view(), max_unpacked);
  }
  if (path.extension() != ".zst") return file;
  return Unpack(file.view(), max_unpacked);
}

absl::StatusOr<ShardBytes> ShardBytes::Map(const fs::path& path) {
  base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return base::ErrnoStatus("open");
  struct stat info;
  if (::fstat(fd.get(), &info) != 0) return base::ErrnoStatus("stat");
  if (!S_ISREG(info.st_mode)) return absl::InvalidArgumentError("not a regular file");
  const size_t size = static_cast<size_t>(info.st_size);
  if (size == 0) return ShardBytes(Memory(nullptr, Release{0}), 0);
  void* memory = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) return base::ErrnoStatus("mmap");
  return ShardBytes(Memory(static_cast<const char*>(memory), Release{size}), size);
}

// Grows with what really comes out, so that a header that promises much costs nothing.
absl::StatusOr<ShardBytes> ShardBytes::Unpack(absl::string_view packed, size_t max_unpacked) {
  const ZstdContext context(ZSTD_createDCtx());
  if (!context) return absl::ResourceExhaustedError("no memory for zstd");
  ZSTD_inBuffer in{packed.data(), packed.size(), 0};
  size_t capacity = std::min(max_unpacked, std::max<size_t>(4 * packed.size(), 4096));
  Memory memory(static_cast<const char*>(std::malloc(capacity)), Release{0});
  ZSTD_outBuffer out{const_cast<char*>(memory.get()), capacity, 0};
  size_t hint = 1;  // 0 at the end of a frame
  while (in.pos < in.size || hint != 0) {
    const size_t read_before = in.pos, written_before = out.pos;
    hint = ZSTD_decompressStream(context.get(), &out, &in);
    if (ZSTD_isError(hint)) return Damaged(in.pos, ZSTD_getErrorName(hint));
    if (out.pos == out.size && (hint != 0 || in.pos < in.size)) {
      if (capacity == max_unpacked) {
        return TooLarge(max_unpacked);
      }
      capacity = std::min(max_unpacked, 2 * capacity);
      char* grown = static_cast<char*>(std::realloc(const_cast<char*>(memory.get()), capacity));
      if (grown == nullptr) return absl::ResourceExhaustedError("no memory to unpack the shard");
      (void)memory.release();
      memory.reset(grown);
      out.dst = grown;
      out.size = capacity;
    } else if (in.pos == read_before && out.pos == written_before) {
      return Damaged(in.pos, "cut short");
    }
  }
  return ShardBytes(std::move(memory), out.pos);
}

// gzip's files may have several members, one behind the other.
absl::StatusOr<ShardBytes> ShardBytes::Inflate(absl::string_view packed, size_t max_unpacked) {
  if (packed.size() > max_unpacked) return TooLarge(max_unpacked);
  Inflater inflater;
  if (!inflater.ready) return absl::ResourceExhaustedError("no memory for zlib");
  z_stream& stream = inflater.stream;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  std::string unpacked;
  char piece[1 << 16];
  for (int result = Z_OK; result != Z_STREAM_END;) {
    stream.next_out = reinterpret_cast<Bytef*>(piece);
    stream.avail_out = sizeof piece;
    result = inflate(&stream, Z_NO_FLUSH);
    if (result != Z_OK && result != Z_STREAM_END) {
      return Damaged(packed.size() - stream.avail_in,
                     result == Z_BUF_ERROR ? "cut short" : "damaged");
    }
    unpacked.append(piece, sizeof piece - stream.avail_out);
    if (unpacked.size() > max_unpacked) return TooLarge(max_unpacked);
    const absl::string_view rest = packed.substr(packed.size() - stream.avail_in);
    if (result == Z_STREAM_END && IsDeflated(rest)) result = inflateReset(&stream);
  }
  char* const memory = static_cast<char*>(std::malloc(unpacked.size() + 1));
  if (memory == nullptr) return absl::ResourceExhaustedError("no memory to unpack the shard");
  std::memcpy(memory, unpacked.data(), unpacked.size());
  return ShardBytes(Memory(memory, Release{0}), unpacked.size());
}

void ShardBytes::WillNeed(size_t offset, size_t size) const {
  if (bytes_.get_deleter().mapped == 0 || size == 0) return;
  static const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t begin = offset / page * page;
  ::madvise(const_cast<char*>(bytes_.get()) + begin, offset + size - begin, MADV_WILLNEED);
}

}  // namespace tutti::data
