// Finds what a place has: which objects, and which versions. Thread-safe.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "platform/storage/objects/object_store.h"
#include "platform/storage/storage_request.h"
#include "platform/storage/transfer/attempts.h"

namespace tutti::storage {

// Survey is what a place has. An object's path is relative to `base`, a folder of the container
// ("": all of it).
struct Survey {
  std::string base;
  bool is_file = false;
  std::vector<StoredObject> objects = {};   // sorted by path; may lack ETag and MD5
  std::vector<StoredObject> left_out = {};  // what is no object, likewise

  std::string PathInContainer(const StoredObject& object) const {
    return base.empty() ? object.path : base + "/" + object.path;
  }
};

// Lists the objects. NotFound tells a container that is not there from a path that is not;
// InvalidArgument if the place is not of the type.
absl::StatusOr<Survey> SurveyPlace(ObjectStore& store, const spec::DataPlace& place, PlaceType type,
                                   const Attempts& attempts);

// Does the same for who looks around: a pattern's matches, an object, or with `recursive` false
// what a folder has in it, its folders too, whose paths end with "/".
absl::StatusOr<Survey> BrowsePlace(ObjectStore& store, const spec::DataPlace& place, PlaceType type,
                                   bool recursive, const Attempts& attempts);

// Returns these objects of a folder, relative to it, without asking the store: all but their paths
// is unknown. InvalidArgument if the place is a pattern.
absl::StatusOr<Survey> NamedObjects(const spec::DataPlace& place,
                                    const std::vector<std::string>& names);

// Does the same as SurveyPlace without listing a folder: `objects` has the object if it is a file.
absl::StatusOr<Survey> LookAtPlace(ObjectStore& store, const spec::DataPlace& place, PlaceType type,
                                   const Attempts& attempts);

// Asks for the versions of all objects that are not settled (object_version.h), `connections` at
// the same time. An object that is no longer there is Aborted.
absl::Status AskForVersions(ObjectStore& store, int connections, const Attempts& attempts,
                            int64_t settled_before, Survey& survey);

// Returns StorageResult::digest. Objects are sorted by path.
std::string DigestOf(const std::vector<StoredObject>& objects, int64_t settled_before);

}  // namespace tutti::storage
