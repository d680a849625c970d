#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/client/archive/snapshot.h"
#include "platform/client/commands/commands.h"
#include "platform/client/jobs/choose_job.h"
#include "platform/client/jobs/job_parts.h"
#include "platform/client/jobs/summary.h"
#include "platform/client/jobs/whole_job.h"
#include "platform/client/results/download.h"
#include "platform/client/results/results_so_far.h"
#include "platform/client/text/amounts.h"
#include "platform/client/text/columns.h"
#include "platform/client/text/live_text.h"
#include "platform/mlflow/file_store.h"

namespace tutti::client {
namespace {

namespace fs = std::filesystem;

uint64_t Total(const std::vector<FileView>& files) {
  uint64_t bytes = 0;
  for (const FileView& file : files) bytes += file.bytes;
  return bytes;
}

absl::Status Fetch(Context& context, ServiceClient& service, const std::string& id,
                   const std::vector<FileView>& files, const std::string& directory) {
  LiveText text(context.err, context.err_screen);
  const std::string all = Bytes(Total(files));
  const int width = text.screen().width;
  uint64_t before = 0;  // of the files that are done
  uint64_t shown = 0;   // when the line was last drawn, so that it is not drawn for every piece
  return DownloadFiles(service, id, files, directory, [&](const FileView& file, uint64_t bytes) {
    const uint64_t now = before + bytes;
    if (bytes == file.bytes) before += bytes;
    if (now - shown < (1 << 20)) return;
    shown = now;
    text.SetStatus(
        Shorten(absl::StrCat(Bytes(now), " of ", all, "  ", Printable(file.path)), width - 1));
    text.Flush();
  });
}

// Says what is still missing of a job that runs, whose nodes are asked. Returns whether it runs.
absl::StatusOr<bool> AskNodes(Context& context, ServiceClient& service, const std::string& id,
                              int wait) {
  TUTTI_ASSIGN_OR_RETURN(const std::string text, service.Job(id));
  TUTTI_ASSIGN_OR_RETURN(const JobView job, Parse<JobView>(text));
  std::string note;
  {
    LiveText waiting(context.err, context.err_screen);
    if (job.state == "Running" && job.type == "command")
      waiting.SetStatus("asking its nodes for what they have now");
    waiting.Flush();
    note = AskForResultsSoFar(service, job, "", absl::Seconds(wait));
  }
  if (!note.empty()) context.err << note << "\n";
  return !job.ended_already();
}

// One job's files in a folder of their own.
struct Part {
  std::string job, directory;
  std::vector<FileView> files;
};

absl::StatusOr<std::vector<Part>> PartsToBring(Context& context, ServiceClient& service,
                                               const std::string& id,
                                               const JobDownloadOptions& options) {
  std::vector<JobPart> jobs = {{id, ""}};
  if (options.all) {
    TUTTI_ASSIGN_OR_RETURN(const std::string text, WholeJob(service, id));
    TUTTI_ASSIGN_OR_RETURN(const JobView job, Parse<JobView>(text));
    jobs = PartsOf(job);
  }
  std::vector<Part> parts;
  for (const JobPart& job : jobs) {
    TUTTI_ASSIGN_OR_RETURN(const bool runs, AskNodes(context, service, job.job, options.wait));
    TUTTI_ASSIGN_OR_RETURN(const std::string text, service.Files(job.job));
    TUTTI_ASSIGN_OR_RETURN(FilesView view, Parse<FilesView>(text));
    for (FileView& file : view.files) file.changes = runs;
    std::string directory = options.directory.empty() ? "./" + id : options.directory;
    if (!job.folder.empty()) {
      TUTTI_ASSIGN_OR_RETURN(directory, DestinationOf(directory, job.folder));
    }
    parts.push_back({job.job, std::move(directory), std::move(view.files)});
  }
  return parts;
}

// Paths from the folder that all are in.
std::string JsonOf(const std::vector<Part>& parts) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  const fs::path top = parts.front().directory;
  for (const Part& part : parts) {
    const auto folder = fs::path(part.directory).lexically_relative(top);
    for (const FileView& file : part.files) {
      const std::string path = (folder / file.path).lexically_normal().string();
      list.push_back({{"path", path}, {"bytes", file.bytes}});
    }
  }
  const nlohmann::ordered_json document = {{"files", std::move(list)}};
  return document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Marks a folder that the download makes, so that it is never sent as code; not one that was there
// with other files in it.
absl::Status MarkAsDownload(const fs::path& directory, const std::string& id) {
  std::error_code error;
  if (fs::exists(directory, error) && !fs::is_empty(directory, error)) return absl::OkStatus();
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(directory));
  return base::ReplaceFile(directory / kDownloadMark,
                           absl::StrCat("Results of job ", id,
                                        ", brought by tutti job download. Folders with this file ",
                                        "are not sent with a job's code.\n"));
}

absl::Status Bring(Context& context, ServiceClient& service, const std::vector<Part>& parts) {
  const bool brings_any =
      std::any_of(parts.begin(), parts.end(), [](const Part& part) { return !part.files.empty(); });
  if (brings_any) TUTTI_RETURN_IF_ERROR(MarkAsDownload(parts.front().directory, parts.front().job));
  absl::Status first;
  for (const Part& part : parts) {
    if (part.files.empty() && &part != &parts.front()) continue;
    const absl::Status fetched = Fetch(context, service, part.job, part.files, part.directory);
    if (!fetched.ok() && !IsOfOneFile(fetched)) return fetched;
    first.Update(fetched);
    mlflow::AdoptMovedStores(fs::absolute(part.directory) / "outputs");
  }
  return first;
}

void TellOfRemoved(Context& context, ServiceClient& service, const std::string& id) {
  const auto text = service.Job(id);
  const auto job = text.ok() ? Parse<JobView>(*text) : text.status();
  if (!job.ok()) return;
  for (const std::string& line : RemovedLines(*job)) context.err << "removed: " << line << "\n";
}

// Returns how to download the files of the steps or trials of a job that has none of its own; "" if
// it has none of those.
std::string HowToBringMore(ServiceClient& service, const std::string& id) {
  const auto text = service.Job(id);
  const auto job = text.ok() ? Parse<JobView>(*text) : text.status();
  if (!job.ok() || !KeptFilesOf(service, *job).of_children) return "";
  return absl::StrCat("; those of its ", job->type == "sweep" ? "trials" : "steps",
                      " come with --all");
}

}  // namespace

absl::StatusOr<ExitCode> JobDownload(Context& context, const JobDownloadOptions& options) {
  ServiceClient service(context.connect());
  TUTTI_ASSIGN_OR_RETURN(const std::string id, ResolveJob(service, options.job));
  TUTTI_ASSIGN_OR_RETURN(const std::vector<Part> parts,
                         PartsToBring(context, service, id, options));
  TUTTI_RETURN_IF_ERROR(Bring(context, service, parts));
  if (options.format != Format::kTable) {
    TUTTI_RETURN_IF_ERROR(WriteStructured(context.out, JsonOf(parts), options.format));
    return ExitCode::kOk;
  }
  std::vector<FileView> all;
  for (const Part& part : parts) {
    for (const FileView& file : part.files) {
      context.out << PadLeft(Bytes(file.bytes), 8) << "  " << part.directory << "/"
                  << Printable(file.path) << "\n";
    }
    all.insert(all.end(), part.files.begin(), part.files.end());
  }
  TellOfRemoved(context, service, id);
  context.err << all.size() << (all.size() == 1 ? " file, " : " files, ") << Bytes(Total(all))
              << " in " << parts.front().directory
              << (all.empty() && !options.all ? HowToBringMore(service, id) : "") << "\n";
  return ExitCode::kOk;
}

}  // namespace tutti::client
