#include "platform/storage/transfer/kept_list.h"

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/storage/storage_json.h"

namespace tutti::storage {
namespace {

using nlohmann::json;

constexpr size_t kListBlock = 1 << 20;  // that is written at a time

absl::Status NoList(const std::filesystem::path& file) {
  return absl::DataLossError(absl::StrCat(file.string(), " is no whole list of a place"));
}

absl::Status Write(const Survey& survey, const std::filesystem::path& file) {
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd fd,
                         base::Open(file, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600));
  std::string block =
      json{{"base", survey.base}, {"file", survey.is_file}, {"objects", survey.objects.size()}}
          .dump(-1, ' ', false, json::error_handler_t::replace);
  block.push_back('\n');
  for (const StoredObject& object : survey.objects) {
    absl::StrAppend(&block, ToJson(AnswerLine(object)), "\n");
    if (block.size() < kListBlock) continue;
    TUTTI_RETURN_IF_ERROR(base::WriteAll(fd.get(), block, file.string()));
    block.clear();
  }
  return base::WriteAll(fd.get(), block, file.string());
}

}  // namespace

absl::Status KeepList(const Survey& survey, const std::filesystem::path& file) {
  const absl::Status written = Write(survey, file);
  if (!written.ok()) ::unlink(file.c_str());  // half of this one, or a former one
  return written;
}

absl::StatusOr<Survey> ReadKeptList(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in) return absl::NotFoundError(absl::StrCat("there is no ", file.string()));
  std::string line;
  std::getline(in, line);
  const json head = json::parse(line, nullptr, false);
  const auto is = [&](const char* name, json::value_t type) {
    return head.is_object() && head.contains(name) && head[name].type() == type;
  };
  if (!is("base", json::value_t::string) || !is("file", json::value_t::boolean) ||
      !is("objects", json::value_t::number_unsigned)) {
    return NoList(file);
  }
  Survey survey{head["base"].get<std::string>(), head["file"].get<bool>()};
  while (std::getline(in, line)) {
    absl::StatusOr<AnswerLine> read = AnswerLineFromJson(line);
    auto* const object = read.ok() ? std::get_if<StoredObject>(&*read) : nullptr;
    if (object == nullptr) return NoList(file);
    survey.objects.push_back(std::move(*object));
  }
  if (survey.objects.size() != head["objects"].get<uint64_t>()) return NoList(file);
  return survey;
}

}  // namespace tutti::storage
