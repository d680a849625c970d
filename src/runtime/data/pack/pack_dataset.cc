#include "runtime/data/pack/pack_dataset.h"

#include <zstd.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/status.h"
#include "runtime/data/pack/packed_annotation.h"
#include "runtime/data/pack/packed_image.h"
#include "runtime/data/pack/parallel_for.h"
#include "runtime/data/sampling/sampler.h"
#include "runtime/data/source/classes.h"
#include "runtime/data/source/shard_files.h"
#include "runtime/data/source/shard_index.h"
#include "runtime/data/source/tar/tar.h"

namespace tutti::data {
namespace fs = std::filesystem;
namespace {

constexpr int64_t kAtOnce = 256;  // samples that are prepared before they are written
constexpr int kZstdLevel = 9;

// "00000017-n01440764_tench" of sample 17 and "train/n01440764/n01440764_tench.JPEG".
std::string KeyOf(int64_t number, absl::string_view description) {
  const size_t slash = description.find_last_of("/:");
  absl::string_view name =
      slash == absl::string_view::npos ? description : description.substr(slash + 1);
  name = name.substr(0, std::min<size_t>(name.find('.'), 60));
  std::string key = absl::StrFormat("%08d", number);
  if (name.find_first_not_of("0123456789") == absl::string_view::npos) return key;
  key += '-';
  for (const char c : name) key += absl::ascii_isalnum(c) || c == '_' ? c : '-';
  return key;
}

absl::StatusOr<std::string> Compress(const std::string& archive) {
  std::string packed(ZSTD_compressBound(archive.size()), '\0');
  const size_t size =
      ZSTD_compress(packed.data(), packed.size(), archive.data(), archive.size(), kZstdLevel);
  if (ZSTD_isError(size)) return absl::InternalError(ZSTD_getErrorName(size));
  packed.resize(size);
  return packed;
}

// Writes shards into a folder of its own beside where they shall lie.
class ShardWriter {
 public:
  ShardWriter(const fs::path& folder, absl::string_view split, const PackOptions& options)
      : folder_(folder),
        making_(folder / absl::StrCat(".packing-", split)),
        split_(split),
        options_(options) {}
  ~ShardWriter() { base::RemoveTree(making_).IgnoreError(); }
  ShardWriter(const ShardWriter&) = delete;
  ShardWriter& operator=(const ShardWriter&) = delete;

  absl::Status Begin() {
    TUTTI_RETURN_IF_ERROR(base::RemoveTree(making_));
    return base::MakeDirectories(making_);
  }
  absl::Status Add(const std::string& key, const PackedImage& image,
                   const PackedAnnotation& annotation) {
    tar_.Add(absl::StrCat(key, ".", image.extension), image.bytes);
    tar_.Add(absl::StrCat(key, ".", annotation.extension), annotation.bytes);
    ++samples_;
    return tar_.size() < options_.shard_bytes ? absl::OkStatus() : WriteShard();
  }
  // Shard 0 last: a set that lacks it does not open.
  absl::Status Finish(const Dataset& dataset) {
    if (tar_.size() > 0) TUTTI_RETURN_IF_ERROR(WriteShard());
    index_.annotations = dataset.annotations();
    index_.most_boxes = std::max<int64_t>(1, dataset.most_boxes());
    TUTTI_RETURN_IF_ERROR(WriteShardIndex(folder_, split_, index_));
    for (auto shard = index_.shards.rbegin(); shard != index_.shards.rend(); ++shard) {
      std::error_code error;
      fs::rename(making_ / shard->name, folder_ / shard->name, error);
      if (error) return base::ErrnoStatus((folder_ / shard->name).string(), error.value());
    }
    return base::SyncDirectory(folder_);
  }
  int64_t shards() const { return static_cast<int64_t>(index_.shards.size()); }
  uint64_t bytes() const { return bytes_; }

 private:
  absl::Status WriteShard() {
    std::string archive = tar_.Finish();
    if (options_.compress) {
      TUTTI_ASSIGN_OR_RETURN(archive, Compress(archive));
    }
    const std::string name = absl::StrFormat("%s-%06d.tar%s", split_, index_.shards.size(),
                                             options_.compress ? ".zst" : "");
    index_.shards.push_back(
        {name, static_cast<int64_t>(archive.size()), std::exchange(samples_, 0)});
    bytes_ += archive.size();
    return base::WriteFileAtomic(making_ / name, archive);
  }

  const fs::path folder_, making_;
  const std::string split_;
  const PackOptions& options_;
  TarWriter tar_;
  ShardIndex index_;
  int64_t samples_ = 0;  // of the shard that is made
  uint64_t bytes_ = 0;
};

absl::Status CheckFree(const fs::path& folder, absl::string_view split) {
  const absl::Status there = ListShards(folder, split).status();
  if (absl::IsNotFound(there)) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat(folder.string(), ": shards of split \"", split,
                                               "\" are there already; remove them first"));
}

absl::Status WriteClasses(const fs::path& folder, const std::vector<std::string>& classes) {
  const fs::path path = folder / "classes.txt";
  const absl::StatusOr<std::vector<std::string>> there = ReadClasses(path);
  if (absl::IsNotFound(there.status())) {
    return base::WriteFileAtomic(path, absl::StrCat(absl::StrJoin(classes, "\n"), "\n"));
  }
  TUTTI_RETURN_IF_ERROR(there.status());
  if (*there == classes) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(path.string(), ": names other classes than the images have"));
}

class Packing {
 public:
  Packing(const Dataset& dataset, const PackOptions& options, ShardWriter& writer)
      : dataset_(dataset), options_(options), writer_(writer) {
    for (int i = 0; i < std::max(1, options.threads); ++i) {
      workers_.push_back({std::make_unique<ImagePacker>(options), {}, {}});
    }
    if (options.shuffle) order_ = Permutation(dataset.size(), *options.shuffle, 0);
  }

  absl::Status Run(Packed& packed) {
    for (int64_t begin = 0; begin < dataset_.size(); begin += kAtOnce) {
      TUTTI_RETURN_IF_ERROR(PackSome(begin, std::min(begin + kAtOnce, dataset_.size()), packed));
    }
    return absl::OkStatus();
  }

 private:
  struct Worker {
    std::unique_ptr<ImagePacker> packer;
    AnnotationPacker annotations;
    std::string scratch;
  };
  struct PackedSample {
    PackedImage image;
    PackedAnnotation annotation;
  };

  int64_t SampleAt(int64_t i) const { return order_.empty() ? i : order_[static_cast<size_t>(i)]; }
  absl::StatusOr<PackedSample> PackOne(int64_t sample, Worker& worker) {
    PackedSample packed;
    TUTTI_ASSIGN_OR_RETURN(const absl::string_view encoded,
                           dataset_.Encoded(sample, worker.scratch));
    TUTTI_ASSIGN_OR_RETURN(packed.image, worker.packer->Pack(encoded));
    TUTTI_ASSIGN_OR_RETURN(
        packed.annotation,
        worker.annotations.Pack(dataset_, sample, packed.image.from, packed.image.to));
    return packed;
  }
  absl::Status PackSome(int64_t begin, int64_t end, Packed& packed);
  absl::Status LeaveOut(const absl::Status& why, Packed& packed) const;

  const Dataset& dataset_;
  const PackOptions& options_;
  ShardWriter& writer_;
  std::vector<Worker> workers_;
  std::vector<int64_t> order_;
};

absl::Status Packing::LeaveOut(const absl::Status& why, Packed& packed) const {
  if (static_cast<int64_t>(packed.left_out.size()) < options_.max_unreadable) {
    packed.left_out.emplace_back(why.message());
    return absl::OkStatus();
  }
  return absl::Status(why.code(), absl::StrCat(why.message(), "; at most ", options_.max_unreadable,
                                               " unreadable images may be left out"));
}

absl::Status Packing::PackSome(int64_t begin, int64_t end, Packed& packed) {
  std::vector<absl::StatusOr<PackedSample>> samples(static_cast<size_t>(end - begin));
  ParallelFor(options_.threads, begin, end, [&](size_t thread, int64_t i) {
    samples[static_cast<size_t>(i - begin)] = PackOne(SampleAt(i), workers_[thread]);
  });
  for (int64_t i = begin; i < end; ++i) {
    const int64_t sample = SampleAt(i);
    const auto& one = samples[static_cast<size_t>(i - begin)];
    const std::string name = dataset_.Describe(sample);
    if (!one.ok()) {
      TUTTI_RETURN_IF_ERROR(LeaveOut(base::Annotate(one.status(), name), packed));
      continue;
    }
    TUTTI_RETURN_IF_ERROR(writer_.Add(KeyOf(packed.samples, name), one->image, one->annotation));
    ++packed.samples;
    packed.resized += one->image.resized;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Packed> Pack(const Dataset& dataset, const fs::path& folder, absl::string_view split,
                            const PackOptions& options) {
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(folder));
  TUTTI_RETURN_IF_ERROR(CheckFree(folder, split));
  ShardWriter writer(folder, split, options);
  TUTTI_RETURN_IF_ERROR(writer.Begin());
  Packed packed;
  TUTTI_RETURN_IF_ERROR(Packing(dataset, options, writer).Run(packed));
  if (packed.samples == 0) {
    return absl::InvalidArgumentError("no image is readable: nothing to pack");
  }
  TUTTI_RETURN_IF_ERROR(WriteClasses(folder, dataset.classes()));
  TUTTI_RETURN_IF_ERROR(writer.Finish(dataset));
  packed.shards = writer.shards();
  packed.bytes = writer.bytes();
  return packed;
}

}  // namespace tutti::data
