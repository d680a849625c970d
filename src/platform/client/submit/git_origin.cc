#include "platform/client/submit/git_origin.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "base/process/command.h"

namespace tutti::client {
namespace {

constexpr size_t kMostOfAnAnswer = 1000;  // bytes of one of its words

// Returns what a call of git prints, without the spaces around it; nullopt if it fails.
std::optional<std::string> AskGit(const std::filesystem::path& folder,
                                  std::vector<std::string> arguments, base::Deadline deadline) {
  arguments.insert(arguments.begin(), {"git", "--no-optional-locks"});
  base::ChildOptions options{.arguments = std::move(arguments),
                             .environment = base::CurrentEnvironment(),
                             .directory = folder};
  options.environment["GIT_TERMINAL_PROMPT"] = "0";
  options.die_with_parent = true;
  const auto result = base::RunCommand(std::move(options), "", deadline, kMostOfAnAnswer);
  if (!result.ok() || !result->exit.ok()) return std::nullopt;
  return std::string(absl::StripAsciiWhitespace(result->out));
}

// Returns an address without the name and password that may stand before its host.
std::string WithoutPassword(const std::string& address) {
  const size_t scheme = address.find("://");
  if (scheme == std::string::npos) return address;
  const size_t host = scheme + 3, at = address.rfind('@', address.find('/', host));
  return at == std::string::npos || at < host ? address
                                              : address.substr(0, host) + address.substr(at + 1);
}

}  // namespace

std::map<std::string, std::string> GitOrigin(const std::filesystem::path& folder,
                                             base::Deadline deadline) {
  std::map<std::string, std::string> origin;
  const std::string commit =
      AskGit(folder, {"rev-parse", "--verify", "HEAD"}, deadline).value_or("");
  if (commit.empty()) return origin;
  origin["git_commit"] = commit;
  const auto add = [&](const char* name, const std::optional<std::string>& value) {
    if (!value.value_or("").empty()) origin[name] = *value;
  };
  add("git_branch", AskGit(folder, {"symbolic-ref", "--quiet", "--short", "HEAD"}, deadline));
  add("git_repository",
      WithoutPassword(
          AskGit(folder, {"config", "--get", "remote.origin.url"}, deadline).value_or("")));
  const std::optional<std::string> changed =
      AskGit(folder, {"status", "--porcelain", "--", "."}, deadline);
  if (!changed.has_value()) origin["git_dirty"] = "unknown";
  if (!changed.value_or("").empty()) origin["git_dirty"] = "true";
  return origin;
}

}  // namespace tutti::client
