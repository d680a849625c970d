// Defines the requests to the program `tutti-storage` and its answers
// (docs/formats/storage-program.md), as plain values. The service and the launcher run it by
// storage_program.h; the program itself reads the same values. Thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "spec/types/data_place.h"

namespace tutti::storage {

enum class Operation {
  kStat,    // whether the place is there, and one object of it
  kList,    // all its objects
  kBrowse,  // its objects as a list of the store has them: names, sizes, times
  kDigest,  // which objects and versions it has, as one value
  kFetch,   // all its objects as files of a folder
  kPut,     // files of a folder as objects of the place
  kRemove,  // all its objects
  kProbe,   // whether one may write there; leaves nothing
};

// PlaceType is what the place must be. A pattern is a folder of what it matches.
enum class PlaceType { kFile, kFolder, kAny };

// Credentials are how the program proves that it may; `kind` says which of the fields count. The
// values are secret: no message, log or command line has them.
struct Credentials {
  spec::CredentialKind kind = spec::CredentialKind::kNone;
  std::string account_key;                    // base64, as Azure shows it
  std::string sas;                            // "sv=…&sig=…", with or without "?"
  std::string tenant, client, client_secret;  // of a service principal
  std::string authority;  // URL of who gives it tokens; empty: Azure's public cloud
  std::string access_key_id, secret_access_key;  // of S3
  std::string session_token;                     // empty: none
  // Names the store that they are for (spec::StoreOf) if the secret is a datastore's own; else
  // empty. It is not part of the request.
  std::string store;
};

// FormerFolder is what an earlier fetch from the same container has left.
struct FormerFolder {
  std::filesystem::path folder;   // its files; absolute
  std::filesystem::path objects;  // what it has written down of them; absolute
  std::string base;  // the folder of the container that it was of; empty: all of the container
  // If set, a file is only taken if its content has the hash that was noted.
  bool verify = false;
};

// Peers are the nodes of a gang that fetch the same place at the same time, and give each other
// what each has fetched from the store (docs/decisions/070-cache-peers.md).
struct Peers {
  int node = 0;                        // this one, of `addresses`
  std::vector<std::string> addresses;  // numeric; of each node
  int port = 0;                        // at which each listens at its address
  std::string token;                   // that all have, and nobody else; secret
  // A node that does not listen yet is tried for this long. This is not part of the request.
  absl::Duration first_contact = absl::Seconds(5);
};

struct StorageRequest {
  Operation operation = Operation::kStat;
  spec::DataPlace place;  // without `credential`, `secret`, `datastore`; `root` of kPut and kProbe
  Credentials credentials;
  std::filesystem::path folder;  // absolute; kFetch writes it, kPut reads it; else empty
  // For kPut these are the files to put, relative to the folder; empty means all of them. For
  // kFetch and kRemove they are the objects, relative to the place, which is a folder then and is
  // not listed; empty means all of them.
  std::vector<std::string> files;
  bool recursive = true;              // of kBrowse; false: what a folder has in it, folders too
  std::filesystem::path list_file;    // of kBrowse: that gets the objects in the answer's place
  std::optional<Peers> peers;         // of kFetch
  std::vector<FormerFolder> formers;  // of kFetch: from which is taken what has not changed
  // For kFetch: whether an answer that the disk is full says how many bytes are lacking. Launchers
  // of the version before do not know that field.
  bool tells_lacking = false;
  // If set, an answer that the store is too busy says how long it asks clients to wait
  // (base/threads/retry_after.h). Launchers of the version before do not know this field either.
  bool tells_retry_after = false;
  // If set, a kBrowse also tells what lies in a folder and is no object (StoredObject::left_out).
  bool tells_left_out = false;
  int connections = 16;  // requests at the same time, 1 to 256
  PlaceType type = PlaceType::kAny;
  // Objects that were last changed before this moment, in seconds since 1970, are known by their
  // size and that time, as a list has them; others by their ETag, for which the store is asked once
  // an object. It must lie so long ago that no object which changes from now on can have an earlier
  // time, by the store's clock. 0: all are asked for.
  int64_t settled_before = 0;
};

inline constexpr double kLatestTime = 1e12;  // of StoredObject::modified

struct StoredObject {
  // Relative to the place: below a folder, or below what of a pattern has no wildcard; of a file
  // its name.
  std::string path;
  int64_t bytes = 0;
  std::string etag;           // what the store says of the version; opaque
  std::string md5;            // of the content, hexadecimal; empty where the store gives none
  double modified = 0;        // seconds since 1970; 0 where the store does not say
  std::string left_out = "";  // why it is no object, as of a pipe in a folder; else empty

  bool operator==(const StoredObject&) const = default;
};

// StorageProgress is how far a fetch or a put has come; `of_` is what it will be in the end.
struct StorageProgress {
  int64_t objects = 0, of_objects = 0;
  int64_t bytes = 0, of_bytes = 0;  // bytes that were there already count
};

struct StorageResult {
  // kStat returns at most one object, kList and kBrowse all, kPut those of the files. A kBrowse
  // that is not recursive also returns folders, whose paths end with "/".
  std::vector<StoredObject> objects;
  std::vector<StoredObject> left_out;  // of a kBrowse that tells it
  int64_t object_count = 0, bytes = 0;
  bool is_file = false;  // of kBrowse: the place is an object, and no folder
  // Hexadecimal SHA-256 over path, size and version of all objects in the order of their paths: it
  // is the same as long as the store has the same, for one `settled_before`. It is that of kList,
  // kDigest and kFetch, and of a kBrowse with `list_file`, which takes all objects by size and
  // time; empty for others.
  std::string digest;
};

// Returns "stat", "list", "browse", "digest", "fetch", "put", "remove", "probe".
absl::string_view Name(Operation operation);
// Returns "file", "folder", "any".
absl::string_view Name(PlaceType type);
std::optional<Operation> OperationFromName(absl::string_view name);
std::optional<PlaceType> PlaceTypeFromName(absl::string_view name);

// Returns the place for messages, in the words of its store, without a credential:
// `container "images" of Azure account "acme", path "train"`.
std::string Described(const spec::DataPlace& place);

// Reads a secret's value: a JSON object of the fields that `kind` needs
// ({"account_key": "…"}, {"tenant": "…", "client": "…", "client_secret": "…"}), or for kAccountKey
// and kSas the bare text. A datastore's own secret has the field "store" beside them.
// InvalidArgument names what is missing, and never repeats the value.
absl::StatusOr<Credentials> CredentialsFrom(spec::CredentialKind kind,
                                            absl::string_view secret_value);

}  // namespace tutti::storage
