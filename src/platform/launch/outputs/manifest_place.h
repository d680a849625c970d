// Finds where the list of the files that a node has put is kept in the store: beside the output,
// where who reads the output does not find it, and never outside of what the output's address is
// of.
#pragma once

#include <optional>
#include <string>

#include "spec/types/data_place.h"

namespace tutti::launch {

struct ManifestPlace {
  std::string folder;  // in the container; of a local store absolute
  std::string file;
};

// Returns "models" and "run.stored.node-0.json" for the place "models/run". Of a whole container,
// or the whole folder of a local datastore, it is in there, named after the output. Nothing of a
// folder that is mounted there itself, without a datastore that says how far it goes: beside it is
// another file system. Looks at the disk for that.
std::optional<ManifestPlace> ManifestBeside(const spec::DataPlace& place, const std::string& output,
                                            int node);

}  // namespace tutti::launch
