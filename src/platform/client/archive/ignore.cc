#include "platform/client/archive/ignore.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/status.h"

namespace tutti::client {
namespace fs = std::filesystem;
namespace {

using Set = std::bitset<256>;  // of bytes: whether plain `char` has a sign differs

constexpr absl::string_view kWildcards = "*?[\\";

size_t ByteOf(char c) { return static_cast<unsigned char>(c); }

Set AllButSlash() { return Set().set().reset(ByteOf('/')); }

// Adds the bytes of a class such as "digit"; false if there is none of that name.
bool AddClass(absl::string_view name, Set& set) {
  static constexpr std::pair<absl::string_view, bool (*)(unsigned char)> kClasses[] = {
      {"alnum", absl::ascii_isalnum}, {"alpha", absl::ascii_isalpha},
      {"blank", absl::ascii_isblank}, {"cntrl", absl::ascii_iscntrl},
      {"digit", absl::ascii_isdigit}, {"graph", absl::ascii_isgraph},
      {"lower", absl::ascii_islower}, {"print", absl::ascii_isprint},
      {"punct", absl::ascii_ispunct}, {"space", absl::ascii_isspace},
      {"upper", absl::ascii_isupper}, {"xdigit", absl::ascii_isxdigit},
  };
  const auto found = std::find_if(std::begin(kClasses), std::end(kClasses),
                                  [&](const auto& known) { return known.first == name; });
  if (found == std::end(kClasses)) return false;
  for (size_t byte = 0; byte < 128; ++byte) {
    if (found->second(static_cast<unsigned char>(byte))) set.set(byte);
  }
  return true;
}

// Reads "[:digit:]" at the start of `rest`. Without ":]" the bracket is a byte as any other: 0.
// Returns how many bytes it has read, or nullopt for a class that nobody knows.
std::optional<size_t> ReadClass(absl::string_view rest, Set& set) {
  if (!absl::StartsWith(rest, "[:")) return 0;
  const size_t end = rest.find(']', 2);
  if (end == absl::string_view::npos) return std::nullopt;
  if (end < 3 || rest[end - 1] != ':') return 0;
  if (!AddClass(rest.substr(2, end - 3), set)) return std::nullopt;
  return end + 1;
}

// Reads what stands behind a "[" through its "]", as git does; nullopt if that is missing, since
// such a pattern matches nothing.
std::optional<Set> ReadSet(absl::string_view& rest) {
  const bool negated = absl::ConsumePrefix(&rest, "!") || absl::ConsumePrefix(&rest, "^");
  Set set;
  std::optional<size_t> first;  // that a range may begin with
  for (bool begins = true; begins || !absl::StartsWith(rest, "]"); begins = false) {
    const bool is_range = first.has_value() && rest.size() > 1 && rest[0] == '-' && rest[1] != ']';
    if (is_range) rest.remove_prefix(1);
    const std::optional<size_t> of_class = is_range ? 0 : ReadClass(rest, set);
    if (!of_class.has_value()) return std::nullopt;
    rest.remove_prefix(*of_class);
    if (*of_class > 0) {
      first.reset();
      continue;
    }
    absl::ConsumePrefix(&rest, "\\");
    if (rest.empty()) return std::nullopt;
    const size_t byte = ByteOf(rest[0]);
    rest.remove_prefix(1);
    for (size_t each = is_range ? *first : byte; each <= byte; ++each) set.set(each);
    first = is_range ? std::nullopt : std::optional<size_t>(byte);
  }
  rest.remove_prefix(1);
  return negated ? ~set : set;
}

// Spaces at the end do not count, unless a backslash stands before them.
absl::string_view WithoutTrailingSpaces(absl::string_view line) {
  size_t length = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    const bool is_escaped = line[i] == '\\';
    if (is_escaped) ++i;
    if (is_escaped || line[i] != ' ') length = i + 1;
  }
  return line.substr(0, length);
}

bool IsRepository(const fs::path& folder) {
  std::error_code error;
  return fs::exists(folder / ".git", error);
}

}  // namespace

bool MayHoldOthersFiles(const fs::path& folder, const fs::path& own) {
  struct stat above = {}, below = {};
  if (::stat(folder.c_str(), &above) != 0 || ::stat(own.c_str(), &below) != 0) return true;
  const bool is_known = above.st_uid == ::geteuid() || above.st_uid == below.st_uid;
  return !is_known || (above.st_mode & S_IWOTH) != 0;
}

PathPattern::PathPattern(absl::string_view pattern) {
  absl::string_view rest =
      pattern.substr(std::min(pattern.find_first_of(kWildcards), pattern.size()));
  text_ = std::string(pattern.substr(0, pattern.size() - rest.size()));
  if (rest.empty()) {
    shape_ = Shape::kText;
  } else if (rest.size() == pattern.size() && rest.find_last_of(kWildcards) == 0 &&
             rest[0] == '*') {
    shape_ = Shape::kSuffix;
    text_ = std::string(rest.substr(1));
  }
  while (shape_ == Shape::kSteps && !rest.empty()) {
    if (!ReadStep(steps_.empty() || rest.data()[-1] == '/', rest)) shape_ = Shape::kNothing;
  }
}

// Reads one step at the start of `rest`; false: the pattern matches nothing. `begins`: a name does
// there, or what git matches does, which compares the text before the first wildcard by itself.
bool PathPattern::ReadStep(bool begins, absl::string_view& rest) {
  Step step;
  if (rest[0] == '*') {
    const size_t stars = std::min(rest.find_first_not_of('*'), rest.size());
    rest.remove_prefix(stars);
    step.repeats = true;
    step.over_folders = stars > 1 && begins && (rest.empty() || rest[0] == '/');
    step.takes = step.over_folders ? Set().set() : AllButSlash();
  } else if (absl::ConsumePrefix(&rest, "?")) {
    step.takes = AllButSlash();
  } else if (absl::ConsumePrefix(&rest, "[")) {
    const std::optional<Set> set = ReadSet(rest);
    if (!set.has_value()) return false;
    step.takes = *set & AllButSlash();
  } else {
    absl::ConsumePrefix(&rest, "\\");
    if (rest.empty()) return false;
    step.takes.set(ByteOf(rest[0]));
    rest.remove_prefix(1);
  }
  steps_.push_back(step);
  return true;
}

bool PathPattern::Matches(absl::string_view path) const {
  switch (shape_) {
    case Shape::kText:
      return path == text_;
    case Shape::kSuffix:
      return absl::EndsWith(path, text_) &&
             !absl::StrContains(path.substr(0, path.size() - text_.size()), '/');
    case Shape::kSteps:
      return absl::StartsWith(path, text_) && MatchesSteps(path.substr(text_.size()));
    case Shape::kNothing:
      return false;
  }
  return false;
}

// All places in the pattern that the text so far can have reached are followed at once.
bool PathPattern::MatchesSteps(absl::string_view path) const {
  std::vector<bool> at(steps_.size() + 1, false), next(steps_.size() + 1);
  // Adds the places that are reachable without a further byte. "**/" also stands for no folder at
  // all, so where a name starts the place after the slash is one of them.
  const auto close = [this](bool name_starts, std::vector<bool>& places) {
    for (size_t i = 0; i < steps_.size(); ++i) {
      if (!places[i] || !steps_[i].repeats) continue;
      places[i + 1] = true;
      if (steps_[i].over_folders && name_starts && i + 1 < steps_.size()) places[i + 2] = true;
    }
  };
  at[0] = true;
  close(true, at);
  for (const char c : path) {
    std::fill(next.begin(), next.end(), false);
    for (size_t i = 0; i < steps_.size(); ++i) {
      if (at[i] && steps_[i].takes[ByteOf(c)]) next[steps_[i].repeats ? i : i + 1] = true;
    }
    std::swap(at, next);
    close(c == '/', at);
  }
  return at[steps_.size()];
}

IgnoreRules::IgnoreRules(absl::string_view text, Kind kind) : kind_(kind) {
  absl::ConsumePrefix(&text, "\xEF\xBB\xBF");  // editors of Windows begin a file so
  const bool is_docker = kind == Kind::kDocker;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    absl::ConsumeSuffix(&line, "\r");
    if (absl::StartsWith(line, "#")) continue;
    line = WithoutTrailingSpaces(line);
    if (is_docker) line = absl::StripAsciiWhitespace(line);
    const bool negated = absl::ConsumePrefix(&line, "!");
    const bool directories_only = absl::ConsumeSuffix(&line, "/") && !is_docker;
    const bool any_depth = !is_docker && !absl::StrContains(line, '/');
    if (is_docker) absl::ConsumePrefix(&line, "./");
    absl::ConsumePrefix(&line, "/");
    if (!line.empty()) rules_.push_back({PathPattern(line), negated, directories_only, any_depth});
  }
}

std::optional<bool> IgnoreRules::Decide(absl::string_view path, bool is_directory) const {
  const absl::string_view name = path.substr(path.rfind('/') + 1);
  const auto matches = [&](const Rule& rule) {
    if (rule.directories_only && !is_directory) return false;
    if (rule.pattern.Matches(rule.any_depth ? name : path)) return true;
    if (kind_ == Kind::kGit) return false;  // who asks has not come below what is left out
    for (size_t end = path.find('/'); end != path.npos; end = path.find('/', end + 1)) {
      if (rule.pattern.Matches(path.substr(0, end))) return true;
    }
    return false;
  };
  const auto decides = std::find_if(rules_.rbegin(), rules_.rend(), matches);
  return decides == rules_.rend() ? std::nullopt : std::optional<bool>(!decides->negated);
}

bool IgnoreRules::MayReinclude() const {
  return kind_ == Kind::kDocker &&
         std::any_of(rules_.begin(), rules_.end(), [](const Rule& rule) { return rule.negated; });
}

absl::StatusOr<IgnoreFiles> IgnoreFiles::OfCode(const fs::path& code) {
  IgnoreFiles files;
  TUTTI_RETURN_IF_ERROR(files.Read(code / ".amlignore", code));
  if (files.nearest_ == nullptr) return Above(code).Below(code);
  files.reads_below_ = false;
  return files;
}

// Returns the ignore files above the code folder, in its repository, except those that cannot be
// read. Returns none if there is no repository, or if they leave the code folder itself out.
IgnoreFiles IgnoreFiles::Above(const fs::path& code) {
  fs::path folder = code;
  while (!IsRepository(folder) && folder.has_relative_path()) {
    folder = folder.parent_path();
    if (MayHoldOthersFiles(folder, code)) return {};
  }
  IgnoreFiles files;
  if (folder == code || !IsRepository(folder)) return files;
  for (const fs::path& name : code.lexically_relative(folder)) {
    files = files.Below(folder).value_or(files);
    folder /= name;
    if (files.LeavesOut(folder, true) != nullptr) return {};
  }
  return files;
}

absl::StatusOr<IgnoreFiles> IgnoreFiles::Below(const fs::path& folder) const {
  if (!reads_below_) return *this;
  const bool is_repository = IsRepository(folder);  // git knows nothing of those around it
  IgnoreFiles files = is_repository ? IgnoreFiles() : *this;
  if (is_repository) {
    TUTTI_RETURN_IF_ERROR(files.Read(folder / ".git" / "info" / "exclude", folder));
  }
  TUTTI_RETURN_IF_ERROR(files.Read(folder / ".gitignore", folder));
  return files;
}

// Adds the rules of a file, if it is there.
absl::Status IgnoreFiles::Read(const fs::path& file, const fs::path& folder) {
  std::error_code error;
  if (!fs::is_regular_file(file, error)) return absl::OkStatus();
  TUTTI_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(file, 1 << 20));
  nearest_ = std::make_shared<const File>(File{file, folder, IgnoreRules(text), nearest_});
  return absl::OkStatus();
}

const fs::path* IgnoreFiles::LeavesOut(const fs::path& path, bool is_directory) const {
  for (const File* file = nearest_.get(); file != nullptr; file = file->above.get()) {
    absl::string_view name = absl::StripPrefix(path.native(), file->folder.native());
    absl::ConsumePrefix(&name, "/");
    const std::optional<bool> decided = file->rules.Decide(name, is_directory);
    if (decided.has_value()) return *decided ? &file->path : nullptr;
  }
  return nullptr;
}

}  // namespace tutti::client
