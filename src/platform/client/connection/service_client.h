// ServiceClient has a function for each call of the service's REST interface
// (docs/formats/rest.md). Answers are JSON texts, read with views.h or shown as they are; errors
// carry the service's own message. Not thread-safe.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "platform/client/connection/connection.h"
#include "platform/client/connection/views.h"

namespace tutti::client {

class ServiceClient {
 public:
  explicit ServiceClient(std::unique_ptr<ServiceConnection> connection)
      : connection_(std::move(connection)) {}

  absl::StatusOr<std::string> Health();
  absl::StatusOr<bool> HasSnapshot(const std::string& hash);
  // Sends a snapshot: `archive` holds the bytes whose hash is `hash` ("sha256:…").
  absl::Status PutSnapshot(const std::string& hash, const std::filesystem::path& archive);
  // Brings it.
  absl::Status Snapshot(const std::string& hash, http::ChunkCallback on_chunk);
  // `asked`, if given, becomes true once the service may have seen it: an error Unavailable or
  // DeadlineExceeded then leaves open whether the job was taken. See CreateJobOnce.
  absl::StatusOr<std::string> CreateJob(const std::string& body, bool* asked = nullptr);
  // Returns what CreateJob would say of it: its warnings, or why it would be refused.
  absl::StatusOr<std::string> CheckJob(const std::string& body);
  // Lists jobs, the newest first. `state` empty: all; `before` 0: from the newest on.
  absl::StatusOr<std::string> Jobs(const std::string& state, int limit, int64_t before = 0);
  // Lists the same in short, for very many.
  absl::StatusOr<std::string> Summaries(const std::string& state, int limit, int64_t before = 0);
  absl::StatusOr<std::string> Job(const std::string& id,
                                  absl::Duration timeout = absl::Seconds(30));
  // Returns a page of a sweep's trials, those behind a cursor; of a job's events, those before one.
  // Returns what it was submitted as; `former`: with the script's job before it.
  absl::StatusOr<std::string> Submission(const std::string& id, bool former = false);
  absl::StatusOr<std::string> Trials(const std::string& id, const std::string& after, int limit);
  absl::StatusOr<std::string> Events(const std::string& id, int64_t before, int limit);
  // Returns what its processes use, in so many points of each resolution, 0: as many as are usual;
  // `rank` -1: all of them.
  absl::StatusOr<std::string> Usage(const std::string& id, int rank, int points);
  // Returns what they report: of each metric `points` of its course, 0: as many as are usual, and
  // the `newest` points. `rank` negative: of the lowest that reports any.
  absl::StatusOr<std::string> Metrics(const std::string& id, int rank, int points, int newest);
  // Returns what its ranks are doing, of those that answer within `wait`; `rank` as above.
  // `native`: also what their processes have to be stopped for.
  absl::StatusOr<std::string> Stacks(const std::string& id, int rank, bool native,
                                     absl::Duration wait);
  // Has the nodes of a job that runs send the results that they have now, of those whose names have
  // `name` in them, and returns who has sent how much within `wait`: the job's files then.
  absl::StatusOr<std::string> Results(const std::string& id, const std::string& name,
                                      absl::Duration wait);
  absl::StatusOr<std::string> Cancel(const std::string& id);
  absl::Status Delete(const std::string& id);
  absl::StatusOr<std::string> Files(const std::string& id);
  // Fetches the bytes of a file of the job, piece by piece.
  absl::Status File(const std::string& id, const std::string& path, http::ChunkCallback on_chunk);
  absl::StatusOr<std::string> Nodes();
  absl::Status Cordon(const std::string& compute, const std::string& node,
                      const std::string& reason);
  absl::Status Uncordon(const std::string& compute, const std::string& node);
  // Looks at it now, which may take minutes.
  absl::StatusOr<std::string> CheckNode(const std::string& compute, const std::string& node);
  absl::Status SetSecret(const std::string& name, const std::string& value);
  absl::StatusOr<std::string> Secrets();
  absl::StatusOr<std::string> DeleteSecret(const std::string& name);
  absl::StatusOr<std::string> RotateSecrets();
  // Asks for credentials of the container of an address: GrantFromJson (storage_json.h) reads them.
  absl::StatusOr<std::string> GrantStorage(const std::string& address, bool write);
  // Asks for an address by which anybody can read an object of a store, or a job's file, or with
  // `write` write it.
  absl::StatusOr<std::string> SignStorage(const std::string& address, bool write,
                                          absl::Duration lasts);
  // Models. `version` is one, or "@LABEL"; where it may be "", the call is of the name.
  absl::StatusOr<bool> HasModelFile(const std::string& sha256);
  // Sends a file whose bytes have that hash.
  absl::Status PutModelFile(const std::string& sha256, const std::filesystem::path& file);
  // Registers a version; `asked` as of CreateJob. May take as long as a job's files are copied.
  absl::StatusOr<std::string> RegisterModel(const std::string& body, bool* asked = nullptr);
  absl::StatusOr<std::string> Models(const std::string& archived, const std::string& after,
                                     int limit);
  absl::StatusOr<std::string> ModelVersions(const std::string& name, int64_t before, int limit);
  absl::StatusOr<std::string> ModelVersion(const std::string& name, const std::string& version);
  absl::StatusOr<std::string> ChangeModel(const std::string& name, const std::string& version,
                                          const std::string& body);
  absl::Status DeleteModel(const std::string& name, const std::string& version);
  absl::Status SetModelAlias(const std::string& name, const std::string& alias,
                             const std::string& version);
  absl::Status RemoveModelAlias(const std::string& name, const std::string& alias);
  absl::Status ModelFile(const std::string& name, const std::string& version,
                         const std::string& path, http::ChunkCallback on_chunk);
  absl::StatusOr<std::string> Problems();
  // Makes a link of the portal, for a browser of another machine if asked: {"word", "url",
  // "elsewhere", "there", "expires"}.
  absl::StatusOr<std::string> MakePortalLink(bool elsewhere);
  // Returns whether a link's word has opened no session yet.
  absl::StatusOr<bool> IsPortalWordUnused(const std::string& word);
  // Ends all sessions of the portal.
  absl::Status SignPagesOut();
  absl::StatusOr<std::string> Prune(bool dry_run, bool clock_is_right);
  // Removes, or says, which Python environments were not used for so long.
  absl::StatusOr<std::string> PruneEnvironments(bool dry_run, absl::Duration unused_for);

  // Hands over the lines after `cursor` ("" : from the first) until the job has ended or, with
  // `follow` false, until there are no more now. DeadlineExceeded when nothing came for half a
  // minute.
  absl::Status Follow(const std::string& id, const std::string& cursor, bool follow, bool reports,
                      http::ChunkCallback on_line);

  // Breaks off the call in progress, from another thread.
  void Interrupt() { connection_->Cancel(); }

 private:
  absl::StatusOr<std::string> Call(const http::ClientRequest& request);
  std::unique_ptr<ServiceConnection> connection_;
};

}  // namespace tutti::client
