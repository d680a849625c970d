#include "runtime/comm/transport/sealed_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/status.h"

namespace tutti::comm {
namespace {

using base::ErrnoStatus;

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;

}  // namespace

absl::StatusOr<base::UniqueFd> MakeSealedFile(const char* name, size_t size) {
  base::UniqueFd file(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.valid()) return ErrnoStatus("memfd_create");
  if (::ftruncate(file.get(), static_cast<off_t>(size)) != 0) {
    return ErrnoStatus("ftruncate shared memory");
  }
  if (::fcntl(file.get(), F_ADD_SEALS, kSeals) != 0) return ErrnoStatus("seal shared memory");
  return file;
}

absl::Status CheckSealedFile(int file, size_t size) {
  struct stat about = {};
  const int seals = ::fcntl(file, F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals || ::fstat(file, &about) != 0 || size == 0 ||
      about.st_size != static_cast<off_t>(size)) {
    return absl::InvalidArgumentError("what came is not the shared memory that was announced");
  }
  return absl::OkStatus();
}

}  // namespace tutti::comm
