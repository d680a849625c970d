// Says which files of a code folder are not sent: those that .amlignore in the folder itself names
// or, where there is none, those that git would ignore: by each .gitignore from the repository's
// root, the folder with .git, down to the folder that a file lies in, and by .git/info/exclude.
// Without a repository they count from the code folder. Patterns are git's (gitignore(5)):
//
//   # comment        blank lines and comments are skipped; spaces at the end, but not "\ "
//   *.log            without a slash: matches a file or folder of that name at any depth
//   data/raw         with one: counts from the ignore file's folder, also as /data/raw
//   build/           with one at the end: folders only, with all that is in them
//   * ? [a-c[:digit:]]   within one name;  **  as a whole name: over any number of folders
//   !keep.log        takes files back in; the last pattern of a file that matches decides, and a
//                    file in a deeper folder before those above it. What lies in a folder that is
//                    left out cannot be taken back in.
//
// Two things differ: a code folder that its repository ignores, which a user has named all the
// same, goes by the ignore files in it alone; and whether git tracks a file does not matter.
//
// The rules of .dockerignore differ, as in Docker: a pattern without a slash counts from the folder
// as well, and what lies in a folder that is left out can be taken back in.
#pragma once

#include <bitset>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::client {

// Returns whether others than the owner of `own`, a folder below it, and this process's user may
// have put files into `folder`, such as /tmp: what lies there says nothing of a project, as git's
// safe.directory has it.
bool MayHoldOthersFiles(const std::filesystem::path& folder, const std::filesystem::path& own);

// PathPattern is a pattern for paths: * ? [] and **. Immutable.
class PathPattern {
 public:
  explicit PathPattern(absl::string_view pattern);

  // Returns whether it matches the whole of `path`. Takes at most time proportional to the product
  // of their lengths.
  bool Matches(absl::string_view path) const;

 private:
  struct Step {
    std::bitset<256> takes;     // the bytes that it matches
    bool repeats = false;       // any number of them
    bool over_folders = false;  // "**", which with a slash behind it stands for no folder, too
  };
  bool ReadStep(bool begins, absl::string_view& rest);
  bool MatchesSteps(absl::string_view path) const;

  enum class Shape { kText, kSuffix, kSteps, kNothing } shape_ = Shape::kSteps;
  std::string text_;  // kText: the pattern; kSuffix: behind its star; kSteps: before its steps
  std::vector<Step> steps_;
};

// IgnoreRules are the rules of one ignore file. Immutable; safe to share.
class IgnoreRules {
 public:
  // Whose words the patterns are.
  enum class Kind { kGit, kDocker };

  // Reads `text`, the content of the ignore file.
  explicit IgnoreRules(absl::string_view text, Kind kind = Kind::kGit);

  // Returns whether the last pattern that matches leaves `path` out (true) or takes it in (false);
  // nullopt: none matches. `path` is relative to the file's folder, with "/" between names.
  std::optional<bool> Decide(absl::string_view path, bool is_directory) const;

  // Returns whether something in a folder that is left out may be taken back in.
  bool MayReinclude() const;

 private:
  struct Rule {
    PathPattern pattern;  // without "!", leading and trailing "/"
    bool negated = false;
    bool directories_only = false;
    bool any_depth = false;  // the pattern has no slash
  };
  Kind kind_;
  std::vector<Rule> rules_;
};

// IgnoreFiles are the ignore files that decide about what lies in one folder. Immutable; safe to
// share.
class IgnoreFiles {
 public:
  // Reads those of a code folder, given by its real name.
  static absl::StatusOr<IgnoreFiles> OfCode(const std::filesystem::path& code);

  // Returns those of `folder`, which lies in the folder of these.
  absl::StatusOr<IgnoreFiles> Below(const std::filesystem::path& folder) const;

  // Returns the file that leaves `path` out; nullptr if none does.
  const std::filesystem::path* LeavesOut(const std::filesystem::path& path,
                                         bool is_directory) const;

 private:
  struct File {
    std::filesystem::path path, folder;  // folder: what its patterns count from
    IgnoreRules rules;
    std::shared_ptr<const File> above;
  };
  static IgnoreFiles Above(const std::filesystem::path& code);
  absl::Status Read(const std::filesystem::path& file, const std::filesystem::path& folder);

  std::shared_ptr<const File> nearest_;
  bool reads_below_ = true;  // .amlignore stands instead of all others
};

}  // namespace tutti::client
