#include "runtime/data/source/raw/idx.h"

#include <algorithm>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "runtime/data/dataset.h"
#include "runtime/data/source/classes.h"
#include "runtime/data/source/raw/raw_images.h"

namespace tutti::data {
namespace fs = std::filesystem;
namespace {

constexpr uint8_t kUnsignedByte = 0x08;
constexpr uint64_t kMaxIdxBytes = uint64_t{1} << 40;

uint32_t BigEndian32(absl::string_view bytes) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return value;
}

// The file of this name under any of the spellings and folders in use.
std::optional<fs::path> FindIdx(const fs::path& folder, absl::string_view split,
                                absl::string_view what, int dimensions) {
  const std::string stem = absl::StrCat(split == "test" ? "t10k" : split, "-", what);
  std::error_code error;
  for (const char* inner : {"", "raw", "MNIST/raw"}) {
    for (const char* dot : {"-", "."}) {
      for (const char* packed : {"", ".gz"}) {
        const fs::path path =
            folder / inner / absl::StrCat(stem, dot, "idx", dimensions, "-ubyte", packed);
        if (fs::is_regular_file(path, error)) return path;
      }
    }
  }
  return std::nullopt;
}

struct OpenIdxFile {
  std::string name;
  ShardBytes bytes;
};

absl::StatusOr<OpenIdxFile> OpenIdxPart(const fs::path& folder, absl::string_view split,
                                        absl::string_view what, int dimensions) {
  const std::optional<fs::path> path = FindIdx(folder, split, what, dimensions);
  if (!path) {
    return absl::NotFoundError(absl::StrCat(folder.string(), ": no ",
                                            split == "test" ? "t10k" : split, "-", what, "-idx",
                                            dimensions, "-ubyte (or .gz)"));
  }
  absl::StatusOr<ShardBytes> bytes = ShardBytes::Open(*path);
  if (!bytes.ok()) return base::Annotate(bytes.status(), path->string());
  return OpenIdxFile{path->filename().string(), *std::move(bytes)};
}

absl::StatusOr<IdxArray> ParsePart(const OpenIdxFile& file, size_t dimensions) {
  absl::StatusOr<IdxArray> array = ParseIdx(file.bytes.view());
  if (!array.ok()) return base::Annotate(array.status(), file.name);
  if (array->sizes.size() == dimensions) return array;
  return absl::InvalidArgumentError(absl::StrCat(file.name, ": an array of ", array->sizes.size(),
                                                 " dimensions, not ", dimensions));
}

constexpr int64_t kDigits = 10;

absl::Status CheckLabels(const OpenIdxFile& file, absl::string_view labels) {
  std::set<int64_t> present;
  for (const char label : labels) present.insert(static_cast<uint8_t>(label));
  const std::optional<int64_t> stray = StrayLabel(present, kDigits);
  if (!stray) return absl::OkStatus();
  return StrayLabelError(
      absl::StrCat(file.name, ": record ", labels.find(static_cast<char>(*stray))), *stray);
}

absl::StatusOr<std::vector<std::string>> IdxClasses(const fs::path& folder, absl::string_view split,
                                                    const OpenIdxFile& file,
                                                    absl::string_view labels) {
  if (std::error_code error; fs::exists(folder / "classes.txt", error)) {
    return ReadClasses(folder / "classes.txt");
  }
  if (split == "train") TUTTI_RETURN_IF_ERROR(CheckLabels(file, labels));
  int64_t most = 0;
  for (const char label : labels) most = std::max<int64_t>(most, static_cast<uint8_t>(label));
  return NumberedClasses(std::max(kDigits, most + 1));
}

}  // namespace

absl::StatusOr<IdxArray> ParseIdx(absl::string_view file) {
  if (file.size() < 4 || file[0] != 0 || file[1] != 0 || file[2] != kUnsignedByte || file[3] < 1 ||
      file[3] > 3) {
    return absl::InvalidArgumentError(
        "not an IDX file of unsigned bytes with one to three dimensions");
  }
  const auto dimensions = static_cast<size_t>(file[3]);
  file.remove_prefix(4);
  if (file.size() < 4 * dimensions) return absl::DataLossError("cut short in its header");
  IdxArray array;
  uint64_t bytes = 1;
  for (size_t i = 0; i < dimensions; ++i) {
    array.sizes.push_back(BigEndian32(file.substr(4 * i)));
    if (array.sizes[i] != 0 && bytes > kMaxIdxBytes / array.sizes[i]) {
      return absl::InvalidArgumentError("an array that is too large");
    }
    bytes *= array.sizes[i];
  }
  array.bytes = file.substr(4 * dimensions);
  if (array.bytes.size() == bytes) return array;
  return absl::DataLossError(
      absl::StrCat(array.bytes.size() < bytes ? "cut short: " : "too long: ", array.bytes.size(),
                   " bytes after the header, which says ", bytes));
}

absl::StatusOr<std::shared_ptr<const Dataset>> OpenIdx(const fs::path& folder,
                                                       absl::string_view split) {
  TUTTI_ASSIGN_OR_RETURN(OpenIdxFile images, OpenIdxPart(folder, split, "images", 3));
  TUTTI_ASSIGN_OR_RETURN(const OpenIdxFile labels, OpenIdxPart(folder, split, "labels", 1));
  TUTTI_ASSIGN_OR_RETURN(const IdxArray pixels, ParsePart(images, 3));
  TUTTI_ASSIGN_OR_RETURN(const IdxArray numbers, ParsePart(labels, 1));
  const size_t count = pixels.sizes[0];
  if (count == 0 || numbers.sizes[0] != count || pixels.sizes[1] == 0 || pixels.sizes[2] == 0 ||
      pixels.sizes[1] > 4096 || pixels.sizes[2] > 4096) {
    return absl::InvalidArgumentError(absl::StrCat(images.name, ": ", count, " images of ",
                                                   pixels.sizes[2], "x", pixels.sizes[1], " and ",
                                                   numbers.sizes[0], " labels"));
  }
  const RawImages::Shape shape{static_cast<int>(pixels.sizes[2]), static_cast<int>(pixels.sizes[1]),
                               1, /*planar=*/false};
  auto dataset = std::make_shared<RawImages>(shape);
  int32_t most = 0;
  const uint32_t file = dataset->AddFile(images.name, std::move(images.bytes));
  for (size_t i = 0; i < count; ++i) {
    const int32_t label = static_cast<uint8_t>(numbers.bytes[i]);
    dataset->Add({pixels.bytes.data() + i * shape.bytes(), label, file, static_cast<uint32_t>(i)});
    most = std::max(most, label);
  }
  TUTTI_ASSIGN_OR_RETURN(std::vector<std::string> classes,
                         IdxClasses(folder, split, labels, numbers.bytes));
  if (static_cast<size_t>(most) >= classes.size()) {
    return absl::InvalidArgumentError(absl::StrCat(labels.name, ": label ", most,
                                                   " is out of range: classes.txt names ",
                                                   classes.size(), " classes"));
  }
  dataset->SetClasses(std::move(classes));
  return dataset;
}

}  // namespace tutti::data
