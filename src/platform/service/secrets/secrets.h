// Secrets keeps the service's secrets: values with a name, sealed in the store under a key that
// lies in a file of its own (key_ring.h). A value goes to the launchers of jobs that name it and to
// nobody else. Where the key is not there, or is another one, all else is served, and Problems
// names what cannot be read. The file is read by a thread of its own, and who needs it waits for a
// second: it may lie on a server that is away, which is Unavailable.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "platform/service/jobs/job_table.h"
#include "platform/service/secrets/key_ring.h"
#include "platform/service/secrets/secret_info.h"

namespace tutti::service {

// Returns the names of the secrets that the job's processes are given, without those of its steps.
std::set<std::string> SecretsGivenTo(const spec::JobSpec& job);
// Returns the same and those by which its launchers fetch its inputs and store its outputs, which
// its processes do not get.
std::set<std::string> SecretsOf(const spec::JobSpec& job);
// Returns why the job cannot begin for want of a secret, in one line; "" if all are there. Asks the
// store, of a job that names some.
std::string WhyWithoutSecrets(store::Store& store, const spec::JobSpec& job,
                              store::Reader reader = store::Reader::kAnyone);

// Thread-safe.
class Secrets {
 public:
  Secrets(SharedState& state, JobTable& table) : state_(state), table_(table) {}

  // Do what the functions of Service of these names do.
  absl::Status SetSecret(absl::string_view name, absl::string_view value)
      ABSL_LOCKS_EXCLUDED(service_lock);
  absl::StatusOr<std::vector<SecretInfo>> ListSecrets() ABSL_LOCKS_EXCLUDED(service_lock);
  absl::StatusOr<std::vector<std::string>> DeleteSecret(absl::string_view name)
      ABSL_LOCKS_EXCLUDED(service_lock);
  absl::StatusOr<int> RotateSecrets() ABSL_LOCKS_EXCLUDED(service_lock);

  // Has the 30 days of these signatures begin now. NotFound, with what to do, names one that is not
  // there; the others have begun all the same.
  absl::Status RenewSignatures(const std::set<std::string>& names)
      ABSL_LOCKS_EXCLUDED(service_lock);
  // Removes the signatures of addresses that no job which has not ended names, and that no job
  // which was submitted in the last 30 days had or named. Tries all of them; returns the first
  // error.
  absl::Status ForgetOldSignatures() ABSL_LOCKS_EXCLUDED(service_lock);

  // Returns the values of the secrets of these names, which are a job's. NotFound names one that is
  // not there, FailedPrecondition one that cannot be read, with what to do; InvalidArgument if they
  // are too large together; Unavailable if the key does not answer.
  absl::StatusOr<SecretValues> ValuesOf(const std::set<std::string>& names) const;

  // Returns a line for each thing that keeps secrets from being read. Empty if there are no
  // secrets.
  std::vector<std::string> Problems() const;

  // Returns the file with the keys.
  std::filesystem::path key_file() const;

 private:
  // Reads the keys. Unavailable if their file does not answer.
  absl::StatusOr<KeyRing> ReadRing() const ABSL_LOCKS_EXCLUDED(service_lock);
  // Reads the keys, or makes one where nothing is sealed but a secret that gets a new value now
  // (`without`): a new key would hide that the former one is missing.
  absl::StatusOr<KeyRing> RingToSealWith(absl::string_view without) const;
  absl::StatusOr<SecretValues> ValuesAtOnce(const std::set<std::string>& names) const;
  // Ends a job that waits and names a secret that is not there any more; false if it waits no
  // longer.
  bool EndWithout(absl::string_view name, const std::string& id)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);

  SharedState& state_;
  JobTable& table_;
  // One change at a time, of the store and the key; taken before the state's mutex.
  absl::Mutex mutex_;
};

}  // namespace tutti::service
