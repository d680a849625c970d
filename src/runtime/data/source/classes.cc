#include "runtime/data/source/classes.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/status.h"

namespace tutti::data {

absl::StatusOr<std::vector<std::string>> ReadClasses(const std::filesystem::path& path) {
  absl::StatusOr<std::string> read = base::ReadFile(path, 1 << 24);
  if (absl::IsNotFound(read.status())) {
    return absl::NotFoundError(absl::StrCat(
        path.string(), ": missing; it names the classes of the labels 0, 1, 2, …, one a line"));
  }
  TUTTI_ASSIGN_OR_RETURN(const std::string text, std::move(read));
  std::vector<std::string> classes;
  absl::flat_hash_map<std::string, size_t> line_of;
  const absl::string_view content = absl::StripTrailingAsciiWhitespace(text);
  if (content.empty()) return absl::InvalidArgumentError(path.string() + ": names no class");
  for (const absl::string_view line : absl::StrSplit(content, '\n')) {
    const std::string name(absl::StripAsciiWhitespace(line));
    const size_t number = classes.size() + 1;
    if (name.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(path.string(), ":", number, ": empty line"));
    }
    const auto [first, inserted] = line_of.emplace(name, number);
    if (!inserted) {
      return absl::InvalidArgumentError(absl::StrCat(path.string(), ":", number, ": class \"", name,
                                                     "\" stands in line ", first->second, " too"));
    }
    classes.push_back(name);
  }
  return classes;
}

std::optional<int64_t> StrayLabel(const std::set<int64_t>& labels, int64_t known) {
  int64_t present = known, next = known;
  for (const int64_t label : labels) {
    if (label < known) continue;
    const int64_t most_missing = std::clamp<int64_t>(present / 2, 3, 16);
    if (label - next > most_missing) return label;
    ++present;
    next = label + 1;
  }
  return std::nullopt;
}

absl::Status StrayLabelError(absl::string_view place, int64_t label) {
  return absl::InvalidArgumentError(absl::StrCat(
      place, ": label ", label, " is far from all lower labels, or from 0: correct the record, or ",
      "write classes.txt with the name of each class on a line"));
}

}  // namespace tutti::data
