#include "platform/storage/direct/login_authority.h"

#include "absl/strings/strip.h"
#include "base/text/secure_url.h"

namespace tutti::storage {

absl::StatusOr<std::string> LoginAuthority(absl::string_view given,
                                           absl::string_view of_environment) {
  const absl::string_view url = absl::StripSuffix(given.empty() ? of_environment : given, "/");
  if (url.empty() || base::IsSecureUrl(url)) return std::string(url);
  return absl::InvalidArgumentError(
      "the authority of the service principal (authority_url, AZURE_AUTHORITY_HOST) must be a URL "
      "of https, as https://login.microsoftonline.com");
}

}  // namespace tutti::storage
