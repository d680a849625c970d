#include "runtime/data/source/shard_bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

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

absl::Status Damaged(size_t offset, absl::string_view why) {
  return absl::DataLossError(absl::StrCat("at compressed byte ", offset, ": ", why));
}

}  // namespace

void ShardBytes::Release::operator()(const char* bytes) const {
  if (mapped == 0) {
    std::free(const_cast<char*>(bytes));
  } else {
    ::munmap(const_cast<char*>(bytes), mapped);
  }
}

absl::StatusOr<ShardBytes> ShardBytes::Open(const fs::path& path, size_t max_unpacked) {
  TUTTI_ASSIGN_OR_RETURN(ShardBytes file, Map(path));
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
        return absl::ResourceExhaustedError(absl::StrCat("unpacks to more than ", max_unpacked,
                                                         " bytes; keep this shard uncompressed"));
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

void ShardBytes::WillNeed(size_t offset, size_t size) const {
  if (bytes_.get_deleter().mapped == 0 || size == 0) return;
  static const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t begin = offset / page * page;
  ::madvise(const_cast<char*>(bytes_.get()) + begin, offset + size - begin, MADV_WILLNEED);
}

}  // namespace tutti::data
