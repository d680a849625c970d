// OpenImageFolder: a folder of images for each class.
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "runtime/data/dataset.h"
#include "runtime/data/decode/image_codec.h"
#include "runtime/data/source/image_files.h"
#include "runtime/data/source/split_names.h"

namespace tutti::data {
namespace fs = std::filesystem;
namespace {

class ImageFolder final : public Dataset {
 public:
  explicit ImageFolder(fs::path root) : root_(std::move(root)) {}

  int64_t size() const override { return static_cast<int64_t>(images_.size()); }
  const std::vector<std::string>& classes() const override { return classes_; }
  int64_t label(int64_t index) const override { return at(index).label; }
  std::string Describe(int64_t index) const override {
    const Image& image = at(index);
    return absl::StrCat(absl::Utf8SafeCEscape(classes_[static_cast<size_t>(image.label)]), "/",
                        absl::Utf8SafeCEscape(image.name));
  }
  absl::StatusOr<absl::string_view> Encoded(int64_t index, std::string& scratch) const override;
  std::vector<std::string> Remarks() const override;

  // A file beside the folders of classes.
  void AddStray(const std::string& name) { stray_.push_back(name); }
  // All images below the class's folder, in the order of their names.
  absl::Status AddClass(const std::string& name);

 private:
  struct Image {
    std::string name;  // below the class's folder
    int64_t label;
  };
  const Image& at(int64_t index) const { return images_.at(static_cast<size_t>(index)); }

  const fs::path root_;
  std::vector<std::string> classes_;
  std::vector<Image> images_;
  LeftOutFiles left_out_;
  std::vector<std::string> stray_;
};

absl::StatusOr<absl::string_view> ImageFolder::Encoded(int64_t index, std::string& scratch) const {
  const Image& image = at(index);
  return ReadImageFile(root_ / classes_[static_cast<size_t>(image.label)] / image.name, scratch);
}

std::vector<std::string> ImageFolder::Remarks() const {
  std::vector<std::string> remarks = left_out_.Remarks();
  for (std::string& remark : FilesBesideClasses(stray_)) remarks.push_back(std::move(remark));
  return remarks;
}

absl::Status ImageFolder::AddClass(const std::string& name) {
  const auto label = static_cast<int64_t>(classes_.size());
  const fs::path folder = root_ / name;
  TUTTI_ASSIGN_OR_RETURN(std::vector<std::string> names, ImagesBelow(root_, name, left_out_));
  if (names.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(folder.string(), ": holds no image (", ImageEndings(), ") of its class"));
  }
  for (std::string& image : names) images_.push_back({std::move(image), label});
  classes_.push_back(name);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Dataset>> OpenImageFolder(const fs::path& folder,
                                                               absl::string_view split) {
  const fs::path root = folder / std::string(split);
  TUTTI_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(root));
  auto dataset = std::make_shared<ImageFolder>(root);
  for (const std::string& name : names) {
    if (std::error_code error; fs::is_directory(root / name, error)) {
      TUTTI_RETURN_IF_ERROR(dataset->AddClass(name));
    } else {
      dataset->AddStray(name);
    }
  }
  if (dataset->size() > 0) return dataset;
  return absl::InvalidArgumentError(absl::StrCat(root.string(), ": holds no folder of a class (",
                                                 root.filename().string(), "/CLASS/IMAGE.jpg)"));
}

}  // namespace tutti::data
