// Makes and reads the key and the certificate that a service keeps in its home to speak TLS:
//
//   tls.pem          its key and certificate, mode 0600; made at the first use, and kept, since
//                    jobs that run know the service by it. A site's own may stand in its place:
//                    a key without a passphrase, its certificate, those of the issuers
//   certificate.pem  the certificate alone, for other programs: curl --cacert
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "http/identity.h"

namespace tutti::api {

// Returns the identity in that folder, and makes one if there is none. `address`: where the service
// listens; that others will refuse the certificate there is logged. InvalidArgument names the file
// and what is wrong with it.
absl::StatusOr<std::shared_ptr<const http::Identity>> IdentityIn(
    const std::filesystem::path& directory, const std::string& address);

}  // namespace tutti::api
