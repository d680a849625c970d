// Lists every key of Azure ML's published v2 schemas and what tutti does with it. One table: the
// readers take their warnings and refusals from it, docs/azure-ml-keys/ is printed from it, and a
// test holds it against the lists of published keys. Pure functions; thread-safe.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tutti::spec {

enum class KeyOutcome {
  kDone,      // does here what it does in Azure ML
  kNoEffect,  // accepted, with a warning that says why it changes nothing
  kRefused,   // an error that says why
};

struct AzureKey {
  absl::string_view schema;  // "command", "pipeline", "sweep", "component", "environment", …
  absl::string_view key;     // "resources.shm_size"; "*" stands for a name of the user's
  KeyOutcome outcome;
  absl::string_view note;  // what it does, or why it does not; may be empty where it is done
};

// Lists the keys by schema, in the order in which a file is read.
const std::vector<AzureKey>& AzureKeys();

// Finds the key; nullptr if the schema has no such key.
const AzureKey* FindAzureKey(absl::string_view schema, absl::string_view key);

// Returns the keys directly below `prefix` ("" or "resources."), without it.
std::vector<absl::string_view> AzureKeysBelow(absl::string_view schema, absl::string_view prefix);

// Returns the tables of docs/azure-ml-keys/, by schema: "command" of command.md.
std::map<std::string, std::string> AzureKeysPages();

}  // namespace tutti::spec
