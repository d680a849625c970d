// OpenDataset: which format a folder is in, told by the names in it.
#include <algorithm>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "base/text/closest.h"
#include "runtime/data/dataset.h"
#include "runtime/data/source/shard_files.h"
#include "runtime/data/source/split_names.h"

namespace tutti::data {
namespace fs = std::filesystem;
namespace {

constexpr absl::string_view kSynthetic = "synthetic";

bool IsSynthetic(absl::string_view source) {
  return source == kSynthetic || absl::StartsWith(source, "synthetic:");
}

// "synthetic:1280x224x1000".
absl::StatusOr<SyntheticOptions> ParseSynthetic(absl::string_view source) {
  SyntheticOptions options;
  if (source == kSynthetic) return options;
  const std::vector<absl::string_view> parts =
      absl::StrSplit(absl::StripPrefix(source, "synthetic:"), 'x');
  const bool right =
      parts.size() >= 2 && parts.size() <= 3 && absl::SimpleAtoi(parts[0], &options.count) &&
      absl::SimpleAtoi(parts[1], &options.side) &&
      (parts.size() == 2 || absl::SimpleAtoi(parts[2], &options.classes)) && options.count > 0 &&
      options.side > 0 && options.side <= 4096 && options.classes > 0 && options.classes <= 1 << 20;
  if (right) return options;
  return absl::InvalidArgumentError(
      absl::StrCat("\"", source, "\": synthetic images are named synthetic:COUNTxSIDE or ",
                   "synthetic:COUNTxSIDExCLASSES"));
}

bool IsShard(absl::string_view name) {
  if (IsShardName(name)) return true;
  absl::ConsumeSuffix(&name, ".zst");
  return absl::ConsumeSuffix(&name, ".tar") && absl::StrContains(name, '-');
}

bool IsArchive(absl::string_view name) {
  for (const absl::string_view ending : {".tar", ".tar.gz", ".tgz", ".tar.zst", ".zip"}) {
    if (absl::EndsWith(name, ending)) return true;
  }
  return false;
}

bool IsTfRecord(absl::string_view name) {
  TfRecordName parsed;
  return ParseTfRecordName(name, parsed);
}

bool IsCifar(absl::string_view name) {
  return name == "data_batch_1.bin" || name == "test_batch.bin" || name == "cifar-10-batches-bin";
}

bool IsIdx(const fs::path& folder, absl::string_view name) {
  std::error_code error;
  return absl::StrContains(name, "-images-idx3-ubyte") ||
         absl::StrContains(name, "-images.idx3-ubyte") ||
         (name == "raw" && fs::exists(folder / "raw" / "train-images-idx3-ubyte", error)) ||
         (name == "MNIST" && fs::is_directory(folder / "MNIST/raw", error));
}

bool IsSplitFolder(const fs::path& folder, const std::string& name) {
  std::error_code error;
  return (name == "train" || name == "test" || name == "val" || name == "validation") &&
         fs::is_directory(folder / name, error);
}

// Returns whether `name` is a split whose images have masks or boxes: it has the folder images, and
// masks or boxes beside it.
bool IsAnnotatedSplit(const fs::path& folder, const std::string& name) {
  std::error_code error;
  return IsSplitFolder(folder, name) && fs::is_directory(folder / name / "images", error) &&
         (fs::is_directory(folder / name / "masks", error) ||
          fs::is_directory(folder / name / "boxes", error));
}

// The splits of a folder, for errors.
absl::Status NoSplitFolder(const fs::path& folder, absl::string_view split) {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(folder));
  std::vector<absl::string_view> folders;
  for (const std::string& name : names) {
    if (std::error_code error; fs::is_directory(folder / name, error)) folders.push_back(name);
  }
  return absl::NotFoundError(absl::StrCat(folder.string(), ": no folder \"", split, "\"; there is ",
                                          absl::StrJoin(folders, ", "),
                                          base::DidYouMean(split, folders)));
}

// As ImageFolder, or with masks or boxes.
absl::StatusOr<std::shared_ptr<const Dataset>> OpenFolderSplit(const fs::path& folder,
                                                               absl::string_view split,
                                                               bool annotated) {
  for (const std::string& name : NamesOfSplit(split)) {
    if (std::error_code error; fs::is_directory(folder / name, error)) {
      return annotated ? OpenAnnotatedFolder(folder, name) : OpenImageFolder(folder, name);
    }
  }
  return NoSplitFolder(folder, split);
}

bool IsAddress(absl::string_view source) { return absl::StrContains(source, "://"); }

// The first of a split's names under which `open` finds something; else the error of the first.
template <typename Open>
absl::StatusOr<std::shared_ptr<const Dataset>> OpenAnyName(absl::string_view split,
                                                           const Open& open) {
  std::optional<absl::Status> first;
  for (const std::string& name : NamesOfSplit(split)) {
    absl::StatusOr<std::shared_ptr<const Dataset>> dataset = open(name);
    if (!absl::IsNotFound(dataset.status())) return dataset;
    if (!first) first = dataset.status();
  }
  return *first;
}

}  // namespace

absl::string_view NameOf(DatasetFormat format) {
  switch (format) {
    case DatasetFormat::kTarShards:
      return "tar shards";
    case DatasetFormat::kTfRecords:
      return "TFRecord";
    case DatasetFormat::kImageFolder:
      return "ImageFolder";
    case DatasetFormat::kAnnotatedFolder:
      return "folder of images with masks or boxes";
    case DatasetFormat::kCifar10:
      return "CIFAR-10 binary";
    case DatasetFormat::kIdx:
      return "IDX";
    case DatasetFormat::kSynthetic:
      return "synthetic";
  }
  return "";
}

absl::StatusOr<DatasetFormat> FormatOf(const std::string& source) {
  if (IsSynthetic(source)) return DatasetFormat::kSynthetic;
  if (IsAddress(source)) return DatasetFormat::kTarShards;
  const fs::path folder = source;
  TUTTI_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(folder));
  const auto any = [&](auto is) { return std::any_of(names.begin(), names.end(), is); };
  if (any(IsShard)) return DatasetFormat::kTarShards;
  if (any(IsTfRecord)) return DatasetFormat::kTfRecords;
  if (any(IsCifar)) return DatasetFormat::kCifar10;
  if (any([&](absl::string_view name) { return IsIdx(folder, name); })) return DatasetFormat::kIdx;
  if (any([&](const std::string& name) { return IsAnnotatedSplit(folder, name); })) {
    return DatasetFormat::kAnnotatedFolder;
  }
  if (any([&](const std::string& name) { return IsSplitFolder(folder, name); })) {
    return DatasetFormat::kImageFolder;
  }
  const auto archive = std::find_if(names.begin(), names.end(), IsArchive);
  const std::string unpack =
      archive == names.end() ? "" : absl::StrCat("; unpack ", *archive, " first");
  return absl::NotFoundError(absl::StrCat(
      folder.string(), names.empty() ? ": is empty" : ": holds no images that are known", unpack,
      "; wanted are tar shards (train-000000.tar, …), TFRecord files (train-00000-of-00001, …), "
      "folders of classes (train/CLASS/IMAGE.jpg), images with masks or boxes "
      "(train/images/IMAGE.jpg and train/masks/IMAGE.png or train/boxes/IMAGE.txt), "
      "CIFAR-10's binary files (data_batch_1.bin) or MNIST's (train-images-idx3-ubyte)"));
}

absl::StatusOr<std::shared_ptr<const Dataset>> OpenDataset(const std::string& source,
                                                           absl::string_view split,
                                                           const OpenOptions& options) {
  TUTTI_ASSIGN_OR_RETURN(const DatasetFormat format, FormatOf(source));
  switch (format) {
    case DatasetFormat::kSynthetic: {
      TUTTI_ASSIGN_OR_RETURN(const SyntheticOptions synthetic, ParseSynthetic(source));
      return OpenSynthetic(synthetic);
    }
    case DatasetFormat::kTfRecords:
      return OpenAnyName(split, [&](absl::string_view name) {
        return OpenTfRecords(source, name, options.first_label);
      });
    case DatasetFormat::kImageFolder:
    case DatasetFormat::kAnnotatedFolder:
      return OpenFolderSplit(source, split, format == DatasetFormat::kAnnotatedFolder);
    case DatasetFormat::kCifar10:
      return OpenCifar10(source, split);
    case DatasetFormat::kIdx:
      return OpenIdx(source, split);
    case DatasetFormat::kTarShards:
      break;
  }
  return OpenAnyName(split, [&](absl::string_view name) {
    return IsAddress(source) ? OpenStreamedShards(source, name, options.stream)
                             : OpenTarShards(source, name);
  });
}

}  // namespace tutti::data
