// Makes of a place and its credentials what Arrow's file systems are opened with. Pure functions.
#pragma once

#include <arrow/filesystem/azurefs.h>
#include <arrow/filesystem/gcsfs.h>
#include <arrow/filesystem/s3fs.h>

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "platform/storage/storage_request.h"

namespace tutti::storage {

// Account, servers and credentials. The endpoint of a place may be a URL ("http://127.0.0.1:10000/
// ACCOUNT", "https://ACCOUNT.blob.core.chinacloudapi.cn") or a cloud's suffix as Azure ML has it
// ("core.windows.net"). InvalidArgument for others, and for credentials of another kind.
absl::StatusOr<arrow::fs::AzureOptions> AzureOptionsOf(const spec::DataPlace& place,
                                                       const Credentials& credentials);
// Server and credentials. The region is the place's; if it has none, "us-east-1" where the place
// names a server, else "": it has to be asked for.
absl::StatusOr<arrow::fs::S3Options> S3OptionsOf(const spec::DataPlace& place,
                                                 const Credentials& credentials);
// Returns the proxy by which S3's server of that scheme, host and port is reached, by the variables
// that other inputs go by: "" for none.
std::string ProxyOfS3(const std::string& scheme, absl::string_view authority);
// Returns Google's bucket as one of S3: its own interface takes no HMAC key, that of S3's kind
// does.
spec::DataPlace GcsAsS3(spec::DataPlace place);
// Google's storage without credentials.
absl::StatusOr<arrow::fs::GcsOptions> GcsOptionsOf(const spec::DataPlace& place,
                                                   const Credentials& credentials);

}  // namespace tutti::storage
