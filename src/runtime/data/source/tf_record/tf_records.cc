// OpenTfRecords: the TFRecord files of a split as one indexed dataset.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "runtime/data/dataset.h"
#include "runtime/data/source/classes.h"
#include "runtime/data/source/left_out.h"
#include "runtime/data/source/shard_bytes.h"
#include "runtime/data/source/split_names.h"
#include "runtime/data/source/tf_record/tf_example.h"
#include "runtime/data/source/tf_record/tf_record.h"

namespace tutti::data {
namespace fs = std::filesystem;
namespace {

struct RecordFile {
  std::string name;
  ShardBytes bytes;
};

struct RecordSample {
  uint32_t file;
  uint32_t checksum;
  int64_t label;               // as it stands in the file, until ShiftLabels
  uint64_t record;             // its offset in the file
  uint64_t data, data_size;    // of the Example
  uint64_t image, image_size;  // in the file
};

class TfRecords final : public Dataset {
 public:
  int64_t size() const override { return static_cast<int64_t>(samples_.size()); }
  const std::vector<std::string>& classes() const override { return classes_; }
  int64_t label(int64_t index) const override { return at(index).label; }
  absl::StatusOr<absl::string_view> Encoded(int64_t index, std::string&) const override {
    const RecordSample& s = at(index);
    const absl::string_view file = files_[s.file].bytes.view();
    TUTTI_RETURN_IF_ERROR(CheckData({s.record, file.substr(s.data, s.data_size), s.checksum}));
    return file.substr(s.image, s.image_size);
  }
  std::string Describe(int64_t index) const override {
    const RecordSample& s = at(index);
    const absl::string_view file = files_[s.file].bytes.view();
    const auto example = ParseImageExample(file.substr(s.data, s.data_size));
    const bool named = example.ok() && !example->file_name.empty();
    return absl::StrCat(files_[s.file].name, ":",
                        named ? absl::Utf8SafeCEscape(example->file_name)
                              : absl::StrCat("record at byte ", s.record));
  }
  void WillNeed(int64_t index) const override {
    const RecordSample& s = at(index);
    files_[s.file].bytes.WillNeed(s.data, s.data_size);
  }

  std::vector<std::string> Remarks() const override { return FilesWithoutSample(empty_); }

  // Maps the file and indexes its records. Errors name it.
  absl::Status AddFile(const fs::path& path);
  // When all files are there: labels from 0, and the classes' names. Without names the records
  // give them; `strict` refuses stray labels then (classes.h).
  absl::Status ShiftLabels(std::vector<std::string> classes, std::optional<int> first_label,
                           bool strict);

 private:
  const RecordSample& at(int64_t index) const { return samples_.at(static_cast<size_t>(index)); }
  absl::Status IndexFile();
  absl::StatusOr<int64_t> FirstLabel(int64_t classes, std::optional<int> given) const;
  absl::Status CheckLabels(int64_t first) const;
  // "train-00000-of-00002: record 17 at byte 1234".
  std::string PlaceOf(const RecordSample& sample) const;

  std::vector<std::string> classes_;
  std::vector<RecordFile> files_;
  std::vector<RecordSample> samples_;
  std::vector<std::string> empty_;        // files without a record
  std::map<int64_t, std::string> names_;  // of labels, as the records have them
};

absl::Status TfRecords::IndexFile() {
  const absl::string_view file = files_.back().bytes.view();
  TfRecordReader reader(file);
  while (true) {
    TUTTI_ASSIGN_OR_RETURN(const std::optional<TfRecord> record, reader.Next());
    if (!record) return absl::OkStatus();
    const auto example = ParseImageExample(record->data);
    if (!example.ok()) {
      return base::Annotate(example.status(), absl::StrCat("record at byte ", record->offset));
    }
    names_.emplace(*example->label, std::string(example->class_name));
    const auto offset = [&](absl::string_view part) {
      return static_cast<uint64_t>(part.data() - file.data());
    };
    samples_.push_back({static_cast<uint32_t>(files_.size() - 1), record->checksum, *example->label,
                        record->offset, offset(record->data), record->data.size(),
                        offset(example->image), example->image.size()});
  }
}

// TFRecordWriter's compression does not show in a file's name. A plain record's length may begin as
// a compressed file does, but has its checksum.
absl::StatusOr<ShardBytes> OpenRecordFile(const fs::path& path) {
  TUTTI_ASSIGN_OR_RETURN(ShardBytes bytes, ShardBytes::Open(path));
  if (!IsDeflated(bytes.view()) || TfRecordReader(bytes.view()).Next().ok()) return bytes;
  return ShardBytes::Inflate(bytes.view());
}

absl::Status TfRecords::AddFile(const fs::path& path) {
  absl::StatusOr<ShardBytes> bytes = OpenRecordFile(path);
  if (!bytes.ok()) return base::Annotate(bytes.status(), path.string());
  files_.push_back({path.filename().string(), *std::move(bytes)});
  const size_t before = samples_.size();
  TUTTI_RETURN_IF_ERROR(base::Annotate(IndexFile(), path.string()));
  if (samples_.size() == before) empty_.push_back(files_.back().name);
  return absl::OkStatus();
}

absl::StatusOr<int64_t> TfRecords::FirstLabel(int64_t classes, std::optional<int> given) const {
  if (given) return *given;
  const int64_t least = names_.begin()->first, most = names_.rbegin()->first;
  if (least <= 0) return 0;
  if (classes == 0 || most == classes) return 1;
  if (most > classes) return 1;  // an error either way, which ShiftLabels words
  return absl::FailedPreconditionError(
      absl::StrCat("labels may count from 0 or from 1: neither 0 nor ", classes,
                   " occurs; pack the set with tutti-data pack --first-label 0 (or 1)"));
}

std::string TfRecords::PlaceOf(const RecordSample& sample) const {
  const auto number = std::count_if(samples_.data(), &sample,
                                    [&](const RecordSample& s) { return s.file == sample.file; });
  return absl::StrCat(files_[sample.file].name, ": record ", number, " at byte ", sample.record);
}

absl::Status TfRecords::CheckLabels(int64_t first) const {
  std::set<int64_t> present;
  for (auto named = names_.lower_bound(first); named != names_.end(); ++named) {
    present.insert(named->first - first);
  }
  const std::optional<int64_t> stray = StrayLabel(present);
  if (!stray) return absl::OkStatus();
  const auto at = std::find_if(samples_.begin(), samples_.end(),
                               [&](const RecordSample& s) { return s.label == *stray + first; });
  return StrayLabelError(PlaceOf(*at), at->label);
}

absl::Status TfRecords::ShiftLabels(std::vector<std::string> classes,
                                    std::optional<int> first_label, bool strict) {
  TUTTI_ASSIGN_OR_RETURN(const int64_t first,
                         FirstLabel(static_cast<int64_t>(classes.size()), first_label));
  if (classes.empty() && strict) TUTTI_RETURN_IF_ERROR(CheckLabels(first));
  constexpr int64_t kMaxClasses = 1 << 20;
  const int64_t most = names_.rbegin()->first - first;
  if (classes.empty() && most < kMaxClasses) {
    for (int64_t i = 0; i <= most; ++i) {
      const auto named = names_.find(i + first);
      const bool has_name = named != names_.end() && !named->second.empty();
      classes.push_back(has_name ? named->second : absl::StrCat("class-", i));
    }
  }
  const auto count = static_cast<int64_t>(classes.size());
  for (RecordSample& sample : samples_) {
    if (sample.label < first || sample.label - first >= count) {
      return absl::InvalidArgumentError(absl::StrCat(PlaceOf(sample), ": label ", sample.label,
                                                     " is out of range: ", count, " classes from ",
                                                     first));
    }
    sample.label -= first;
  }
  classes_ = std::move(classes);
  return absl::OkStatus();
}

// The files of a split in the order of their numbers.
absl::StatusOr<std::vector<fs::path>> ListTfRecords(const fs::path& folder,
                                                    absl::string_view split) {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(folder));
  std::vector<fs::path> files;
  for (const std::string& name : names) {
    TfRecordName parsed;
    if (!ParseTfRecordName(name, parsed) || parsed.split != split) continue;
    if (parsed.number != files.size()) {
      return absl::FailedPreconditionError(absl::StrCat(folder.string(), ": file ", files.size(),
                                                        " of split \"", split, "\" is missing, ",
                                                        "the next is ", name));
    }
    files.push_back(folder / name);
  }
  TfRecordName last;
  if (files.empty()) {
    return absl::NotFoundError(absl::StrCat(folder.string(), ": no TFRecord files of split \"",
                                            split, "\" (", split, "-00000-of-00001, …)"));
  }
  ParseTfRecordName(files.back().filename().string(), last);
  if (last.count != files.size()) {
    return absl::FailedPreconditionError(
        absl::StrCat(folder.string(), ": split \"", split, "\" has ", files.size(), " of ",
                     last.count, " files; the last is ", files.back().filename().string()));
  }
  return files;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Dataset>> OpenTfRecords(const fs::path& folder,
                                                             absl::string_view split,
                                                             std::optional<int> first_label) {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<fs::path> files, ListTfRecords(folder, split));
  std::vector<std::string> classes;
  if (std::error_code error; fs::exists(folder / "classes.txt", error)) {
    TUTTI_ASSIGN_OR_RETURN(classes, ReadClasses(folder / "classes.txt"));
  }
  auto dataset = std::make_shared<TfRecords>();
  for (const fs::path& file : files) TUTTI_RETURN_IF_ERROR(dataset->AddFile(file));
  if (dataset->size() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        folder.string(), ": the TFRecord files of split \"", split, "\" hold no sample"));
  }
  const absl::Status shifted =
      dataset->ShiftLabels(std::move(classes), first_label, /*strict=*/split == "train");
  if (!shifted.ok()) return base::Annotate(shifted, folder.string());
  return dataset;
}

}  // namespace tutti::data
