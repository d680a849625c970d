// Reads the credentials of a datastore file. Inside the room spec only.
#pragma once

#include <string>

#include "spec/data/datastore.h"
#include "spec/text/diagnostics.h"
#include "spec/text/yaml_tree.h"

namespace tutti::spec {

// Reads `entry`, the key "credentials" of a file whose name, type and store `datastore` has
// already, into its place (DataPlace::credential and secret). Returns the JSON object that the
// secret is to be, with the store that it is for; "" if the file names a secret that is there.
// Errors name keys and never their values.
std::string ReadCredentials(const YamlNode::Entry& entry, Datastore& datastore,
                            Diagnostics& diagnostics);

}  // namespace tutti::spec
