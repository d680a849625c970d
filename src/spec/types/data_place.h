// Where data lie outside of the machines: a store, what names it, and the path in it. Plain values,
// without anything that opens the store: credentials are secrets of the service, named here.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "base/text/path_pattern.h"

namespace tutti::spec {

enum class StoreKind { kLocal, kAzureBlob, kAzureDataLake, kAzureFile, kS3, kGcs, kNfs };

// How who asks proves that it may. The values come from a secret; see DataPlace::secret.
enum class CredentialKind {
  kNone,              // public data
  kAccountKey,        // Azure: the account's key
  kSas,               // Azure: a shared access signature, "sv=…&sig=…"
  kServicePrincipal,  // Azure: tenant, client, client's secret
  kAccessKey,         // S3: key's id and secret, and a session's token if there is one
};

// A file, a folder (all objects whose names begin with its path and "/"), or a pattern.
struct DataPlace {
  StoreKind kind = StoreKind::kLocal;
  std::string account;  // of Azure; empty elsewhere
  // A blob's container, Data Lake's file system, a share, a bucket; of kNfs what is mounted, as
  // "images" of "/images"; of kLocal empty.
  std::string container;
  // URL of the server where it is not the provider's own:
  // "http://127.0.0.1:10000/devstoreaccount1", "https://minio.example.org"; of kNfs
  // "nfs://10.0.0.5", with ":PORT" unless that is 2049; else empty.
  std::string endpoint;
  std::string region;  // S3; empty: the server says
  std::string path;    // without a slash at its beginning or end; of kLocal absolute; empty: all
  bool is_pattern = false;  // `path` has "*", "**" or "?", as Azure ML's paths have them
  CredentialKind credential = CredentialKind::kNone;
  std::string secret;     // the name of the service's secret that has the values; of kNone empty
  std::string datastore;  // the datastore's name, for messages; empty if the address names none
  // The folder of a datastore of kind kLocal, which `path` is or is below. It is empty elsewhere.
  std::string root;
  bool has_classes = false;  // of a pattern: "[abc]" and "[a-z]" too, as MLTable's have them
};

// Returns which wildcards the place's path has, if it is a pattern.
base::Wildcards WildcardsOf(const DataPlace& place);

// Returns the store that the place lies in, whatever the path: "azure_blob acme/images", "s3 sets
// at https://minio.example.org". A datastore's own secret says which store it is for.
std::string StoreOf(const DataPlace& place);

// Stands in the path of an output's place for the name of the job that writes it.
inline constexpr char kOwnName[] = "${{name}}";
// Returns the text with the job's name in it.
std::string WithOwnName(absl::string_view text, absl::string_view job);
// Returns the place of the job of that name.
DataPlace PlaceOfJob(DataPlace place, absl::string_view job);

}  // namespace tutti::spec
