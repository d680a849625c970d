// Spool keeps the output of this node's processes on this node's disk until the service has it: one
// append-only file per process and stream. The number of a byte is its offset. What the service has
// acknowledged is given back to the disk (a hole is punched, offsets stay), all but the last part
// of it, so that the spool is as large as what is still to be delivered and not as large as all
// that was ever written.
//
// One thread appends to a file, one other delivers all. The metrics file is written by the process
// itself.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/text/text_mask.h"
#include "base/unique_fd.h"

namespace tutti::launch {

class SpoolFile {
 public:
  // Opens the file, which is made if it is not there; goes on at its end.
  static absl::StatusOr<std::unique_ptr<SpoolFile>> Open(const std::filesystem::path& path,
                                                         int rank, std::string stream);
  const std::filesystem::path& path() const { return path_; }
  int rank() const { return rank_; }
  const std::string& stream() const { return stream_; }

  // Appends `bytes`; ResourceExhausted if the disk is full: then nothing of `bytes` counts as
  // written.
  absl::Status Append(absl::string_view bytes);
  // Returns how many bytes there are; asks the disk for the metrics file, which grows by itself.
  uint64_t Size() const;
  // Reads up to `most` bytes from `offset` on.
  absl::StatusOr<std::string> Read(uint64_t offset, size_t most) const;

  // Waits until others that share the disk can see what is there.
  absl::Status Sync() const;

  uint64_t acknowledged() const { return acknowledged_; }
  // May also go back: the service then asks for bytes anew.
  void Acknowledge(uint64_t offset);
  uint64_t Backlog() const;

  // Returns what hides secrets in what is appended by output_pipe.h, and in what is sent of the
  // metrics; null: there are none.
  const base::TextMask* mask() const { return mask_; }
  // `mask` outlives the object.
  void set_mask(const base::TextMask* mask) { mask_ = mask; }

 private:
  SpoolFile(base::UniqueFd fd, std::filesystem::path path, int rank, std::string stream,
            uint64_t size)
      : fd_(std::move(fd)),
        path_(std::move(path)),
        rank_(rank),
        stream_(std::move(stream)),
        size_(size) {}
  const base::UniqueFd fd_;
  const std::filesystem::path path_;
  const int rank_;
  const std::string stream_;
  std::atomic<uint64_t> size_;
  std::atomic<uint64_t> acknowledged_ = 0;
  uint64_t given_back_ = 0;
  std::atomic<const base::TextMask*> mask_ = nullptr;
};

// The streams of a rank, by name, in the order in which a rank's files lie in Spool::files.
inline constexpr std::array<const char*, 4> kRankStreams = {"stdout", "stderr", "metrics",
                                                            "mlflow"};

// rank-R.stdout, .stderr, .metrics and .mlflow of every rank of a node, rank-R.mpirun of its first
// one and acknowledged.json.
class Spool {
 public:
  static absl::StatusOr<std::unique_ptr<Spool>> Open(const std::filesystem::path& folder,
                                                     int first_rank, int process_count);

  SpoolFile& Stdout(int local_rank) { return *files_[kPerRank * local_rank]; }
  SpoolFile& Stderr(int local_rank) { return *files_[kPerRank * local_rank + 1]; }
  // Returns what the rank logs in its MLflow store, which one thread of its own appends.
  SpoolFile& Mlflow(int local_rank) { return *files_[kPerRank * local_rank + 3]; }
  // Returns what mpirun, its daemon or srun says itself, on this node.
  SpoolFile& Mpirun() { return *files_.back(); }
  const std::vector<std::unique_ptr<SpoolFile>>& files() const { return files_; }

  // Masks all files from now on. At most once, before there is output; also while they are sent.
  void MaskWith(std::shared_ptr<const base::TextMask> mask);
  // Returns what hides secrets in what is sent; null: nothing does.
  std::shared_ptr<const base::TextMask> mask() const { return mask_; }

  uint64_t Backlog() const;
  uint64_t Acknowledged() const;  // over all files
  // Saves what was acknowledged. Where a former launcher had got to is read at Open; a hint, the
  // service knows better.
  void SaveAcknowledged(int64_t events) const;

 private:
  static constexpr int kPerRank = static_cast<int>(kRankStreams.size());
  explicit Spool(std::filesystem::path folder) : folder_(std::move(folder)) {}
  void LoadAcknowledged();
  const std::filesystem::path folder_;
  std::shared_ptr<const base::TextMask> mask_;
  std::vector<std::unique_ptr<SpoolFile>> files_;
};

}  // namespace tutti::launch
