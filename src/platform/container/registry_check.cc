#include "platform/container/registry_check.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/process/child_process.h"
#include "base/process/command.h"
#include "base/status.h"
#include "base/threads/at_once.h"
#include "platform/container/base_images.h"
#include "platform/container/make_image.h"
#include "platform/container/podman.h"
#include "spec/types/registry_secret.h"

namespace tutti::container {
namespace {

// RegistryAnswer is what podman's error says of a registry: the image is absent, the registry
// cannot be asked, or it did not answer.
struct RegistryAnswer {
  enum class Kind {
    kHasIt,     // or nothing is known against it
    kAbsent,    // it has answered, and has no such image
    kCannot,    // it cannot be asked, or does not give it: `why` has the reason and the remedy
    kRefused,   // it does not take the login of a secret; likewise
    kNoAnswer,  // so far: it is slow, or overloaded
  };
  Kind kind = Kind::kHasIt;
  std::string why;
};
using Kind = RegistryAnswer::Kind;

constexpr size_t kLongestError = 300;

template <size_t n>
bool HasOneOf(absl::string_view text, const std::array<absl::string_view, n>& words) {
  return std::any_of(words.begin(), words.end(),
                     [&](absl::string_view word) { return absl::StrContains(text, word); });
}

// These errors may not occur at another attempt.
constexpr std::array<absl::string_view, 10> kPassing = {
    "i/o timeout",        "deadline exceeded", "Client.Timeout",  "TLS handshake timeout",
    "server misbehaving", "Temporary failure", "toomanyrequests", "Too Many Requests",
    "status 5",           "unexpected EOF"};
constexpr std::array<absl::string_view, 3> kAbsent = {"manifest unknown", "name unknown",
                                                      "repository not found"};
constexpr std::array<absl::string_view, 4> kClosed = {
    "unauthorized", "authentication required", "access to the resource is denied", "status 403"};
constexpr std::array<absl::string_view, 4> kUnreachable = {
    "connection refused", "no route to host", "network is unreachable", "connection reset"};
constexpr std::array<absl::string_view, 2> kNotTrusted = {"x509:", "HTTP response to HTTPS"};

// Returns the last error of podman's chain of errors, with its cause.
std::string Shortly(absl::string_view words) {
  const std::string error = ErrorIn(words);
  const size_t at = error.rfind("\": ");
  const std::string end = at == std::string::npos ? error : error.substr(at + 3);
  return end.substr(0, kLongestError);
}

// When mirrors have failed, what the registry itself said follows what they said.
absl::string_view OwnWords(absl::string_view words) {
  if (!absl::StrContains(words, "Mirrors also failed")) return words;
  const size_t end = words.rfind("]): ");
  return end == absl::string_view::npos ? words : words.substr(end + 4);
}

// Judges `words`: what `podman manifest inspect FULL` wrote to standard error when it failed;
// `full`: the reference with its registry; `has_login`: it was asked with the login of a secret.
RegistryAnswer AnswerOf(absl::string_view words, absl::string_view full, bool has_login) {
  const std::string host(full.substr(0, full.find('/')));
  if (HasOneOf(words, kPassing)) return {Kind::kNoAnswer, Shortly(words)};
  const absl::string_view own = OwnWords(words);
  if (HasOneOf(own, kAbsent)) return {Kind::kAbsent, "its registry does not have it"};
  if (absl::StrContains(own, "no such host")) {
    return {Kind::kCannot,
            absl::StrCat("there is no host ", host, ": ", Shortly(own),
                         "; correct the name, or say in site.yml which image stands for it")};
  }
  if (HasOneOf(own, kUnreachable)) {
    return {Kind::kCannot, absl::StrCat("registry ", host, " cannot be reached: ", Shortly(own))};
  }
  if (HasOneOf(own, kClosed) && has_login) {
    const std::string secret = spec::SecretOfRegistry(host);
    return {Kind::kRefused,
            absl::StrCat("registry ", host, " does not take the login of secret \"", secret,
                         "\", or has no such image for it: tutti secret set ", secret)};
  }
  if (HasOneOf(own, kClosed)) {
    return {Kind::kCannot,
            absl::StrCat("registry ", host, " does not have it or asks for a login: podman login ",
                         host, ", as the user of the service, or tutti secret set ",
                         spec::SecretOfRegistry(host))};
  }
  if (HasOneOf(own, kNotTrusted)) {
    return {Kind::kCannot, absl::StrCat("registry ", host, " is not trusted: ", Shortly(own))};
  }
  return {};
}

constexpr size_t kMostAtOnce = 8;
constexpr absl::Duration kLocalPatience = absl::Seconds(1);  // with podman's list of images
constexpr uint64_t kLargestDockerfile = 1 << 20;

using Answers = std::map<std::string, RegistryAnswer>;  // by reference

// Use is one image that a job needs.
struct Use {
  const spec::JobSpec* job;
  std::string reference;
  std::string what;  // "job.yml:3: image a.example/b:1"
  bool is_step = false;
};

void CollectOwn(const spec::JobSpec& job, bool is_step, std::vector<Use>& uses) {
  const spec::Image& image = job.environment.image;
  const auto add = [&](const std::string& reference, const std::string& what) {
    if (absl::StartsWith(reference, "localhost/")) return;
    uses.push_back({&job, reference, what, is_step});
  };
  if (image.context.empty()) {
    if (!image.empty()) {
      add(image.reference, absl::StrCat(image.location, ": image ", image.reference));
    }
    return;
  }
  const auto text =
      base::ReadFile(std::filesystem::path(image.context) / image.dockerfile, kLargestDockerfile);
  for (const BaseImage& base : BaseImagesOf(text.value_or(""))) {
    add(base.reference, absl::StrCat(image.location, ": ", image.dockerfile, ":", base.line,
                                     ": image ", base.reference));
  }
}

void Collect(const spec::JobSpec& job, bool is_step, std::vector<Use>& uses) {
  if (job.kind != spec::JobKind::kPipeline) CollectOwn(job, is_step, uses);
  for (const spec::Step& step : job.steps) Collect(step.job, true, uses);
}

class Podman {
 public:
  Podman(std::string program, const Logins& logins, const LoginFile& file, base::Deadline deadline)
      : program_(std::move(program)),
        logins_(logins),
        variables_(file.variables()),
        deadline_(deadline) {}

  bool Has(const std::string& name) const {
    const auto found = Run({"image", "exists", name});
    return found.ok() && found->exit.ok();
  }

  RegistryAnswer Ask(const std::string& reference) const {
    const auto here = Run({"image", "exists", reference});
    if (here.ok() && here->exit.code != 1) return {};  // it is here, or podman itself has a fault
    const std::string full = FullReference(reference);
    const auto asked = here.ok() ? Run({"manifest", "inspect", full}) : here;
    if (absl::IsDeadlineExceeded(asked.status())) {
      return {Kind::kNoAnswer, "its registry has not answered in time"};
    }
    if (!asked.ok() || asked->exit.ok()) return {};
    return AnswerOf(asked->err, full, logins_.contains(full.substr(0, full.find('/'))));
  }

 private:
  absl::StatusOr<base::CommandResult> Run(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), program_);
    base::ChildOptions options{.arguments = std::move(arguments),
                               .environment = base::CurrentEnvironment()};
    for (const auto& [name, value] : variables_) options.environment[name] = value;
    return base::RunCommand(options, "", deadline_);
  }

  const std::string program_;
  const Logins& logins_;
  const std::map<std::string, std::string> variables_;
  const base::Deadline deadline_;
};

// Asks several registries at a time.
void AskAll(const Podman& podman, Answers& answers) {
  std::vector<Answers::value_type*> list;
  for (auto& entry : answers) list.push_back(&entry);
  base::ForEachAtOnce(list.size(), kMostAtOnce,
                      [&](size_t i) { list[i]->second = podman.Ask(list[i]->first); });
}

// Builds knows the builds that are here: what was built earlier needs its bases no more. Their
// names hash what they are built from, which is done once.
class Builds {
 public:
  explicit Builds(std::string program) : program_(std::move(program)) {}

  bool Has(const spec::Image& image) {
    if (image.context.empty()) return false;
    const auto [known, is_new] = known_.try_emplace({image.context, image.dockerfile}, false);
    if (is_new) known->second = Look(image);
    return known->second;
  }

 private:
  // Has a deadline of its own, since that of the registries may have passed.
  bool Look(const spec::Image& image) const {
    const auto name = NameOfBuild(image);
    const Logins none;
    const auto file = LoginFile::Make(none, {});
    return name.ok() && file.ok() &&
           Podman(program_, none, *file, base::Deadline::After(kLocalPatience)).Has(*name);
  }

  const std::string program_;
  std::map<std::pair<std::string, std::string>, bool> known_;  // by context and Dockerfile
};

void Report(const Use& use, const RegistryAnswer& answer, std::vector<std::string>& faults,
            std::vector<std::string>& warnings) {
  const std::string text = absl::StrCat(use.what, " cannot be pulled: ", answer.why);
  if (answer.kind == Kind::kNoAnswer) {
    warnings.push_back(absl::StrCat(use.what, " may not be had: ", answer.why));
  } else if (answer.kind == Kind::kRefused && use.is_step) {
    // Some say this of what is not there.
    warnings.push_back(absl::StrCat(text, ", unless it is pushed by then"));
  } else if (answer.kind == Kind::kRefused) {
    faults.push_back(text);  // with the same login nodes get the same answer
  } else if (use.job->compute != "local" && !use.job->compute.empty()) {
    warnings.push_back(absl::StrCat(text, ", as seen from here; the nodes of compute \"",
                                    use.job->compute, "\" must reach it"));
  } else if (answer.kind == Kind::kAbsent && use.is_step) {
    warnings.push_back(absl::StrCat(text, ", unless it is pushed by then"));
  } else {
    faults.push_back(text);
  }
}

}  // namespace

absl::Status CheckRegistries(const spec::JobSpec& job, const Logins& logins,
                             base::Deadline deadline, std::vector<std::string>& warnings) {
  std::vector<Use> uses;
  Collect(job, false, uses);
  if (uses.empty()) return absl::OkStatus();
  const auto program = FindPodman();
  if (!program.ok()) return absl::OkStatus();
  TUTTI_ASSIGN_OR_RETURN(const LoginFile file, LoginFile::Make(logins, base::CurrentEnvironment()));
  const Podman podman(*program, logins, file, deadline);
  Answers answers;
  for (const Use& use : uses) answers.try_emplace(use.reference);
  AskAll(podman, answers);
  std::vector<std::string> faults;
  Builds builds(*program);
  for (const Use& use : uses) {
    const RegistryAnswer& answer = answers.at(use.reference);
    if (answer.kind == Kind::kHasIt || builds.Has(use.job->environment.image)) continue;
    Report(use, answer, faults, warnings);
  }
  if (faults.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(faults, "\n"));
}

}  // namespace tutti::container
