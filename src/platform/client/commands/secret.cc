#include <signal.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <iostream>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/client/commands/commands.h"
#include "platform/client/connection/service_client.h"
#include "platform/client/text/table.h"
#include "spec/types/secret_limits.h"

namespace tutti::client {
namespace {

// A terminal that shows nothing of what is typed as long as the object lives, of which there is
// one at a time; also where the user ends the program meanwhile.
class HiddenInput {
 public:
  HiddenInput() {
    known_ = ::tcgetattr(STDIN_FILENO, &before_) == 0;
    if (!known_) return;
    struct sigaction action = {};
    action.sa_handler = ShowAndEnd;
    ::sigfillset(&action.sa_mask);
    for (size_t i = 0; i < kEnds.size(); ++i) ::sigaction(kEnds[i], &action, &actions_[i]);
    termios hidden = before_;
    hidden.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden);
  }
  ~HiddenInput() {
    if (known_) Show();
  }
  HiddenInput(const HiddenInput&) = delete;
  HiddenInput& operator=(const HiddenInput&) = delete;

 private:
  static constexpr std::array<int, 4> kEnds = {SIGINT, SIGTERM, SIGQUIT, SIGHUP};

  // Async-signal-safe.
  static void Show() {
    ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &before_);
    for (size_t i = 0; i < kEnds.size(); ++i) ::sigaction(kEnds[i], &actions_[i], nullptr);
  }
  static void ShowAndEnd(int signal) {
    Show();
    ::raise(signal);  // as it would have ended without this
  }

  static termios before_;
  static std::array<struct sigaction, kEnds.size()> actions_;
  bool known_ = false;
};

termios HiddenInput::before_ = {};
std::array<struct sigaction, HiddenInput::kEnds.size()> HiddenInput::actions_ = {};

absl::StatusOr<std::string> AskForValue(Context& context, const std::string& name) {
  std::string value;
  bool given = false;
  {
    const HiddenInput hidden;  // before the question, as it drops what was typed until then
    context.err << "value of " << name << ", which is not shown: " << std::flush;
    given = static_cast<bool>(std::getline(std::cin, value));
  }
  context.err << std::endl;
  if (!given) return absl::CancelledError("no value: nothing was set");
  return value;
}

// All of the standard input, but for a newline at its end: `echo VALUE | tutti secret set`.
absl::StatusOr<std::string> ReadInput() {
  std::string value;
  char block[4096];
  while (value.size() <= spec::kLargestSecret + 1 && std::cin.good()) {
    std::cin.read(block, sizeof block);
    value.append(block, static_cast<size_t>(std::cin.gcount()));
  }
  absl::string_view text = value;
  absl::ConsumeSuffix(&text, "\n");
  return std::string(text);
}

absl::StatusOr<std::string> ValueOf(Context& context, const SecretOptions& options) {
  if (!options.file.empty()) return base::ReadFile(options.file, spec::kLargestSecret);
  return ::isatty(STDIN_FILENO) == 1 ? AskForValue(context, options.name) : ReadInput();
}

// Returns whether the user says yes; without a terminal there must be --yes.
absl::StatusOr<bool> MayDelete(Context& context, ServiceClient& service,
                               const SecretOptions& options) {
  if (options.yes) return true;
  if (::isatty(STDIN_FILENO) != 1) {
    return absl::InvalidArgumentError("there is no terminal to ask at: say --yes");
  }
  TUTTI_ASSIGN_OR_RETURN(const std::string text, service.Secrets());
  TUTTI_ASSIGN_OR_RETURN(const SecretsView view, Parse<SecretsView>(text));
  for (const SecretView& secret : view.secrets) {
    if (secret.name != options.name || secret.waiting_jobs.empty()) continue;
    context.err << "jobs that wait for it will fail: " << absl::StrJoin(secret.waiting_jobs, ", ")
                << "\n";
  }
  context.err << "Delete secret " << options.name << "? [y/N] " << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  return absl::AsciiStrToLower(absl::StripAsciiWhitespace(answer)) == "y";
}

}  // namespace

absl::StatusOr<ExitCode> SecretSet(Context& context, const SecretOptions& options) {
  TUTTI_ASSIGN_OR_RETURN(const std::string value, ValueOf(context, options));
  ServiceClient service(context.connect());
  TUTTI_RETURN_IF_ERROR(service.SetSecret(options.name, value));
  context.out << "secret " << options.name << " is set\n";
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> SecretList(Context& context, const SecretOptions& options) {
  ServiceClient service(context.connect());
  TUTTI_ASSIGN_OR_RETURN(const std::string text, service.Secrets());
  if (options.format != Format::kTable) {
    TUTTI_RETURN_IF_ERROR(WriteStructured(context.out, text, options.format));
    return ExitCode::kOk;
  }
  TUTTI_ASSIGN_OR_RETURN(const SecretsView view, Parse<SecretsView>(text));
  Table table({{"NAME"}, {"CREATED"}, {"SET"}, {"KEY"}, {"WAITING", Table::Align::kLeft, true}});
  for (const SecretView& secret : view.secrets) {
    table.Add({{secret.name},
               {secret.created.substr(0, 19)},
               {secret.set.substr(0, 19)},
               {secret.readable ? "present" : "missing"},
               {absl::StrJoin(secret.waiting_jobs, " ")}});
  }
  context.out << table.Render(context.out_screen.width, context.out_screen.colour);
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> SecretDelete(Context& context, const SecretOptions& options) {
  ServiceClient service(context.connect());
  TUTTI_ASSIGN_OR_RETURN(const bool may, MayDelete(context, service, options));
  if (!may) return absl::CancelledError("nothing was deleted");
  TUTTI_ASSIGN_OR_RETURN(const std::string text, service.DeleteSecret(options.name));
  TUTTI_ASSIGN_OR_RETURN(const auto answer, Parse<spec::FailedJobsView>(text));
  context.out << "secret " << options.name << " is deleted\n";
  if (!answer.failed_jobs.empty()) {
    context.out << "failed, since they waited for it: " << absl::StrJoin(answer.failed_jobs, ", ")
                << "\n";
  }
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> SecretRotate(Context& context, const SecretOptions&) {
  ServiceClient service(context.connect());
  TUTTI_RETURN_IF_ERROR(service.RotateSecrets().status());
  context.out << "all secrets are encrypted under a new key; the former one opens none of them\n";
  return ExitCode::kOk;
}

}  // namespace tutti::client
