#include "platform/client/submit/submit.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/faults.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"
#include "base/text/utf8.h"
#include "platform/client/archive/git_code.h"
#include "platform/client/archive/snapshot.h"
#include "platform/client/connection/views.h"
#include "platform/client/script/script_file.h"
#include "platform/client/storage/storage_session.h"
#include "platform/client/storage/store_code.h"
#include "platform/client/submit/create_job.h"
#include "platform/client/submit/job_text.h"
#include "platform/client/submit/user_job.h"
#include "platform/client/text/amounts.h"
#include "platform/client/text/columns.h"
#include "platform/client/text/exit_code.h"
#include "spec/command/code.h"

namespace tutti::client {
namespace fs = std::filesystem;
namespace {

constexpr absl::Duration kLongestFetch = absl::Minutes(10);
constexpr absl::Duration kPatienceWithGit = absl::Seconds(10);  // of who gets faults in any case

// Puts the place of the code before each line of the message.
absl::Status AtCode(const absl::Status& status, const spec::JobSpec& job) {
  if (status.ok()) return status;
  const std::string place = absl::StrCat(job.file_name, ":", job.code_line, ": ");
  return absl::Status(
      status.code(),
      absl::StrCat(place, absl::StrReplaceAll(status.message(), {{"\n", "\n" + place}})));
}

// What a store refuses is, like what git refuses, a fault of the address or of what it names.
absl::Status AsFaultOfStore(const absl::Status& status) {
  const bool is_refusal = absl::IsNotFound(status) || absl::IsPermissionDenied(status);
  return is_refusal ? absl::InvalidArgumentError(status.message()) : status;
}

// Puts the address that the user wrote in the place of the folder into which it was fetched.
std::string WithAddress(absl::string_view message, const std::string& fetched,
                        const std::string& address) {
  return absl::StrReplaceAll(message, {{fetched, address}});
}

// Packed is a code folder that was packed.
struct Packed {
  Snapshot snapshot;
  fs::path archive;
};

// CodePacker packs the code of a job and of all below it; each folder once, whichever jobs take
// it.
class CodePacker {
 public:
  enum class Purpose { kSend, kFaults };  // kFaults: of a job that is refused in any case

  // `warn` is told of what may not be meant to be sent; of a home before it is packed, which can
  // take long.
  using Warn = std::function<void(const std::string& warning)>;

  // `home` has the names of stores, whose credentials are asked of the service. `connect`: nullptr
  // where there is none, and no store is looked into.
  CodePacker(Purpose purpose, const Connect* connect, fs::path home, std::ostream& remarks,
             Warn warn)
      : purpose_(purpose),
        connect_(connect),
        home_(std::move(home)),
        remarks_(remarks),
        warn_(std::move(warn)) {}

  // InvalidArgument: what is wrong with any of the codes.
  absl::Status PackTree(const spec::JobSpec& job) {
    base::Faults faults;
    TUTTI_RETURN_IF_ERROR(PackTree(job, faults));
    return faults.status();
  }

  // The map is by AllCode of the jobs.
  const std::map<std::string, Packed>& packed() const { return packed_; }

 private:
  absl::Status PackTree(const spec::JobSpec& job, base::Faults& faults) {
    const absl::Status packed = PackOne(job);
    if (!packed.ok() && !absl::IsInvalidArgument(packed)) return packed;
    faults.Add(packed);
    for (const spec::Step& step : job.steps) TUTTI_RETURN_IF_ERROR(PackTree(step.job, faults));
    return absl::OkStatus();
  }

  absl::Status PackOne(spec::JobSpec job) {
    const std::string named = job.AllCode();
    if (named.empty() || !seen_.insert(named).second) return absl::OkStatus();
    const fs::path folder = temporary_.path() / absl::StrCat(seen_.size());
    TUTTI_RETURN_IF_ERROR(base::MakeDirectories(folder));
    TUTTI_RETURN_IF_ERROR(FetchCode(job, folder));
    if (job.AllCode().empty()) return absl::OkStatus();  // it lies in a store, and stays there
    const std::vector<fs::path> includes(job.additional_includes.begin(),
                                         job.additional_includes.end());
    if (purpose_ == Purpose::kFaults) {
      const absl::Status checked =
          CheckCode(job.code, includes);  // CheckPaths tells what is missing
      return absl::IsNotFound(checked) ? absl::OkStatus() : AtCode(checked, job);
    }
    WarnOfHome(job);
    const fs::path archive = folder / "code.tar.zst";
    const auto snapshot = PackCode(job.code, archive, includes);
    if (!snapshot.ok()) return AtCode(AsInput(snapshot.status()), job);
    WarnOfSecrets(*snapshot);
    packed_[named] = {*snapshot, archive};
    return absl::OkStatus();
  }

  // An address becomes a folder or a file below `folder`, which is checked as any other code is, or
  // "" where it is not fetched.
  absl::Status FetchCode(spec::JobSpec& job, const fs::path& folder) {
    if (!spec::IsRemoteCode(job.code)) return absl::OkStatus();
    const std::string address = job.code;
    const auto fetched = spec::IsGitCode(address) ? FetchFromGit(address, folder / "repository")
                                                  : FetchFromStore(job, folder / "code");
    if (!fetched.ok()) return AtCode(fetched.status(), job);
    job.code = fetched->string();
    if (job.code.empty()) return absl::OkStatus();
    std::vector<std::string> warnings;
    const absl::Status status = AsInput(spec::CheckPaths(job, warnings));
    for (const std::string& warning : warnings) warn_(WithAddress(warning, job.code, address));
    return absl::Status(status.code(), WithAddress(status.message(), job.code, address));
  }

  absl::StatusOr<fs::path> FetchFromGit(const std::string& address, const fs::path& folder) {
    const auto git = spec::ParseGitCode(address);
    if (!git.ok()) return fs::path();  // which the file's reader tells
    remarks_ << "code: fetching " << address << std::endl;
    const auto deadline =
        base::Deadline::After(purpose_ == Purpose::kSend ? kLongestFetch : kPatienceWithGit);
    return FetchGitCode(*git, folder, deadline);
  }

  // Returns "" where the store is not looked into: there is no service, or the job is refused in
  // any case.
  absl::StatusOr<fs::path> FetchFromStore(const spec::JobSpec& job, const fs::path& folder) {
    if (!spec::CheckCodeInStore(job.code).ok()) return fs::path();  // which the file's reader tells
    StorageSession session(connect_ != nullptr ? *connect_ : Connect(), home_);
    const auto side = session.Open(job.code);
    if (!side.ok()) return base::Annotate(AsFaultOfStore(side.status()), "code");
    if (purpose_ == Purpose::kFaults) return fs::path();
    if (connect_ == nullptr) {
      warn_(absl::StrCat(job.file_name, ":", job.code_line, ": code: ", job.code,
                         " was not looked at: that needs the service"));
      return fs::path();
    }
    remarks_ << "code: fetching " << job.code << std::endl;
    const auto code = FetchStoreCode(**side, folder);
    if (code.ok()) return code;
    return base::Annotate(AsFaultOfStore(code.status()), "code");
  }

  void WarnOfHome(const spec::JobSpec& job) {
    if (job.code.empty() || !IsUnfilteredHome(job.code)) return;
    warn_(absl::StrCat(
        job.file_name, ":", job.code_line, ": code: all of ", job.code,
        ", a home folder, is sent with the job: put the code into a folder of its own, or name in ",
        (fs::path(job.code) / ".amlignore").string(), " what stays here"));
  }

  void WarnOfSecrets(const Snapshot& snapshot) {
    for (const std::string& file : snapshot.secret_files) {
      warn_(absl::StrCat(
          file,
          " is sent with the code, to all who may see the job: if it holds secrets, name it in "
          ".amlignore"));
    }
  }

  const Purpose purpose_;
  const Connect* const connect_;
  const fs::path home_;
  std::ostream& remarks_;
  const Warn warn_;
  const base::TemporaryDirectory temporary_{"tutti-code"};
  std::set<std::string> seen_;
  std::map<std::string, Packed> packed_;
};

// Describes code that was packed.
std::string Size(const Snapshot& snapshot) {
  return absl::StrCat("code: ", WithCommas(snapshot.files),
                      snapshot.files == 1 ? " file, " : " files, ", Bytes(snapshot.content_bytes));
}

std::string DescribeExcluded(const ExcludedPath& one) {
  const std::string name = base::BoundedUtf8(Printable(one.name));
  if (one.has_more && one.files == 0) return name;  // there was too much to count
  const bool is_folder = absl::EndsWith(one.name, "/");
  const std::string files =
      absl::StrCat(WithCommas(one.files), one.files == 1 ? " file" : " files");
  std::string holds = Bytes(one.bytes);
  if (is_folder) holds = one.files == 0 ? "empty" : absl::StrCat(files, ", ", holds);
  if (one.has_more) holds = absl::StrCat("more than ", files);
  return absl::StrCat(name, " (", holds, ")");
}

constexpr size_t kMostLeftOut = 5;  // that are told one by one

// Describes in one line which code is left out, and by which files; "" if none is.
std::string LeftOutLine(const std::vector<ExcludedPath>& left_out) {
  const size_t told = std::min(left_out.size(), kMostLeftOut);
  std::map<std::string, std::vector<std::string>> by_file;
  for (size_t i = 0; i < told; ++i)
    by_file[left_out[i].by].push_back(DescribeExcluded(left_out[i]));
  const std::string line = absl::StrJoin(by_file, "; ", [](std::string* out, const auto& each) {
    absl::StrAppend(out, "by ", base::BoundedUtf8(Printable(each.first)), ": ",
                    absl::StrJoin(each.second, ", "));
  });
  if (line.empty()) return "";
  const size_t more = left_out.size() - told;
  return absl::StrCat("left out ", line, more == 0 ? "" : absl::StrCat(" and ", more, " more"),
                      "\n");
}

// Sends what the service does not have; the snapshots, by AllCode of the jobs.
absl::StatusOr<std::map<std::string, std::string>> SendCode(
    ServiceClient& service, const std::map<std::string, Packed>& packed, std::ostream& remarks) {
  std::map<std::string, std::string> sent;
  for (const auto& [code, file] : packed) {
    TUTTI_ASSIGN_OR_RETURN(const bool known, service.HasSnapshot(file.snapshot.hash));
    const std::string what =
        known ? ", unchanged since an earlier job\n"
              : absl::StrCat("; sending ", Bytes(file.snapshot.archive_bytes), "\n");
    remarks << Size(file.snapshot) << what << LeftOutLine(file.snapshot.left_out) << std::flush;
    if (!known) TUTTI_RETURN_IF_ERROR(service.PutSnapshot(file.snapshot.hash, file.archive));
    sent[code] = file.snapshot.hash;
  }
  return sent;
}

constexpr size_t kNonceBytes = 16;
constexpr absl::Duration kPatienceWithOrigin = absl::Seconds(3);

// `snapshots` of its code and that of the jobs below it: none where it is only checked.
SubmissionView SubmissionOf(const UserJob& written,
                            const std::map<std::string, std::string>& snapshots = {}) {
  SubmissionView submission{.file = written.path,
                            .text = written.text,
                            .base_directory = written.directory.string(),
                            .origin = written.origin};
  const spec::JobSpec& job = written.file.job.spec;
  if (job.kind != spec::JobKind::kCommand) {
    submission.snapshots = snapshots;
  } else if (const auto sent = snapshots.find(job.AllCode()); sent != snapshots.end()) {
    submission.snapshot = sent->second;
  }
  return submission;
}

// Says which commit the code is; of code that is an address the file says where it is from.
void AddGitOrigin(UserJob& written) {
  const spec::JobSpec& job = written.file.job.spec;
  if (spec::IsRemoteCode(job.code)) return;
  std::error_code error;
  const fs::path code = job.code.empty() ? written.directory : fs::path(job.code);
  const fs::path folder = fs::is_directory(code, error) ? code : code.parent_path();
  written.origin.merge(GitOrigin(folder, base::Deadline::After(kPatienceWithOrigin)));
}

// Returns the faults that are known without the service: of the file, and of the paths in it.
absl::Status FaultsHere(UserJob& written) {
  spec::ReadResult& job = written.file.job;
  base::Faults faults;
  faults.Add(written.file.faults);
  faults.Add(spec::CheckPaths(job.spec, job.warnings));
  return spec::InFileOrder(faults.status(), job.spec);
}

// `known`, and what is wrong with the code. `code` has the purpose that PurposeAfter says.
absl::Status WithCodesFaults(const absl::Status& known, const UserJob& written, CodePacker& code) {
  const absl::Status packed = code.PackTree(written.file.job.spec);
  if (known.ok() || !absl::IsInvalidArgument(packed)) return known.ok() ? packed : known;
  base::Faults faults;
  faults.Add(known);
  faults.Add(packed);
  return spec::InFileOrder(faults.status(), written.file.job.spec);
}

CodePacker::Purpose PurposeAfter(const absl::Status& known) {
  return known.ok() ? CodePacker::Purpose::kSend : CodePacker::Purpose::kFaults;
}

// Adds what the service finds beside what is known here: addresses that it cannot fetch, too few
// nodes. It is one list: a user sees no difference. If the file is no job at all, there is nothing
// to find.
absl::Status WithServicesFaults(const absl::Status& known, const UserJob& written,
                                ServiceClient& service, const std::string& body) {
  if (!written.file.is_job || !absl::IsInvalidArgument(known)) return known;
  const absl::Status more = service.CheckJob(body).status();
  if (!absl::IsInvalidArgument(more)) return known;  // none, or it cannot be asked
  base::Faults faults;
  faults.Add(known);
  faults.Add(more);
  return spec::InFileOrder(faults.status(), written.file.job.spec);
}

// Says of the job's warnings those that were not told yet.
absl::StatusOr<std::string> Create(ServiceClient& service, const Connect& connect,
                                   const SubmissionView& submission,
                                   const std::vector<std::string>& told, std::ostream& remarks) {
  const std::string body = CreateJobBody(submission, base::RandomHex(kNonceBytes));
  TUTTI_ASSIGN_OR_RETURN(std::string created, CreateJobOnce(service, connect, body, remarks));
  TUTTI_ASSIGN_OR_RETURN(const auto view, Parse<spec::WarningsView>(created));
  for (const std::string& warning : view.warnings) {
    if (std::find(told.begin(), told.end(), warning) != told.end()) continue;
    remarks << "warning: " << warning << std::endl;  // what only the service can tell
  }
  return created;
}

absl::StatusOr<std::string> Submit(const Connect& connect, const fs::path& home, UserJob& written,
                                   std::ostream& remarks) {
  const std::vector<std::string>& told = written.file.job.warnings;
  const absl::Status known = FaultsHere(written);
  for (const std::string& remark : written.remarks) remarks << remark << std::endl;
  if (written.file.faults.ok()) {
    for (const std::string& warning : told) {
      remarks << "warning: " << AsTheUserWroteIt(warning, written) << std::endl;
    }
  }
  ServiceClient service(connect());
  CodePacker code(
      PurposeAfter(known), &connect, home, remarks,
      [&remarks](const std::string& warning) { remarks << "warning: " << warning << std::endl; });
  const absl::Status faults = WithCodesFaults(known, written, code);
  if (!faults.ok()) {
    return WithServicesFaults(faults, written, service, CreateJobBody(SubmissionOf(written)));
  }
  TUTTI_ASSIGN_OR_RETURN(const auto snapshots, SendCode(service, code.packed(), remarks));
  AddGitOrigin(written);
  return Create(service, connect, SubmissionOf(written, snapshots), told, remarks);
}

absl::StatusOr<CheckedJob> CheckUserJob(const Connect* connect, const fs::path& home,
                                        UserJob& written) {
  std::optional<ServiceClient> service;
  if (connect != nullptr) service.emplace((*connect)());
  const absl::Status known = FaultsHere(written);
  const std::string body = CreateJobBody(SubmissionOf(written));
  std::ostringstream unheard;
  std::vector<std::string> of_code;
  CodePacker code(PurposeAfter(known), connect, home, unheard,
                  [&of_code](const std::string& warning) { of_code.push_back(warning); });
  const absl::Status faults = WithCodesFaults(known, written, code);
  if (!faults.ok()) return service ? WithServicesFaults(faults, written, *service, body) : faults;
  spec::ReadResult& job = written.file.job;
  CheckedJob checked{std::move(job.spec), std::move(job.warnings), std::move(written.remarks)};
  if (service) {
    TUTTI_ASSIGN_OR_RETURN(const std::string answer, service->CheckJob(body));
    TUTTI_ASSIGN_OR_RETURN(auto view, Parse<spec::WarningsView>(answer));
    checked.warnings = std::move(view.warnings);
  }
  checked.warnings.insert(checked.warnings.end(), of_code.begin(), of_code.end());
  return checked;
}

}  // namespace

absl::StatusOr<std::string> SubmitJob(const Connect& connect, const fs::path& home,
                                      const JobFile& file, std::ostream& remarks) {
  TUTTI_ASSIGN_OR_RETURN(UserJob written, ReadUserJob(home, file));
  auto created = Submit(connect, home, written, remarks);
  if (!created.ok()) {
    if (!written.save.empty()) {
      remarks << written.save << " is not written, since the job was not taken" << std::endl;
    }
    return AsTheUserWroteIt(created.status(), written);
  }
  if (const std::string saved = SaveTaken(written); !saved.empty()) remarks << saved << std::endl;
  return created;
}

absl::StatusOr<std::string> RerunJob(const Connect& connect, const std::string& job,
                                     const std::vector<KeyOption>& keys,
                                     const std::vector<std::string>& settings,
                                     const std::vector<std::string>& arguments,
                                     std::ostream& remarks) {
  ServiceClient service(connect());
  TUTTI_ASSIGN_OR_RETURN(const std::string text, service.Submission(job));
  TUTTI_ASSIGN_OR_RETURN(SubmissionView submission, Parse<SubmissionView>(text));
  if (submission.base_directory.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        job, " was taken by an older tutti, which did not note where its file lay: submit the ",
        "file itself"));
  }
  TUTTI_ASSIGN_OR_RETURN(submission.text, WithoutName(submission.text));
  std::vector<KeyOption> changes = keys;
  if (!arguments.empty()) {
    const auto program = submission.origin.find("program");
    if (program == submission.origin.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          job, " was no script: its command, arguments and all, is changed by --set command=…"));
    }
    std::string command = program->second;
    for (const std::string& word : arguments) absl::StrAppend(&command, " ", ShellWord(word));
    changes.push_back({.option = "--", .key = "command", .value = command, .sbatch = ""});
  }
  TUTTI_ASSIGN_OR_RETURN(submission.text, ApplyOptions(submission.text, changes));
  TUTTI_ASSIGN_OR_RETURN(submission.text, ApplySettings(submission.text, settings));
  submission.origin["rerun_of"] = job;
  return Create(service, connect, submission, {}, remarks);
}

absl::StatusOr<CheckedJob> CheckJob(const Connect* connect, const fs::path& home,
                                    const JobFile& file) {
  TUTTI_ASSIGN_OR_RETURN(UserJob written, ReadUserJob(home, file));
  auto checked = CheckUserJob(connect, home, written);
  if (!checked.ok()) return AsTheUserWroteIt(checked.status(), written);
  if (std::string saved = SaveTaken(written); !saved.empty()) {
    checked->remarks.push_back(std::move(saved));
  }
  return checked;
}

}  // namespace tutti::client
