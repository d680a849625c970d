#include "runtime/comm/collective/node/segment.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>

#include "base/status.h"
#include "runtime/comm/transport/sealed_file.h"

namespace tutti::comm {
namespace {

using base::ErrnoStatus;

// A write that changes nothing: from then on the page is this process's alone.
void TakeOver(std::byte& first) {
  const std::atomic_ref byte(reinterpret_cast<unsigned char&>(first));
  unsigned char as_it_is = byte.load(std::memory_order_relaxed);
  byte.compare_exchange_strong(as_it_is, as_it_is);  // if it fails, another thread has written
}

}  // namespace

Segment::~Segment() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

absl::StatusOr<Segment> Segment::Map(int file, size_t size) {
  TUTTI_RETURN_IF_ERROR(CheckSealedFile(file, size));
  void* const place =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
  if (place == MAP_FAILED) return ErrnoStatus("mmap shared memory");
  return Segment(static_cast<std::byte*>(place), size);
}

absl::Status MakePrivate(std::byte* begin, size_t size, int file) {
  if (::mmap(begin, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, file, 0) != begin) {
    return ErrnoStatus("mmap a private view");
  }
  constexpr size_t kStep = 4 << 20;  // so many bytes are there twice at a time
  for (size_t at = 0; at < size; at += kStep) {
    const size_t end = std::min(size, at + kStep);
    for (size_t page = at; page < end; page += kPageBytes) TakeOver(begin[page]);
    ::fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(at),
                static_cast<off_t>(end - at));
  }
  return absl::OkStatus();
}

}  // namespace tutti::comm
