// tutti-data: packs sets of images into shards, checks them, describes them.
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status.h"
#include "data_flags.h"
#include "runtime/data/source/shard_index.h"
#include "runtime/data/source/tar/index_shards.h"
#include "survey_report.h"

namespace tutti {
namespace {

enum ExitCode { kDone = 0, kFailed = 1, kWrongInput = 2 };

int ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kDataLoss:
      return kWrongInput;
    default:
      return kFailed;
  }
}

struct OpenedSplit {
  std::string name;
  std::shared_ptr<const data::Dataset> dataset;
};

void Tell(const DataCommand& command, const std::string& split,
          const std::vector<std::string>& remarks) {
  for (const std::string& remark : remarks) {
    std::fprintf(stderr, "tutti-data: %s, split %s: %s\n", command.source.c_str(), split.c_str(),
                 remark.c_str());
  }
}

// Opens the splits that were asked for, else train and test as far as they exist.
absl::StatusOr<std::vector<OpenedSplit>> OpenSplits(const DataCommand& command) {
  std::vector<OpenedSplit> splits;
  const std::vector<std::string> names = command.split.empty()
                                             ? std::vector<std::string>{"train", "test"}
                                             : std::vector<std::string>{command.split};
  for (const std::string& name : names) {
    auto dataset = data::OpenDataset(command.source, name, command.open);
    if (absl::IsNotFound(dataset.status()) && command.split.empty()) {
      if (name == "test" && !splits.empty()) continue;
      if (name == "train" && data::OpenDataset(command.source, "test", command.open).ok()) continue;
    }
    if (!dataset.ok()) return dataset.status();
    Tell(command, name, (*dataset)->Remarks());
    splits.push_back({name, *std::move(dataset)});
  }
  return splits;
}

absl::StatusOr<int> PackAll(const DataCommand& command, const std::vector<OpenedSplit>& splits) {
  for (const OpenedSplit& split : splits) {
    TUTTI_ASSIGN_OR_RETURN(const data::Packed packed,
                           data::Pack(*split.dataset, command.output, split.name, command.pack));
    for (const std::string& name : packed.left_out) {
      std::fprintf(stderr, "tutti-data: left out: %s\n", name.c_str());
    }
    std::printf("%s: %lld images in %lld shards, %llu bytes; %lld made smaller, %zu left out\n",
                split.name.c_str(), static_cast<long long>(packed.samples),
                static_cast<long long>(packed.shards),
                static_cast<unsigned long long>(packed.bytes),
                static_cast<long long>(packed.resized), packed.left_out.size());
  }
  return kDone;
}

absl::StatusOr<int> LookAtAll(const DataCommand& command, const std::vector<OpenedSplit>& splits) {
  TUTTI_ASSIGN_OR_RETURN(const data::DatasetFormat format, data::FormatOf(command.source));
  const bool decode = command.what == DataCommand::What::kVerify || command.pixels;
  nlohmann::json documents = nlohmann::json::array();
  bool readable = true;
  for (const OpenedSplit& split : splits) {
    const data::Survey survey = data::SurveyOf(*split.dataset, {decode, command.threads});
    readable = readable && survey.unreadable.empty();
    if (command.json) {
      documents.push_back(JsonOf(split.name, format, *split.dataset, survey));
    } else {
      const std::string title =
          absl::StrCat(command.source, ", split ", split.name, ": ", data::NameOf(format));
      std::fputs(TableOf(title, *split.dataset, survey).c_str(), stdout);
    }
  }
  if (command.json) std::printf("%s\n", documents.dump(2).c_str());
  if (!command.json && decode && readable) std::puts("every image is readable");
  return readable ? kDone : kWrongInput;
}

// Each split under the name that its shards have.
absl::StatusOr<int> IndexAll(const DataCommand& command) {
  const std::vector<std::string> names =
      command.split.empty() ? std::vector<std::string>{"train", "test", "val", "validation"}
                            : std::vector<std::string>{command.split};
  absl::Status first;
  int written = 0;
  for (const std::string& name : names) {
    const auto index = data::IndexShards(command.source, name);
    if (absl::IsNotFound(index.status())) {
      if (first.ok()) first = index.status();
      continue;
    }
    TUTTI_RETURN_IF_ERROR(index.status());
    Tell(command, name, data::RemarksOf(*index));
    TUTTI_RETURN_IF_ERROR(data::WriteShardIndex(command.source, name, *index));
    std::printf("%s/%s: %zu shards\n", command.source.c_str(), data::ShardIndexName(name).c_str(),
                index->shards.size());
    ++written;
  }
  if (written == 0) return first;
  return kDone;
}

absl::StatusOr<int> Obey(const DataCommand& command) {
  if (command.what == DataCommand::What::kIndex) return IndexAll(command);
  TUTTI_ASSIGN_OR_RETURN(const std::vector<OpenedSplit> splits, OpenSplits(command));
  if (command.what == DataCommand::What::kPack) return PackAll(command, splits);
  return LookAtAll(command, splits);
}

int Report(const absl::Status& status) {
  std::fprintf(stderr, "tutti-data: %s\n", std::string(status.message()).c_str());
  return ExitCodeOf(status);
}

int Main(int argc, char** argv) {
  base::StartLogging();
  const auto asked = ReadCommandLine(argc, argv);
  if (!asked.ok()) return Report(asked.status());
  if (const auto* show = std::get_if<ShowAndExit>(&*asked)) {
    std::fputs(show->text.c_str(), stdout);
    return kDone;
  }
  const absl::StatusOr<int> code = Obey(std::get<DataCommand>(*asked));
  return code.ok() ? *code : Report(code.status());
}

}  // namespace
}  // namespace tutti

int main(int argc, char** argv) { return tutti::Main(argc, argv); }
