#include "runtime/comm/collective/node/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/status.h"

namespace tutti::comm {
namespace {

using base::ErrnoStatus;
using base::UniqueFd;

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;

}  // namespace

Segment::~Segment() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

absl::StatusOr<UniqueFd> Segment::MakeFile(const char* name, size_t size) {
  UniqueFd file(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.valid()) return ErrnoStatus("memfd_create");
  if (::ftruncate(file.get(), static_cast<off_t>(size)) != 0) {
    return ErrnoStatus("ftruncate shared memory");
  }
  if (::fcntl(file.get(), F_ADD_SEALS, kSeals) != 0) return ErrnoStatus("seal shared memory");
  return file;
}

absl::StatusOr<Segment> Segment::Map(int file, size_t size) {
  struct stat about = {};
  const int seals = ::fcntl(file, F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals || ::fstat(file, &about) != 0 || size == 0 ||
      about.st_size != static_cast<off_t>(size)) {
    return absl::InvalidArgumentError("not the shared memory that was announced");
  }
  void* const place =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
  if (place == MAP_FAILED) return ErrnoStatus("mmap shared memory");
  return Segment(static_cast<std::byte*>(place), size);
}

}  // namespace tutti::comm
