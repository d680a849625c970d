#include "runtime/data/source/tar/tar_shards.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "runtime/data/annotation/annotation.h"
#include "runtime/data/annotation/boxes.h"
#include "runtime/data/decode/image_decoder.h"
#include "runtime/data/source/classes.h"
#include "runtime/data/source/left_out.h"
#include "runtime/data/source/shard_bytes.h"
#include "runtime/data/source/shard_files.h"
#include "runtime/data/source/tar/tar.h"

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
  uint64_t offset, size;                        // of the image, in the shard
  uint64_t annotation_offset, annotation_size;  // of its mask or boxes, likewise
  uint64_t name_offset, name_size;              // in TarShards::names
};

class TarShards final : public Dataset {
 public:
  explicit TarShards(std::vector<std::string> classes) : classes_(std::move(classes)) {}

  int64_t size() const override { return static_cast<int64_t>(samples_.size()); }
  const std::vector<std::string>& classes() const override { return classes_; }
  int64_t label(int64_t index) const override { return at(index).label; }
  Annotations annotations() const override { return kind_.value_or(Annotations::kLabels); }
  int64_t most_boxes() const override { return most_boxes_; }
  absl::StatusOr<absl::string_view> Annotation(int64_t index, std::string&) const override {
    const Sample& sample = at(index);
    return shards_[sample.shard].bytes.view().substr(sample.annotation_offset,
                                                     sample.annotation_size);
  }
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

  std::vector<std::string> Remarks() const override {
    std::vector<std::string> remarks = FilesWithoutSample(empty_);
    for (std::string& remark : left_out_.Remarks()) remarks.push_back(std::move(remark));
    return remarks;
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
    std::optional<Annotations> kind;  // of its label, mask or boxes, which is there
    int32_t label = 0;
    absl::string_view annotation;
    std::vector<std::string> others;  // members that are none of these
  };

  const Sample& at(int64_t index) const { return samples_.at(static_cast<size_t>(index)); }
  absl::Status IndexShard();
  absl::Status AddMember(const TarMember& member, Gathering& sample);
  absl::Status FinishSample(const Gathering& sample);
  static absl::Status Incomplete(const Gathering& sample);
  absl::Status AddAnnotation(const TarMember& member, Annotations kind, Gathering& sample);
  absl::Status CheckKind(const Gathering& sample);
  absl::StatusOr<int32_t> ParseLabel(const TarMember& member) const;

  std::vector<std::string> classes_;
  std::optional<Annotations> kind_;  // of every sample: that of the first
  int64_t most_boxes_ = 1;
  std::vector<Shard> shards_;
  std::vector<Sample> samples_;
  std::string names_;
  std::vector<std::string> empty_;  // shards without a sample
  LeftOutFiles left_out_;           // members of no sample
};

// {"cat/0017", "jpg"} of "cat/0017.JPG"; an empty key for what is no sample's member.
std::pair<absl::string_view, std::string> SplitName(absl::string_view name) {
  const size_t slash = name.rfind('/');
  const size_t base = slash == absl::string_view::npos ? 0 : slash + 1;
  const size_t dot = name.find('.', base);
  if (dot == absl::string_view::npos || dot == base) return {};
  return {name.substr(0, dot), absl::AsciiStrToLower(name.substr(dot + 1))};
}

// By a member's extension: ".cls", ".mask.png", ".boxes.txt".
std::optional<Annotations> KindOf(absl::string_view extension) {
  if (extension == "cls") return Annotations::kLabels;
  if (extension == "mask.png" || extension == "mask.pgm") return Annotations::kMasks;
  if (extension == "boxes.txt") return Annotations::kBoxes;
  return std::nullopt;
}

absl::string_view OneOf(Annotations kind) {
  return kind == Annotations::kLabels ? "label" : kind == Annotations::kMasks ? "mask" : "boxes";
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

absl::Status TarShards::Incomplete(const Gathering& sample) {
  const std::string key = absl::Utf8SafeCEscape(sample.key);
  if (sample.has_image) {
    return absl::InvalidArgumentError(absl::StrCat(key,
                                                   ": the sample has no label (.cls), mask "
                                                   "(.mask.png) or boxes (.boxes.txt) beside its "
                                                   "image"));
  }
  const std::string other =
      sample.others.empty() ? "" : absl::StrCat(", only ", absl::Utf8SafeCEscape(sample.others[0]));
  return absl::InvalidArgumentError(absl::StrCat(key, ": the sample has no image (", ImageEndings(),
                                                 ") beside its ", OneOf(*sample.kind), other));
}

absl::Status TarShards::FinishSample(const Gathering& sample) {
  if (!sample.has_image && !sample.kind) {
    for (const std::string& name : sample.others) left_out_.Add(name);
    return absl::OkStatus();
  }
  if (!sample.has_image || !sample.kind) return Incomplete(sample);
  TUTTI_RETURN_IF_ERROR(CheckKind(sample));
  const absl::string_view shard = shards_.back().bytes.view();
  const auto annotation_offset =
      sample.annotation.empty() ? 0
                                : static_cast<uint64_t>(sample.annotation.data() - shard.data());
  samples_.push_back({static_cast<uint32_t>(shards_.size() - 1), sample.label,
                      static_cast<uint64_t>(sample.image_bytes.data() - shard.data()),
                      sample.image_bytes.size(), annotation_offset, sample.annotation.size(),
                      names_.size(), sample.image.size()});
  names_ += sample.image;
  return absl::OkStatus();
}

absl::Status TarShards::AddMember(const TarMember& member, Gathering& sample) {
  const auto [key, extension] = SplitName(member.name);
  if (key.empty()) {
    left_out_.Add(member.name);
    return absl::OkStatus();
  }
  if (key != sample.key) {
    TUTTI_RETURN_IF_ERROR(FinishSample(sample));
    sample = Gathering{.key = std::string(key)};
  }
  const bool is_image = IsImageExtension(extension);
  const std::optional<Annotations> kind = KindOf(extension);
  if (kind && sample.kind && *kind != *sample.kind) {
    return absl::InvalidArgumentError(
        absl::StrCat(absl::Utf8SafeCEscape(member.name), ": the sample has a ", OneOf(*sample.kind),
                     " already, and may not have a ", OneOf(*kind), " too"));
  }
  if ((is_image && sample.has_image) || (kind && sample.kind)) {
    return absl::InvalidArgumentError(absl::StrCat(absl::Utf8SafeCEscape(member.name),
                                                   ": a second ", is_image ? "image" : OneOf(*kind),
                                                   " of the same sample"));
  }
  if (is_image) {
    sample.has_image = true;
    sample.image = member.name;
    sample.image_bytes = member.content;
  } else if (kind) {
    return base::Annotate(AddAnnotation(member, *kind, sample), absl::Utf8SafeCEscape(member.name));
  } else {
    sample.others.push_back(member.name);
  }
  return absl::OkStatus();
}

absl::Status TarShards::AddAnnotation(const TarMember& member, Annotations kind,
                                      Gathering& sample) {
  sample.kind = kind;
  sample.annotation = member.content;
  if (kind == Annotations::kLabels) {
    TUTTI_ASSIGN_OR_RETURN(sample.label, ParseLabel(member));
    sample.annotation = {};
  } else if (kind == Annotations::kBoxes) {
    TUTTI_ASSIGN_OR_RETURN(const std::vector<Box> boxes,
                           ParseBoxes(member.content, static_cast<int64_t>(classes_.size())));
    most_boxes_ = std::max(most_boxes_, static_cast<int64_t>(boxes.size()));
  }
  return absl::OkStatus();
}

absl::Status TarShards::CheckKind(const Gathering& sample) {
  if (!kind_) kind_ = sample.kind;
  if (kind_ == sample.kind) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(absl::Utf8SafeCEscape(sample.key), ": has ",
                                                 NameOf(*sample.kind), ", where the set has ",
                                                 NameOf(*kind_)));
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
  const size_t before = samples_.size();
  const absl::Status indexed = IndexShard();
  if (samples_.size() == before) empty_.push_back(shards_.back().name);
  const bool damaged = indexed.code() == absl::StatusCode::kDataLoss;
  return base::Annotate(indexed, damaged ? path.string() : shards_.back().name);
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Dataset>> OpenTarShard(const fs::path& file,
                                                            std::vector<std::string> classes) {
  auto dataset = std::make_shared<TarShards>(std::move(classes));
  TUTTI_RETURN_IF_ERROR(dataset->AddShard(file));
  return dataset;
}

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
