#include "base/machine/data_socket.h"

#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/hash.h"
#include "base/status.h"

namespace tutti::base {
namespace {

namespace fs = std::filesystem;

constexpr size_t kDigits = 32;

// A socket's path must be short, so that no folder of the user's choice can hold it.
absl::StatusOr<fs::path> OwnFolder() {
  const fs::path folder = absl::StrCat("/tmp/tutti-", ::getuid());
  ::mkdir(folder.c_str(), 0700);
  struct stat info = {};
  const bool is_own = ::lstat(folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode) &&
                      info.st_uid == ::getuid() && (info.st_mode & 077) == 0;
  if (is_own) return folder;
  return absl::FailedPreconditionError(absl::StrCat(
      folder.string(),
      " is not a folder of this user alone: have its owner or root remove it, or chmod 700"));
}

}  // namespace

absl::StatusOr<fs::path> DataSocketOf(absl::string_view address, const fs::path& cache,
                                      absl::string_view stream) {
  TUTTI_ASSIGN_OR_RETURN(const fs::path folder, OwnFolder());
  while (absl::ConsumeSuffix(&address, "/")) {
  }
  const std::string name = Hex(
      Sha256Of(absl::StrCat(address, "\n", cache.native(), stream.empty() ? "" : "\n", stream)));
  return folder / absl::StrCat(name.substr(0, kDigits), ".sock");
}

}  // namespace tutti::base
