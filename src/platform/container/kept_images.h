// Records which images of podman's tutti has pulled or built, and when a job last took each, so
// that those which are long unused can be removed again, and no image of anybody else's. A record
// lies in the folder of environments, which several nodes may share: each of them has a storage of
// its own.
//
//   images/HOST/KEY.json        one image in the storage of that node: its name in podman, its id,
//                               its size; last changed when a job last took it
//   images/HOST/.gone-KEY.json  the same of one that is to go: the next launcher there removes it
//   image-KEY.HOST.lock         held by who makes the image or removes it; shared by who takes it
//
// A kill leaves a record too much, which the next look finds to be of no image, or an image without
// a record, which stays. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tutti::container {

struct KeptImage {
  std::string key;
  std::string name;    // in podman; its id where that name is another's now
  std::string id;      // of its content, as when it was pulled or built
  std::string base;    // the name of the image that its packages were installed on; "": none
  uint64_t bytes = 0;  // with the layers that it shares with others
  std::string host;    // whose storage has it
  absl::Time last_use;
};

// Returns the key of the image of that name.
std::string KeyOfImage(absl::string_view name);
// Returns the file that is locked for the image of that key on this node.
std::filesystem::path ImageLock(const std::filesystem::path& folder, absl::string_view key);

// Marks the image of that key as used now, on this node, if it has a record; one that was to go is
// to stay. The caller holds its lock. False if it has none.
bool TakeImage(const std::filesystem::path& folder, absl::string_view key);
// Records an image of this node that was pulled or built just now, with its host and time.
absl::Status RecordImage(const std::filesystem::path& folder, KeptImage image);

// Lists the records of all nodes, without those of images that are to go. What cannot be read is
// left out.
std::vector<KeptImage> ListImages(const std::filesystem::path& folder);

// Removes the images of that name from this machine's storage; `records` are all that there are of
// it, which more than one virtual node may have. False if it stays: it has been taken since the
// records were listed, is being made, a container has it, or another image has got its name
// meanwhile, which is then nobody's of tutti's.
absl::StatusOr<bool> RemoveImage(const std::filesystem::path& folder,
                                 const std::vector<KeptImage>& records,
                                 const std::atomic<bool>& cancelled);

// Notes that an image of another machine is to go. False if it has been taken since it was listed,
// or is being made.
absl::StatusOr<bool> MarkImage(const std::filesystem::path& folder, const KeptImage& image);
// Removes the images of this node that are to go. What cannot be removed now is tried again by the
// next call.
absl::Status RemoveMarkedImages(const std::filesystem::path& folder);

}  // namespace tutti::container
