#include "runtime/train/setup/image_folder_fake.h"

#include <stdexcept>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "runtime/data/dataset_fake.h"
#include "runtime/data/source/tar/tar_fake.h"

namespace tutti::train {
namespace {

void WriteOrThrow(const std::filesystem::path& path, const std::string& content) {
  const auto status = base::WriteFileAtomic(path, content);
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

std::string Shard(int count, int classes, int side) {
  const auto images = data::MakeFakeDataset(count, classes, side, side);
  data::TarBuilder tar;
  std::string scratch;
  for (int64_t i = 0; i < images->size(); ++i) {
    tar.Add(absl::StrCat("image-", i, ".jpg"), images->Encoded(i, scratch).value());
    tar.Add(absl::StrCat("image-", i, ".cls"), absl::StrCat(images->label(i)));
  }
  return tar.Finish();
}

}  // namespace

void WriteImageFolder(const std::filesystem::path& folder, int train, int test, int classes,
                      int side) {
  std::filesystem::create_directories(folder);
  WriteOrThrow(folder / "train-000000.tar", Shard(train, classes, side));
  WriteOrThrow(folder / "test-000000.tar", Shard(test, classes, side));
  std::string names;
  for (int i = 0; i < classes; ++i) absl::StrAppend(&names, "class-", i, "\n");
  WriteOrThrow(folder / "classes.txt", names);
}

}  // namespace tutti::train
