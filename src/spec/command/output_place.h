// Finds where in a store a job's output is to be brought, by its `path`. Inside the room spec only.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "spec/data/datastore.h"
#include "spec/site/read_context.h"
#include "spec/text/diagnostics.h"
#include "spec/text/yaml_tree.h"
#include "spec/types/job.h"

namespace tutti::spec {

// Sets the place of `output`, which is called `name`, if `path` is an address of a store:
// azureml://datastores/…, s3:, wasbs:, abfss:, a blob's https:, or a folder of the nodes, file:.
// ${{output_name}} becomes the name; ${{name}} stays, and is the job's name once it has one. Of a
// uri_file it sets the file's name as well. An error for what is a store and cannot be written to;
// a warning for what is none, or a datastore that is not known: the output is kept with the job
// alone.
void TakeOutputPlace(const std::string& name, const YamlNode::Entry& path,
                     const ReadContext& context, Output& output, Diagnostics& diagnostics);

// Returns the place in a store, or of a folder of the machine, that an address names, if it can be
// written to; nothing for an address of neither. NotFound if the datastore that it names is not
// known. Without credentials for a store, the folder by which `tutti data map` serves the address
// is meant. InvalidArgument says what else is wrong with it. `known`: the expressions that its path
// may have, for the message. Of a uri_file (`type`) it has to name one.
absl::StatusOr<std::optional<DataPlace>> PlaceToWrite(const std::string& written, const Site& site,
                                                      absl::string_view type,
                                                      absl::string_view known);

// Sets the name of the file of a uri_file that has a place: the last part of its path.
void NameFileByPlace(Output& output);

}  // namespace tutti::spec
