#include "platform/service/secrets/secrets.h"

#include <spdlog/spdlog.h>

#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "base/text/text_mask.h"
#include "platform/container/registry_logins.h"
#include "spec/data/signed_address.h"
#include "spec/site/site.h"
#include "spec/types/identifier.h"
#include "spec/types/registry_secret.h"
#include "spec/types/secret_limits.h"

namespace tutti::service {
namespace {

using store::JobState;

constexpr absl::Duration kPatienceWithKey = absl::Seconds(1);
constexpr char kKeyQueue[] = "key";
constexpr absl::Duration kSignatureIsKept = absl::Hours(30 * 24);  // and is over long before
constexpr size_t kJobsAtATime = 32;                                // that are ended under the lock

absl::Status CheckSecretName(absl::string_view name) {
  if (spec::IsSecretName(name) || spec::IsDatastoreSecret(name) || spec::IsSignatureSecret(name) ||
      !spec::RegistryOfSecret(name).empty()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "a secret's name is of letters, digits, \"-\" and \"_\", 128 at most, and begins with a "
      "letter or a digit; that of a registry's login is registry.HOST or registry.HOST:PORT");
}

absl::Status CheckValue(absl::string_view value) {
  if (value.size() > spec::kLargestSecret) {
    return absl::InvalidArgumentError(
        absl::StrCat("a secret has at most ", spec::kLargestSecret >> 10, " KiB, and this one has ",
                     value.size(), " bytes"));
  }
  if (!base::TextsToHide(value).empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a secret has at least ", base::kLeastHidden,
                   " bytes: a shorter one could not be hidden in what jobs print"));
}

// A registry's must be a login, so that no job finds out that it is none.
absl::Status CheckForm(absl::string_view name, absl::string_view value) {
  if (spec::RegistryOfSecret(name).empty()) return absl::OkStatus();
  return base::Annotate(container::LoginFrom(value).status(),
                        absl::StrCat("secret \"", name, "\""));
}

absl::Status CheckSum(const SecretValues& values) {
  size_t bytes = 0;
  for (const auto& [name, value] : values) bytes += value.size();
  if (bytes <= spec::kMostSecretsOfJob) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the secrets of a job have at most ", spec::kMostSecretsOfJob >> 10,
                   " KiB together, and those that it names have ", bytes, " bytes"));
}

// "secret "hub"", or what it is for.
std::string Called(const std::string& name) {
  const absl::string_view use = spec::IsDatastoreSecret(name)           ? " (of a datastore)"
                                : spec::IsSignatureSecret(name)         ? " (of an input's address)"
                                : !spec::RegistryOfSecret(name).empty() ? " (of a registry)"
                                                                        : "";
  return absl::StrCat("secret \"", name, "\"", use);
}

// The command that gives it a value.
std::string HowToSet(const std::string& name) {
  if (spec::IsSignatureSecret(name)) return std::string(spec::kHowToSignAnew);
  if (spec::IsDatastoreSecret(name)) return "tutti datastore create --file FILE";
  return absl::StrCat("tutti secret set ", name);
}

absl::Status NotThere(const std::string& name) {
  return absl::NotFoundError(absl::StrCat("there is no ", Called(name), ": ", HowToSet(name)));
}

SealedValue ValueOf(const store::SealedSecret& secret) { return {secret.key, secret.sealed}; }

// Why `secret` cannot be read, with what to do.
absl::Status Unreadable(const std::string& name, const std::filesystem::path& key,
                        const absl::Status& why) {
  if (absl::IsUnavailable(why)) return why;
  return absl::FailedPreconditionError(absl::StrCat(
      Called(name), " cannot be read with the key in ", key.native(), " (", why.message(),
      "): bring its key back, or give it a value again: ", HowToSet(name)));
}

// Whether it has not begun; of pipelines and sweeps it is the children that are there.
bool IsWaiting(const LiveJob& job) { return job.placed == nullptr && job.flow == nullptr; }

// The jobs that wait, by the names of their secrets.
std::map<std::string, std::vector<std::string>> WaitingJobs(const JobTable& table)
    ABSL_LOCKS_EXCLUDED(service_lock) {
  std::map<std::string, std::vector<std::string>> jobs;
  table.VisitLive([&](const LiveJob& job) {
    if (!IsWaiting(job)) return;
    for (const std::string& name : SecretsOf(job.record.job.spec)) {
      jobs[name].push_back(job.record.job.id);
    }
  });
  return jobs;
}

// Takes those that the job names, or a step of it, out of `names`.
void Spare(const spec::JobSpec& job, std::set<std::string>& names) {
  for (const std::string& name : SecretsOf(job)) names.erase(name);
  for (const spec::Step& step : job.steps) Spare(step.job, names);
}

}  // namespace

std::set<std::string> SecretsGivenTo(const spec::JobSpec& job) {
  std::set<std::string> names;
  for (const auto* given : {&job.secret_variables, &job.secret_files}) {
    for (const auto& [variable, secret] : *given) names.insert(secret);
  }
  return names;
}

std::set<std::string> SecretsOf(const spec::JobSpec& job) {
  std::set<std::string> names = SecretsGivenTo(job);
  for (const auto& [name, input] : job.inputs) {
    if (input.place && !input.place->secret.empty()) names.insert(input.place->secret);
    const std::string signature = spec::SecretOfAddress(input.path);
    if (!signature.empty()) names.insert(signature);
  }
  for (const auto& [name, output] : job.outputs) {
    if (output.place && !output.place->secret.empty()) names.insert(output.place->secret);
  }
  return names;
}

std::string WhyWithoutSecrets(store::Store& store, const spec::JobSpec& job, store::Reader reader) {
  const std::set<std::string> names = SecretsOf(job);
  if (names.empty()) return "";
  const auto known = store.SecretNames(reader);
  if (!known.ok()) return std::string(known.status().message());
  for (const std::string& name : names) {
    if (known->contains(name)) continue;
    return absl::StrCat(Called(name), ", which it names, is not there: ", HowToSet(name));
  }
  return "";
}

std::filesystem::path Secrets::key_file() const {
  const std::filesystem::path& given = state_.options.secret_key_file;
  return given.empty() ? spec::SecretKeyFile({}, state_.options.directory) : given;
}

absl::StatusOr<KeyRing> Secrets::ReadRing() const {
  const auto ring = std::make_shared<absl::StatusOr<KeyRing>>();
  const auto read = [ring, file = key_file()] { *ring = KeyRing::Read(file); };
  TUTTI_RETURN_IF_ERROR(state_.folders.Check(key_file()));
  base::WorkQueues& work = state_.secret_work;
  const bool answers =
      !work.Hangs(kKeyQueue, kPatienceWithKey) &&
      DoWithin(state_, work, kKeyQueue, key_file(), read, base::Deadline::After(kPatienceWithKey));
  if (answers) return std::move(*ring);
  return absl::UnavailableError(absl::StrCat("the file with the key of the secrets, ",
                                             key_file().native(),
                                             ", does not answer: is it on a server that is away?"));
}

absl::StatusOr<KeyRing> Secrets::RingToSealWith(absl::string_view without) const {
  auto ring = ReadRing();
  if (!absl::IsNotFound(ring.status())) return ring;
  TUTTI_ASSIGN_OR_RETURN(const std::vector<store::SealedSecret> secrets, state_.store->Secrets());
  std::vector<std::string> sealed;
  for (const store::SealedSecret& secret : secrets) {
    if (secret.name != without) sealed.push_back(secret.name);
  }
  if (sealed.empty()) return KeyRing::Make(key_file());
  return absl::FailedPreconditionError(absl::StrCat(
      "the key of the secrets, ", key_file().native(), ", is not there, and these are encrypted ",
      "under it: ", absl::StrJoin(sealed, ", "),
      "; bring it back, or delete them before a new key is made (tutti secret delete)"));
}

absl::Status Secrets::SetSecret(absl::string_view name, absl::string_view value) {
  TUTTI_RETURN_IF_ERROR(CheckSecretName(name));
  TUTTI_RETURN_IF_ERROR(CheckValue(value));
  TUTTI_RETURN_IF_ERROR(CheckForm(name, value));
  absl::MutexLock one_at_a_time(&mutex_);
  TUTTI_ASSIGN_OR_RETURN(const KeyRing ring, RingToSealWith(name));
  TUTTI_ASSIGN_OR_RETURN(SealedValue sealed, ring.SealValue(value, name));
  const absl::Time now = state_.clock->Now();
  return state_.store->PutSecrets(
      {{std::string(name), std::move(sealed.key), std::move(sealed.sealed), now, now}});
}

absl::Status Secrets::RenewSignatures(const std::set<std::string>& names) {
  if (names.empty()) return absl::OkStatus();
  absl::MutexLock one_at_a_time(&mutex_);
  TUTTI_ASSIGN_OR_RETURN(const std::vector<store::SealedSecret> secrets, state_.store->Secrets());
  std::set<std::string> missing = names;
  std::vector<store::SealedSecret> renewed;
  for (const store::SealedSecret& secret : secrets) {
    if (missing.erase(secret.name) == 0) continue;
    renewed.push_back(secret);
    renewed.back().set = state_.clock->Now();
  }
  TUTTI_RETURN_IF_ERROR(state_.store->PutSecrets(renewed));
  return missing.empty() ? absl::OkStatus() : NotThere(*missing.begin());
}

// Under one lock with SetSecret and RenewSignatures, so that a job that is taken in meanwhile has
// given it a new time.
absl::Status Secrets::ForgetOldSignatures() {
  absl::MutexLock one_at_a_time(&mutex_);
  TUTTI_ASSIGN_OR_RETURN(const std::vector<store::SealedSecret> secrets, state_.store->Secrets());
  const absl::Time now = state_.clock->Now();
  std::set<std::string> old;
  for (const store::SealedSecret& secret : secrets) {
    const bool is_old = now - secret.set > kSignatureIsKept;
    if (is_old && spec::IsSignatureSecret(secret.name)) old.insert(secret.name);
  }
  if (old.empty()) return absl::OkStatus();
  table_.VisitLive([&](const LiveJob& job) { Spare(job.record.job.spec, old); });
  absl::Status all;
  for (const std::string& name : old) {
    all.Update(base::Annotate(state_.store->RemoveSecret(name), Called(name)));
  }
  return all;
}

absl::StatusOr<std::vector<SecretInfo>> Secrets::ListSecrets() {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<store::SealedSecret> secrets, state_.store->Secrets());
  std::vector<SecretInfo> list;
  if (secrets.empty()) return list;
  const auto ring = ReadRing();
  if (absl::IsUnavailable(ring.status())) return ring.status();
  std::map<std::string, std::vector<std::string>> waiting = WaitingJobs(table_);
  for (const store::SealedSecret& secret : secrets) {
    list.push_back({.name = secret.name,
                    .created = secret.created,
                    .set = secret.set,
                    .readable = ring.ok() && ring->Open(ValueOf(secret), secret.name).ok(),
                    .waiting_jobs = std::move(waiting[secret.name])});
  }
  return list;
}

absl::StatusOr<std::vector<std::string>> Secrets::DeleteSecret(absl::string_view name) {
  TUTTI_RETURN_IF_ERROR(CheckSecretName(name));
  absl::MutexLock one_at_a_time(&mutex_);
  TUTTI_RETURN_IF_ERROR(state_.store->RemoveSecret(name));
  const std::vector<std::string> waiting = std::move(WaitingJobs(table_)[std::string(name)]);
  std::vector<std::string> failed;
  TakeTurns(state_, waiting.size(), kJobsAtATime,
            [&](size_t i) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock) {
              if (EndWithout(name, waiting[i])) failed.push_back(waiting[i]);
            });
  StateLock lock(state_);
  state_.Wake();
  return failed;
}

// One that begins all the same ends when its launchers ask for the value.
bool Secrets::EndWithout(absl::string_view name, const std::string& id) {
  LiveJob* const job = table_.Find(id);
  if (job == nullptr || !IsWaiting(*job)) return false;  // it has gone on meanwhile
  const Step end{.state = JobState::kFailed,
                 .reason = absl::StrCat(Called(std::string(name)),
                                        ", which it names, was deleted before it began"),
                 .cause = Cause::kFailure};
  const absl::Status written = table_.Append(*job, end);
  state_.problems.Note(absl::StrCat("job ", id, " cannot be ended"), written, {.job = id});
  if (written.ok()) table_.Remove(*job);
  return true;
}

// Killed at any point, each secret is sealed under a key that is in the file.
absl::StatusOr<int> Secrets::RotateSecrets() {
  absl::MutexLock one_at_a_time(&mutex_);
  TUTTI_ASSIGN_OR_RETURN(KeyRing ring, RingToSealWith(""));
  TUTTI_ASSIGN_OR_RETURN(std::vector<store::SealedSecret> secrets, state_.store->Secrets());
  ring.AddNewKey();
  for (store::SealedSecret& secret : secrets) {
    const auto value = ring.Open(ValueOf(secret), secret.name);
    if (!value.ok()) return Unreadable(secret.name, key_file(), value.status());
    TUTTI_ASSIGN_OR_RETURN(SealedValue sealed, ring.SealValue(*value, secret.name));
    secret.key = std::move(sealed.key);
    secret.sealed = std::move(sealed.sealed);
  }
  TUTTI_RETURN_IF_ERROR(ring.Write(key_file()));
  TUTTI_RETURN_IF_ERROR(state_.store->PutSecrets(secrets));
  ring.DropFormerKeys();
  TUTTI_RETURN_IF_ERROR(ring.Write(key_file()));
  return static_cast<int>(secrets.size());
}

// A rotation between the look at the store and the look at the key shows as another key; the next
// look finds both as they are after it.
absl::StatusOr<SecretValues> Secrets::ValuesOf(const std::set<std::string>& names) const {
  auto values = ValuesAtOnce(names);
  return absl::IsFailedPrecondition(values.status()) ? ValuesAtOnce(names) : values;
}

absl::StatusOr<SecretValues> Secrets::ValuesAtOnce(const std::set<std::string>& names) const {
  SecretValues values;
  if (names.empty()) return values;
  TUTTI_ASSIGN_OR_RETURN(const std::vector<store::SealedSecret> secrets, state_.store->Secrets());
  const auto ring = ReadRing();
  for (const store::SealedSecret& secret : secrets) {
    if (!names.contains(secret.name)) continue;
    if (!ring.ok()) return Unreadable(secret.name, key_file(), ring.status());
    auto value = ring->Open(ValueOf(secret), secret.name);
    if (!value.ok()) return Unreadable(secret.name, key_file(), value.status());
    values[secret.name] = *std::move(value);
  }
  for (const std::string& name : names) {
    if (values.contains(name)) continue;
    return NotThere(name);
  }
  TUTTI_RETURN_IF_ERROR(CheckSum(values));
  return values;
}

std::vector<std::string> Secrets::Problems() const {
  const auto secrets = state_.store->Secrets();
  if (!secrets.ok() || secrets->empty()) return {};
  const auto ring = ReadRing();
  if (absl::IsUnavailable(ring.status())) return {std::string(ring.status().message())};
  std::vector<std::string> unreadable;
  for (const store::SealedSecret& secret : *secrets) {
    if (!ring.ok() || !ring->Open(ValueOf(secret), secret.name).ok()) {
      unreadable.push_back(secret.name);
    }
  }
  if (unreadable.empty()) return {};
  return {absl::StrCat("secrets cannot be read with the key in ", key_file().native(), ": ",
                       absl::StrJoin(unreadable, ", "),
                       ring.ok() ? "" : absl::StrCat(" (", ring.status().message(), ")"),
                       "; bring their key back, or give them values again (tutti secret set)")};
}

}  // namespace tutti::service
