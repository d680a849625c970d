// The values of the model registry (registered_models.h), what may be said in them, and the hash of
// a model's files. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tutti::service {

inline constexpr size_t kMostModelFiles = 20'000;
// The label that no alias may be: the version that was made last, of those that are not archived.
inline constexpr char kLatestModel[] = "latest";

// One file of a model.
struct ModelFile {
  std::string path;    // relative to the model's folder; of a model that is one file: its name
  std::string sha256;  // of its bytes, 64 hexadecimal digits
  uint64_t bytes = 0;
};

// Lists what a version consists of, by path.
struct ModelContent {
  bool is_file = false;  // the model is one file, not a folder
  std::vector<ModelFile> files;
};

// Returns the hash of it all, 64 hexadecimal digits: equal ones have the same files.
std::string DigestOf(const ModelContent& content);

// A version as it is to be registered.
struct ModelCreation {
  std::string name;
  std::string version;                // empty: the next whole number
  std::string type = "custom_model";  // or mlflow_model, triton_model
  std::string description, stage;
  std::map<std::string, std::string> tags, properties;
  ModelContent content;  // its files have been sent (ModelContents::Begin)
  std::string lineage;   // what it was made of, a JSON object; empty: nothing is known
  // The client's own name for this call: sent again, it is answered with the version that it made.
  std::string nonce;
};

struct ModelVersion {
  std::string name, version, type, description, stage;
  std::map<std::string, std::string> tags, properties;
  std::vector<std::string> aliases;
  bool archived = false;  // it is found by its number and by aliases, but is not the latest
  absl::Time created, changed;
  std::string digest;  // of its content
  std::string file;    // its name, if the model is one file; empty: it is a folder
  int64_t file_count = 0;
  uint64_t bytes = 0;
  std::string lineage;  // as it was given
};

// Says what a call made of a version.
struct RegisteredVersion {
  ModelVersion version;
  bool is_new = false;  // else it was there with the same files
};

// Says what of a version changes; what is not given stays.
struct ModelChange {
  std::optional<std::string> description, stage;
  std::optional<std::map<std::string, std::string>> tags, properties;
  std::optional<bool> archived;
};

// A name with all of its versions.
struct RegisteredModel {
  std::string name, description;
  std::map<std::string, std::string> tags;
  std::map<std::string, std::string> aliases;  // to versions
  bool archived = false;                       // lists leave it out
  absl::Time created, changed;
  std::string latest;  // version; empty: there is none that is not archived
  int64_t versions = 0;
};

// Return InvalidArgument, with what is wrong. A content may come from strangers: its paths stay
// below their folder, and none of them is another's folder; an mlflow_model has the file MLmodel.
absl::Status CheckModel(const ModelCreation& creation);
absl::Status CheckModelChange(const ModelChange& change);
absl::Status CheckModelAlias(absl::string_view alias);

}  // namespace tutti::service
