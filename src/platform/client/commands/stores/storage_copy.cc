#include <unistd.h>

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "platform/client/commands/commands.h"
#include "platform/client/storage/copy_run.h"
#include "platform/client/storage/storage_report.h"
#include "platform/client/storage/storage_session.h"
#include "platform/client/text/amounts.h"
#include "platform/client/text/columns.h"
#include "platform/client/text/live_text.h"

namespace tutti::client {
namespace {

absl::StatusOr<TargetKind> KindOfTarget(StorageSide& side) {
  const StorageAddress& address = side.address();
  if (address.path.empty()) return TargetKind::kFolder;
  if (address.is_local()) {
    std::error_code error;
    const auto status = std::filesystem::status(address.path, error);
    if (!std::filesystem::exists(status)) return TargetKind::kNothing;
    return std::filesystem::is_directory(status) ? TargetKind::kFolder : TargetKind::kFile;
  }
  const auto listing = side.List(/*recursive=*/false);
  if (absl::IsNotFound(listing.status())) return TargetKind::kNothing;
  TUTTI_RETURN_IF_ERROR(listing.status());
  return listing->is_file ? TargetKind::kFile : TargetKind::kFolder;
}

std::string Counted(int64_t files, int64_t bytes) {
  return absl::StrCat(WithCommas(files), files == 1 ? " file, " : " files, ",
                      Bytes(static_cast<uint64_t>(bytes)));
}

// Says how far the copy has come and how fast it is: in one line of a terminal, in a file by a line
// a minute.
class CopyLine {
 public:
  explicit CopyLine(Context& context)
      : text_(context.err, context.err_screen), began_(absl::Now()) {
    text_.SetProgress("", began_);
  }

  void Show(const CopyProgress& now) {
    const absl::Time time = absl::Now();
    const double seconds = absl::ToDoubleSeconds(time - began_);
    const double rate = seconds > 0.5 ? static_cast<double>(now.bytes) / seconds : 0;
    std::string line =
        absl::StrCat(WithCommas(now.files), " of ", Counted(now.of_files, now.of_bytes), "  ",
                     Bytes(static_cast<uint64_t>(now.bytes)));
    if (rate > 0) absl::StrAppend(&line, "  ", Bytes(static_cast<uint64_t>(rate)), "/s");
    text_.SetProgress(line, time);
    text_.Flush();
  }

 private:
  LiveText text_;
  const absl::Time began_;
};

void TellPlan(Context& context, const CopyPlan& plan) {
  for (const CopyItem& item : plan.items) {
    context.out << Printable(JoinedPath(plan.from_base, item.from)) << " -> "
                << Printable(JoinedPath(plan.to_base, item.to)) << "  "
                << Bytes(static_cast<uint64_t>(item.bytes)) << "\n";
  }
}

// Names what is not copied.
void TellLeftOut(Context& context, const std::string& base, const std::vector<LeftOut>& left_out) {
  for (const LeftOut& one : left_out) {
    context.err << "left out: " << Printable(JoinedPath(base, one.from)) << ": "
                << Printable(one.why) << "\n";
  }
}

int64_t BytesOf(const CopyPlan& plan) {
  int64_t bytes = 0;
  for (const CopyItem& item : plan.items) bytes += item.bytes;
  return bytes;
}

// Takes what the source has not given out of what is to be copied.
void LeaveOut(Context& context, const std::vector<LeftOut>& left_out, CopyPlan& plan) {
  if (left_out.empty()) return;
  TellLeftOut(context, plan.from_base, left_out);
  std::set<std::string> paths;
  for (const LeftOut& one : left_out) paths.insert(one.from);
  std::erase_if(plan.items, [&](const CopyItem& item) { return paths.contains(item.from); });
  plan.left_out.insert(plan.left_out.end(), left_out.begin(), left_out.end());
}

// Copies one source, or says what it would copy. Returns the files that were not at the target of
// a copy that goes on. What the source does not give is in the plan's `left_out` then.
absl::StatusOr<std::vector<CopyItem>> CopyOne(Context& context, StorageSession& session,
                                              StorageSide& from, StorageSide& to, CopyPlan& plan,
                                              const StorageOptions& asked,
                                              const CopyWatch& watch = {}) {
  if (asked.dry_run) {
    if (asked.format == Format::kTable) TellPlan(context, plan);
    return plan.items;
  }
  TUTTI_ASSIGN_OR_RETURN(
      CopyJournal journal,
      CopyJournal::Open(context.home, from.address().text, to.address().text, session.cancelled()));
  std::optional<CopyLine> line(context);
  CopyOptions options{.home = context.home, .is_contained = asked.is_contained};
  options.progress = [&](const CopyProgress& now) {
    line->Show(now);
    if (watch) watch(now.files, now.of_files, now.bytes, now.of_bytes);
  };
  options.goes_on = [&](int64_t files) {
    context.err << "goes on with a copy that was cut off: " << WithCommas(files)
                << (files == 1 ? " file is there\n" : " files are there\n");
  };
  TUTTI_ASSIGN_OR_RETURN(Copied copied, RunCopy(from, to, plan, journal, options));
  line.reset();
  LeaveOut(context, copied.left_out, plan);
  return std::move(copied.items);
}

// Removes what is empty below a folder of this machine, and the folder itself if that is empty
// then.
void RemoveEmptyFolders(const std::filesystem::path& folder) {
  std::error_code error;
  std::vector<std::filesystem::path> folders = {folder};
  for (auto entry = std::filesystem::recursive_directory_iterator(folder, error);
       !error && entry != std::filesystem::recursive_directory_iterator(); entry.increment(error)) {
    if (entry->symlink_status().type() == std::filesystem::file_type::directory) {
      folders.push_back(entry->path());
    }
  }
  // A folder comes before what is in it, and only empty ones can be removed so.
  for (auto last = folders.rbegin(); last != folders.rend(); ++last) ::rmdir(last->c_str());
}

std::vector<std::string> PathsAtSource(const CopyPlan& plan) {
  std::vector<std::string> paths;
  for (const CopyItem& item : plan.items) paths.push_back(item.from);
  return paths;
}

// Removes what has been copied, once all of it is at the target.
absl::Status RemoveSource(StorageSide& from, const Listing& listing, const CopyPlan& plan) {
  TUTTI_RETURN_IF_ERROR(from.Remove(plan.from_base, PathsAtSource(plan)));
  if (from.address().is_local() && !listing.is_file) RemoveEmptyFolders(plan.from_base);
  return absl::OkStatus();
}

struct Source {
  std::unique_ptr<StorageSide> side;
  Listing listing;
  CopyPlan plan;
};

// Opens the sources of a copy to `to`, and plans what of each goes where.
absl::StatusOr<std::vector<Source>> PlanSources(StorageSession& session, StorageSide& to,
                                                const StorageOptions& options, bool moves) {
  const CopyShape shape{options.recursive, options.addresses.size() > 2};
  TUTTI_ASSIGN_OR_RETURN(const TargetKind target, KindOfTarget(to));
  std::vector<Source> sources;
  for (size_t i = 0; i + 1 < options.addresses.size(); ++i) {
    Source& source = sources.emplace_back();
    TUTTI_ASSIGN_OR_RETURN(source.side, session.Open(options.addresses[i]));
    if (moves && source.side->address().is_job()) return source.side->RemoveAll();
    TUTTI_ASSIGN_OR_RETURN(source.listing, source.side->List(/*recursive=*/true));
    TUTTI_ASSIGN_OR_RETURN(
        source.plan, PlanCopy(source.side->address(), source.listing, to.address(), target, shape));
  }
  std::vector<PlannedCopy> planned;
  for (const Source& source : sources) planned.push_back({&source.side->address(), &source.plan});
  TUTTI_RETURN_IF_ERROR(CheckTargets(planned, to.address()));
  return sources;
}

absl::StatusOr<ExitCode> CopyOrMove(Context& context, const StorageOptions& options, bool moves) {
  if (options.addresses.size() < 2) {
    return absl::InvalidArgumentError("name what is copied, and where to: SOURCE… TARGET");
  }
  StorageSession session(context.connect, context.home);
  TUTTI_ASSIGN_OR_RETURN(const auto to, session.Open(options.addresses.back()));
  if (to->address().is_job()) return to->Put("", {}, {}, {});
  TUTTI_ASSIGN_OR_RETURN(std::vector<Source> sources, PlanSources(session, *to, options, moves));
  CopyReport report{
      .command = moves ? "mv" : "cp", .dry_run = options.dry_run, .target = to->address().text};
  int64_t files = 0, bytes = 0;
  size_t left_out = 0;
  for (Source& source : sources) {
    StorageSide& from = *source.side;
    TellLeftOut(context, source.plan.from_base, source.plan.left_out);
    TUTTI_ASSIGN_OR_RETURN(const auto copied,
                           CopyOne(context, session, from, *to, source.plan, options));
    left_out += source.plan.left_out.size();
    if (moves && !options.dry_run) {
      TUTTI_RETURN_IF_ERROR(RemoveSource(from, source.listing, source.plan));
    }
    files += static_cast<int64_t>(source.plan.items.size());
    bytes += BytesOf(source.plan);
    if (options.format == Format::kTable) continue;
    report.Add(from.address(), source.plan, copied, to->address());
    if (moves) {
      report.AddRemoved(from.address(), source.plan.from_base, PathsAtSource(source.plan));
    }
  }
  const char* const did = moves ? "moved " : "copied ";
  const char* const would = moves ? "would move " : "would copy ";
  context.err << (options.dry_run ? would : did) << Counted(files, bytes) << " to "
              << to->address().text << "\n";
  if (options.format != Format::kTable) {
    TUTTI_RETURN_IF_ERROR(WriteStructured(context.out, report.Json(), options.format));
  }
  return left_out == 0 ? ExitCode::kOk : ExitCode::kSystemError;
}

// Returns what is at the target of a sync; a missing target counts as an empty folder.
absl::StatusOr<ObjectsByPath> ObjectsAt(StorageSide& to) {
  auto listing = to.List(/*recursive=*/true);
  if (absl::IsNotFound(listing.status())) return ObjectsByPath();
  TUTTI_RETURN_IF_ERROR(listing.status());
  if (!listing->is_file) return ByPath(std::move(listing->objects));
  return absl::InvalidArgumentError(
      absl::StrCat(to.address().text, " is a file, and must be a folder"));
}

// Asks whether a sync may remove what the source has not; Cancelled if not.
absl::Status AskToRemove(Context& context, const StorageOptions& options,
                         const StorageAddress& from, const StorageAddress& to,
                         const std::vector<std::string>& others) {
  if (others.empty() || options.dry_run) return absl::OkStatus();
  const std::string question =
      absl::StrCat("Remove ", WithCommas(static_cast<int64_t>(others.size())),
                   others.size() == 1 ? " object of " : " objects of ", to.text, " that ",
                   from.text, " has not?");
  TUTTI_ASSIGN_OR_RETURN(const bool may, MayRemove(context, options.yes, question));
  return may ? absl::OkStatus() : absl::CancelledError("nothing was copied or removed");
}

// Removes what the source has not, or says what that is.
absl::Status RemoveOthers(Context& context, StorageSide& to, const std::vector<std::string>& others,
                          const StorageOptions& options) {
  if (!options.dry_run) return to.Remove(to.address().path, others);
  if (options.format != Format::kTable) return absl::OkStatus();
  for (const std::string& path : others) {
    context.out << "would remove " << Printable(JoinedPath(to.address().path, path)) << "\n";
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ExitCode> StorageCopy(Context& context, const StorageOptions& options) {
  return CopyOrMove(context, options, /*moves=*/false);
}

absl::StatusOr<ExitCode> StorageMove(Context& context, const StorageOptions& options) {
  return CopyOrMove(context, options, /*moves=*/true);
}

// The question whether to remove files comes before anything is copied, so that nobody waits for
// it.
absl::StatusOr<SyncCounts> Sync(Context& context, const StorageOptions& options,
                                const CopyWatch& watch) {
  if (options.addresses.size() != 2) {
    return absl::InvalidArgumentError("name two folders: SOURCE TARGET");
  }
  StorageSession session(context.connect, context.home);
  TUTTI_ASSIGN_OR_RETURN(const auto from, session.Open(options.addresses.front()));
  TUTTI_ASSIGN_OR_RETURN(const auto to, session.Open(options.addresses.back()));
  if (to->address().is_job()) {
    TUTTI_RETURN_IF_ERROR(to->Put("", {}, {}, {}));
  }
  TUTTI_ASSIGN_OR_RETURN(const Listing listing, from->List(/*recursive=*/true));
  if (listing.is_file) {
    return absl::InvalidArgumentError(
        absl::StrCat(from->address().text, " is a file: tutti storage cp copies one"));
  }
  TUTTI_ASSIGN_OR_RETURN(CopyPlan plan, PlanCopy(from->address(), listing, to->address(),
                                                 TargetKind::kFolder, {.recursive = true}));
  TUTTI_ASSIGN_OR_RETURN(const ObjectsByPath there, ObjectsAt(*to));
  std::vector<std::string> others;
  if (options.remove_others) others = NotInPlan(there, plan);
  const PlannedCopy planned{&from->address(), &plan};
  TUTTI_RETURN_IF_ERROR(CheckTargets({planned}, to->address()));
  TUTTI_RETURN_IF_ERROR(CheckOthers(planned, to->address(), others));
  TUTTI_RETURN_IF_ERROR(AskToRemove(context, options, from->address(), to->address(), others));
  TellLeftOut(context, plan.from_base, plan.left_out);
  CopyReport report{.command = "sync", .dry_run = options.dry_run, .target = to->address().text};
  const auto all = static_cast<int64_t>(plan.items.size());
  LeaveOutSame(there, plan);
  report.left_out = all - static_cast<int64_t>(plan.items.size());
  const int64_t same = report.left_out;
  TUTTI_ASSIGN_OR_RETURN(const auto copied,
                         CopyOne(context, session, *from, *to, plan, options, watch));
  const auto files = static_cast<int64_t>(plan.items.size());
  TUTTI_RETURN_IF_ERROR(RemoveOthers(context, *to, others, options));
  const char* const would = options.dry_run ? "would have " : "";
  context.err << would << "copied " << Counted(files, BytesOf(plan)) << " to " << to->address().text
              << ", removed " << others.size() << "; " << WithCommas(same) << " were the same\n";
  if (options.format != Format::kTable) {
    report.Add(from->address(), plan, copied, to->address());
    report.AddRemoved(to->address(), to->address().path, others);
    TUTTI_RETURN_IF_ERROR(WriteStructured(context.out, report.Json(), options.format));
  }
  SyncCounts counts{static_cast<int64_t>(listing.objects.size())};
  for (const auto& object : listing.objects) counts.bytes += object.bytes;
  counts.copied_files = files;
  counts.left_out = static_cast<int64_t>(plan.left_out.size());
  return counts;
}

absl::StatusOr<ExitCode> StorageSync(Context& context, const StorageOptions& options) {
  TUTTI_ASSIGN_OR_RETURN(const SyncCounts counts, Sync(context, options, {}));
  return counts.left_out == 0 ? ExitCode::kOk : ExitCode::kSystemError;
}

}  // namespace tutti::client
