// Reads the keys that files of assets and of computes have in common: name, description and tags.
// Inside the room spec only.
#pragma once

#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "spec/data/asset.h"
#include "spec/text/diagnostics.h"
#include "spec/text/mapping_reader.h"

namespace tutti::spec {

// Reads name, description and tags; $schema is passed over. nullptr if there is no name.
template <typename Named>
const YamlNode::Entry* ReadHead(MappingReader& reader, Named& named, Diagnostics& diagnostics) {
  std::string unused;
  reader.Text("$schema", unused);
  const YamlNode::Entry* const entry = reader.Text("name", named.name);
  const absl::Status fits = entry ? CheckAssetName("name", named.name) : absl::OkStatus();
  if (!fits.ok()) diagnostics.Error(entry->line, fits.message());
  reader.Text("description", named.description);
  reader.TextMap("tags", named.tags);
  return entry;
}

}  // namespace tutti::spec
