// Logs podman in to registries by user names and passwords that are secrets of the service, named
// "registry.HOST" (docs/decisions/085): a file in memory that podman alone is told of, by variables
// of its own, and that goes when podman has ended. Thread-safe.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/machine/memory_folder.h"
#include "spec/types/job.h"

namespace tutti::container {

struct Login {
  std::string username, password;
};
// Logins are by the registry's host, with its port if it has one: "ghcr.io", "10.0.0.5:5000".
using Logins = std::map<std::string, Login>;

// Reads a secret's value: USER:PASSWORD, or {"username": "…", "password": "…"}. InvalidArgument
// says what is missing, and never repeats the value.
absl::StatusOr<Login> LoginFrom(absl::string_view secret_value);
// Reads the logins of these registries among values by the names of their secrets; others are
// passed over. Errors name the secret.
absl::StatusOr<Logins> LoginsFrom(const std::map<std::string, std::string>& secrets,
                                  const std::set<std::string>& registries);

// Returns the registries that the image comes from, or that its Dockerfile's images do, as `podman
// login` names them ("docker.io"). Reads the Dockerfile; what cannot be read has none.
std::set<std::string> RegistriesOf(const spec::Image& image);

// Returns the text of a file as podman reads it (containers-auth.json(5)): `own`, such a file of
// the user's, with these logins in the place of those that it has for their hosts.
std::string AuthText(const Logins& logins, absl::string_view own);

// Holds the file: /dev/shm/tutti-login-UID-…/config.json, of mode 0600 in a folder of mode 0700.
class LoginFile {
 public:
  // Writes these logins and those that the user has by `variables` ("podman login"), so that the
  // file can stand in the place of those. Without logins there is no file. FailedPrecondition if
  // /dev/shm is not in memory. Removes what killed processes of this user have left there.
  static absl::StatusOr<LoginFile> Make(const Logins& logins,
                                        const std::map<std::string, std::string>& variables);
  // Removes the file.
  ~LoginFile();
  LoginFile(LoginFile&& other) noexcept;
  LoginFile(const LoginFile&) = delete;
  LoginFile& operator=(const LoginFile&) = delete;
  LoginFile& operator=(LoginFile&&) = delete;

  // Returns what podman's environment gets beside its own variables.
  std::map<std::string, std::string> variables() const;

  // Removes the files whose processes were killed.
  static void RemoveLeftovers();

 private:
  LoginFile() = default;

  std::optional<base::MemoryFolder> folder_;  // none where there are no logins
};

}  // namespace tutti::container
