#include "platform/service/results/sent_results.h"

#include <algorithm>
#include <fstream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status.h"
#include "base/text/utf8.h"
#include "platform/service/results/staging_folder.h"

namespace tutti::service {
namespace {

namespace fs = std::filesystem;

// Programs that bring such a file write it under a name with something behind it until it is whole.
constexpr size_t kLongestFileName = 255 - sizeof(".part.4194304");
constexpr size_t kLongestExtension = 32;
constexpr size_t kComparedBlock = 1 << 20;

// Returns "final.n2.json"; of a further file that would have this name "final.n2.2.json".
fs::path Beside(const fs::path& path, const std::string& node, int number) {
  const bool has_extension = path.extension().native().size() <= kLongestExtension;
  const std::string stem = has_extension ? path.stem().native() : path.filename().native();
  const std::string end = absl::StrCat(".", node, number > 1 ? absl::StrCat(".", number) : "",
                                       has_extension ? path.extension().native() : "");
  const size_t most = kLongestFileName - std::min(kLongestFileName, end.size());
  const absl::string_view cut = base::WholeCharacters(absl::string_view(stem).substr(0, most));
  return path.parent_path() / absl::StrCat(stem.size() > most ? cut : stem, end);
}

bool HaveEqualContents(const fs::path& one, const fs::path& other) {
  std::error_code error, other_error;
  const bool have_equal_sizes = fs::file_size(one, error) == fs::file_size(other, other_error);
  if (error || other_error || !have_equal_sizes) return false;
  std::ifstream a(one, std::ios::binary), b(other, std::ios::binary);
  std::string block(kComparedBlock, '\0'), other_block(kComparedBlock, '\0');
  while (a && b) {
    a.read(block.data(), kComparedBlock);
    b.read(other_block.data(), kComparedBlock);
    if (a.gcount() != b.gcount()) return false;
    if (block.compare(0, a.gcount(), other_block, 0, a.gcount()) != 0) return false;
  }
  return a.eof() && b.eof();
}

}  // namespace

// Returns a path that is free, or that has what the node has sent under the same one before.
fs::path SentResults::PathBeside(const Sent& sent) {
  for (int number = 1;; ++number) {
    fs::path beside = Beside(sent.path, sent.name, number);
    if (sent_.try_emplace(beside.native(), sent).first->second == sent) return beside;
  }
}

absl::StatusOr<SamePath> SentResults::MoveBesideEachOther(const Sent& sent, const Sent& there,
                                                          const fs::path& arrived) {
  const fs::path path = sent.path;
  if (sent.node > there.node) {
    SamePath same{path, PathBeside(sent), there.name, sent.name};
    TUTTI_RETURN_IF_ERROR(MoveIntoPlace(arrived, same.beside));
    return same;
  }
  SamePath same{path, PathBeside(there), sent.name, there.name};
  const absl::Status moved = MoveIntoPlace(path, same.beside);
  if (!moved.ok() && !absl::IsNotFound(moved)) return moved;
  sent_[path.native()] = sent;
  TUTTI_RETURN_IF_ERROR(MoveIntoPlace(arrived, path));
  return same;
}

absl::StatusOr<std::optional<SamePath>> SentResults::Move(const Node& node, const fs::path& arrived,
                                                          const fs::path& path) {
  const Sent sent{node.number, node.name, path.native()};
  Sent there;
  {
    absl::MutexLock lock(&mutex_);
    there = sent_.try_emplace(path.native(), sent).first->second;
    if (there == sent) {
      TUTTI_RETURN_IF_ERROR(MoveIntoPlace(arrived, path));
      return std::nullopt;
    }
  }
  const bool is_equal = HaveEqualContents(arrived, path);
  absl::MutexLock lock(&mutex_);
  const Sent now = sent_[path.native()];  // another may have taken the path meanwhile
  if (is_equal) {
    std::error_code ignored;
    fs::remove(arrived, ignored);
    if (now == there && sent.node < now.node) sent_[path.native()] = sent;
    return std::nullopt;
  }
  if (now == sent) {
    TUTTI_RETURN_IF_ERROR(MoveIntoPlace(arrived, path));
    return std::nullopt;
  }
  return MoveBesideEachOther(sent, now, arrived);
}

}  // namespace tutti::service
