#include "platform/cluster/remote.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/hash.h"
#include "base/process/command.h"
#include "base/status.h"

namespace tutti::cluster {
namespace {

constexpr int kSshFailed = 255;
// Another shell than sh may be the user's.
constexpr char kAsRoot[] =
    "sh -c 'if [ \"$(id -u)\" = 0 ]; then exec sh -e -s -- \"$SSH_CONNECTION\"; else exec sudo -n "
    "sh -e -s -- \"$SSH_CONNECTION\"; fi'";

std::string LastLine(absl::string_view text) {
  const std::vector<absl::string_view> lines =
      absl::StrSplit(absl::StripAsciiWhitespace(text), '\n', absl::SkipWhitespace());
  return lines.empty() ? "no reason was given" : std::string(lines.back().substr(0, 300));
}

std::string RemedyFor(bool by_ssh, absl::string_view said, const std::string& host) {
  if (by_ssh && absl::StrContains(said, "Host key verification failed")) {
    return absl::StrCat("; run `ssh ", host, "` once by hand and accept its key");
  }
  if (by_ssh && absl::StrContains(said, "Permission denied")) {
    return absl::StrCat("; let this account in without a password: ssh-copy-id ", host);
  }
  if (by_ssh && absl::StrContains(said, "Could not resolve hostname")) {
    return "; put its name into DNS, /etc/hosts or ~/.ssh/config, or give its address";
  }
  if (by_ssh && absl::StrContains(said, "Connection refused")) {
    return "; start sshd there, or say its port in ~/.ssh/config";
  }
  if (by_ssh && (absl::StrContains(said, "timed out") || absl::StrContains(said, "No route to"))) {
    return "; switch it on, or let TCP 22 through to it";
  }
  if (absl::StrContains(said, "sudo:")) {
    return "; let this user act as root without a password (NOPASSWD in /etc/sudoers.d), or log in "
           "as root by --user root";
  }
  return "";
}

void AddLogin(const std::string& user, const std::string& config,
              std::vector<std::string>& arguments) {
  if (!config.empty()) arguments.insert(arguments.end(), {"-F", config});
  if (!user.empty()) arguments.insert(arguments.end(), {"-l", user});
}

}  // namespace

SshRemote::SshRemote(std::string user, std::string config)
    : user_(std::move(user)), config_(std::move(config)) {}

absl::StatusOr<std::string> SshRemote::Run(const std::string& host, absl::string_view script,
                                           base::Deadline deadline) {
  base::ChildOptions options;
  options.environment = base::CurrentEnvironment();
  options.arguments = {"ssh", "-oBatchMode=yes", "-oConnectTimeout=10", "-oServerAliveInterval=15",
                       "-oAddressFamily=inet",  // an address that it shows is written for Slurm
                       "-oControlMaster=auto", "-oControlPersist=20",
                       // Short, whatever the host is called: a socket's path has few characters.
                       absl::StrCat("-oControlPath=", sockets_.path().string(), "/",
                                    base::Hex(base::Sha256Of(host)).substr(0, 8))};
  AddLogin(user_, config_, options.arguments);
  options.arguments.insert(options.arguments.end(), {"--", host, kAsRoot});
  const auto result = base::RunCommand(options, script, deadline);
  if (absl::IsDeadlineExceeded(result.status())) {
    return absl::DeadlineExceededError(
        absl::StrCat(host, ": what was asked of it by ssh did not end in time; if `ssh ", host,
                     " true` is slow too, a start-up file of its shell waits for something"));
  }
  if (!result.ok()) return base::Annotate(result.status(), host);
  const std::string said = LastLine(result->err);
  if (result->exit.ok()) return result->out;
  const bool by_ssh = result->exit.code == kSshFailed;
  const std::string text = absl::StrCat(host, ": ", said, RemedyFor(by_ssh, result->err, host));
  return by_ssh ? absl::UnavailableError(text) : absl::AbortedError(text);
}

std::vector<std::string> SshSession(const std::string& user, const std::string& config,
                                    const std::string& host, const std::vector<std::string>& words,
                                    bool terminal) {
  std::vector<std::string> arguments = {"ssh"};
  AddLogin(user, config, arguments);
  if (terminal) arguments.push_back("-t");
  arguments.insert(arguments.end(), {"--", host});
  for (const std::string& word : words) arguments.push_back(base::ShellQuoted(word));
  return arguments;
}

}  // namespace tutti::cluster
