#include "base/machine/machine.h"

#include <unistd.h>

#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"

namespace tutti::base {

absl::StatusOr<std::string> FindProgram(absl::string_view name,
                                        const std::map<std::string, std::string>& variables) {
  if (name.find('/') != absl::string_view::npos) return std::string(name);
  const auto path = variables.find("PATH");
  const std::string folders =
      path == variables.end() ? "/usr/local/bin:/usr/bin:/bin" : path->second;
  for (const absl::string_view folder : absl::StrSplit(folders, ':')) {
    std::string candidate = absl::StrCat(folder.empty() ? "." : folder, "/", name);
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return absl::NotFoundError(absl::StrCat(name, ": not found in PATH=", folders));
}

std::string HostName() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

std::string BootId() {
  static const std::string id = [] {
    const auto text = ReadFile("/proc/sys/kernel/random/boot_id", 64);
    return text.ok() ? std::string(absl::StripAsciiWhitespace(*text)) : "";
  }();
  return id;
}

}  // namespace tutti::base
