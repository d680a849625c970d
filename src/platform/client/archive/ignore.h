// IgnoreRules says which files of a code folder are not sent: those that match the patterns of
// .amlignore or, where there is none, .gitignore in the folder itself (not in folders below it). It
// understands this subset:
//
//   # comment        blank lines and comments are skipped
//   *.log            without a slash: matches a file or folder of that name at any depth
//   data/raw         with one: counts from the code folder, also as /data/raw
//   build/           with one at the end: folders only, with all that is in them
//   * ? [abc]        within one name;  **  over any number of folders
//   !keep.log        takes files back in; the last pattern that matches decides. What lies in a
//                    folder that is left out cannot be taken back in.
//
// Those of .dockerignore differ, as Docker has them: a pattern without a slash counts from the
// folder as well, and what lies in a folder that is left out can be taken back in.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tutti::client {

// Immutable; safe to share.
class IgnoreRules {
 public:
  // Whose words the patterns are.
  enum class Kind { kGit, kDocker };

  // Reads `text`, the content of the ignore file.
  explicit IgnoreRules(absl::string_view text, Kind kind = Kind::kGit);

  // `path` is relative to the code folder, with "/" between names.
  bool Ignores(absl::string_view path, bool is_directory) const;

  // Returns whether something in a folder that is left out may be taken back in.
  bool TakesBackIn() const;

 private:
  struct Rule {
    std::string pattern;  // without "!", leading and trailing "/"
    bool negated = false;
    bool directories_only = false;
    bool any_depth = false;  // the pattern has no slash
  };
  Kind kind_;
  std::vector<Rule> rules_;
};

// Returns whether `pattern` (* ? [] and **) matches the whole of `path`. Takes at most time
// proportional to the product of their lengths.
bool MatchesPath(absl::string_view pattern, absl::string_view path);

}  // namespace tutti::client
