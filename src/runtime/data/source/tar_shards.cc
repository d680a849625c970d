// OpenTarShards: the shards of a split as one indexed dataset.
#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "runtime/data/dataset.h"
#include "runtime/data/source/classes.h"
#include "runtime/data/source/names.h"
#include "runtime/data/source/shard_bytes.h"
#include "runtime/data/source/shard_files.h"
#include "runtime/data/source/tar.h"

namespace tutti::data {
namespace fs = std::filesystem;
namespace {

struct Shard {
  std::string name;
  ShardBytes bytes;
};

struct Sample {
  uint32_t shard;
  int32_t label;
  uint64_t offset, size;            // of the image, in the shard
  uint64_t name_offset, name_size;  // in TarShards::names
};

class TarShards final : public Dataset {
 public:
  explicit TarShards(std::vector<std::string> classes) : classes_(std::move(classes)) {}

  int64_t size() const override { return static_cast<int64_t>(samples_.size()); }
  const std::vector<std::string>& classes() const override { return classes_; }
  int64_t label(int64_t index) const override { return at(index).label; }
  absl::StatusOr<absl::string_view> Encoded(int64_t index, std::string&) const override {
    const Sample& sample = at(index);
    return shards_[sample.shard].bytes.view().substr(sample.offset, sample.size);
  }
  std::string Describe(int64_t index) const override {
    const Sample& sample = at(index);
    const absl::string_view name =
        absl::string_view(names_).substr(sample.name_offset, sample.name_size);
    return absl::StrCat(shards_[sample.shard].name, ":", absl::Utf8SafeCEscape(name));
  }
  void WillNeed(int64_t index) const override {
    const Sample& sample = at(index);
    shards_[sample.shard].bytes.WillNeed(sample.offset, sample.size);
  }

  // Maps the shard and indexes its samples. Errors name it.
  absl::Status AddShard(const fs::path& path);

 private:
  // The members of the sample that is being gathered.
  struct Gathering {
    std::string key;
    std::string image;
    absl::string_view image_bytes;
    bool has_image = false;
    int32_t label = -1;
    bool other = false;  // a member that is neither image nor label
  };

  const Sample& at(int64_t index) const { return samples_.at(static_cast<size_t>(index)); }
  absl::Status IndexShard();
  absl::Status AddMember(const TarMember& member, Gathering& sample);
  absl::Status FinishSample(const Gathering& sample);
  absl::StatusOr<int32_t> ParseLabel(const TarMember& member) const;

  std::vector<std::string> classes_;
  std::vector<Shard> shards_;
  std::vector<Sample> samples_;
  std::string names_;
};

// {"cat/0017", "jpg"} of "cat/0017.JPG"; an empty key for what is no sample's member.
std::pair<absl::string_view, std::string> SplitName(absl::string_view name) {
  const size_t slash = name.rfind('/');
  const size_t base = slash == absl::string_view::npos ? 0 : slash + 1;
  const size_t dot = name.find('.', base);
  if (dot == absl::string_view::npos || dot == base) return {};
  return {name.substr(0, dot), absl::AsciiStrToLower(name.substr(dot + 1))};
}

absl::StatusOr<int32_t> TarShards::ParseLabel(const TarMember& member) const {
  int32_t label = -1;
  const absl::string_view text = absl::StripAsciiWhitespace(member.content);
  if (text.size() > 10 || !absl::SimpleAtoi(text, &label)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the label \"", absl::Utf8SafeCEscape(text.substr(0, 20)), "\" is no number"));
  }
  if (label < 0 || static_cast<size_t>(label) >= classes_.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "label ", label, " is out of range: classes.txt names ", classes_.size(), " classes"));
  }
  return label;
}

absl::Status TarShards::FinishSample(const Gathering& sample) {
  if (sample.key.empty() || (!sample.has_image && sample.label < 0)) return absl::OkStatus();
  if (!sample.has_image || sample.label < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(absl::Utf8SafeCEscape(sample.key), ": the sample has no ",
                     sample.has_image ? "label (.cls)" : "image (.jpg)", " beside its ",
                     sample.has_image ? "image" : "label"));
  }
  const absl::string_view shard = shards_.back().bytes.view();
  samples_.push_back({static_cast<uint32_t>(shards_.size() - 1), sample.label,
                      static_cast<uint64_t>(sample.image_bytes.data() - shard.data()),
                      sample.image_bytes.size(), names_.size(), sample.image.size()});
  names_ += sample.image;
  return absl::OkStatus();
}

absl::Status TarShards::AddMember(const TarMember& member, Gathering& sample) {
  const auto [key, extension] = SplitName(member.name);
  if (key.empty()) return absl::OkStatus();
  if (key != sample.key) {
    TUTTI_RETURN_IF_ERROR(FinishSample(sample));
    sample = Gathering{.key = std::string(key)};
  }
  const bool is_image = IsPictureExtension(extension);
  const bool is_label = extension == "cls";
  if ((is_image && sample.has_image) || (is_label && sample.label >= 0)) {
    return absl::InvalidArgumentError(absl::StrCat(absl::Utf8SafeCEscape(member.name),
                                                   ": a second ", is_image ? "image" : "label",
                                                   " of the same sample"));
  }
  if (is_image) {
    sample.has_image = true;
    sample.image = member.name;
    sample.image_bytes = member.content;
  } else if (is_label) {
    absl::StatusOr<int32_t> label = ParseLabel(member);
    if (!label.ok()) return base::Annotate(label.status(), absl::Utf8SafeCEscape(member.name));
    sample.label = *label;
  }
  return absl::OkStatus();
}

absl::Status TarShards::IndexShard() {
  TarReader reader(shards_.back().bytes.view());
  Gathering sample;
  while (true) {
    TUTTI_ASSIGN_OR_RETURN(const std::optional<TarMember> member, reader.Next());
    if (!member) return FinishSample(sample);
    TUTTI_RETURN_IF_ERROR(AddMember(*member, sample));
  }
}

absl::Status TarShards::AddShard(const fs::path& path) {
  absl::StatusOr<ShardBytes> bytes = ShardBytes::Open(path);
  if (!bytes.ok()) return base::Annotate(bytes.status(), path.string());
  shards_.push_back({path.filename().string(), *std::move(bytes)});
  // Members are named as errors of the loader name them; damage is the file's, with its folder.
  const absl::Status indexed = IndexShard();
  const bool damaged = indexed.code() == absl::StatusCode::kDataLoss;
  return base::Annotate(indexed, damaged ? path.string() : shards_.back().name);
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Dataset>> OpenTarShards(const fs::path& folder,
                                                             absl::string_view split) {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<fs::path> files, ListShards(folder, split));
  TUTTI_ASSIGN_OR_RETURN(std::vector<std::string> classes, ReadClasses(folder / "classes.txt"));
  auto dataset = std::make_shared<TarShards>(std::move(classes));
  for (const fs::path& file : files) TUTTI_RETURN_IF_ERROR(dataset->AddShard(file));
  if (dataset->size() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(folder.string(), ": the shards of split \"", split, "\" hold no sample"));
  }
  return dataset;
}

}  // namespace tutti::data
