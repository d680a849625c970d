#include "runtime/data/source/raw/cifar10.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/status.h"
#include "runtime/data/dataset.h"
#include "runtime/data/source/raw/raw_images.h"

namespace tutti::data {
namespace fs = std::filesystem;
namespace {

std::vector<std::string> CifarFiles(const fs::path& folder, absl::string_view split) {
  if (split == "test") return {"test_batch.bin"};
  std::vector<std::string> files;
  std::error_code error;
  do {
    files.push_back(absl::StrCat("data_batch_", files.size() + 1, ".bin"));
  } while (fs::exists(folder / absl::StrCat("data_batch_", files.size() + 1, ".bin"), error));
  return files;
}

// The names of the classes, one a line; digits where the file is missing.
absl::StatusOr<std::vector<std::string>> CifarClasses(const fs::path& folder) {
  const absl::StatusOr<std::string> text = base::ReadFile(folder / "batches.meta.txt", 1 << 16);
  if (absl::IsNotFound(text.status())) return NumberedClasses(kCifarClasses);
  TUTTI_RETURN_IF_ERROR(text.status());
  std::vector<std::string> names;
  for (const absl::string_view line : absl::StrSplit(*text, '\n')) {
    const absl::string_view name = absl::StripAsciiWhitespace(line);
    if (!name.empty()) names.emplace_back(name);
  }
  if (names.size() == kCifarClasses) return names;
  return absl::InvalidArgumentError(absl::StrCat((folder / "batches.meta.txt").string(), ": names ",
                                                 names.size(), " classes, not ", kCifarClasses));
}

absl::Status AddCifarFile(const fs::path& path, RawImages& images) {
  TUTTI_ASSIGN_OR_RETURN(ShardBytes bytes, ShardBytes::Open(path));
  const uint32_t file = images.AddFile(path.filename().string(), std::move(bytes));
  uint32_t number = 0;
  return ForEachCifarRecord(images.file(file), [&](int32_t label, const char* pixels) {
    images.Add({pixels, label, file, number++});
  });
}

}  // namespace

absl::Status ForEachCifarRecord(
    absl::string_view file, const std::function<void(int32_t label, const char* pixels)>& take) {
  constexpr size_t kRecord = 1 + kCifarPixels;
  if (file.empty() || file.size() % kRecord != 0) {
    return absl::DataLossError(absl::StrCat("cut short: ", file.size(),
                                            " bytes are no multiple of ", kRecord,
                                            ", the size of a CIFAR-10 record"));
  }
  for (size_t at = 0; at < file.size(); at += kRecord) {
    const int32_t label = static_cast<uint8_t>(file[at]);
    if (label >= kCifarClasses) {
      return absl::InvalidArgumentError(absl::StrCat("record ", at / kRecord, ": label ", label,
                                                     " is out of range: ", "CIFAR-10 has ",
                                                     kCifarClasses, " classes"));
    }
    take(label, file.data() + at + 1);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const Dataset>> OpenCifar10(const fs::path& folder,
                                                           absl::string_view split) {
  std::error_code error;
  const fs::path inner = folder / "cifar-10-batches-bin";
  const fs::path at = fs::is_directory(inner, error) ? inner : folder;
  auto images = std::make_shared<RawImages>(RawImages::Shape{32, 32, 3, /*planar=*/true});
  for (const std::string& name : CifarFiles(at, split)) {
    const absl::Status added = AddCifarFile(at / name, *images);
    if (!added.ok()) return base::Annotate(added, (at / name).string());
  }
  TUTTI_ASSIGN_OR_RETURN(std::vector<std::string> classes, CifarClasses(at));
  images->SetClasses(std::move(classes));
  return images;
}

}  // namespace tutti::data
