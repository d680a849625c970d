// OpenAnnotatedFolder: images with a mask or boxes each, as files beside them.
#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "runtime/data/annotation/boxes.h"
#include "runtime/data/dataset.h"
#include "runtime/data/decode/image_codec.h"
#include "runtime/data/source/classes.h"
#include "runtime/data/source/image_files.h"

namespace tutti::data {
namespace fs = std::filesystem;
namespace {

constexpr uint64_t kMaxBoxesBytes = uint64_t{1} << 20;  // of an image

class AnnotatedFolder final : public Dataset {
 public:
  AnnotatedFolder(fs::path root, Annotations annotations, std::vector<std::string> classes)
      : root_(std::move(root)), kind_(annotations), classes_(std::move(classes)) {}

  int64_t size() const override { return static_cast<int64_t>(images_.size()); }
  const std::vector<std::string>& classes() const override { return classes_; }
  int64_t label(int64_t) const override { return 0; }
  Annotations annotations() const override { return kind_; }
  int64_t most_boxes() const override { return most_boxes_; }
  std::string Describe(int64_t index) const override {
    return absl::StrCat("images/", absl::Utf8SafeCEscape(at(index).name));
  }
  absl::StatusOr<absl::string_view> Encoded(int64_t index, std::string& scratch) const override {
    return ReadImageFile(root_ / "images" / at(index).name, scratch);
  }
  absl::StatusOr<absl::string_view> Annotation(int64_t index, std::string& scratch) const override {
    const Image& image = at(index);
    if (kind_ == Annotations::kBoxes) return absl::string_view(image.annotation);
    return ReadImageFile(root_ / "masks" / image.annotation, scratch);
  }

  std::vector<std::string> Remarks() const override { return remarks_; }

  absl::Status Add(const std::string& name);
  void SetRemarks(std::vector<std::string> remarks) { remarks_ = std::move(remarks); }

 private:
  struct Image {
    std::string name;        // below images/
    std::string annotation;  // its mask's name below masks/, or the text of its boxes
  };
  const Image& at(int64_t index) const { return images_.at(static_cast<size_t>(index)); }
  absl::Status AddMask(const std::string& name);
  absl::Status AddBoxes(const std::string& name);

  const fs::path root_;
  const Annotations kind_;
  const std::vector<std::string> classes_;
  std::vector<Image> images_;
  std::vector<std::string> remarks_;
  int64_t most_boxes_ = 1;
};

absl::Status AnnotatedFolder::Add(const std::string& name) {
  return kind_ == Annotations::kMasks ? AddMask(name) : AddBoxes(name);
}

absl::Status AnnotatedFolder::AddMask(const std::string& name) {
  for (const char* extension : {".png", ".pgm"}) {
    const fs::path mask = fs::path(name).replace_extension(extension);
    if (std::error_code error; fs::is_regular_file(root_ / "masks" / mask, error)) {
      images_.push_back({name, mask.string()});
      return absl::OkStatus();
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat((root_ / "masks" / fs::path(name).replace_extension(".png")).string(),
                   ": missing; it is the mask of images/", absl::Utf8SafeCEscape(name)));
}

absl::Status AnnotatedFolder::AddBoxes(const std::string& name) {
  const fs::path path = root_ / "boxes" / fs::path(name).replace_extension(".txt");
  absl::StatusOr<std::string> text = base::ReadFile(path, kMaxBoxesBytes);
  if (absl::IsNotFound(text.status())) {
    return absl::InvalidArgumentError(
        absl::StrCat(path.string(), ": missing; it has the boxes of images/",
                     absl::Utf8SafeCEscape(name), ", and is empty where there are none"));
  }
  TUTTI_RETURN_IF_ERROR(text.status());
  const auto boxes = ParseBoxes(*text, static_cast<int64_t>(classes_.size()));
  if (!boxes.ok()) return base::Annotate(boxes.status(), path.string());
  most_boxes_ = std::max(most_boxes_, static_cast<int64_t>(boxes->size()));
  images_.push_back({name, *std::move(text)});
  return absl::OkStatus();
}

absl::StatusOr<Annotations> KindIn(const fs::path& root) {
  std::error_code error;
  const bool masks = fs::is_directory(root / "masks", error);
  const bool boxes = fs::is_directory(root / "boxes", error);
  if (masks != boxes) return masks ? Annotations::kMasks : Annotations::kBoxes;
  return absl::InvalidArgumentError(
      absl::StrCat(root.string(), masks ? ": holds masks/ and boxes/; a set has one of them"
                                        : ": holds neither masks/ nor boxes/ beside images/"));
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Dataset>> OpenAnnotatedFolder(const fs::path& folder,
                                                                   absl::string_view split) {
  const fs::path root = folder / std::string(split);
  LeftOutFiles left_out;
  TUTTI_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                         ImagesBelow(root, "images", left_out));
  TUTTI_ASSIGN_OR_RETURN(const Annotations kind, KindIn(root));
  TUTTI_ASSIGN_OR_RETURN(std::vector<std::string> classes, ReadClasses(folder / "classes.txt"));
  auto dataset = std::make_shared<AnnotatedFolder>(root, kind, std::move(classes));
  for (const std::string& name : names) TUTTI_RETURN_IF_ERROR(dataset->Add(name));
  dataset->SetRemarks(left_out.Remarks());
  if (dataset->size() > 0) return dataset;
  return absl::InvalidArgumentError(
      absl::StrCat((root / "images").string(), ": holds no image (", ImageEndings(), ")"));
}

}  // namespace tutti::data
