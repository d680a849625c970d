#include "platform/code/code_texts.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "base/status.h"
#include "base/text/utf8.h"
#include "platform/code/code_archive.h"

namespace tutti::code {
namespace {

bool IsText(absl::string_view text) {
  while (!text.empty()) {
    const size_t length = text.front() == '\0' ? 0 : base::Utf8Length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

class TextReader {
 public:
  TextReader(CodeArchive& archive, const TextLimits& limits) : archive_(archive), limits_(limits) {}

  absl::Status Run() {
    while (true) {
      TUTTI_ASSIGN_OR_RETURN(std::optional<CodeEntry> entry, archive_.Next());
      if (!entry) return absl::OkStatus();
      if (entry->kind != CodeEntry::Kind::kFile) continue;
      if (found_.files.size() == limits_.files) {
        ++found_.left_out;
        continue;
      }
      found_.files.push_back({.path = std::move(entry->name), .bytes = entry->bytes});
      TUTTI_RETURN_IF_ERROR(AddText(found_.files.back()));
    }
  }
  CodeTexts Take() { return std::move(found_); }

 private:
  absl::Status AddText(CodeTexts::File& file) {
    const size_t most = std::min(limits_.text, limits_.texts - texts_);
    if (file.bytes > most) return absl::OkStatus();
    absl::StatusOr<std::string> text = archive_.Text(most);
    if (absl::IsOutOfRange(text.status())) return absl::OkStatus();  // its header says less
    if (!text.ok()) return text.status();
    if (!IsText(*text)) return absl::OkStatus();
    texts_ += text->size();
    file.text = *std::move(text);
    return absl::OkStatus();
  }

  CodeArchive& archive_;
  const TextLimits& limits_;
  CodeTexts found_;
  size_t texts_ = 0;  // bytes
};

}  // namespace

absl::StatusOr<CodeTexts> ReadCodeTexts(const std::filesystem::path& archive,
                                        const TextLimits& limits) {
  TUTTI_ASSIGN_OR_RETURN(const auto opened, CodeArchive::Open(archive, limits.unpacked));
  TextReader reader(*opened, limits);
  const absl::Status status = reader.Run();
  if (!status.ok() && !opened->is_over()) return status;
  CodeTexts found = reader.Take();
  if (!status.ok()) ++found.left_out;
  std::sort(found.files.begin(), found.files.end(),
            [](const auto& a, const auto& b) { return a.path < b.path; });
  return found;
}

}  // namespace tutti::code
