#include <algorithm>
#include <atomic>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "base/text/binary_size.h"
#include "platform/cache/fetched_home.h"
#include "platform/cache/lock_reach.h"
#include "platform/cache/node_cache.h"
#include "platform/client/commands/commands.h"
#include "platform/client/text/amounts.h"
#include "platform/client/text/columns.h"
#include "platform/client/text/table.h"
#include "platform/storage/objects/object_manifest.h"

namespace tutti::client {
namespace {

namespace fs = std::filesystem;
using cache::CachedData;
using nlohmann::json;

constexpr size_t kShownDigits = 12;  // of a key; show and prune take any beginning that is clear

fs::path FolderOf(const Context& context, const CacheOptions& options) {
  return options.folder.empty() ? context.home / "data" : fs::path(options.folder);
}

std::string StateOf(const CachedData& data) {
  return data.is_pinned ? "in use" : std::string(cache::Name(data.state));
}

json JsonOf(const CachedData& data) {
  return {{"key", data.key},
          {"place", data.place},
          {"files", data.files},
          {"bytes", data.bytes},
          {"own_bytes", data.own_bytes},
          {"last_used", absl::FormatTime(absl::RFC3339_full, data.last_use, absl::UTCTimeZone())},
          {"state", cache::Name(data.state)},
          {"in_use", data.is_pinned}};
}

json JsonOf(const std::vector<CachedData>& list) {
  json array = json::array();
  for (const CachedData& data : list) array.push_back(JsonOf(data));
  return array;
}

absl::StatusOr<CachedData> FindOne(const std::vector<CachedData>& list, const std::string& key,
                                   const fs::path& folder) {
  std::vector<CachedData> found;
  for (const CachedData& data : list) {
    if (absl::StartsWith(data.key, key)) found.push_back(data);
  }
  if (found.size() == 1) return found.front();
  return absl::InvalidArgumentError(
      found.empty() ? absl::StrCat("no data of ", folder.native(), " begin with \"", key,
                                   "\": see `tutti cache list`")
                    : absl::StrCat("\"", key, "\" is the beginning of ", found.size(),
                                   " keys: write more of it"));
}

absl::StatusOr<std::optional<uint64_t>> SizeOf(const std::string& text, const char* option) {
  if (text.empty()) return std::nullopt;
  const auto bytes = base::ReadSize(text);
  if (bytes) return bytes;
  return absl::InvalidArgumentError(
      absl::StrCat(option, ": \"", text, "\" is no size: write 500MB, 200GB, 200GiB or 2TB"));
}

absl::StatusOr<cache::RoomGoal> RoomOf(const fs::path& folder, const CacheOptions& options) {
  cache::RoomGoal room;
  TUTTI_ASSIGN_OR_RETURN(room.most_bytes, SizeOf(options.size, "--size"));
  TUTTI_ASSIGN_OR_RETURN(const auto wanted, SizeOf(options.free, "--free"));
  if (!wanted) return room;
  TUTTI_ASSIGN_OR_RETURN(const uint64_t there, base::FreeBytes(folder));
  room.freed_bytes = *wanted - std::min(*wanted, there);
  return room;
}

// Names all that is to go, and refuses what a job reads before anything has gone.
absl::StatusOr<std::vector<CachedData>> NamedIn(const cache::NodeCache& node,
                                                const std::vector<std::string>& keys) {
  const std::vector<CachedData> list = node.List();
  std::vector<CachedData> named;
  for (const std::string& key : keys) {
    TUTTI_ASSIGN_OR_RETURN(CachedData data, FindOne(list, key, node.folder()));
    if (data.is_pinned) {
      return absl::FailedPreconditionError(
          absl::StrCat(data.key, " is in use: a job reads it; nothing was removed"));
    }
    named.push_back(std::move(data));
  }
  return named;
}

absl::StatusOr<std::vector<CachedData>> DoPrune(const cache::NodeCache& node,
                                                const CacheOptions& options) {
  const std::atomic<bool> never = false;
  TUTTI_RETURN_IF_ERROR(cache::CheckLockReach(node.folder()));
  if (options.keys.empty()) {
    TUTTI_ASSIGN_OR_RETURN(const cache::RoomGoal room, RoomOf(node.folder(), options));
    if (options.dry_run) return node.ToRemove(room);
    return node.MakeRoom(room, never);
  }
  TUTTI_ASSIGN_OR_RETURN(std::vector<CachedData> named, NamedIn(node, options.keys));
  if (options.dry_run) return named;
  std::set<std::string> keys;
  for (const CachedData& data : named) keys.insert(data.key);
  return node.Remove(keys, never);
}

// The files that the fetch has noted, by path.
std::map<std::string, storage::ManifestEntry> FilesOf(const cache::NodeCache& node,
                                                      const CachedData& data) {
  const auto text = base::ReadFile(node.PathOf(data.key) / "objects");
  return storage::ManifestEntriesIn(text.value_or(""));
}

json JsonOfFiles(const std::map<std::string, storage::ManifestEntry>& files) {
  json array = json::array();
  for (const auto& [path, entry] : files) {
    array.push_back(
        {{"path", path}, {"bytes", entry.bytes}, {"etag", entry.etag}, {"sha256", entry.sha256}});
  }
  return array;
}

// Returns which files have changed since they were fetched; "" if none has.
absl::StatusOr<std::string> Verified(const cache::NodeCache& node, const CachedData& data) {
  const std::atomic<bool> never = false;
  const auto home = cache::FetchedHome::In(node.PathOf(data.key));
  if (!home) {
    return absl::FailedPreconditionError(absl::StrCat(
        data.key, " has no hashes to compare with: it was fetched by https, or is not whole yet"));
  }
  TUTTI_ASSIGN_OR_RETURN(const auto damaged, home->FirstDamaged(never));
  return damaged.value_or("");
}

}  // namespace

absl::StatusOr<ExitCode> CacheList(Context& context, const CacheOptions& options) {
  const fs::path folder = FolderOf(context, options);
  const auto census = cache::Census::Of(folder);
  if (options.format != Format::kTable) {
    const json document = {
        {"folder", folder.native()}, {"bytes", census.bytes()}, {"data", JsonOf(census.list())}};
    TUTTI_RETURN_IF_ERROR(WriteStructured(context.out, document.dump(), options.format));
    return ExitCode::kOk;
  }
  Table table({{"KEY"},
               {"SIZE", Table::Align::kRight},
               {"ALONE", Table::Align::kRight, false, 2},
               {"FILES", Table::Align::kRight, false, 1},
               {"USED", Table::Align::kRight},
               {"STATE"},
               {"DATA", Table::Align::kLeft, true}});
  for (const CachedData& data : census.list()) {
    table.Add({{data.key.substr(0, kShownDigits)},
               {Bytes(data.bytes)},
               {Bytes(data.own_bytes)},
               {WithCommas(static_cast<int64_t>(data.files))},
               {Age(absl::Now() - data.last_use)},
               {StateOf(data)},
               {data.place}});
  }
  context.out << table.Render(context.out_screen.width, context.out_screen.colour)
              << Bytes(census.bytes()) << " in " << folder.native() << "\n";
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> CacheShow(Context& context, const CacheOptions& options) {
  const cache::NodeCache node(FolderOf(context, options));
  TUTTI_ASSIGN_OR_RETURN(const CachedData data,
                         FindOne(node.List(), options.keys.at(0), node.folder()));
  const auto files = FilesOf(node, data);
  json document = JsonOf(data);
  document["folder"] = node.PathOf(data.key).native();
  document["objects"] = JsonOfFiles(files);
  ExitCode code = ExitCode::kOk;
  if (options.verify) {
    TUTTI_ASSIGN_OR_RETURN(const std::string damaged, Verified(node, data));
    document["damaged"] = damaged;
    if (!damaged.empty()) code = ExitCode::kJobFailed;
  }
  if (options.format != Format::kTable) {
    TUTTI_RETURN_IF_ERROR(WriteStructured(context.out, document.dump(), options.format));
    return code;
  }
  Table table({{"SIZE", Table::Align::kRight}, {"SHA-256"}, {"PATH", Table::Align::kLeft, true}});
  for (const auto& [path, entry] : files) {
    table.Add({{Bytes(static_cast<uint64_t>(entry.bytes))}, {entry.sha256}, {path}});
  }
  context.out << Printable(data.place) << "\n"
              << node.PathOf(data.key).native() << ", " << Bytes(data.bytes) << ", "
              << StateOf(data) << ", used " << Age(absl::Now() - data.last_use) << " ago\n"
              << table.Render(context.out_screen.width, context.out_screen.colour);
  if (options.verify) {
    context.out << (code == ExitCode::kOk
                        ? "all of it is what was fetched\n"
                        : absl::StrCat(Printable(document["damaged"].get<std::string>()),
                                       " is not what was fetched: remove it (tutti cache prune ",
                                       data.key.substr(0, kShownDigits), ")\n"));
  }
  return code;
}

absl::StatusOr<ExitCode> CachePrune(Context& context, const CacheOptions& options) {
  const bool has_aim = !options.keys.empty() || !options.size.empty() || !options.free.empty();
  if (!has_aim) {
    return absl::InvalidArgumentError(
        "say what is to go: keys (`tutti cache list`), --size 200GB to keep that much, or --free "
        "100GB to have as much free");
  }
  const cache::NodeCache node(FolderOf(context, options));
  TUTTI_ASSIGN_OR_RETURN(const std::vector<CachedData> gone, DoPrune(node, options));
  if (options.format != Format::kTable) {
    const json document = {{"dry_run", options.dry_run}, {"removed", JsonOf(gone)}};
    TUTTI_RETURN_IF_ERROR(WriteStructured(context.out, document.dump(), options.format));
    return ExitCode::kOk;
  }
  Table table({{"KEY"}, {"SIZE", Table::Align::kRight}, {"DATA", Table::Align::kLeft, true}});
  for (const CachedData& data : gone) {
    table.Add({{data.key.substr(0, kShownDigits)}, {Bytes(data.own_bytes)}, {data.place}});
  }
  if (!gone.empty()) {
    context.out << table.Render(context.out_screen.width, context.out_screen.colour);
  }
  context.out << (gone.empty() ? "nothing"
                               : absl::StrCat(gone.size(), gone.size() == 1 ? " version of data"
                                                                            : " versions of data"))
              << (options.dry_run ? " would be removed" : " removed") << "\n";
  return ExitCode::kOk;
}

}  // namespace tutti::client
