#include "runtime/data/source/image_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "runtime/data/decode/image_codec.h"

namespace tutti::data {
namespace fs = std::filesystem;
namespace {

constexpr off_t kMaxImageBytes = off_t{1} << 28;

}  // namespace

absl::StatusOr<std::vector<std::string>> ImagesBelow(const fs::path& root, const std::string& name,
                                                     LeftOutFiles& left_out) {
  const fs::path folder = root / name;
  const auto failed = [&](const std::error_code& error) {
    return base::ErrnoStatus(folder.string(), error.value());
  };
  std::error_code error;
  fs::recursive_directory_iterator entries(folder, fs::directory_options::follow_directory_symlink,
                                           error);
  if (error) return failed(error);
  std::vector<std::string> names;
  for (; entries != fs::recursive_directory_iterator(); entries.increment(error)) {
    std::error_code ignored;
    if (entries->is_directory(ignored)) continue;
    const std::string extension = absl::AsciiStrToLower(entries->path().extension().string());
    // A link that leads nowhere is an image that can not be read.
    const bool is_file = entries->is_regular_file(ignored) || !entries->exists(ignored);
    if (is_file && !extension.empty() && IsImageExtension(extension.substr(1))) {
      names.push_back(entries->path().lexically_relative(folder).string());
    } else {
      left_out.Add(entries->path().lexically_relative(root).string());
    }
  }
  if (error) return failed(error);
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<absl::string_view> ReadImageFile(const fs::path& path, std::string& scratch) {
  const base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return base::ErrnoStatus("open");
  struct stat info;
  if (::fstat(fd.get(), &info) != 0) return base::ErrnoStatus("stat");
  if (info.st_size > kMaxImageBytes) {
    return absl::InvalidArgumentError(absl::StrCat("a file of ", info.st_size, " bytes"));
  }
  scratch.resize(static_cast<size_t>(info.st_size));
  size_t have = 0;
  while (have < scratch.size()) {
    const ssize_t got = ::read(fd.get(), scratch.data() + have, scratch.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return base::ErrnoStatus("read");
    if (got == 0) break;  // made shorter meanwhile: the decoder will tell
    have += static_cast<size_t>(got);
  }
  scratch.resize(have);
  return absl::string_view(scratch);
}

}  // namespace tutti::data
