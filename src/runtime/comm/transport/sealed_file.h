// Makes and checks memory for several processes of one host: an anonymous file, handed on as a
// descriptor, without a name in the file system, so that a crash leaves nothing behind. It is
// sealed, so that its size is what it was when it was checked and no access can fall behind its end
// (SIGBUS).
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace tutti::comm {

// Makes a sealed file of `size` zeros. `name` is what /proc shows.
absl::StatusOr<base::UniqueFd> MakeSealedFile(const char* name, size_t size);

// Checks a file; InvalidArgument if what a peer has sent is not a sealed file of `size` bytes.
absl::Status CheckSealedFile(int file, size_t size);

}  // namespace tutti::comm
