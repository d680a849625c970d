#include "platform/service/results/sent_results.h"

#include <algorithm>
#include <fstream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "platform/service/results/staging_folder.h"

namespace tutti::service {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLongestName = 255;
constexpr size_t kBlock = 1 << 20;

// Returns "final.n2.json"; of a further file that would have this name "final.n2.2.json".
fs::path Beside(const fs::path& path, const std::string& node, int number) {
  const std::string end = absl::StrCat(".", node, number > 1 ? absl::StrCat(".", number) : "",
                                       path.extension().native());
  const std::string stem = path.stem().native();
  return path.parent_path() /
         absl::StrCat(stem.substr(0, kLongestName - std::min(kLongestName, end.size())), end);
}

bool HaveEqualContents(const fs::path& one, const fs::path& other) {
  std::error_code error, other_error;
  const bool have_equal_sizes = fs::file_size(one, error) == fs::file_size(other, other_error);
  if (error || other_error || !have_equal_sizes) return false;
  std::ifstream a(one, std::ios::binary), b(other, std::ios::binary);
  std::string block(kBlock, '\0'), other_block(kBlock, '\0');
  while (a && b) {
    a.read(block.data(), kBlock);
    b.read(other_block.data(), kBlock);
    if (a.gcount() != b.gcount()) return false;
    if (block.compare(0, a.gcount(), other_block, 0, a.gcount()) != 0) return false;
  }
  return a.eof() && b.eof();
}

}  // namespace

absl::StatusOr<fs::path> SentResults::Move(const std::string& node, const fs::path& arrived,
                                           const fs::path& path) {
  const std::pair<std::string, std::string> sender(node, path.native());
  {
    absl::MutexLock lock(&mutex_);
    if (sent_.try_emplace(path.native(), sender).first->second == sender) {
      TUTTI_RETURN_IF_ERROR(MoveIntoPlace(arrived, path));
      return fs::path();
    }
  }
  if (HaveEqualContents(arrived, path)) {
    std::error_code ignored;
    fs::remove(arrived, ignored);
    return fs::path();
  }
  absl::MutexLock lock(&mutex_);
  for (int number = 1;; ++number) {
    const fs::path beside = Beside(path, node, number);
    if (sent_.try_emplace(beside.native(), sender).first->second != sender) continue;
    TUTTI_RETURN_IF_ERROR(MoveIntoPlace(arrived, beside));
    return beside;
  }
}

}  // namespace tutti::service
