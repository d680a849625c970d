// Reads what `tutti storage` is given for a place: an address of a store, a path on this machine,
// or a job's files at the service. Pure functions; thread-safe.
#pragma once

#include <filesystem>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "spec/data/asset.h"
#include "spec/data/datastore.h"
#include "spec/types/data_place.h"

namespace tutti::client {

struct StorageAddress {
  std::string text;       // as it was written, without a signature; for messages
  std::string job;        // of "job:NAME/PATH" the name; else empty
  std::string of_store;   // of a store: the address as the service knows it, also of a name of data
  spec::DataPlace place;  // else; its path is that of the address
  std::string sas;        // the signature that an https address brings along; else empty
  std::string path;       // in the store or the job; of this machine absolute
  bool ends_with_slash = false;  // it is meant as a folder

  bool is_job() const { return !job.empty(); }
  bool is_local() const { return job.empty() && place.kind == spec::StoreKind::kLocal; }
};

// AddressNames is what names in an address stand for.
struct AddressNames {
  spec::Datastores datastores;
  spec::Assets data{spec::AssetKind::kData};
  std::filesystem::path directory;  // that relative paths count from
};

// Reads "job:NAME/PATH", "azureml:NAME:VERSION", "file:PATH", an address of data_address.h, also
// with a shared access signature of Azure's behind it, and else a path. InvalidArgument or
// NotFound, which names the address and says how addresses are written.
absl::StatusOr<StorageAddress> ParseStorageAddress(absl::string_view text,
                                                   const AddressNames& names);

// Returns the address of what lies at `path` in the store or the job of `address`, written as
// `address` is, so that ParseStorageAddress reads it; of this machine the path itself.
std::string AddressAt(const StorageAddress& address, const std::string& path);

// Put together and take apart a folder and what is in it: "a" and "b" of "a/b".
std::string JoinedPath(const std::string& folder, const std::string& path);
std::string FolderPart(absl::string_view path);
std::string NamePart(absl::string_view path);

}  // namespace tutti::client
