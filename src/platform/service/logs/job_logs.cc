#include "platform/service/logs/job_logs.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/status.h"
#include "base/text/utf8.h"
#include "platform/service/logs/output_tail.h"

namespace tutti::service {
namespace {

constexpr std::array<absl::string_view, 5> kLogStreamNames = {"stdout", "stderr", "metrics",
                                                              "mpirun", "mlflow"};
constexpr size_t kLogBlock = 256 << 10;
constexpr char kKeptFile[] = "rank-kept.json";
constexpr char kBeginsFile[] = "rank-begins.json";

// Reads exactly `size` bytes at `offset`.
absl::Status ReadAt(int fd, uint64_t offset, char* to, size_t size) {
  while (size > 0) {
    const ssize_t n = ::pread(fd, to, size, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return base::ErrnoStatus("read a job's log");
    if (n == 0) return absl::DataLossError("a job's log is shorter than its index");
    to += n;
    offset += n;
    size -= n;
  }
  return absl::OkStatus();
}

// Writes at `offset` and advances it by what was written, also on failure.
absl::Status WriteAt(int fd, uint64_t& offset, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return base::ErrnoStatus("write a job's log");
    bytes.remove_prefix(n);
    offset += n;
  }
  return absl::OkStatus();
}

std::string NameOf(int rank, LogStream stream) {
  return absl::StrCat("rank-", rank, ".", Name(stream));
}

// Reads a name of NameOf's; nothing if it is none.
std::optional<std::pair<int, LogStream>> RankAndStream(absl::string_view name) {
  if (!absl::ConsumePrefix(&name, "rank-")) return std::nullopt;
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(name, absl::MaxSplits('.', 1));
  int rank = 0;
  const auto stream = LogStreamFromName(parts.second);
  if (!absl::SimpleAtoi(parts.first, &rank) || !stream.ok()) return std::nullopt;
  return std::pair(rank, *stream);
}

absl::StatusOr<uint64_t> SizeOf(int fd) {
  struct stat status;
  if (::fstat(fd, &status) != 0) return base::ErrnoStatus("fstat of a job's log");
  return static_cast<uint64_t>(status.st_size);
}

// Returns how much of a line's beginning can be shown: not a carriage return at its end, which may
// be half of a Windows line end, and not a part of a character.
size_t LengthToShow(absl::string_view text) {
  absl::ConsumeSuffix(&text, "\r");
  return base::WholeCharacters(text).size();
}

absl::Status NoneOfThisJob() {
  return absl::InvalidArgumentError("the cursor is none of this job");
}

// Which attempt of the job a file of kKeptFile or kBeginsFile speaks of: without a word, the first.
int AttemptIn(const nlohmann::json& file) {
  const bool says = file.is_object() && file.contains("attempt") && file["attempt"].is_number();
  return says ? file["attempt"].get<int>() : 1;
}

}  // namespace

absl::string_view Name(LogStream stream) { return kLogStreamNames[static_cast<int>(stream)]; }

absl::StatusOr<LogStream> LogStreamFromName(absl::string_view name) {
  for (size_t i = 0; i < kLogStreamNames.size(); ++i) {
    if (kLogStreamNames[i] == name) return static_cast<LogStream>(i);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "stream must be stdout, stderr, metrics, mlflow or mpirun, but is \"", name, "\""));
}

absl::StatusOr<std::map<int, std::filesystem::path>> RankFiles(
    const std::filesystem::path& directory, LogStream stream) {
  std::map<int, std::filesystem::path> files;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory, error), last; !error && entry != last;
       entry.increment(error)) {
    const auto named = RankAndStream(entry->path().filename().native());
    if (named && named->second == stream) files[named->first] = entry->path();
  }
  if (!error || error == std::errc::no_such_file_or_directory) return files;
  return base::ErrnoStatus(absl::StrCat("read ", directory.native()), error.value());
}

// As it lies in the index, in the machine's byte order.
struct JobLogs::Record {
  int64_t micros = 0;   // of arrival, since 1970
  uint64_t offset = 0;  // in the stream's file
  uint32_t length = 0;
  int32_t rank = 0;
  uint8_t stream = 0;
  std::array<uint8_t, 7> zero = {};
};

struct JobLogs::File {
  int rank = 0;
  LogStream stream = LogStream::kStdout;
  std::shared_ptr<const base::UniqueFd> fd;  // null: it is not open
  std::list<File*>::iterator place;          // in open_, if it is
  uint64_t begin = 0;                        // of what this attempt of the job prints
  uint64_t size = 0;
  uint64_t whole = 0;  // bytes up to and with the last newline, or what a redrawn line has come to
  bool redrawn = false;            // a carriage return has come since the last newline
  uint64_t indexed = 0;            // bytes that records cover
  std::optional<OutputTail> tail;  // once the log is full
};

JobLogs::JobLogs(std::filesystem::path directory, const base::Clock* clock, uint64_t limit,
                 int attempt)
    : directory_(std::move(directory)), clock_(clock), limit_(limit), attempt_(attempt) {}
JobLogs::~JobLogs() = default;

std::shared_ptr<JobLogs> JobLogs::OpenLater(const std::filesystem::path& directory,
                                            const base::Clock* clock, uint64_t limit, int attempt) {
  return std::shared_ptr<JobLogs>(new JobLogs(directory, clock, limit, attempt));
}

absl::Status JobLogs::TryToOpen() {
  absl::MutexLock lock(&mutex_);
  return OpenOnce();
}

absl::Status JobLogs::OpenOnce() {
  if (opened_) return absl::OkStatus();
  open_.clear();
  files_.clear();  // of an attempt that failed
  total_ = 0;
  full_ = false;
  const absl::Status status = OpenAll();
  opened_ = status.ok();
  return status;
}

absl::Status JobLogs::OpenAll() {
  if (::access(directory_.c_str(), F_OK) != 0 && errno == ENOENT) return absl::OkStatus();
  TUTTI_RETURN_IF_ERROR(OpenIndex(O_RDWR | O_CREAT));
  TUTTI_RETURN_IF_ERROR(Recover());
  return BeginAttempt();
}

absl::StatusOr<std::shared_ptr<JobLogs>> JobLogs::OpenToRead(
    const std::filesystem::path& directory) {
  std::shared_ptr<JobLogs> logs(new JobLogs(directory, nullptr, kNoLimit, /*attempt=*/1));
  absl::MutexLock lock(&logs->mutex_);
  const absl::Status opened = logs->OpenIndex(O_RDONLY);
  if (!opened.ok() && !absl::IsNotFound(opened)) return opened;
  logs->opened_ = true;
  return logs;
}

absl::Time JobLogs::InOrder(absl::Time now) {
  const int64_t micros = absl::ToUnixMicros(now);
  int64_t latest = latest_, in_order = 0;
  do {
    in_order = micros < latest ? latest + 1 : micros;
  } while (!latest_.compare_exchange_weak(latest, in_order));
  return in_order == micros ? now : absl::FromUnixMicros(in_order);
}

absl::Status JobLogs::MakeFolder() {
  if (index_.valid()) return absl::OkStatus();
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(directory_));
  TUTTI_RETURN_IF_ERROR(BeginAttempt());  // former attempts printed nothing
  TUTTI_ASSIGN_OR_RETURN(index_, base::Open(directory_ / "arrivals", O_RDWR | O_CREAT));
  return absl::OkStatus();
}

absl::Status JobLogs::OpenIndex(int flags) {
  static_assert(sizeof(Record) == 32);
  TUTTI_ASSIGN_OR_RETURN(index_, base::Open(directory_ / "arrivals", flags));
  TUTTI_ASSIGN_OR_RETURN(const uint64_t bytes, service::SizeOf(index_.get()));
  records_ = bytes / sizeof(Record);
  return absl::OkStatus();
}

absl::Status JobLogs::Recover() {
  TUTTI_RETURN_IF_ERROR(FindFiles());
  TUTTI_RETURN_IF_ERROR(RecoverFullness());
  TUTTI_RETURN_IF_ERROR(ReadIndex());
  if (::ftruncate(index_.get(), static_cast<off_t>(records_ * sizeof(Record))) != 0) {
    return base::ErrnoStatus("shorten the index of a job's logs");
  }
  std::string block;
  for (auto& [key, file] : files_) {
    file->whole = file->indexed;
    for (uint64_t at = file->indexed; at < file->size; at += block.size()) {
      block.resize(std::min<uint64_t>(kLogBlock, file->size - at));
      TUTTI_ASSIGN_OR_RETURN(const auto fd, Descriptor(*file));
      TUTTI_RETURN_IF_ERROR(ReadAt(fd->get(), at, block.data(), block.size()));
      const size_t newline = block.rfind('\n');
      if (newline != std::string::npos) file->whole = at + newline + 1;
    }
    TUTTI_RETURN_IF_ERROR(IndexLines(*file, /*all=*/full_));
  }
  return full_ || Room() > 0 ? absl::OkStatus() : BecomeFull();
}

// Where it begins is decided once, before anything of it has come.
absl::Status JobLogs::BeginAttempt() {
  if (attempt_ == 1) return absl::OkStatus();
  const std::filesystem::path place = directory_ / kBeginsFile;
  const auto text = base::ReadFile(place);
  auto begins = nlohmann::json::parse(text.value_or(""), nullptr, /*allow_exceptions=*/false);
  if (AttemptIn(begins) != attempt_) {
    begins = {{"attempt", attempt_}};
    for (const auto& [key, file] : files_) begins[NameOf(file->rank, file->stream)] = file->size;
    TUTTI_RETURN_IF_ERROR(base::ReplaceFile(place, begins.dump(1) + "\n"));
  }
  for (const auto& [key, file] : files_) {
    const std::string name = NameOf(file->rank, file->stream);
    if (!begins.contains(name) || !begins[name].is_number_unsigned()) continue;
    file->begin = std::min(file->size, begins[name].get<uint64_t>());
  }
  return absl::OkStatus();
}

// Files go back to what they had when the log became full: what a Close that was cut short had put
// behind that comes with the next. No later attempt begins before Close is done.
absl::Status JobLogs::RecoverFullness() {
  const auto text = base::ReadFile(directory_ / kKeptFile);
  if (!text.ok()) return absl::OkStatus();
  const auto kept = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (AttemptIn(kept) != attempt_) return absl::OkStatus();
  full_ = true;
  for (auto& [key, file] : files_) {
    const std::string name = NameOf(file->rank, file->stream);
    const bool known = kept.is_object() && kept.contains(name) && kept[name].is_number_unsigned();
    if (known) {
      const uint64_t size = std::min(file->size, kept[name].get<uint64_t>());
      total_ -= file->size - size;
      file->size = size;
    }
    TUTTI_ASSIGN_OR_RETURN(const auto fd, Descriptor(*file));
    if (::ftruncate(fd->get(), static_cast<off_t>(file->size)) != 0) {
      return base::ErrnoStatus("shorten a job's log");
    }
    file->tail.emplace(file->size);
  }
  return absl::OkStatus();
}

absl::Status JobLogs::FindFiles() {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory_, error)) {
    const auto named = RankAndStream(entry.path().filename().native());
    if (named) TUTTI_RETURN_IF_ERROR(FileOf(named->first, named->second).status());
  }
  if (error) return base::ErrnoStatus(directory_.native(), error.value());
  return absl::OkStatus();
}

// How far the index covers each file. Ends at the first record that speaks of bytes which are not
// there: a power failure kept the index and lost the file's end.
absl::Status JobLogs::ReadIndex() {
  std::vector<Record> block;
  int64_t newest = latest_;
  for (uint64_t at = 0; at < records_; at += block.size()) {
    block.resize(std::min<uint64_t>(kLogBlock / sizeof(Record), records_ - at));
    TUTTI_RETURN_IF_ERROR(ReadAt(index_.get(), at * sizeof(Record),
                                 reinterpret_cast<char*>(block.data()),
                                 block.size() * sizeof(Record)));
    for (size_t i = 0; i < block.size(); ++i) {
      const Record& record = block[i];
      const auto found = files_.find({record.rank, static_cast<LogStream>(record.stream)});
      const bool fits = found != files_.end() && record.offset == found->second->indexed &&
                        record.offset + record.length <= found->second->size;
      if (!fits) {
        records_ = at + i;  // which ends both loops
        break;
      }
      found->second->indexed += record.length;
      newest = std::max(newest, record.micros);
    }
  }
  InOrder(absl::FromUnixMicros(newest));
  return absl::OkStatus();
}

absl::StatusOr<JobLogs::File*> JobLogs::FileOf(int rank, LogStream stream) const {
  if (const auto found = files_.find({rank, stream}); found != files_.end()) {
    return found->second.get();
  }
  auto fresh = std::make_unique<File>();
  fresh->rank = rank;
  fresh->stream = stream;
  TUTTI_ASSIGN_OR_RETURN(const auto fd, Descriptor(*fresh));
  const auto size = service::SizeOf(fd->get());
  if (!size.ok()) open_.pop_front();
  TUTTI_RETURN_IF_ERROR(size.status());
  fresh->size = *size;
  if (full_) fresh->tail.emplace(fresh->size);
  total_ += fresh->size;
  return (files_[{rank, stream}] = std::move(fresh)).get();
}

absl::StatusOr<std::shared_ptr<const base::UniqueFd>> JobLogs::Descriptor(File& file) const {
  if (file.fd != nullptr) {
    open_.splice(open_.begin(), open_, file.place);
    return file.fd;
  }
  const std::filesystem::path path = directory_ / NameOf(file.rank, file.stream);
  TUTTI_ASSIGN_OR_RETURN(base::UniqueFd fd,
                         base::Open(path, clock_ == nullptr ? O_RDONLY : O_RDWR | O_CREAT));
  while (open_.size() >= kMostOpen) {
    open_.back()->fd.reset();  // who reads from it closes it
    open_.pop_back();
  }
  file.fd = std::make_shared<const base::UniqueFd>(std::move(fd));
  open_.push_front(&file);
  file.place = open_.begin();
  return file.fd;
}

absl::StatusOr<uint64_t> JobLogs::Append(int rank, LogStream stream, uint64_t offset,
                                         absl::string_view bytes) {
  absl::MutexLock lock(&mutex_);
  if (closed_) return absl::FailedPreconditionError("the job's logs are closed");
  // Whoever comes first opens it: the first line of a job does not wait for another thread.
  if (!OpenOnce().ok()) return absl::UnavailableError("the job's logs cannot be read");
  TUTTI_RETURN_IF_ERROR(MakeFolder());
  TUTTI_ASSIGN_OR_RETURN(File* const file, FileOf(rank, stream));
  offset += std::min(file->begin, kNoLimit - offset);
  if (!full_) {
    if (offset > file->size) return file->size - file->begin;
    const absl::string_view fresh =
        bytes.substr(std::min<uint64_t>(bytes.size(), file->size - offset));
    const uint64_t room = Room();
    TUTTI_RETURN_IF_ERROR(Keep(*file, fresh.substr(0, room)));
    if (fresh.size() <= room) return file->size - file->begin;
    TUTTI_RETURN_IF_ERROR(BecomeFull());
  }
  file->tail->Take(offset, bytes);
  return file->tail->arrived() - file->begin;
}

// Writes to the end of the file; a part may be there if that fails.
absl::Status JobLogs::Keep(File& file, absl::string_view bytes) {
  const uint64_t before = file.size;
  TUTTI_ASSIGN_OR_RETURN(const auto fd, Descriptor(file));
  const absl::Status written = WriteAt(fd->get(), file.size, bytes);
  total_ += file.size - before;
  NoteLines(file, bytes.substr(0, file.size - before));
  TUTTI_RETURN_IF_ERROR(IndexLines(file, /*all=*/false));
  return written;
}

void JobLogs::NoteLines(File& file, absl::string_view fresh) {
  const size_t newline = fresh.rfind('\n');
  if (newline != absl::string_view::npos) {
    fresh.remove_prefix(newline + 1);
    file.whole = file.size - fresh.size();
    file.redrawn = false;
  }
  if (absl::StrContains(fresh, '\r')) file.redrawn = true;
  if (file.redrawn) file.whole = file.size - fresh.size() + LengthToShow(fresh);
}

uint64_t JobLogs::Room() const { return limit_ - std::min<uint64_t>(limit_, total_); }

absl::Status JobLogs::BecomeFull() {
  nlohmann::json kept = {{"attempt", attempt_}};
  for (const auto& [key, file] : files_) kept[NameOf(file->rank, file->stream)] = file->size;
  TUTTI_RETURN_IF_ERROR(base::ReplaceFile(directory_ / kKeptFile, kept.dump(1) + "\n"));
  full_ = true;
  for (auto& [key, file] : files_) {
    file->tail.emplace(file->size);
    TUTTI_RETURN_IF_ERROR(IndexLines(*file, /*all=*/true));
  }
  return absl::OkStatus();
}

// Metrics are read by programs, which would not understand the line.
absl::Status JobLogs::AddTail(File& file) {
  const uint64_t left_out = file.tail->LeftOut();
  if (left_out > 0 && file.stream != LogStream::kMetrics) {
    char before = '\n';
    TUTTI_ASSIGN_OR_RETURN(const auto fd, Descriptor(file));
    if (file.size > 0) TUTTI_RETURN_IF_ERROR(ReadAt(fd->get(), file.size - 1, &before, 1));
    TUTTI_RETURN_IF_ERROR(
        Keep(file, absl::StrCat(before == '\n' ? "" : "\n", "[tutti: ", left_out,
                                " bytes are left out here: ", limit_ >> 20,
                                " MiB of a job's output are kept, and the end of each file]\n")));
  }
  const std::string last = file.tail->Last();
  file.tail.reset();
  return Keep(file, last);
}

// Returns the end of the last whole character of a file whose last line is long.
absl::StatusOr<uint64_t> JobLogs::EndToShow(File& file) const {
  std::array<char, 4> last = {};
  const uint64_t begin = file.size - last.size();
  TUTTI_ASSIGN_OR_RETURN(const auto fd, Descriptor(file));
  TUTTI_RETURN_IF_ERROR(ReadAt(fd->get(), begin, last.data(), last.size()));
  return begin + LengthToShow({last.data(), last.size()});
}

absl::Status JobLogs::IndexLines(File& file, bool all) {
  const bool long_line = file.size - std::max(file.whole, file.indexed) >= kMaxLine;
  uint64_t end = all ? file.size : std::max(file.whole, file.indexed);
  if (!all && long_line) {
    TUTTI_ASSIGN_OR_RETURN(end, EndToShow(file));
  }
  while (file.indexed < end) {
    const uint64_t length = std::min<uint64_t>(end - file.indexed, uint64_t{1} << 30);
    const Record record{.micros = absl::ToUnixMicros(InOrder(clock_->Now())),
                        .offset = file.indexed,
                        .length = static_cast<uint32_t>(length),
                        .rank = file.rank,
                        .stream = static_cast<uint8_t>(file.stream)};
    uint64_t at = records_ * sizeof(Record);
    TUTTI_RETURN_IF_ERROR(
        WriteAt(index_.get(), at, {reinterpret_cast<const char*>(&record), sizeof(record)}));
    ++records_;
    file.indexed += length;
  }
  return absl::OkStatus();
}

absl::Status JobLogs::Close() {
  absl::MutexLock lock(&mutex_);
  closed_ = true;
  if (!opened_ || !index_.valid()) return absl::OkStatus();
  for (auto& [key, file] : files_) {
    if (file->tail) TUTTI_RETURN_IF_ERROR(AddTail(*file));
    TUTTI_RETURN_IF_ERROR(IndexLines(*file, /*all=*/true));
    TUTTI_ASSIGN_OR_RETURN(const auto fd, Descriptor(*file));
    if (::fsync(fd->get()) != 0) return base::ErrnoStatus("fsync a job's log");
  }
  if (::fsync(index_.get()) != 0) return base::ErrnoStatus("fsync the index of a job's logs");
  return base::SyncDirectory(directory_);
}

absl::StatusOr<std::vector<LogLine>> JobLogs::Read(LogPosition position, size_t max_bytes) const {
  uint64_t records = 0;
  {
    absl::MutexLock lock(&mutex_);
    if (!opened_) return std::vector<LogLine>();
    records = records_;
  }
  if (position.record > records || (position.record == records && position.offset > 0)) {
    return NoneOfThisJob();
  }
  std::vector<LogLine> lines;
  size_t bytes = 0;
  for (uint64_t number = position.record; number < records && bytes < max_bytes; ++number) {
    TUTTI_ASSIGN_OR_RETURN(const Record record, RecordAt(number));
    const uint64_t offset = number == position.record ? position.offset : 0;
    if (offset >= record.length) return NoneOfThisJob();
    const size_t had = lines.size();
    TUTTI_RETURN_IF_ERROR(
        ReadRecord(record, {number, offset}, record.length, max_bytes - bytes, lines));
    for (size_t i = had; i < lines.size(); ++i) bytes += lines[i].text.size() + 1;
  }
  return lines;
}

absl::StatusOr<LogPage> JobLogs::ReadBack(std::optional<LogPosition> position, size_t max_lines,
                                          size_t max_bytes) const {
  uint64_t records = 0;
  {
    absl::MutexLock lock(&mutex_);
    if (!opened_) return LogPage();
    records = records_;
  }
  LogPage page{.begin = position.value_or(LogPosition{records, 0})};
  auto& [begin, lines] = page;  // `lines` have the newest first until the end
  if (begin.record > records || (begin.record == records && begin.offset > 0)) {
    return NoneOfThisJob();
  }
  size_t bytes = 0;
  while ((begin.record > 0 || begin.offset > 0) && lines.size() < max_lines && bytes < max_bytes) {
    const uint64_t number = begin.offset > 0 ? begin.record : begin.record - 1;
    TUTTI_ASSIGN_OR_RETURN(const Record record, RecordAt(number));
    const uint64_t end = begin.offset > 0 ? begin.offset : record.length;
    if (end > record.length) return NoneOfThisJob();
    TUTTI_ASSIGN_OR_RETURN(
        LogPage part,
        ReadRecordBack(record, {number, end}, max_lines - lines.size(), max_bytes - bytes));
    for (const LogLine& line : part.lines) bytes += line.text.size() + 1;
    std::move(part.lines.rbegin(), part.lines.rend(), std::back_inserter(lines));
    begin = part.begin;
  }
  std::reverse(lines.begin(), lines.end());
  return page;
}

// The last lines of one record before `end` in it; from the middle of a line on if that is longer
// than what is read.
absl::StatusOr<LogPage> JobLogs::ReadRecordBack(const Record& record, LogPosition end,
                                                size_t max_lines, size_t max_bytes) const {
  const uint64_t most = max_bytes + kMaxLine + 1;
  LogPage part{.begin = {end.record, end.offset - std::min(end.offset, most)}};
  TUTTI_RETURN_IF_ERROR(ReadRecord(record, part.begin, end.offset, most, part.lines));
  const bool cuts = part.begin.offset > 0 && part.lines.size() > 1;
  const size_t passed =
      std::max<size_t>(cuts ? 1 : 0, part.lines.size() - std::min(part.lines.size(), max_lines));
  if (passed == 0) return part;
  part.begin = part.lines[passed - 1].next;
  part.lines.erase(part.lines.begin(), part.lines.begin() + static_cast<ptrdiff_t>(passed));
  return part;
}

absl::StatusOr<JobLogs::Record> JobLogs::RecordAt(uint64_t number) const {
  Record record;
  TUTTI_RETURN_IF_ERROR(ReadAt(index_.get(), number * sizeof(Record),
                               reinterpret_cast<char*>(&record), sizeof(record)));
  return record;
}

// The lines of one record from `from` to before the offset `end` in it, until about `max_bytes` are
// reached.
absl::Status JobLogs::ReadRecord(const Record& record, LogPosition from, uint64_t end,
                                 size_t max_bytes, std::vector<LogLine>& lines) const {
  std::shared_ptr<const base::UniqueFd> fd;
  {
    absl::MutexLock lock(&mutex_);
    TUTTI_ASSIGN_OR_RETURN(File* const file,
                           FileOf(record.rank, static_cast<LogStream>(record.stream)));
    TUTTI_ASSIGN_OR_RETURN(fd, Descriptor(*file));
  }
  // One byte past the longest piece, to see whether its newline follows.
  std::string block(std::min<uint64_t>(end - from.offset, max_bytes + kMaxLine + 1), '\0');
  TUTTI_RETURN_IF_ERROR(ReadAt(fd->get(), record.offset + from.offset, block.data(), block.size()));
  const bool to_the_end = from.offset + block.size() == end;
  absl::string_view rest = block;
  while (!rest.empty() && block.size() - rest.size() < max_bytes) {
    const size_t newline = rest.substr(0, kMaxLine + 1).find('\n');
    const bool partial = newline == absl::string_view::npos;
    if (partial && rest.size() <= kMaxLine && !to_the_end) break;
    const size_t length = !partial                  ? newline
                          : rest.size() <= kMaxLine ? rest.size()
                                                    : LengthToShow(rest.substr(0, kMaxLine));
    LogLine line{.time = absl::FromUnixMicros(record.micros),
                 .rank = record.rank,
                 .stream = static_cast<LogStream>(record.stream),
                 .text = std::string(rest.substr(0, length)),
                 .partial = partial};
    rest.remove_prefix(length + (partial ? 0 : 1));
    const uint64_t at = from.offset + (block.size() - rest.size());
    line.next =
        at == record.length ? LogPosition{from.record + 1, 0} : LogPosition{from.record, at};
    lines.push_back(std::move(line));
  }
  return absl::OkStatus();
}

}  // namespace tutti::service
