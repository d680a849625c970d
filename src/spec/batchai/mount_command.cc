#include "spec/batchai/mount_command.h"

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace tutti::spec {
namespace {

constexpr absl::string_view kNfs = "nfs://";
constexpr absl::string_view kHttps = "https:";

// Holds the words behind the options of a mount command: "-t nfs -o ro A B" has {"A", "B"}.
struct MountWords {
  std::string type, password;
  bool is_bind = false;
  std::vector<std::string> words;
};

std::vector<std::string> WordsBetweenBlanks(absl::string_view command) {
  return absl::StrSplit(command, absl::ByAnyChar(" \t\r\n"), absl::SkipEmpty());
}

void ReadOptions(absl::string_view options, MountWords& mount) {
  for (absl::string_view option : absl::StrSplit(options, absl::ByAnyChar(",\"'"))) {
    mount.is_bind |= option == "bind" || option == "rbind";
    if (absl::ConsumePrefix(&option, "password=") || absl::ConsumePrefix(&option, "pass=")) {
      mount.password = std::string(option);
    }
  }
}

bool IsMount(absl::string_view word) { return word == "mount" || absl::EndsWith(word, "/mount"); }

bool IsProgramOfNfs(absl::string_view word) {
  word.remove_prefix(word.rfind('/') + 1);
  return word == "mount.nfs" || word == "mount.nfs4";
}

MountWords MountWordsOf(absl::string_view command) {
  const std::vector<std::string> all = WordsBetweenBlanks(command);
  MountWords mount;
  size_t i = 0;
  if (i < all.size() && all[i] == "sudo") {
    for (++i; i < all.size() && absl::StartsWith(all[i], "-");) ++i;
  }
  if (i < all.size() && IsProgramOfNfs(all[i])) {
    mount.type = "nfs";
    ++i;
  } else if (i < all.size() && IsMount(all[i])) {
    ++i;
  }
  for (; i < all.size(); ++i) {
    const absl::string_view word = all[i];
    const bool has_next = i + 1 < all.size();
    if ((word == "-t" || word == "--types") && has_next) {
      mount.type = all[++i];
    } else if ((word == "-o" || word == "--options") && has_next) {
      ReadOptions(all[++i], mount);
    } else if (absl::StartsWith(word, "-o") || absl::StartsWith(word, "--options=")) {
      ReadOptions(word.substr(absl::StartsWith(word, "-o") ? 2 : word.find('=') + 1), mount);
    } else if (word == "--bind" || word == "-B" || word == "--rbind" || word == "-R") {
      mount.is_bind = true;
    } else if (!absl::StartsWith(word, "-")) {
      mount.words.emplace_back(word);
    }
  }
  return mount;
}

}  // namespace

ShareOfAzure ShareOf(absl::string_view url) {
  absl::ConsumePrefix(&url, "https://");
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(url, absl::MaxSplits('/', 1));
  const std::pair<absl::string_view, absl::string_view> host =
      absl::StrSplit(parts.first, absl::MaxSplits(".file.", 1));
  if (host.second.empty()) return {};
  return {std::string(host.first), std::string(parts.second.substr(0, parts.second.find('/'))),
          std::string(host.second)};
}

Volume VolumeOfMountCommand(absl::string_view command) {
  const MountWords mount = MountWordsOf(command);
  Volume volume;
  if (mount.words.empty() || mount.words.size() > 2) return volume;
  const absl::string_view all = mount.words[0], source = absl::StripSuffix(all, "/");
  if (mount.is_bind && absl::StartsWith(source, "/")) {
    volume.is_local = true;
    volume.address = std::string(source);
  } else if (absl::StartsWith(mount.type, "nfs") && absl::StrContains(all, ":/")) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(source, absl::MaxSplits(':', 1));
    volume.is_url = true;
    volume.can_write = false;
    volume.address = absl::StrCat(kNfs, parts.first, parts.second);
  } else if (mount.type == "cifs" && absl::StartsWith(source, "//") &&
             absl::StrContains(source, ".file.")) {
    volume.is_url = true;
    volume.address = absl::StrCat(kHttps, source);
    volume.type = "azure_file";
    volume.account_key = mount.password;
  }
  return volume;
}

std::string MountCommandOf(const Volume& volume) {
  absl::string_view rest = volume.address;
  if (volume.is_local) return absl::StrCat("mount --bind ", rest);
  if (absl::ConsumePrefix(&rest, kHttps)) return absl::StrCat("mount -t cifs ", rest);
  absl::ConsumePrefix(&rest, kNfs);
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(rest, absl::MaxSplits('/', 1));
  return absl::StrCat("mount -t nfs ", parts.first, ":/", parts.second);
}

std::string ShownMountCommand(absl::string_view command) {
  std::vector<std::string> words = WordsBetweenBlanks(command);
  for (size_t i = 0; i < words.size(); ++i) {
    const bool is_option = i > 0 && (words[i - 1] == "-o" || words[i - 1] == "--options");
    if (is_option || words[i].find_first_of("=?,") != std::string::npos) words[i] = "…";
  }
  return absl::StrJoin(words, " ");
}

}  // namespace tutti::spec
