// The volumes that Batch AI mounted for a job (`mountVolumes`) or for all jobs of a cluster, as
// addresses of their stores; and the paths below them, which begin with $AZ_BATCHAI_JOB_MOUNT_ROOT
// or $AZ_BATCHAI_MOUNT_ROOT. Inside the room spec only. Not thread-safe.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "spec/batchai/batch_ai_job.h"
#include "spec/text/diagnostics.h"
#include "spec/text/mapping_reader.h"

namespace tutti::spec {

struct Volume {
  std::string mounted_at;   // "data/images", below the mount root
  std::string address;      // "https://acme.blob.core.windows.net/images", "/data": without a slash
  bool is_local = false;    // a folder of the nodes
  bool is_url = false;      // what is below it is percent-encoded
  bool can_write = true;    // outputs may go there
  bool of_cluster = false;  // else of the job
  bool is_output = false;   // something was written there
  bool is_read = false;     // something was read there
  std::string input;        // the job's input that it is
  // A store of Azure has these: what its datastore says of it, and the account's key if the file
  // has it.
  std::string type, account, container, account_key;
  int line = 0;

  // Returns the address of a path below it, for an input or, with `write`, for an output.
  std::string AddressOf(absl::string_view path, bool write = false) const;
};

// A path that a file names, as a volume and what is below it.
struct PlaceOnVolume {
  Volume* volume = nullptr;
  std::string path;  // below it, without a slash at either end; may be empty
};

class Volumes {
 public:
  // Reads `mountVolumes`. `storage_account` stands for <AZURE_BATCHAI_STORAGE_ACCOUNT>.
  void Read(const YamlNode& mounts, bool of_cluster, const std::string& storage_account,
            Diagnostics& diagnostics);

  // Returns the place of a path that begins with a mount root; nothing if it does not, or if no
  // volume is mounted there: `why` says so then, and what to do.
  std::optional<PlaceOnVolume> Find(absl::string_view path, std::string& why);

  // Replaces each path in a command or a value by ${{inputs.VOLUME}} and what is below it.
  std::string Rewrite(absl::string_view text, int line, Diagnostics& diagnostics);

  // Names the volumes' inputs; none of `taken`.
  void NameInputs(const std::set<std::string>& taken);
  std::vector<Volume>& all() { return volumes_; }
  // Returns the datastores of the volumes whose keys the file has.
  std::vector<BatchAiStore> Stores() const;

 private:
  void Add(Volume volume, Diagnostics& diagnostics);
  void ReadShare(const YamlNode& node, Volume volume, const std::string& account,
                 Diagnostics& diagnostics);
  void ReadBlobs(const YamlNode& node, Volume volume, const std::string& account,
                 Diagnostics& diagnostics);
  void ReadServer(const YamlNode& node, Volume volume, Diagnostics& diagnostics);
  void ReadUnmanaged(const YamlNode& node, Volume volume, Diagnostics& diagnostics);

  std::vector<Volume> volumes_;
  bool knows_cluster_ = false;
};

// Returns the text with the account for <AZURE_BATCHAI_STORAGE_ACCOUNT>, if there is one.
std::string WithAccount(absl::string_view text, const std::string& account);

}  // namespace tutti::spec
